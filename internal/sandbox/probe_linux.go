//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"belay/effect"
	"belay/internal/sandbox/helper"
	"belay/tool"
)

// probeTime is far more than building a sandbox takes on any machine.
const probeTime = 20 * time.Second

func probe(ctx context.Context) Level {
	if !helper.Called() {
		return Level{Isolation: None, Reason: "the program did not call belay.Init() first thing in main (in TestMain for tests), so it cannot be started again as the sandbox helper"}
	}
	program := ""
	for _, dir := range []string{"/bin", "/usr/bin", "/run/current-system/sw/bin"} {
		if exists(filepath.Join(dir, "true")) {
			program = filepath.Join(dir, "true")
			break
		}
	}
	if program == "" {
		return Level{Isolation: None, Reason: "there is no program `true` in /bin or /usr/bin to try a sandbox with: install coreutils"}
	}
	tries := []ids{ownID}
	if os.Geteuid() == 0 {
		tries = []ids{allIDs, ownID}
	}
	var first error
	for _, how := range tries {
		level := Level{Isolation: Namespaces, Overlay: true, Landlock: landlockVersion() > 0, ids: how}
		err := try(ctx, level, program)
		if err != nil && ctx.Err() == nil {
			level.Overlay = false
			err = try(ctx, level, program)
		}
		if err != nil && level.Landlock && ctx.Err() == nil { // the kernel has it and something forbids it
			level.Landlock = false
			err = try(ctx, level, program)
		}
		if err == nil {
			level.Groups = slices.Sorted(maps.Keys(hierarchies()))
			level.describe()
			return level
		}
		if first == nil {
			first = err
		}
	}
	return Level{Isolation: None, Reason: reason(first)}
}

// try builds a sandbox without a workspace and runs program in it.
func try(ctx context.Context, level Level, program string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	s := &Sandbox{level: level, uid: os.Geteuid(), gid: os.Getegid(), cfg: Config{TmpBytes: 1 << 20}}
	steps := s.fresh()
	if level.Overlay {
		steps = append(steps, helper.Step{Code: helper.Overlay, A: "/usr", B: "/overlay"})
	}
	var out bytes.Buffer
	h, err := startHelper(level)
	if err != nil {
		return err
	}
	defer h.end()
	exit, err := h.exec(ctx, &room{base: s.base(), own: steps, program: helper.Program{
		SetIDs: level.ids == allIDs, UID: uint32(s.uid), GID: uint32(s.gid), Limits: s.effective(Limits{}).rlimits(false), Landlock: s.landlock(effect.NoAccess), Filter: s.filter(),
	}}, Call{Command: tool.Command{Argv: []string{program}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/", Output: &out}}, nil)
	if err != nil {
		return err
	}
	if exit.Code != 0 {
		return fmt.Errorf("%s ended with code %d: %s", program, exit.Code, strings.TrimSpace(out.String()))
	}
	return nil
}

func (l *Level) describe() {
	l.Holds = []string{
		"own root with only the granted view of the workspace", "own processes, which all end with their call", "no network but its own loopback",
		"no capabilities and no new privileges", "system call filter",
	}
	if l.ids == allIDs {
		l.Holds = append(l.Holds, "run as the workspace's owner")
	}
	l.Lacks = nil
	for _, c := range []struct{ name, what string }{{"memory", "memory"}, {"pids", "the number of processes"}} {
		switch {
		case slices.Contains(l.Groups, c.name):
			l.Holds = append(l.Holds, c.what+" of a whole call, by a cgroup")
		case c.name == "pids" && os.Geteuid() != 0:
			l.Holds = append(l.Holds, "the number of processes, by user")
		default:
			l.Lacks = append(l.Lacks, c.what+" of a whole call: there is no cgroup for it, so it is looked at every "+betweenLook.String())
		}
	}
	l.Lacks = append(l.Lacks, "processor time, what is written to disks and files made in all: they are looked at every "+betweenLook.String())
	if l.Landlock {
		l.Holds = append(l.Holds, fmt.Sprintf("Landlock (version %d) as a second layer over files", landlockVersion()))
	} else {
		l.Lacks = append(l.Lacks, "no Landlock as a second layer: this kernel has none or forbids it")
	}
	if !l.Overlay {
		l.Lacks = append(l.Lacks, "no overlay: throw-away views are copies, build caches start cold, and verifiers compile everything each time")
	}
}

// reason turns a failure into something a person can act on.
func reason(err error) string {
	text := err.Error()
	knob := func(file string) string {
		b, _ := os.ReadFile(file)
		return strings.TrimSpace(string(b))
	}
	switch {
	case errors.Is(err, errNoAnswer):
		return "the program was started again but did not become the sandbox helper: call belay.Init() first thing in main"
	case knob("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" && os.Geteuid() != 0:
		return text + ": AppArmor forbids user namespaces; allow them for this program with an AppArmor profile, or with `sysctl kernel.apparmor_restrict_unprivileged_userns=0`"
	case knob("/proc/sys/kernel/unprivileged_userns_clone") == "0":
		return text + ": allow user namespaces with `sysctl kernel.unprivileged_userns_clone=1`"
	case knob("/proc/sys/user/max_user_namespaces") == "0":
		return text + ": allow user namespaces with `sysctl user.max_user_namespaces=10000`"
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EUSERS):
		return text + ": the limit on user namespaces is reached, see `sysctl user.max_user_namespaces`"
	case errors.Is(err, syscall.EPERM):
		return text + ": user namespaces are forbidden here; inside a container, start it with a seccomp profile that allows them (docker: --security-opt seccomp=unconfined)"
	case strings.Contains(text, syscall.ENOSYS.Error()):
		return text + ": the sandbox needs Linux 5.12 or later"
	}
	return text
}
