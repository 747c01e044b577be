//go:build unix

package snapshot

import "syscall"

// nonblock keeps an open of a pipe from waiting, and a link from being followed.
const nonblock = syscall.O_NONBLOCK | syscall.O_NOFOLLOW
