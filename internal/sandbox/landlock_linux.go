//go:build amd64 || arm64

package sandbox

import (
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"belay/effect"
	"belay/internal/sandbox/helper"
)

// landlockVersion is the version of Landlock that the kernel has; 0 is none.
var landlockVersion = sync.OnceValue(func() int {
	v, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
})

// landlock says what Landlock is to hold, of what this kernel can.
func (s *Sandbox) landlock(access effect.Access) helper.Landlock {
	version := landlockVersion()
	if version == 0 || !s.level.Landlock {
		return helper.Landlock{}
	}
	l := helper.Landlock{Files: 1<<13 - 1, Writable: []string{"/tmp", "/var/tmp", "/dev/shm", insideHome}}
	for _, right := range []struct {
		since int
		bit   uint64
	}{{2, unix.LANDLOCK_ACCESS_FS_REFER}, {3, unix.LANDLOCK_ACCESS_FS_TRUNCATE}, {5, unix.LANDLOCK_ACCESS_FS_IOCTL_DEV}} {
		if version >= right.since {
			l.Files |= right.bit
		}
	}
	if version >= 6 {
		l.Scope = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	if access == effect.ReadWrite || access == effect.Discard {
		l.Writable = append(l.Writable, s.workspace)
	}
	l.Writable = slices.Concat(l.Writable, s.write)
	return l
}
