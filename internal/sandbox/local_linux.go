//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"belay/internal/sandbox/helper"
)

// listen has the helper listen on ports of its loopback, and gives the listeners. Nobody inside forwards anything: who
// connects there is accepted here.
func (h *standing) listen(ports []uint16) ([]net.Listener, error) {
	if _, err := h.control.Write((&helper.Program{Listen: ports}).Encode()); err != nil {
		return nil, err
	}
	raw, err := h.control.SyscallConn()
	if err != nil {
		return nil, err
	}
	answer, rights := make([]byte, 256), make([]byte, unix.CmsgSpace(4*len(ports)))
	var n, m int
	rerr := raw.Read(func(fd uintptr) bool {
		n, m, _, _, err = unix.Recvmsg(int(fd), answer, rights, unix.MSG_CMSG_CLOEXEC)
		return err != unix.EAGAIN
	})
	if rerr != nil {
		err = rerr
	}
	if err != nil {
		return nil, err
	}
	if n < 5 || answer[4] != helper.Listens {
		return nil, fmt.Errorf("%s", answer[min(5, n):n])
	}
	messages, err := unix.ParseSocketControlMessage(rights[:m])
	if err != nil || len(messages) != 1 {
		return nil, fmt.Errorf("no listeners came: %v", err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, err
	}
	var out []net.Listener
	for _, fd := range fds {
		f := os.NewFile(uintptr(fd), "listener")
		l, lerr := net.FileListener(f)
		f.Close()
		if lerr != nil {
			err = lerr
			continue
		}
		out = append(out, l)
	}
	return out, err
}

// local lets commands reach services on this machine's loopback, each at its own port.
func (h *standing) local(listeners []net.Listener, ports []uint16) {
	for i, l := range listeners {
		go func() {
			<-h.gone
			l.Close()
		}()
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				go forward(c, net.JoinHostPort("127.0.0.1", strconv.Itoa(int(ports[i]))))
			}
		}()
	}
}

// forward joins a connection from inside with the service at address.
func forward(inside net.Conn, address string) {
	defer inside.Close()
	outside, err := net.Dial("tcp", address)
	if err != nil {
		return // inside it is seen as a service that hangs up
	}
	defer outside.Close()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{inside, outside}, {outside, inside}} {
		both.Go(func() {
			io.Copy(way[0], way[1])
			if c, ok := way[0].(*net.TCPConn); ok {
				c.CloseWrite()
			}
		})
	}
	both.Wait()
}
