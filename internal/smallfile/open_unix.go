//go:build unix

package smallfile

import "syscall"

// nonblock keeps an open from waiting for the other end of a pipe that took a file's place.
const nonblock = syscall.O_NONBLOCK
