// Package helper is the program that a re-executed belay becomes: it builds sandboxes from lists of steps, runs a command in each and leaves nothing of it behind.
//
// It imports nothing but runtime, syscall and unsafe, and takes over in its own package initialisation, so that a
// large host binary costs a sandboxed command as little as possible: Go initialises packages whose imports
// are ready in order of their paths, which puts this one before nearly everything else.
// It decides nothing: every path, flag and limit comes from the parent's Program.
package helper

// Marker is the environment variable that tells a process it was started as the helper.
// It counts only for the first process of a pid namespace.
const Marker = "BELAY_SANDBOX_HELPER"

// ControlFD is the helper's end of the control socket: Programs come in, for each command a Status goes out, perhaps after others that say what was written. The
// descriptors of a command's input and output come with its Program.
const ControlFD = 3

var called bool

// Init says that the host's main has agreed to be re-executed. It returns at once: a process that was started
// as the helper never gets here, it has ended in this package's initialisation.
func Init() { called = true }

// Called says whether Init was called. Without it nothing is ever re-executed.
func Called() bool { return called }

// Code is one kind of step.
type Code byte

const (
	Dir     Code = iota + 1 // makes the directory A, and its parents
	Bind                    // shows the host's A at B
	Tmpfs                   // puts an empty tmpfs with the options B at A
	Proc                    // puts a proc of the new pid namespace at A
	Pts                     // puts a devpts of its own at A
	Link                    // makes B a symbolic link to A
	File                    // makes the file B with the content A and mode Flags
	Overlay                 // puts at B an overlay: the layers A, top first, under the upper and work directory C, each joined by NUL; without C what is written is thrown away
	Pin                     // mounts A on itself, so that it cannot be renamed or removed
	Mask                    // hides A behind something empty
	Seal                    // makes the mount at A read-only
)

// Flags of Bind, Tmpfs, Overlay and Pin.
const (
	ReadOnly uint32 = 1 << iota
	NoExec
	Devices  // device nodes work
	Optional // a missing source or target is no error
)

// Step is one thing to do while the sandbox is built. Paths of the new root are absolute and are followed
// without any symbolic link.
type Step struct {
	Code    Code
	Flags   uint32
	A, B, C string
}

// Limit is one resource limit, for setrlimit.
type Limit struct {
	Resource uint32
	Value    uint64
}

// Landlock says what the kernel is to hold besides the mounts. With Files zero it holds nothing.
type Landlock struct {
	Files    uint64   // the rights over files that are taken away where they are not given
	Scope    uint64   // what outside the command's domain it cannot reach
	Writable []string // where the command may write; what does not exist is passed over
}

// Program is everything that the helper needs to know. One without Argv prepares; one without Steps runs its
// command where the last one has prepared. Base is done once, for all that follow, and shared by all commands:
// they get it read-only.
type Program struct {
	Listen   []uint16 // ports of the sandbox's loopback: listeners are answered with Listens, before all else
	Base     []Step
	Steps    []Step
	SetIDs   bool // become UID and GID without other groups; otherwise the helper's own ids stay
	UID, GID uint32
	Limits   []Limit
	Landlock Landlock
	Filter   []byte // a seccomp filter: struct sock_filter, one after the other
	Argv     []string
	Env      []string
	Dir      string
}

// Encode gives the form in which a Program goes over the control socket: its length and its fields.
func (p *Program) Encode() []byte {
	b := num(make([]byte, 4, 8192), uint64(len(p.Listen)))
	for _, port := range p.Listen {
		b = num(b, uint64(port))
	}
	for _, steps := range [][]Step{p.Base, p.Steps} {
		b = num(b, uint64(len(steps)))
		for _, s := range steps {
			b = append(b, byte(s.Code))
			b = num(b, uint64(s.Flags))
			b = text(text(text(b, s.A), s.B), s.C)
		}
	}
	ids := uint64(0)
	if p.SetIDs {
		ids = 1
	}
	b = num(num(num(b, ids), uint64(p.UID)), uint64(p.GID))
	b = num(b, uint64(len(p.Limits)))
	for _, l := range p.Limits {
		b = num(num(b, uint64(l.Resource)), l.Value)
	}
	b = num(num(b, p.Landlock.Files), p.Landlock.Scope)
	b = text(b, string(p.Filter))
	for _, list := range [][]string{p.Landlock.Writable, p.Argv, p.Env} {
		b = num(b, uint64(len(list)))
		for _, s := range list {
			b = text(b, s)
		}
	}
	b = text(b, p.Dir)
	n := uint32(len(b) - 4)
	b[0], b[1], b[2], b[3] = byte(n), byte(n>>8), byte(n>>16), byte(n>>24)
	return b
}

// Decode reads what Encode wrote, without the length in front. It says whether all of it made sense.
func Decode(b []byte) (*Program, bool) {
	d := decoder{b: b, ok: true}
	p := &Program{}
	p.Listen = make([]uint16, d.count())
	for i := range p.Listen {
		p.Listen[i] = uint16(d.num())
	}
	for _, steps := range []*[]Step{&p.Base, &p.Steps} {
		*steps = make([]Step, d.count())
		for i := range *steps {
			s := &(*steps)[i]
			s.Code = Code(d.byte())
			s.Flags = uint32(d.num())
			s.A, s.B, s.C = d.text(), d.text(), d.text()
		}
	}
	p.SetIDs = d.num() == 1
	p.UID, p.GID = uint32(d.num()), uint32(d.num())
	p.Limits = make([]Limit, d.count())
	for i := range p.Limits {
		p.Limits[i] = Limit{uint32(d.num()), d.num()}
	}
	p.Landlock.Files, p.Landlock.Scope = d.num(), d.num()
	p.Filter = []byte(d.text())
	for _, list := range []*[]string{&p.Landlock.Writable, &p.Argv, &p.Env} {
		*list = make([]string, d.count())
		for i := range *list {
			(*list)[i] = d.text()
		}
	}
	p.Dir = d.text()
	return p, d.ok && len(d.b) == 0
}

func num(b []byte, v uint64) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}

func text(b []byte, s string) []byte { return append(num(b, uint64(len(s))), s...) }

type decoder struct {
	b  []byte
	ok bool
}

func (d *decoder) byte() byte {
	if len(d.b) == 0 {
		d.ok = false
		return 0
	}
	c := d.b[0]
	d.b = d.b[1:]
	return c
}

func (d *decoder) num() uint64 {
	var v uint64
	for shift := uint(0); shift < 64; shift += 7 {
		c := d.byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return v
		}
	}
	d.ok = false
	return 0
}

// count reads the length of a list, each element of which takes at least one byte.
func (d *decoder) count() int {
	n := d.num()
	if n > uint64(len(d.b)) {
		d.ok = false
		return 0
	}
	return int(n)
}

func (d *decoder) text() string {
	n := d.count()
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

// First byte of a Status, which its length precedes, as it does with a Program: how the command ended, or why it never began.
const (
	Ended   = 'x' // followed by the wait status, four bytes, low byte first
	Wrote   = 'w' // no end: followed by how many blocks of 512 bytes a process without a parent has written, eight bytes, low byte first
	Listens = 'l' // no end: the descriptors of the listeners come with it
	Failed  = 'e' // followed by text: the sandbox could not be built
)
