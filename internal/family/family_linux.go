package family

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// start makes the program the first process of a name space of its own, whose end the kernel makes the end of all others in it; a belay in
// between mounts the /proc that belongs to it. Where none can be had it is a process group.
func start(self string, cmd *exec.Cmd) (kept string, err error) {
	cmd.WaitDelay = time.Second // a pipe that somebody else holds open
	if reason := possible(self); reason != "" {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
		return "this machine gives no process name space (" + reason + "): a process that left its group may live on", cmd.Start()
	}
	cmd.Args = append([]string{self, First, cmd.Path}, cmd.Args[1:]...)
	cmd.Path = self
	cmd.SysProcAttr = namespaces()
	return "", cmd.Start()
}

func namespaces() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
	}
	return attr
}

var probed struct {
	sync.Once
	reason string
}

// possible says why there are no name spaces, "" where there are. It tries once.
func possible(self string) string {
	probed.Do(func() {
		cmd := exec.Command(self, First, "/bin/true")
		cmd.SysProcAttr = namespaces()
		if out, err := cmd.CombinedOutput(); err != nil {
			probed.reason = strings.TrimSpace(err.Error() + " " + string(out))
		}
	})
	return probed.reason
}

// BeFirst is what a program does that was started as SELF First PROGRAM ARG…: it becomes the program, with a /proc that shows the
// processes of its own name space. It returns only where that fails.
func BeFirst(args []string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("own mounts: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("own /proc: %w", err)
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	return unix.Exec(args[0], args, os.Environ())
}

func interrupt(cmd *exec.Cmd) { _ = cmd.Process.Signal(syscall.SIGINT) }

func kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

func ended(state *os.ProcessState) End {
	var end End
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		end.Code, end.Signal = 128+int(status.Signal()), status.Signal().String()
	} else {
		end.Code = state.ExitCode()
	}
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		end.Memory = usage.Maxrss << 10
	}
	return end
}
