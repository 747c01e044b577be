package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Page is what a fetched URL gave.
type Page struct {
	URL    string // after redirects
	Status int
	Type   string // Content-Type
	Body   []byte
	Cut    bool // the body was longer
}

// maxRedirects is how many redirects are followed.
const maxRedirects = 5

// fetchTimeout bounds one fetch.
const fetchTimeout = 60 * time.Second

// Fetch gets a page for somebody who is not in a sandbox, through the same checks, each redirect again. At most limit
// bytes are read. An error that is not about what is allowed says what did not work; Refusal tells them apart.
func (p *Proxy) Fetch(ctx context.Context, allow []string, address string, limit int64) (Page, []Connection, error) {
	g, err := p.open(allow)
	if err != nil {
		return Page{}, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	page, err := g.fetch(ctx, address, limit)
	return page, g.close(), err
}

// Refusal says whether an error means that something is not allowed.
func Refusal(err error) bool {
	var no refusal
	return errors.As(err, &no)
}

func (g *gate) fetch(ctx context.Context, address string, limit int64) (Page, error) {
	u, err := g.checkURL(address)
	if err != nil {
		return Page{}, err
	}
	transport := &http.Transport{DialContext: g.dial, TLSClientConfig: &tls.Config{RootCAs: g.proxy.cfg.Roots}, ForceAttemptHTTP2: true,
		MaxResponseHeaderBytes: 1 << 20, TLSHandshakeTimeout: helloTimeout}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return refuse("more than %d redirects", maxRedirects)
		}
		if via[len(via)-1].URL.Scheme == "https" && req.URL.Scheme != "https" {
			return refuse("it redirects to %s, which is not encrypted", cut(req.URL.Redacted()))
		}
		next, err := g.checkURL(req.URL.String())
		if err != nil {
			return refuse("it redirects to %s: %v", cut(req.URL.Redacted()), err)
		}
		req.URL = next
		req.Header.Del("Referer")
		return nil
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return Page{}, refuse("%q is no URL", cut(address))
	}
	req.Header.Set("User-Agent", "belay")
	req.Header.Set("Accept", "text/markdown, text/html;q=0.9, text/plain;q=0.8, */*;q=0.5")
	if in, ok := g.proxy.inject[u.Hostname()]; ok && u.Scheme == "https" {
		transport.DisableKeepAlives = true
		client.Transport = injecting{hiding{transport, in.Value}, u.Hostname(), in}
	}
	resp, err := client.Do(req)
	if err != nil {
		var no refusal
		if errors.As(err, &no) {
			return Page{}, no
		}
		var wrapped *url.Error
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return Page{}, bare(err)
	}
	defer resp.Body.Close()
	page := Page{URL: resp.Request.URL.String(), Status: resp.StatusCode, Type: resp.Header.Get("Content-Type")}
	page.Body, err = io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if int64(len(page.Body)) > limit {
		page.Body, page.Cut = page.Body[:limit], true
	}
	if err != nil {
		return page, fmt.Errorf("the answer ended too early: %w", bare(err))
	}
	return page, nil
}

// injecting adds a header to the requests to one host.
type injecting struct {
	http.RoundTripper
	host string
	in   Injection
}

func (i injecting) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme == "https" && req.URL.Hostname() == i.host {
		req = req.Clone(req.Context())
		req.Header.Set(i.in.Header, i.in.Value)
		req.Header.Set("Accept-Encoding", "identity")
	}
	return i.RoundTripper.RoundTrip(req)
}

// checkURL brings a URL into one form, and refuses what is not to be fetched before anybody is asked for its name.
func (g *gate) checkURL(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.Opaque != "" {
		return nil, refuse("%q is no URL that begins with https:// or http://", cut(address))
	}
	if u.User != nil {
		return nil, refuse("a URL with a user or a password is not fetched")
	}
	usual := uint16(443)
	if u.Scheme == "http" {
		usual = 80
	}
	host, port, err := target(u.Host, usual)
	if err != nil {
		return nil, refusal{err.Error()}
	}
	if !g.allowed.allow(host) || !slices.Contains(g.proxy.cfg.Ports, port) {
		why := fmt.Sprintf("it is not an allowed host; allowed are %s", strings.Join(g.allowed, ", "))
		if g.allowed.allow(host) {
			why = fmt.Sprintf("port %d is not allowed", port)
		} else if len(g.allowed) == 0 {
			why = "no host is allowed"
		}
		g.record(Connection{Host: host, Port: port, Verdict: Refused, Why: why})
		return nil, refuse("%s: %s", host, why)
	}
	clean := *u
	clean.Host = authorityOf(host, port, usual)
	clean.Fragment, clean.RawFragment = "", ""
	return &clean, nil
}

// dial connects for a client of this process, and records it.
func (g *gate) dial(ctx context.Context, _, address string) (net.Conn, error) {
	began := time.Now()
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return nil, err
	}
	conn := Connection{Host: host, Port: uint16(port), Verdict: Allowed}
	up, to, err := g.proxy.connect(ctx, g.allowed, host, uint16(port))
	if err != nil {
		if conn.Why = err.Error(); Refusal(err) {
			conn.Verdict = Refused
		}
		g.record(conn)
		return nil, err
	}
	conn.Address = to.String()
	if in, ok := g.proxy.inject[host]; ok && port != 80 {
		conn.Injected = in.Header
	}
	g.active.Add(1)
	c := &fetched{counter: counter{Conn: up}, done: func(c *fetched) {
		conn.Took, conn.Sent, conn.Received = time.Since(began), c.sent.Load(), c.received.Load()
		g.record(conn)
		g.active.Done()
	}}
	if !g.hold(c) {
		return nil, net.ErrClosed
	}
	return c, nil
}

// fetched is a connection that is recorded when it ends.
type fetched struct {
	counter
	done func(*fetched)
	once sync.Once
}

func (f *fetched) Close() error {
	err := f.Conn.Close()
	f.once.Do(func() { f.done(f) })
	return err
}
