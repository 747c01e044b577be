package egress

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"sync/atomic"
	"time"
)

// plain passes one request without TLS on, and its answer back. It says whether the connection can have another one.
func (g *gate) plain(c net.Conn, req *http.Request, h head) bool {
	began := time.Now()
	u := req.URL
	if u.Scheme != "http" || u.Opaque != "" || u.Host == "" || !strings.HasPrefix(strings.ToLower(req.RequestURI), "http://") {
		why := "this is a proxy: it wants http://HOST/PATH, or CONNECT HOST:443"
		g.deny(c, Connection{Host: cut(h.host)}, http.StatusBadRequest, refusal{why})
		return false
	}
	if u.User != nil {
		g.deny(c, Connection{Host: u.Host}, http.StatusForbidden, refuse("the URL names a user"))
		return false
	}
	host, port, err := target(u.Host, 80)
	if err != nil {
		g.deny(c, Connection{Host: u.Host}, http.StatusForbidden, refusal{err.Error()})
		return false
	}
	conn := Connection{Host: host, Port: port}
	if !same(h.host, host, port, 80) {
		g.deny(c, conn, http.StatusBadRequest, refuse("the request names two hosts"))
		return false
	}
	up, to, err := g.proxy.connect(g.ctx, g.allowed, host, port)
	if err != nil {
		g.deny(c, conn, statusOf(err), err)
		return false
	}
	if !g.hold(up) {
		return false
	}
	defer g.release(up)
	counted := &counter{Conn: up}
	transport := single(counted)
	transport.DisableKeepAlives = true
	out := outgoing(req, &url.URL{Scheme: "http", Host: authorityOf(host, port, 80)})
	again, err := pass(g.ctx, c, req, out, transport)
	conn.Address, conn.Verdict, conn.Took = to.String(), Allowed, time.Since(began)
	conn.Sent, conn.Received = counted.sent.Load(), counted.received.Load()
	if err != nil {
		conn.Why = err.Error()
	}
	g.record(conn)
	return again
}

// outgoing is the request that is sent in the place of req: made anew of what was understood, so that whoever reads it next
// understands the same.
func outgoing(req *http.Request, to *url.URL) *http.Request {
	u := *req.URL
	u.Scheme, u.Host, u.User, u.Fragment, u.RawFragment = to.Scheme, to.Host, nil, "", ""
	out := &http.Request{Method: req.Method, URL: &u, Host: to.Host, Header: req.Header.Clone(), Body: req.Body, ContentLength: req.ContentLength,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	if req.ContentLength == 0 {
		out.Body = nil
	} else {
		out.Body = &source{Reader: req.Body}
	}
	ends(out.Header)
	out.Header.Del("Expect")
	if _, ok := out.Header["User-Agent"]; !ok {
		out.Header["User-Agent"] = nil // none, rather than one of our own
	}
	return out
}

// ends takes the headers away that end at a proxy.
func ends(h http.Header) {
	for _, line := range h["Connection"] {
		for name := range strings.SplitSeq(line, ",") {
			h.Del(textproto.TrimString(name))
		}
	}
	for _, name := range []string{"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Host"} {
		h.Del(name)
	}
}

// pass sends a request on and its answer back to c, and says whether c can have another one.
func pass(ctx context.Context, c net.Conn, req, out *http.Request, transport http.RoundTripper) (bool, error) {
	if strings.EqualFold(req.Header.Get("Expect"), "100-continue") && req.ProtoAtLeast(1, 1) {
		if _, err := io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return false, bare(err)
		}
	}
	resp, err := transport.RoundTrip(out.WithContext(ctx))
	if err != nil {
		last(c, http.StatusBadGateway, "belay: the server gave no answer\n")
		return false, fmt.Errorf("the server gave no answer: %w", bare(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusSwitchingProtocols {
		return false, fmt.Errorf("the server wants to speak something else than HTTP")
	}
	closing := resp.Close
	ends(resp.Header)
	resp.Request, resp.Proto, resp.ProtoMajor, resp.ProtoMinor = req, "HTTP/1.1", 1, 1
	unbounded := resp.ContentLength < 0 && len(resp.TransferEncoding) == 0 // it ends with the connection
	resp.Close = req.Close || !req.ProtoAtLeast(1, 1) || closing && unbounded
	if unbounded && !resp.Close {
		resp.TransferEncoding = []string{"chunked"}
	}
	if err := resp.Write(c); err != nil {
		return false, bare(err)
	}
	if resp.Close {
		return false, nil
	}
	body, ok := out.Body.(*source)
	return !ok || body.over.Load(), nil // what the server did not read stands before the next request
}

// source is the body of a request, which may end after the answer to it. It knows whether all of it was read.
type source struct {
	io.Reader
	over atomic.Bool
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err == io.EOF {
		s.over.Store(true)
	}
	return n, err
}

func (s *source) Close() error { return nil }

// single is a transport over one connection: when that has ended, there is no other.
func single(c net.Conn) *http.Transport {
	var used atomic.Bool
	give := func(context.Context, string, string) (net.Conn, error) {
		if used.Swap(true) {
			return nil, net.ErrClosed
		}
		return c, nil
	}
	return &http.Transport{DialContext: give, DialTLSContext: give, DisableCompression: true, MaxIdleConnsPerHost: 1, IdleConnTimeout: headTimeout,
		MaxResponseHeaderBytes: 1 << 20}
}

// counter counts what goes through a connection.
type counter struct {
	net.Conn
	sent, received atomic.Int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.received.Add(int64(n))
	return n, err
}

func (c *counter) Write(p []byte) (int, error) {
	c.sent.Add(int64(len(p))) // before, as the answer may come sooner than we go on
	n, err := c.Conn.Write(p)
	c.sent.Add(int64(n - len(p)))
	return n, err
}
