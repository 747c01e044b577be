// Package egress is the proxy through which a sandbox reaches the hosts that a person allowed, and no others.
package egress

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/textproto"
	"slices"
	"strings"
	"time"
)

// Config says how a Proxy reaches the world. The zero Config is the usual way.
type Config struct {
	Ports  []uint16    // that may be connected to; none is DefaultPorts
	Inject []Injection // headers that are added on the way out

	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)   // nil asks this machine's resolver
	Dial    func(ctx context.Context, to netip.AddrPort) (net.Conn, error) // nil is TCP
	Roots   *x509.CertPool                                                 // that vouch for servers; nil is the system's
}

// DefaultPorts are those of HTTP and HTTPS.
var DefaultPorts = []uint16{80, 443}

// Injection adds a header to every request to a host. The value is not seen by who asks: only belay knows it.
type Injection struct {
	Host   string // its exact name
	Header string
	Value  string
}

// Verdicts about a connection.
const (
	Allowed = "allow"
	Refused = "deny"
)

// Connection is one connection that was asked for, or one request without TLS.
type Connection struct {
	Host           string // as it was asked for, in its one form where it has one
	Port           uint16
	Address        string // that was connected to; "" is none
	Verdict        string // Allowed or Refused
	Why            string // it was refused, or failed
	Injected       string // the header that was added
	Sent, Received int64  // bytes, of what TLS and HTTP make of them
	Took           time.Duration
	Count          int // how often, where many were alike; else 1
}

// Denial says of a refused connection what was refused and why, "" where it was not.
func (c Connection) Denial() string {
	if c.Verdict != Refused {
		return ""
	}
	return fmt.Sprintf("connect %s: %s", c.Target(), c.Why)
}

// Target is where the connection was to lead: HOST, or HOST:PORT.
func (c Connection) Target() string {
	if c.Port == 0 {
		return c.Host
	}
	return fmt.Sprintf("%s:%d", c.Host, c.Port)
}

// Proxy checks and makes connections. It is safe for concurrent use.
type Proxy struct {
	cfg       Config
	inject    map[string]Injection
	authority *authority // nil where nothing is injected
}

// New makes a proxy. Nothing is allowed by it: who opens an Inlet, or fetches, says what is.
func New(cfg Config) (*Proxy, error) {
	if len(cfg.Ports) == 0 {
		cfg.Ports = DefaultPorts
	}
	if cfg.Resolve == nil {
		cfg.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if cfg.Dial == nil {
		cfg.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", to.String())
		}
	}
	p := &Proxy{cfg: cfg, inject: map[string]Injection{}}
	for _, in := range cfg.Inject {
		name, err := Host(in.Host)
		if err != nil {
			return nil, fmt.Errorf("inject: %w", err)
		}
		in.Header = textproto.CanonicalMIMEHeaderKey(in.Header)
		switch {
		case slices.Contains([]string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Te", "Trailer", ""}, in.Header) || !token(in.Header):
			return nil, fmt.Errorf("inject: %q is no header that can be added", in.Header)
		case in.Value == "" || strings.ContainsAny(in.Value, "\r\n\x00"):
			return nil, fmt.Errorf("inject: what is to be added for %s is empty or has several lines", name)
		}
		if _, twice := p.inject[name]; twice {
			return nil, fmt.Errorf("inject: %s is named twice", name)
		}
		p.inject[name] = in
	}
	if len(p.inject) > 0 {
		var err error
		if p.authority, err = newAuthority(p.inject); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Authority is the certificate, in PEM, that clients must trust for the hosts that get a header; nil is none.
func (p *Proxy) Authority() []byte {
	if p == nil || p.authority == nil {
		return nil
	}
	return p.authority.pem
}

// refusal is an error that says: this is not allowed. All others say that it did not work.
type refusal struct{ why string }

func (r refusal) Error() string { return r.why }

func refuse(format string, args ...any) error { return refusal{fmt.Sprintf(format, args...)} }

// dialTimeout bounds resolving a name and connecting to it.
const dialTimeout = 30 * time.Second

// connect connects to a host, whose name is in its one form, if it is allowed. What is connected to is the very address
// that was checked.
func (p *Proxy) connect(ctx context.Context, allowed hosts, host string, port uint16) (net.Conn, netip.AddrPort, error) {
	var none netip.AddrPort
	switch {
	case len(allowed) == 0:
		return nil, none, refuse("this command has no way out to any host")
	case !allowed.allow(host):
		return nil, none, refuse("it is not an allowed host; allowed are %s", strings.Join(allowed, ", "))
	case !slices.Contains(p.cfg.Ports, port):
		return nil, none, refuse("port %d is not allowed", port)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	found, err := p.cfg.Resolve(ctx, host)
	if err != nil {
		return nil, none, fmt.Errorf("its name cannot be resolved: %w", bare(err))
	}
	var bad string
	err = errors.New("its name has no address")
	for _, addr := range found {
		to := netip.AddrPortFrom(addr.Unmap(), port)
		if ok, leads := public(addr); !ok {
			bad = fmt.Sprintf("its name leads to %s, which is %s", addr, leads)
			continue
		}
		var c net.Conn
		if c, err = p.cfg.Dial(ctx, to); err == nil {
			return c, to, nil
		}
		err, bad = fmt.Errorf("it cannot be reached: %w", bare(err)), ""
		if ctx.Err() != nil {
			break
		}
	}
	if bad != "" {
		return nil, none, refusal{bad}
	}
	return nil, none, err
}

// bare takes the names away that an error of package net repeats.
func bare(err error) error {
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return errors.New(dns.Err)
	}
	var op *net.OpError
	if errors.As(err, &op) {
		return op.Err
	}
	return err
}

// token says that s can be the name of a header.
func token(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~") == ""
}
