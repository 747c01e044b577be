//go:build amd64 || arm64

package helper

import (
	"runtime"
	"syscall"
	"unsafe"
)

func init() {
	if syscall.Getpid() != 1 {
		return
	}
	if v, _ := syscall.Getenv(Marker); v != "1" {
		return
	}
	run()
}

// Constants that package syscall does not have on every architecture.
const (
	prSetPdeathsig   = 1
	prSetDumpable    = 4
	prCapbsetDrop    = 24
	prSetNoNewPrivs  = 38
	prCapAmbient     = 47
	prCapAmbientZero = 4

	sysCloseRange    = 436
	seccompSetFilter = 1

	msgCloexec = 0x40000000 // descriptors that arrive are not inherited
	wAll       = 0x40000000 // children of every kind
)

// run is the whole life of the helper: it prepares a room and runs a command in it, again and again, until the
// other end of the control socket is closed.
func run() {
	// From here on the death of the thread that started us takes this namespace's first process, and with
	// it all others. Had it died before, the control socket is at its end and reading fails.
	prctl(prSetPdeathsig, uintptr(syscall.SIGKILL), 0)
	syscall.CloseOnExec(ControlFD)
	// Nothing in the sandbox may look into this process: it sees the host's files, and keeps its capabilities
	// over these namespaces.
	prctl(prSetDumpable, 0, 0)
	deaf()
	affinity = processors()
	// Whatever is left open from outside goes.
	if _, _, e := syscall.RawSyscall(sysCloseRange, ControlFD+1, uintptr(^uint32(0)), 0); e != 0 {
		syscall.Exit(1)
	}
	loopback()
	var base []Step
	var stage string // where the beginning of every room is mounted
	var ready *room
	for {
		p, files := receive()
		if len(p.Listen) > 0 {
			listen(p.Listen)
		}
		if len(p.Base) > 0 {
			base = p.Base
		}
		if stage != "" && (len(p.Base) > 0 || inUse(p.Steps, stage)) {
			syscall.Unmount(stage, mntDetach)
			stage = ""
		}
		if len(p.Steps) > 0 {
			ready.leave()
			var err error
			if stage == "" {
				stage, err = lay(base, p.Steps)
			}
			if err == nil {
				ready = prepare(p, stage)
			} else {
				ready = &room{failed: err.Error()}
			}
		}
		if len(p.Argv) > 0 {
			send(ready.run(p, files))
			ready = nil
		}
		for _, fd := range files {
			syscall.Close(fd)
		}
	}
}

// deaf takes back the runtime's signal handlers: a signal from inside that has none does nothing to the first process
// of a name space. The runtime's own SIGURG stays, with which it interrupts loops; coming from others it does no harm.
func deaf() {
	var dfl [4]uint64 // the kernel's struct sigaction
	for sig := uintptr(1); sig <= 64; sig++ {
		if sig != uintptr(syscall.SIGURG) {
			syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, sig, uintptr(unsafe.Pointer(&dfl)), 0, 8, 0, 0)
		}
	}
}

// affinity are the processors that this process may use in the beginning. A command could change that of our threads.
var affinity []byte

func processors() []byte {
	mask := make([]byte, 8192)
	n, _, e := syscall.RawSyscall(syscall.SYS_SCHED_GETAFFINITY, 0, uintptr(len(mask)), uintptr(unsafe.Pointer(&mask[0])))
	if e != 0 {
		return nil
	}
	return mask[:n]
}

// room is a new root that waits for its command: a thread that has moved into it and dropped everything. It
// begins with a copy of all mounts, among them those of lay.
// A thread has its own root, capabilities and system call filter, and what is forked from it inherits them;
// so one helper makes room after room, and no command finds anything that an earlier one has left.
type room struct {
	failed  string // why there is no room
	command chan *Program
	files   []int
	started chan begun
}

// begun says that a command runs, or why not, in the manner of a shell.
type begun struct {
	pid, code int
	msg       string
}

// prepare makes a room and waits until it is ready.
func prepare(p *Program, stage string) *room {
	r := &room{command: make(chan *Program), started: make(chan begun)}
	ready := make(chan string)
	go func() {
		runtime.LockOSThread() // for ever: the thread ends with this function
		failed := move(p, stage)
		ready <- failed
		if failed != "" {
			return
		}
		if c := <-r.command; c != nil {
			r.started <- start(p, c, r.files)
		}
	}()
	r.failed = <-ready
	return r
}

// leave ends a room that nobody needs.
func (r *room) leave() {
	if r != nil && r.failed == "" {
		close(r.command)
	}
}

// run runs a command in the room and gives the status. No process of it is left then.
func (r *room) run(c *Program, files []int) []byte {
	if r == nil || len(files) != 3 {
		return failed("a command came without a room or without its files")
	}
	if r.failed != "" {
		return failed(r.failed)
	}
	r.files = files
	r.command <- c
	b := <-r.started
	// The command holds its own copies: a reader of the output waits for it, not for us.
	if b.pid == 0 {
		syscall.Write(files[2], []byte(b.msg+"\n"))
		return ended(syscall.WaitStatus(b.code << 8))
	}
	var status []byte
	for {
		var ws syscall.WaitStatus
		var used syscall.Rusage
		got, err := syscall.Wait4(-1, &ws, wAll, &used)
		switch {
		case err == syscall.EINTR:
		case err == syscall.ECHILD && status != nil:
			return status
		case err != nil:
			return failed("waiting for the command: " + err.Error())
		case got == b.pid:
			status = ended(ws)
			// All others of this namespace end with it. They are ours to wait for, as its first process.
			syscall.Kill(-1, syscall.SIGKILL)
		case used.Oublock > 0 && status == nil:
			b := []byte{Wrote, 0, 0, 0, 0, 0, 0, 0, 0}
			for i := range 8 {
				b[1+i] = byte(used.Oublock >> (8 * i))
			}
			send(b)
		}
	}
}

// move takes this thread into a root of its own and drops what a command must not have.
func move(p *Program, stage string) string {
	if _, _, e := syscall.RawSyscall(syscall.SYS_UNSHARE, syscall.CLONE_NEWNS|syscall.CLONE_NEWIPC|syscall.CLONE_FS, 0, 0); e != 0 {
		return "a mount namespace for the command: " + e.Error()
	}
	if err := enter(stage, p.Steps); err != nil {
		return err.Error()
	}
	return drop(p)
}

// receive gives the next message, and the descriptors that came with it.
func receive() (*Program, []int) {
	head, rights := make([]byte, 4), make([]byte, 64)
	n, m, _, _, err := syscall.Recvmsg(ControlFD, head, rights, msgCloexec|syscall.MSG_WAITALL)
	for err == syscall.EINTR {
		n, m, _, _, err = syscall.Recvmsg(ControlFD, head, rights, msgCloexec|syscall.MSG_WAITALL)
	}
	if err != nil || n != 4 {
		syscall.Exit(0) // belay needs no more
	}
	var files []int
	if messages, err := syscall.ParseSocketControlMessage(rights[:m]); err == nil && len(messages) == 1 {
		files, _ = syscall.ParseUnixRights(&messages[0])
	}
	b := make([]byte, int(head[0])|int(head[1])<<8|int(head[2])<<16|int(head[3])<<24)
	if !readFull(b) {
		syscall.Exit(1)
	}
	p, ok := Decode(b)
	if !ok {
		send(failed("the program that the parent sent makes no sense"))
		syscall.Exit(1)
	}
	return p, files
}

func readFull(b []byte) bool {
	for len(b) > 0 {
		n, err := syscall.Read(ControlFD, b)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return false
		}
		b = b[n:]
	}
	return true
}

// drop takes away what the command must not have: capabilities, privileges to be gained, system calls.
func drop(p *Program) string {
	for _, l := range p.Limits {
		lim := syscall.Rlimit{Cur: l.Value, Max: l.Value}
		var old syscall.Rlimit
		if syscall.Getrlimit(int(l.Resource), &old) == nil && old.Max < l.Value {
			lim = syscall.Rlimit{Cur: old.Max, Max: old.Max}
		}
		if err := syscall.Setrlimit(int(l.Resource), &lim); err != nil {
			return "setting a limit: " + err.Error()
		}
	}
	for c := uintptr(0); c < 64; c++ {
		if e := prctl(prCapbsetDrop, c, 0); e != 0 {
			if e == syscall.EINVAL && c > 0 {
				break // the kernel has no more
			}
			return "dropping a capability: " + e.Error()
		}
	}
	if e := prctl(prCapAmbient, prCapAmbientZero, 0); e != 0 {
		return "dropping ambient capabilities: " + e.Error()
	}
	if e := clearInheritable(); e != 0 {
		return "dropping inheritable capabilities: " + e.Error()
	}
	if e := prctl(prSetNoNewPrivs, 1, 0); e != 0 {
		return "forbidding new privileges: " + e.Error()
	}
	if msg := confine(&p.Landlock); msg != "" {
		return msg
	}
	if n := len(p.Filter) / 8; n > 0 {
		prog := struct {
			len    uint16
			filter unsafe.Pointer
		}{uint16(n), unsafe.Pointer(&p.Filter[0])}
		_, _, e := syscall.RawSyscall(sysSeccomp, seccompSetFilter, 0, uintptr(unsafe.Pointer(&prog)))
		if e != 0 {
			return "installing the system call filter: " + e.Error()
		}
	}
	return ""
}

func clearInheritable() syscall.Errno {
	const inheritable = 2 // after effective and permitted
	hdr := struct {
		version uint32
		pid     int32
	}{version: 0x20080522}
	var d [2][3]uint32
	if _, _, e := syscall.RawSyscall(syscall.SYS_CAPGET, uintptr(unsafe.Pointer(&hdr)), uintptr(unsafe.Pointer(&d)), 0); e != 0 {
		return e
	}
	d[0][inheritable], d[1][inheritable] = 0, 0
	_, _, e := syscall.RawSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&hdr)), uintptr(unsafe.Pointer(&d)), 0)
	return e
}

// start runs the command of c in the room that p has made, with files as its input, its output and its errors.
func start(p, c *Program, files []int) begun {
	var st syscall.Stat_t
	if err := syscall.Stat(c.Dir, &st); err != nil {
		return begun{0, 126, "belay: cannot enter " + c.Dir + ": " + err.Error()}
	}
	path, code, msg := look(c.Argv[0], c.Env)
	if path == "" {
		return begun{0, code, msg}
	}
	if len(affinity) > 0 { // no process of an earlier command is left to change it again
		syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0, uintptr(len(affinity)), uintptr(unsafe.Pointer(&affinity[0])))
	}
	in, out, diagnostics := uintptr(files[0]), uintptr(files[1]), uintptr(files[2])
	attr := &syscall.ProcAttr{Dir: c.Dir, Env: c.Env, Files: []uintptr{in, out, diagnostics}, Sys: &syscall.SysProcAttr{Setsid: true}}
	if p.SetIDs {
		attr.Sys.Credential = &syscall.Credential{Uid: p.UID, Gid: p.GID}
	}
	pid, err := syscall.ForkExec(path, c.Argv, attr)
	if err == syscall.ENOEXEC {
		// A script without an interpreter line: what every shell does.
		pid, err = syscall.ForkExec("/bin/sh", append([]string{"sh", path}, c.Argv[1:]...), attr)
	}
	if err != nil {
		return begun{0, 126, "belay: " + path + ": " + err.Error()}
	}
	return begun{pid: pid}
}

func look(name string, env []string) (path string, code int, msg string) {
	for i := range len(name) {
		if name[i] == '/' {
			var st syscall.Stat_t
			if name[0] == '/' && syscall.Stat(name, &st) == syscall.ENOENT {
				return "", 127, "belay: " + name + ": no such file in the sandbox"
			}
			return name, 0, ""
		}
	}
	search := ""
	for _, e := range env {
		if len(e) > 5 && e[:5] == "PATH=" {
			search = e[5:]
		}
	}
	for rest := search; rest != ""; {
		dir := rest
		rest = ""
		for i := range len(dir) {
			if dir[i] == ':' {
				dir, rest = dir[:i], dir[i+1:]
				break
			}
		}
		if dir == "" {
			continue
		}
		full := dir + "/" + name
		var st syscall.Stat_t
		if syscall.Stat(full, &st) == nil && st.Mode&syscall.S_IFMT == syscall.S_IFREG && st.Mode&0o111 != 0 {
			return full, 0, ""
		}
	}
	return "", 127, "belay: " + name + ": command not found; the sandbox has PATH=" + search
}

func prctl(op, a, b uintptr) syscall.Errno {
	_, _, e := syscall.RawSyscall6(syscall.SYS_PRCTL, op, a, b, 0, 0, 0)
	return e
}

func ended(ws syscall.WaitStatus) []byte {
	return []byte{Ended, byte(ws), byte(ws >> 8), byte(ws >> 16), byte(ws >> 24)}
}

func failed(msg string) []byte { return append([]byte{Failed}, msg...) }

// send says how it went: the length, and the status.
func send(status []byte) {
	n := len(status)
	b := append([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}, status...)
	for len(b) > 0 {
		n, err := syscall.Write(ControlFD, b)
		if err != nil && err != syscall.EINTR {
			syscall.Exit(1)
		}
		b = b[max(n, 0):]
	}
}

// listen listens on ports of the loopback in here, and hands the listeners out.
func listen(ports []uint16) {
	var fds []int
	for _, port := range ports {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err == nil {
			err = syscall.Bind(fd, &syscall.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}})
		}
		if err == nil {
			err = syscall.Listen(fd, 128)
		}
		if err != nil {
			send(failed("listening on a port of the loopback: " + err.Error()))
			return
		}
		fds = append(fds, fd)
	}
	syscall.Sendmsg(ControlFD, []byte{1, 0, 0, 0, Listens}, syscall.UnixRights(fds...), nil, 0)
	for _, fd := range fds {
		syscall.Close(fd)
	}
}

// loopback brings up lo. Where that fails there is no network at all, which is no less safe.
func loopback() {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return
	}
	req := struct {
		name  [16]byte
		flags uint16
		_     [22]byte
	}{name: [16]byte{'l', 'o'}, flags: syscall.IFF_UP | syscall.IFF_RUNNING}
	syscall.RawSyscall(syscall.SYS_IOCTL, uintptr(fd), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&req)))
	syscall.Close(fd)
}
