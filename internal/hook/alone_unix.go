//go:build unix

package hook

import (
	"os/exec"
	"syscall"
)

// gone ends what a hook has left in its session: nothing that belay starts outlives it.
func gone(cmd *exec.Cmd) {
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // mostly there is nothing left
	}
}

// alone gives a hook a session of its own, without a terminal, and ends all of it where it is cancelled.
func alone(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
