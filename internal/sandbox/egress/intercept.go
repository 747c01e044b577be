package egress

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// authority vouches, for one run, for the hosts that get a header, and for no others. Its key is never stored.
type authority struct {
	pem  []byte
	cert *x509.Certificate
	key  *ecdsa.PrivateKey

	mu     sync.Mutex
	leaves map[string]*tls.Certificate
}

// authorityLife bounds how long a certificate is valid: longer than any run.
const authorityLife = 30 * 24 * time.Hour

func newAuthority(inject map[string]Injection) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := certificate("belay, for this run")
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign
	template.PermittedDNSDomainsCritical, template.PermittedDNSDomains = true, slices.Sorted(maps.Keys(inject))
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), cert: cert, key: key, leaves: map[string]*tls.Certificate{}}, nil
}

func certificate(name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)) // crypto/rand does not fail
	now := time.Now()
	return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(authorityLife)}
}

// leaf is the certificate for a host.
func (a *authority) leaf(host string) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.leaves[host]; c != nil {
		return c, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	name := host
	if len(name) > 64 {
		name = name[:64]
	}
	template := certificate(name)
	template.DNSNames, template.KeyUsage = []string{host}, x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	c := &tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: key}
	a.leaves[host] = c
	return c, nil
}

// intercept speaks TLS with both sides and adds the header to each request. The server is checked as any client would
// check it; where that fails nothing is sent.
func (g *gate) intercept(inside, up net.Conn, in Injection, conn *Connection) error {
	leaf, err := g.proxy.authority.leaf(conn.Host)
	if err != nil {
		return err
	}
	counted := &counter{Conn: up}
	defer func() { conn.Sent, conn.Received = counted.sent.Load(), counted.received.Load() }()
	outside := tls.Client(counted, &tls.Config{ServerName: conn.Host, RootCAs: g.proxy.cfg.Roots, NextProtos: []string{"http/1.1"}})
	outside.SetDeadline(time.Now().Add(helloTimeout))
	if err := outside.HandshakeContext(g.ctx); err != nil {
		return fmt.Errorf("the server's TLS: %w", bare(err))
	}
	outside.SetDeadline(time.Time{})
	client := tls.Server(inside, &tls.Config{Certificates: []tls.Certificate{*leaf}, NextProtos: []string{"http/1.1"}})
	client.SetDeadline(time.Now().Add(helloTimeout))
	if err := client.HandshakeContext(g.ctx); err != nil {
		return fmt.Errorf("the command does not take belay's certificate for %s: %w", conn.Host, bare(err))
	}
	client.SetDeadline(time.Time{})
	defer client.Close()
	transport := single(outside)
	defer transport.CloseIdleConnections()
	reader := bufio.NewReaderSize(client, maxHead)
	for {
		client.SetReadDeadline(time.Now().Add(headTimeout))
		h, err := peekHead(reader)
		if err != nil {
			if quiet(err) {
				return nil
			}
			return g.answer(client, conn, http.StatusBadRequest, refusal{err.Error()})
		}
		req, err := http.ReadRequest(reader)
		client.SetReadDeadline(time.Time{})
		switch {
		case err != nil:
			return g.answer(client, conn, http.StatusBadRequest, refuse("the request is malformed"))
		case req.Method == http.MethodConnect || req.URL.Host != "" || !strings.HasPrefix(req.RequestURI, "/"):
			return g.answer(client, conn, http.StatusBadRequest, refuse("the request is one for a proxy"))
		case h.host == "" || !same(h.host, conn.Host, conn.Port, 443):
			return g.answer(client, conn, http.StatusMisdirectedRequest, refuse("a request in the connection is for another host, %q", cut(h.host)))
		}
		out := outgoing(req, &url.URL{Scheme: "https", Host: authorityOf(conn.Host, conn.Port, 443)})
		out.Header.Set(in.Header, in.Value)
		out.Header.Set("Accept-Encoding", "identity") // so that the value is seen where the server repeats it
		again, err := pass(g.ctx, client, req, out, hiding{transport, in.Value})
		if err != nil || !again {
			return err
		}
	}
}

// answer answers inside a tunnel that a request is refused.
func (g *gate) answer(c net.Conn, conn *Connection, status int, err error) error {
	last(c, status, fmt.Sprintf("belay: %s: %s\n", conn.Target(), err))
	return err
}

// hiding puts asterisks in the place of a value where the server repeats it as it is.
type hiding struct {
	http.RoundTripper
	value string
}

func (h hiding) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := h.RoundTripper.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	secrets := []string{h.value}
	if _, bare, ok := strings.Cut(h.value, " "); ok && len(bare) >= 8 {
		secrets = append(secrets, bare) // the token of "Bearer TOKEN"
	}
	for _, secret := range secrets {
		stars := strings.Repeat("*", len(secret))
		for _, values := range resp.Header {
			for i := range values {
				values[i] = strings.ReplaceAll(values[i], secret, stars)
			}
		}
		resp.Body = &hider{in: resp.Body, secret: []byte(secret)}
	}
	resp.Status = ""
	resp.Trailer = nil
	return resp, nil
}

// hider hides a secret in what it reads. It gives as many bytes as it gets.
type hider struct {
	in     io.ReadCloser
	secret []byte
	held   []byte // read and not yet given: its end could be the beginning of the secret
	err    error
}

func (h *hider) Read(p []byte) (int, error) {
	for {
		free := len(h.held)
		if h.err == nil {
			free = h.free()
		}
		if free > 0 {
			n := copy(p, h.held[:free])
			h.held = h.held[n:]
			return n, nil
		}
		if h.err != nil {
			return 0, h.err
		}
		buf := make([]byte, 16<<10)
		var n int
		n, h.err = h.in.Read(buf)
		h.held = append(h.held, buf[:n]...)
		for at := bytes.Index(h.held, h.secret); at >= 0; at = bytes.Index(h.held, h.secret) {
			copy(h.held[at:], bytes.Repeat([]byte("*"), len(h.secret)))
		}
	}
}

// free is how many of the held bytes cannot belong to a secret that is not yet read to its end.
func (h *hider) free() int {
	for n := min(len(h.secret)-1, len(h.held)); n > 0; n-- {
		if bytes.HasPrefix(h.secret, h.held[len(h.held)-n:]) {
			return len(h.held) - n
		}
	}
	return len(h.held)
}

func (h *hider) Close() error { return h.in.Close() }
