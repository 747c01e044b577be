//go:build !windows

package journal

import (
	"errors"
	"os"
	"strings"
	"syscall"
)

// bootID names the machine's present start, "" where the system does not tell: a process number means nothing
// after the next one.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

func processLives(pid int) bool {
	if pid <= 0 {
		return false
	}
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
