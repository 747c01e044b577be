package egress

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"
)

func FuzzHost(f *testing.F) {
	for _, s := range []string{"good.example", "GOOD.Example.", "bücher.example", "xn--bcher-kva.example", "127.1", "0x7f.1", "a..b", "ｇood。example", "[::1]", "a@b", "a:80", "-a.b", "ß.example", "x\x00y", "\xb8"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name, err := Host(s)
		if err != nil {
			return
		}
		if again, err := Host(name); err != nil || again != name {
			t.Errorf("%q gives %q, which gives %q, %v", s, name, again, err)
		}
		if again, err := Host(strings.ToUpper(name) + "."); err != nil || again != name {
			t.Errorf("%q in capitals gives %q, %v", name, again, err)
		}
		if strings.ContainsAny(name, "@:/[]%\\ \r\n\x00#?*_") || strings.HasSuffix(name, ".") || len(name) > maxName || name == "" {
			t.Errorf("%q gives %q", s, name)
		}
		if _, err := netip.ParseAddr(name); err == nil {
			t.Errorf("%q gives the address %q", s, name)
		}
		if _, _, err := net.SplitHostPort(name + ":443"); err != nil {
			t.Errorf("%q gives %q: %v", s, name, err)
		}
		if !(hosts{name}).allow(name) || (hosts{"*." + name}).allow(name) || !(hosts{"*." + name}).allow("x."+name) || (hosts{"*." + name}).allow("x"+name) {
			t.Errorf("%q is not matched as it should be", name)
		}
	})
}

// FuzzHello holds the reader against Go's own TLS server: where that sees a server's name, the reader sees the same one or
// refuses.
func FuzzHello(f *testing.F) {
	for _, name := range []string{"good.example", "a.b", ""} {
		b := hello(f, name)
		f.Add(b, 5)
		f.Add(b[:len(b)/2], 1)
	}
	f.Fuzz(func(t *testing.T, b []byte, split int) {
		in := &counted{Reader: bytes.NewReader(b)}
		name, raw, err := readHello(in)
		if !bytes.HasPrefix(b, raw) || in.n != len(raw) {
			t.Fatal("what was read is not what came")
		}
		if err != nil {
			if name != "" {
				t.Errorf("a name with an error: %q, %v", name, err)
			}
			return
		}
		if split > 0 && split < len(raw)-5 && len(raw) == 5+int(raw[3])<<8+int(raw[4]) { // the same message in two records
			body := raw[5:]
			two := append([]byte{22, 3, 1, byte(split >> 8), byte(split)}, body[:split]...)
			rest := len(body) - split
			two = append(append(two, 22, 3, 1, byte(rest>>8), byte(rest)), body[split:]...)
			if again, _, err := readHello(bytes.NewReader(two)); err != nil || again != name {
				t.Errorf("in two records: %q, %v; in one: %q", again, err, name)
			}
		}
		if seen, ok := seenByServer(raw); ok && seen != strings.TrimSuffix(name, ".") && seen != name {
			t.Errorf("a server sees %q, the proxy %q", seen, name)
		}
	})
}

type counted struct {
	io.Reader
	n int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += n
	return n, err
}

// seenByServer is the name that a TLS server reads in a ClientHello; false where it refuses that before.
func seenByServer(raw []byte) (name string, ok bool) {
	stop := errors.New("seen")
	c := &script{in: bytes.NewReader(raw)}
	tls.Server(c, &tls.Config{GetConfigForClient: func(info *tls.ClientHelloInfo) (*tls.Config, error) {
		name, ok = info.ServerName, true
		return nil, stop
	}}).Handshake()
	return name, ok
}

// script is a connection from which comes what was written down.
type script struct {
	net.Conn
	in io.Reader
}

func (s *script) Read(p []byte) (int, error)  { return s.in.Read(p) }
func (s *script) Write(p []byte) (int, error) { return len(p), nil }
func (s *script) Close() error                { return nil }

// FuzzHead holds what is said of a request's head against what Go's reader makes of it.
func FuzzHead(f *testing.F) {
	f.Add("GET http://good.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n")
	f.Add("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")
	f.Add("POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc")
	f.Fuzz(func(t *testing.T, s string) { checkHead(t, s) })
}

func checkHead(t *testing.T, s string) {
	in := bufio.NewReaderSize(strings.NewReader(s), maxHead)
	h, err := peekHead(in)
	if err != nil {
		return
	}
	req, err := http.ReadRequest(in)
	if err != nil {
		return
	}
	if u, err := url.Parse(req.RequestURI); err == nil && u.Host == "" && req.Method != http.MethodConnect && req.Host != h.host {
		t.Errorf("the host is %q to one reader and %q to the other", h.host, req.Host)
	}
	if req.Header.Get("Content-Length") != "" && len(req.TransferEncoding) > 0 {
		t.Error("the request has two lengths")
	}
}
