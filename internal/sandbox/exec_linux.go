//go:build amd64 || arm64

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"belay/effect"
	"belay/internal/sandbox/helper"
	"belay/tool"
)

// Limits of every command. A hard limit of the host that is lower stays.
var limits = []helper.Limit{
	{Resource: unix.RLIMIT_CORE, Value: 0},
	{Resource: unix.RLIMIT_NOFILE, Value: 65536},
	{Resource: unix.RLIMIT_NPROC, Value: 4096},
	{Resource: unix.RLIMIT_MEMLOCK, Value: 8 << 20},
	{Resource: unix.RLIMIT_MSGQUEUE, Value: 819200},
}

var filterOnce = sync.OnceValue(filter)

func (e *env) Exec(ctx context.Context, cmd tool.Command) (tool.Exit, error) {
	if len(cmd.Argv) == 0 || cmd.Argv[0] == "" {
		return tool.Exit{}, errors.New("exec: no program was named")
	}
	name := cmd.Argv[0]
	if e.s.level.Isolation == None {
		return tool.Exit{}, denied("exec", name, "this run is read-only, as there is no sandbox: "+e.s.level.Reason)
	}
	for _, text := range append(append([]string{cmd.Dir}, cmd.Argv...), cmd.Env...) {
		if strings.ContainsRune(text, 0) {
			return tool.Exit{}, fmt.Errorf("exec %q: an argument holds a NUL byte", name)
		}
	}
	dir := cmd.Dir
	if dir == "" {
		dir = e.dir
	}
	dir = filepath.Clean(dir)
	if real, err := resolve(dir); err == nil {
		dir = real
	}
	if !within(dir, e.s.workspace) {
		return tool.Exit{}, denied("exec", name, dir+" is outside the workspace "+e.s.workspace)
	}
	from, cleanup, err := e.source()
	if err != nil {
		return tool.Exit{}, fmt.Errorf("exec %s: %w", name, err)
	}
	defer cleanup()
	view, err := e.s.view(e.grant.Workspace, from)
	if err != nil {
		return tool.Exit{}, fmt.Errorf("exec %s: %w", name, err)
	}
	cache, release, err := e.s.cacheSteps(e.cache)
	if err != nil {
		return tool.Exit{}, fmt.Errorf("exec %s: %w", name, err)
	}
	defer release()
	e.s.baseOnce.Do(func() { e.s.baseSteps = e.s.base() })
	steps := slices.Concat(e.s.baseSteps, cache, view, []helper.Step{{Code: helper.Seal, A: "/"}})
	uid, gid, _ := e.s.insideIDs()
	watch := e.s.watch(e.grant.Workspace)
	exit, err := launch(ctx, e.s.level.ids, &helper.Program{
		Steps: steps, SetIDs: e.s.level.ids == allIDs, UID: uint32(uid), GID: uint32(gid),
		Limits: limits, Filter: filterOnce(), Argv: cmd.Argv, Env: e.s.environ(cmd.Env), Dir: dir,
	}, cmd)
	if err != nil {
		err = fmt.Errorf("exec %s: %w", name, err)
	}
	taken, werr := watch()
	exit.Denied = append(exit.Denied, taken...)
	if len(e.grant.Network) > 0 {
		exit.Denied = append(exit.Denied, "connect: this sandbox has no way out to the granted hosts; there is no network inside")
	}
	return exit, errors.Join(err, werr)
}

// source is where the workspace is shown from: a copy when a view to be thrown away cannot be an overlay.
func (e *env) source() (from string, cleanup func(), err error) {
	s := e.s
	if e.grant.Workspace != effect.Discard || s.level.Overlay {
		return s.workspace, func() {}, nil
	}
	if within(s.home, s.workspace) {
		return "", nil, fmt.Errorf("the state directory %s lies in the workspace, which would have to be copied: set BELAY_HOME to another place", s.home)
	}
	copied, err := os.MkdirTemp(s.home, "discard-")
	if err != nil {
		return "", nil, err
	}
	cleanup = func() { os.RemoveAll(copied) }
	if err := copyTree(s.workspace, copied); err != nil {
		cleanup()
		return "", nil, fmt.Errorf("copying the workspace: %w", err)
	}
	return copied, cleanup, nil
}

// launch runs p in a helper of its own and waits until every process of it is gone.
func launch(ctx context.Context, how ids, p *helper.Program, cmd tool.Command) (tool.Exit, error) {
	if err := ctx.Err(); err != nil {
		return tool.Exit{}, err
	}
	// The helper dies with the thread that starts it. A thread that a goroutine is locked to lives as long.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := time.Now()
	h, err := start(how, p, cmd)
	if err != nil {
		return tool.Exit{}, err
	}
	defer h.control.Close()
	var ended endings
	stop := context.AfterFunc(ctx, func() { ended.end(h, cancelled) })
	defer stop()
	if cmd.Timeout > 0 {
		t := time.AfterFunc(cmd.Timeout, func() { ended.end(h, timedOut) })
		defer t.Stop()
	}
	var status []byte
	if _, err = h.control.Write(p.Encode()); err == nil {
		status, err = io.ReadAll(h.control) // until the helper is gone
	}
	if err != nil {
		h.process.Kill()
	}
	_, werr := h.process.Wait()
	outErr := <-h.output
	if err = errors.Join(err, werr); err != nil {
		err = fmt.Errorf("sandbox helper: %w", err)
	}
	exit := tool.Exit{Duration: time.Since(began)}
	switch how := ended.get(); {
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
	case len(status) > 0 && status[0] == helper.Failed:
		return exit, fmt.Errorf("building the sandbox: %s", status[1:])
	case err != nil:
		return exit, err
	}
	return exit, errNoAnswer
}

var errNoAnswer = errors.New("the sandbox helper ended without an answer")

type ending int

const (
	byItself ending = iota
	cancelled
	timedOut
)

// endings remembers what ended a helper first.
type endings struct {
	mu  sync.Mutex
	how ending
}

func (e *endings) end(h *running, how ending) {
	e.mu.Lock()
	if e.how == byItself {
		e.how = how
	}
	e.mu.Unlock()
	h.process.Kill()
}

func (e *endings) get() ending {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.how
}

// running is a started helper.
type running struct {
	process *os.Process
	control *os.File
	output  chan error // one value, when all output was written
}

func start(how ids, p *helper.Program, cmd tool.Command) (h *running, err error) {
	var files closers
	defer files.close()
	stdin, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	files.add(stdin)
	var feed *os.File
	if cmd.Stdin != nil {
		stdin, feed, err = os.Pipe()
		if err != nil {
			return nil, err
		}
		files.add(stdin)
	}
	output, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	files.add(write)
	if p.SetIDs {
		// The command opens /dev/stdout by name: the pipe must be its own.
		for _, f := range []*os.File{stdin, write} {
			if f.Name() != os.DevNull {
				if err := f.Chown(int(p.UID), int(p.GID)); err != nil {
					output.Close()
					return nil, err
				}
			}
		}
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		output.Close()
		return nil, err
	}
	theirs := os.NewFile(uintptr(pair[1]), "helper control")
	files.add(theirs)
	if err := unix.SetNonblock(pair[0], true); err != nil {
		unix.Close(pair[0])
		output.Close()
		return nil, err
	}
	h = &running{control: os.NewFile(uintptr(pair[0]), "control"), output: make(chan error, 1)}
	attr := &os.ProcAttr{
		Dir: "/", Env: helperEnv, Files: []*os.File{stdin, write, write, theirs}, Sys: attributes(how),
	}
	h.process, err = os.StartProcess("/proc/self/exe", []string{"belay: sandbox"}, attr)
	if err != nil {
		h.control.Close()
		output.Close()
		if feed != nil {
			feed.Close()
		}
		return nil, fmt.Errorf("starting the sandbox helper: %w", bare(err))
	}
	if feed != nil {
		go func() {
			io.Copy(feed, cmd.Stdin) // that the program reads no further is no error
			feed.Close()
		}()
	}
	go func() {
		defer output.Close()
		if cmd.Output == nil {
			io.Copy(io.Discard, output)
			h.output <- nil
			return
		}
		_, err := io.Copy(cmd.Output, output)
		if err != nil {
			err = fmt.Errorf("passing on the output: %w", err)
			io.Copy(io.Discard, output) // a full pipe would stop the program
		}
		h.output <- err
	}()
	return h, nil
}

// helperEnv is all the environment of the helper: it lives shortly and does one thing after the other.
var helperEnv = []string{helper.Marker + "=1", "GOMAXPROCS=1", "GOGC=off"}

type closers []io.Closer

func (c *closers) add(f io.Closer) { *c = append(*c, f) }

func (c *closers) close() {
	for _, f := range *c {
		f.Close()
	}
}

// attributes asks for the name spaces, and for a session of its own: what a person types at the terminal ends a
// command through the context, not by hitting the helper. An ordinary user's program loses its capabilities over them when it is
// executed, except ambient ones.
func attributes(how ids) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{
		Setsid: true,
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC |
			syscall.CLONE_NEWUTS | syscall.CLONE_NEWNET | unix.CLONE_NEWCGROUP,
	}
	if how == allIDs {
		attr.UidMappings, attr.GidMappings = sameIDs("/proc/self/uid_map"), sameIDs("/proc/self/gid_map")
		attr.GidMappingsEnableSetgroups = true
		return attr
	}
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_NET_ADMIN, unix.CAP_DAC_OVERRIDE, unix.CAP_FOWNER, unix.CAP_CHOWN}
	return attr
}

// sameIDs maps every id that exists here to itself.
func sameIDs(file string) []syscall.SysProcIDMap {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	var out []syscall.SysProcIDMap
	for line := range strings.Lines(string(data)) {
		var inside, outside, n int
		if _, err := fmt.Sscan(line, &inside, &outside, &n); err == nil {
			out = append(out, syscall.SysProcIDMap{ContainerID: inside, HostID: inside, Size: n})
		}
	}
	return out
}
