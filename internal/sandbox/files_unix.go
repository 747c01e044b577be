//go:build unix

package sandbox

import (
	"os"
	"syscall"
)

// nonblock keeps an open from waiting for the other end of a pipe that took a file's place.
const nonblock = syscall.O_NONBLOCK

// syncDir makes a rename in dir last.
func syncDir(dir *os.Root) error {
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
