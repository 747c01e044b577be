package egress

import (
	"net"

	"golang.org/x/sys/unix"
)

// drain takes the connections that wait to be accepted and ends them: what a command has left there must not be served
// with what the next one is allowed.
func drain(l net.Listener) {
	tcp, ok := l.(*net.TCPListener)
	if !ok {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return // closed
	}
	raw.Control(func(fd uintptr) {
		for {
			c, _, err := unix.Accept4(int(fd), unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK)
			if err == unix.EINTR || err == unix.ECONNABORTED {
				continue
			}
			if err != nil {
				return
			}
			unix.Close(c)
		}
	})
}
