//go:build unix

package sandbox

import (
	"os/exec"
	"syscall"
)

// own gives a command a session of its own.
func own(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// end ends a command's session's first group.
func end(c *exec.Cmd) { syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
