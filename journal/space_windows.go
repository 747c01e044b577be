package journal

import (
	"errors"

	"golang.org/x/sys/windows"
)

// NoSpace says whether an error means that the disk, or the person's part of it, is full: it may pass.
func NoSpace(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) || errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED)
}
