package egress

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	headTimeout  = 60 * time.Second // between requests, and for the head of one
	helloTimeout = 30 * time.Second // for the first message of a TLS connection
	lingerTime   = 2 * time.Second  // for a last answer to arrive
	lingerBytes  = 1 << 20          // that may come in meanwhile
)

// serve answers one connection to the proxy.
func (g *gate) serve(c net.Conn) {
	in := bufio.NewReaderSize(c, maxHead)
	c.SetReadDeadline(time.Now().Add(headTimeout))
	if first, err := in.Peek(1); err != nil || first[0] == 5 || first[0] == 4 || first[0] == 22 {
		if err == nil {
			g.record(Connection{Host: "?", Verdict: Refused, Why: "the proxy speaks HTTP, neither SOCKS nor TLS"})
		}
		return
	}
	for {
		c.SetReadDeadline(time.Now().Add(headTimeout))
		h, err := peekHead(in)
		if err != nil {
			if !quiet(err) {
				g.deny(c, Connection{Host: "?"}, http.StatusBadRequest, refusal{err.Error()})
			}
			return
		}
		req, err := http.ReadRequest(in)
		c.SetReadDeadline(time.Time{})
		if err != nil {
			g.deny(c, Connection{Host: "?"}, http.StatusBadRequest, refuse("the request is malformed"))
			return
		}
		if req.Method == http.MethodConnect {
			g.tunnel(c, in, req, h)
			return
		}
		if !g.plain(c, req, h) {
			return
		}
	}
}

// quiet says that a connection ended or was ended, which needs no answer.
func quiet(err error) bool {
	var timeout net.Error
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.As(err, &timeout)
}

// deny answers that a connection is refused, or did not come about, and records it.
func (g *gate) deny(c net.Conn, conn Connection, status int, err error) {
	conn.Why = err.Error()
	var no refusal
	if conn.Verdict = Allowed; errors.As(err, &no) {
		conn.Verdict = Refused
	}
	g.record(conn)
	text := fmt.Sprintf("belay: %s: %s\n", conn.Target(), conn.Why)
	last(c, status, text)
}

// last gives the last answer on a connection, and lets it arrive: were it closed with something unread, the answer could
// be lost.
func last(c net.Conn, status int, text string) {
	c.SetDeadline(time.Now().Add(lingerTime))
	fmt.Fprintf(c, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s",
		status, http.StatusText(status), len(text), text)
	if half, ok := c.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		io.CopyN(io.Discard, c, lingerBytes)
	}
}

// statusOf is the status of an answer that says so.
func statusOf(err error) int {
	var no refusal
	if errors.As(err, &no) {
		return http.StatusForbidden
	}
	return http.StatusBadGateway
}

// tunnel connects c with a host, for TLS that names this very host.
func (g *gate) tunnel(c net.Conn, in *bufio.Reader, req *http.Request, h head) {
	began := time.Now()
	host, port, err := target(req.RequestURI, 0)
	if err != nil {
		g.deny(c, Connection{Host: req.RequestURI}, http.StatusForbidden, refusal{err.Error()})
		return
	}
	conn := Connection{Host: host, Port: port}
	switch {
	case !same(h.host, host, port, port):
		g.deny(c, conn, http.StatusBadRequest, refuse("the request names two hosts"))
		return
	case req.ContentLength > 0 || len(req.TransferEncoding) > 0:
		g.deny(c, conn, http.StatusBadRequest, refuse("a CONNECT request has no body"))
		return
	}
	up, to, err := g.proxy.connect(g.ctx, g.allowed, host, port)
	if err != nil {
		g.deny(c, conn, statusOf(err), err)
		return
	}
	if !g.hold(up) {
		return
	}
	defer g.release(up)
	conn.Address, conn.Verdict = to.String(), Allowed
	done := func(err error) {
		var no refusal
		if errors.As(err, &no) {
			conn.Verdict, conn.Why = Refused, no.why
		} else if err != nil {
			conn.Why = err.Error()
		}
		conn.Took = time.Since(began)
		g.record(conn)
	}
	if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		done(bare(err))
		return
	}
	c.SetReadDeadline(began.Add(dialTimeout + helloTimeout))
	name, raw, err := readHello(in)
	c.SetReadDeadline(time.Time{})
	switch {
	case err != nil && len(raw) == 0: // nothing was sent
		done(nil)
		return
	case err != nil:
		done(refusal{"through CONNECT only TLS that names its server is let through: " + err.Error()})
		return
	}
	if named, err := Host(name); err != nil || named != host {
		done(refuse("the TLS connection is for another server, %q", cut(name)))
		return
	}
	if injection, ok := g.proxy.inject[host]; ok {
		conn.Injected = injection.Header
		done(g.intercept(&replay{Conn: c, in: io.MultiReader(strings.NewReader(string(raw)), in)}, up, injection, &conn))
		return
	}
	early, _ := in.Peek(in.Buffered())
	n, err := up.Write(append(raw, early...))
	conn.Sent = int64(n)
	if err == nil {
		sent, received := join(c, up)
		conn.Sent += sent
		conn.Received = received
	}
	done(nil)
}

// join passes on what each side sends until both have ended, and says how much that was.
func join(inside, outside net.Conn) (sent, received int64) {
	var ways sync.WaitGroup
	pass := func(to, from net.Conn, n *int64) {
		var err error
		*n, err = io.Copy(to, from) // between sockets, the kernel moves the bytes
		half, ok := to.(interface{ CloseWrite() error })
		if err != nil || !ok {
			to.Close()
			from.Close()
			return
		}
		half.CloseWrite()
	}
	ways.Go(func() { pass(outside, inside, &sent) })
	ways.Go(func() { pass(inside, outside, &received) })
	ways.Wait()
	return sent, received
}

// replay is a connection of which the beginning was read already.
type replay struct {
	net.Conn
	in io.Reader
}

func (r *replay) Read(p []byte) (int, error) { return r.in.Read(p) }
