//go:build amd64 || arm64

package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"belay/effect"
	"belay/internal/sandbox/helper"
	"belay/tool"
)

var filters = [2]func() []byte{
	sync.OnceValue(func() []byte { return filter(false) }),
	sync.OnceValue(func() []byte { return filter(true) }),
}

// filter is the system call filter for this sandbox's commands.
func (s *Sandbox) filter() []byte {
	if s.cfg.Debug {
		return filters[1]()
	}
	return filters[0]()
}

func (e *env) call(ctx context.Context, cmd Call) (tool.Exit, error) {
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
	if err := ctx.Err(); err != nil {
		return tool.Exit{}, err
	}
	if err := e.prepareGo(ctx, dir, cmd.Argv); err != nil {
		return tool.Exit{}, err
	}
	cmd.Dir = dir
	return e.exec(ctx, cmd)
}

// exec runs a command that is known to be sound, in a directory of the workspace.
func (e *env) exec(ctx context.Context, cmd Call) (tool.Exit, error) {
	name := cmd.Argv[0]
	if cmd.Dir == "" {
		cmd.Dir = e.dir
	}
	from, cleanup, err := e.source()
	if err != nil {
		return tool.Exit{}, fmt.Errorf("exec %s: %w", name, err)
	}
	defer cleanup()
	var before found
	if e.grant.Workspace != effect.NoAccess && e.grant.Workspace != "" {
		if e.grant.Workspace == effect.ReadWrite {
			if err := e.s.precreate(); err != nil {
				return tool.Exit{}, fmt.Errorf("exec %s: %w", name, err)
			}
		}
		before = e.s.look()
	}
	view, err := e.s.view(e.grant.Workspace, from, before)
	if err != nil {
		return tool.Exit{}, fmt.Errorf("exec %s: %w", name, err)
	}
	cache, release, err := e.s.cacheSteps(e.cache, e.grant.Workspace)
	if err != nil {
		return tool.Exit{}, fmt.Errorf("exec %s: %w", name, err)
	}
	if e.cache == agentCache {
		modules, done, err := e.s.moduleSteps(e.grant.Workspace)
		if err != nil {
			release()
			return tool.Exit{}, fmt.Errorf("exec %s: making the module cache: %w", name, err)
		}
		defer done()
		cache = append(cache, modules...)
	}
	e.s.once.Do(func() { e.s.baseSteps, e.s.freshSteps = e.s.base(), e.s.fresh() })
	uid, gid, _ := e.s.insideIDs()
	if e.cache != agentCache {
		cache = append(cache, e.s.trustedPath().links...)
	}
	watch := e.s.watch(e.grant.Workspace, before)
	h, err := e.helper()
	var exit tool.Exit
	if err == nil {
		limits := e.s.effective(cmd.Limits)
		m := h.meter(limits, e.s.workspace)
		room := &room{
			program: helper.Program{SetIDs: e.s.level.ids == allIDs, UID: uint32(uid), GID: uint32(gid), Limits: limits.rlimits(m.grouped["memory"]),
				Landlock: e.s.landlock(e.grant.Workspace), Filter: e.s.filter()},
			base: e.s.baseSteps, own: slices.Concat(e.s.freshSteps, cache, view),
		}
		cmd.Env = e.s.environ(e.cache, append(e.networkEnviron(), cmd.Env...))
		var shut func() []string
		if shut, err = e.reach(h); err == nil {
			exit, err = h.exec(ctx, room, cmd, m)
			exit.Denied = append(exit.Denied, shut()...)
		}
		if e.cache == agentCache {
			e.s.helpers.put(h, e.ahead(room))
		} else {
			h.end()
		}
		if errors.Is(err, errNoAnswer) {
			err = nil
			exit.Code, exit.Signal = 128+int(syscall.SIGKILL), syscall.SIGKILL.String()
			exit.Denied = append(exit.Denied, "kill 1: the sandbox ended in the middle of this command: the command killed the sandbox's first process, or the kernel did for want of memory")
		}
		exit.Denied = append(exit.Denied, m.signs(exit)...)
	}
	release()
	if err != nil {
		err = fmt.Errorf("exec %s: %w", name, err)
	}
	taken, werr := watch()
	exit.Denied = append(exit.Denied, taken...)
	if len(e.grant.Network) > 0 && (e.cache != agentCache || len(e.s.reachable(e.grant.Network)) == 0) {
		exit.Denied = append(exit.Denied, "connect: this sandbox has no way out to the granted hosts; there is no network inside")
	}
	return exit, errors.Join(err, werr)
}

// helper gives the helper for one command. One that proves work gets its own, which ends with it: whatever a command
// of the agent might have done to a helper must not decide what is proven.
func (e *env) helper() (*standing, error) {
	if e.cache != agentCache {
		return startHelper(e.s.level)
	}
	return e.s.helpers.take(e.s.level)
}

// source is where the workspace is shown from: a copy when a view to be thrown away cannot be an overlay.
func (e *env) source() (from string, cleanup func(), err error) {
	s := e.s
	if e.grant.Workspace != effect.Discard || s.level.Overlay && e.prepare == nil {
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
	if e.prepare != nil {
		if err := e.prepare(copied); err != nil {
			cleanup()
			return "", nil, fmt.Errorf("preparing the copy of the workspace: %w", err)
		}
	}
	return copied, cleanup, nil
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
