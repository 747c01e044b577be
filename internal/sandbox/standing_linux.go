//go:build amd64 || arm64

package sandbox

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"belay/effect"
	"belay/internal/sandbox/egress"
	"belay/internal/sandbox/helper"
	"belay/tool"
)

// To start a program of belay's size and to make its name spaces takes most of the time that a sandbox takes.
// So a helper stands and waits: it makes a new root for every command, ends every process of the command, and
// shows the next one nothing of it. What may be is made ahead, while the model thinks.

// room is a root for one command: what every command of this sandbox sees, and what this one is granted.
type room struct {
	program helper.Program // without steps
	base    []helper.Step
	own     []helper.Step
}

// key says what the room's own steps are and which files and directories they point to now. Something that was
// replaced since, by a rename on the host, would no longer be held in a room that was made before.
func (r *room) key() string {
	key := (&helper.Program{Steps: r.own, Limits: r.program.Limits}).Encode()
	for _, step := range r.own {
		for _, path := range append(strings.Split(step.A, "\x00"), strings.Split(step.C, "\x00")...) {
			var st unix.Stat_t
			if unix.Lstat(path, &st) == nil {
				key = fmt.Appendf(key, "%d %d ", st.Dev, st.Ino)
			} else {
				key = append(key, "- "...)
			}
		}
	}
	return string(key)
}

// ahead is the room to make before the next command is known: the same again. A throw-away view is not made
// ahead, as what lies under an overlay must not change, nor is one that borrows the build cache or throws it away.
func (e *env) ahead(last *room) *room {
	if e.grant.Workspace == effect.Discard || e.cache != agentCache || e.s.locks(e.grant.Workspace) || e.s.keepsModules(e.grant.Workspace) {
		return nil
	}
	return last
}

// standing is a helper that waits for commands.
type standing struct {
	process *os.Process
	control *os.File
	gone    chan struct{} // closed when it and everything in it has ended
	group   *group        // limits it and all of its commands
	entered chan struct{} // closed when group is there
	based   bool          // it knows what every command sees
	ready   string        // the key of the room that it has made ahead
	inlet   *egress.Inlet // the way out to allowed hosts, nil without any
}

// startHelper starts one. It dies with the thread that starts it, so that thread waits for it and does
// nothing else.
func startHelper(level Level) (*standing, error) {
	h := &standing{gone: make(chan struct{}), entered: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		err := h.start(level.ids)
		started <- err
		if err != nil {
			close(h.entered)
			return
		}
		go func() {
			h.group = newGroup(h.process.Pid, level.Groups) // takes longer than to start a program
			close(h.entered)
		}()
		h.process.Wait()
		<-h.entered
		h.group.remove()
		close(h.gone)
	}()
	return h, <-started
}

func (h *standing) start(how ids) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	theirs := os.NewFile(uintptr(pair[1]), "helper control")
	defer theirs.Close()
	if err := unix.SetNonblock(pair[0], true); err != nil {
		unix.Close(pair[0])
		return err
	}
	h.control = os.NewFile(uintptr(pair[0]), "control")
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err == nil {
		defer null.Close()
		h.process, err = os.StartProcess("/proc/self/exe", []string{"belay: sandbox"}, &os.ProcAttr{
			Dir: "/", Env: helperEnv, Files: []*os.File{null, null, null, theirs}, Sys: attributes(how),
		})
	}
	if err != nil {
		h.control.Close()
		return fmt.Errorf("starting the sandbox helper: %w", bare(err))
	}
	return nil
}

// helperEnv is all the environment of the helper. It does one thing after the other; its second processor lets
// a thread end while the first waits.
var helperEnv = []string{helper.Marker + "=1", "GOMAXPROCS=2"}

// end kills the helper, and with it everything in it, and waits until it is gone.
func (h *standing) end() {
	h.process.Kill()
	<-h.gone
	h.control.Close()
}

// message asks for the room, and for a command in it if the program has one.
func (h *standing) message(r *room) []byte {
	p := r.program
	if !h.based {
		p.Base, h.based = r.base, true
	}
	p.Steps = append(slices.Clip(r.own), helper.Step{Code: helper.Seal, A: "/"})
	return p.Encode()
}

// prepare has the room made, without waiting for it.
func (h *standing) prepare(r *room) error {
	h.ready = r.key()
	_, err := h.control.Write(h.message(r))
	return err
}

// exec runs a command in the room, which was made ahead or is made now, and waits until every process of it
// is gone. Afterwards the helper is gone too if it is not fit for another one.
func (h *standing) exec(ctx context.Context, r *room, cmd Call, m *meter) (tool.Exit, error) {
	began := time.Now()
	with := *r
	with.program.Argv, with.program.Env, with.program.Dir = cmd.Argv, cmd.Env, cmd.Dir
	message := with.program.Encode()
	if h.ready == "" || h.ready != r.key() {
		message = h.message(&with)
	}
	h.ready = ""
	streams, err := open(&r.program, cmd)
	if err != nil {
		return tool.Exit{}, err
	}
	var ended endings
	stop := context.AfterFunc(ctx, func() { ended.end(h, cancelled) })
	defer stop()
	if cmd.Timeout > 0 {
		t := time.AfterFunc(cmd.Timeout, func() { ended.end(h, timedOut) })
		defer t.Stop()
	}
	beyond := ""
	if m != nil {
		m.start(func(what string) { beyond = what; ended.end(h, limited) })
	}
	err = h.send(message, streams)
	streams.close()
	var status []byte
	for err == nil {
		if status, err = h.receive(); m == nil || len(status) != 9 || status[0] != helper.Wrote {
			break
		}
		m.orphans.Add(512 * int64(binary.LittleEndian.Uint64(status[1:])))
	}
	how := ended.get()
	if m != nil {
		m.end()
	}
	if err != nil || how != byItself || len(status) == 0 || status[0] != helper.Ended {
		h.process.Kill()
		<-h.gone
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
			err = errNoAnswer
		}
	}
	outErr := <-streams.written
	exit := tool.Exit{Duration: time.Since(began)}
	switch {
	case how == limited:
		exit.Code, exit.Signal = 128+int(syscall.SIGKILL), syscall.SIGKILL.String()
		exit.Denied = append(exit.Denied, beyond)
		return exit, outErr
	case len(status) == 5 && status[0] == helper.Ended:
		ws := syscall.WaitStatus(uint32(status[1]) | uint32(status[2])<<8 | uint32(status[3])<<16 | uint32(status[4])<<24)
		exit.Code = ws.ExitStatus()
		if ws.Signaled() {
			exit.Code, exit.Signal = 128+int(ws.Signal()), ws.Signal().String()
		}
		return exit, outErr
	case how == timedOut:
		exit.Code, exit.Signal, exit.TimedOut = 128+int(syscall.SIGKILL), syscall.SIGKILL.String(), true
		return exit, outErr
	case how == cancelled:
		exit.Code, exit.Signal = 128+int(syscall.SIGKILL), syscall.SIGKILL.String()
		return exit, ctx.Err()
	case len(status) > 0:
		return exit, fmt.Errorf("building the sandbox: %s", status[1:])
	case errors.Is(err, errNoAnswer):
		return exit, err
	}
	return exit, fmt.Errorf("sandbox helper: %w", err)
}

var errNoAnswer = errors.New("the sandbox helper ended without an answer")

// send sends a message and lets the command's input and output go with its first bytes.
func (h *standing) send(message []byte, s *streams) error {
	raw, err := h.control.SyscallConn()
	if err != nil {
		return err
	}
	rights := unix.UnixRights(int(s.in.Fd()), int(s.out.Fd()), int(s.err.Fd()))
	var sent int
	werr := raw.Write(func(fd uintptr) bool {
		sent, err = unix.SendmsgN(int(fd), message, rights, nil, unix.MSG_NOSIGNAL)
		return err != unix.EAGAIN
	})
	if err = errors.Join(werr, err); err == nil && sent < len(message) {
		_, err = h.control.Write(message[sent:])
	}
	return err
}

// receive reads the status of a command.
func (h *standing) receive() ([]byte, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(h.control, head); err != nil {
		return nil, err
	}
	status := make([]byte, int(head[0])|int(head[1])<<8|int(head[2])<<16|int(head[3])<<24)
	_, err := io.ReadFull(h.control, status)
	return status, err
}

type ending int

const (
	byItself ending = iota
	cancelled
	timedOut
	limited // the call used more than it may
)

// endings remembers what ended a command first.
type endings struct {
	mu   sync.Mutex
	how  ending
	over bool
}

// end kills the helper, unless the command is over: then the helper is no longer its own.
func (e *endings) end(h *standing, how ending) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.over {
		return
	}
	if e.how == byItself {
		e.how = how
	}
	h.process.Kill()
}

func (e *endings) get() ending {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.over = true
	return e.how
}

// helpers are the ones that wait for a command.
type helpers struct {
	mu     sync.Mutex
	ports  []uint16      // of the host's loopback that are let in
	proxy  *egress.Proxy // nil where no host is allowed
	port   uint16        // of the proxy, inside
	idle   []*standing
	closed bool
}

// maxIdle is how many helpers wait at most: commands that run side by side are few.
const maxIdle = 2

func (p *helpers) take(level Level) (*standing, error) {
	p.mu.Lock()
	for n := len(p.idle); n > 0; n = len(p.idle) {
		h := p.idle[n-1]
		p.idle = p.idle[:n-1]
		select {
		case <-h.gone:
			h.control.Close()
			continue
		default:
		}
		p.mu.Unlock()
		return h, nil
	}
	p.mu.Unlock()
	h, err := startHelper(level)
	if err != nil {
		return nil, err
	}
	if err := h.connect(p.ports, p.proxy, p.port); err != nil {
		h.end()
		return nil, err
	}
	return h, nil
}

// put gives a helper back, which then makes a room ahead, unless that is nil.
func (p *helpers) put(h *standing, ahead *room) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-h.gone:
		h.control.Close()
		return
	default:
	}
	if p.closed || len(p.idle) >= maxIdle || ahead != nil && h.prepare(ahead) != nil {
		h.end()
		return
	}
	p.idle = append(p.idle, h)
}

func (p *helpers) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, h := range p.idle {
		h.end()
	}
	p.idle = nil
}
