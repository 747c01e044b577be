//go:build linux || darwin

package cli

import "syscall"

// diskFree is how many bytes an ordinary user may still write where dir is.
func diskFree(dir string) (bytes uint64, known bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, false
	}
	return s.Bavail * uint64(s.Bsize), true
}
