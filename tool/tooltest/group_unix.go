//go:build unix

package tooltest

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the program the head of a process group that dies with it.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
