//go:build !windows

package journal

import (
	"errors"
	"syscall"
)

// NoSpace says whether an error means that the disk, or the person's part of it, is full: it may pass.
func NoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
