package egress

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// world is a small internet on this machine's loopback: names, the public addresses that they have, and what listens there.
type world struct {
	mu       sync.Mutex
	names    map[string][]string // a name to its addresses; a second list is what the next lookup gives
	next     map[string][]string
	services map[string]string // ADDRESS:PORT to where it really listens
	dialled  []string
}

func (w *world) resolve(_ context.Context, host string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	texts, ok := w.names[host]
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	if next, ok := w.next[host]; ok {
		w.names[host] = next
	}
	var all []netip.Addr
	for _, text := range texts {
		all = append(all, netip.MustParseAddr(text))
	}
	return all, nil
}

func (w *world) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	w.mu.Lock()
	w.dialled = append(w.dialled, to.String())
	real, ok := w.services[to.String()]
	w.mu.Unlock()
	if !ok {
		return nil, fmt.Errorf("connection refused")
	}
	var d net.Dialer
	return d.DialContext(ctx, "tcp", real)
}

// origin is a server that says who was asked for what.
func origin(t testing.TB, name string) http.HandlerFunc {
	return func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		switch r.URL.Path {
		case "/redirect":
			http.Redirect(rw, r, r.URL.Query().Get("to"), http.StatusFound)
			return
		case "/echo":
			for name, values := range r.Header {
				fmt.Fprintf(rw, "%s: %s\n", name, strings.Join(values, ","))
			}
			rw.Header().Set("X-Echo", r.Header.Get("Authorization"))
			return
		}
		fmt.Fprintf(rw, "%s got %s %s%s %q", name, r.Method, r.Host, r.URL.Path, body)
	}
}

// setting is a proxy in a small world, with a client's way to it.
type setting struct {
	*world
	proxy  *Proxy
	inlet  *Inlet
	addr   string
	client *http.Client // through the proxy, trusting the servers
	pool   *x509.CertPool
}

const (
	goodAddr = "203.0.113.10"
	evilAddr = "203.0.113.66"
)

// newSetting starts good.example, *.wide.example (one server) and evil.example (another), each with HTTP on 80 and HTTPS on 443.
func newSetting(t testing.TB, inject ...Injection) *setting {
	t.Helper()
	s := &setting{world: &world{names: map[string][]string{
		"good.example": {goodAddr}, "a.wide.example": {goodAddr}, "xn--bcher-kva.example": {goodAddr}, "evil.example": {evilAddr},
		"loop.example": {"127.0.0.1"}, "meta.example": {"169.254.169.254"}, "mapped.example": {"::ffff:10.0.0.1"}, "six.example": {"2002:7f00:1::1"},
		"mixed.example": {"10.0.0.8", goodAddr},
	}, next: map[string][]string{}, services: map[string]string{}}, pool: x509.NewCertPool()}
	for name, addr := range map[string]string{"good": goodAddr, "evil": evilAddr} {
		plain, secure := httptest.NewServer(origin(t, name)), httptest.NewTLSServer(origin(t, name))
		t.Cleanup(plain.Close)
		t.Cleanup(secure.Close)
		s.services[addr+":80"], s.services[addr+":443"] = plain.Listener.Addr().String(), secure.Listener.Addr().String()
		s.services[addr+":22"] = plain.Listener.Addr().String()
		s.pool.AddCert(secure.Certificate())
	}
	var err error
	s.proxy, err = New(Config{Resolve: s.resolve, Dial: s.dial, Roots: s.pool, Inject: inject})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	s.inlet = s.proxy.Inlet(l)
	t.Cleanup(s.inlet.Close)
	roots := s.pool.Clone()
	roots.AppendCertsFromPEM(s.proxy.Authority())
	transport := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: s.addr}), TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}
	s.client = &http.Client{Transport: transport}
	return s
}

func (s *setting) open(t testing.TB, allow ...string) {
	t.Helper()
	if err := s.inlet.Open(allow); err != nil {
		t.Fatal(err)
	}
}

// get gives the body, or the error, of one request through the proxy.
func (s *setting) get(address string) string {
	resp, err := s.client.Get(address)
	if err != nil {
		return "error: " + err.Error()
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return "error: " + err.Error()
	}
	return string(b)
}

// raw sends bytes to the proxy and gives all that comes back.
func (s *setting) raw(t testing.TB, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	c.(*net.TCPConn).CloseWrite()
	b, _ := io.ReadAll(c) // a reset is an end too
	return string(b)
}

// httptest's certificate is for example.com, and for names below it.
const tlsName = "example.com"

func (s *setting) named(t testing.TB) {
	s.names[tlsName] = []string{goodAddr}
}

func TestWaysOut(t *testing.T) {
	s := newSetting(t)
	s.named(t)
	s.open(t, "good.example", "*.wide.example", "example.com", "bücher.example")
	for address, want := range map[string]string{
		"http://good.example/x":     `good got GET good.example/x ""`,
		"http://GOOD.Example./x":    `good got GET good.example/x ""`,
		"http://good.example:80/x":  `good got GET good.example/x ""`,
		"http://a.wide.example/":    `good got GET a.wide.example/ ""`,
		"http://bücher.example/":    `good got GET xn--bcher-kva.example/ ""`,
		"https://example.com/y?q=1": `good got GET example.com/y ""`,
		"https://EXAMPLE.com/y":     `good got GET EXAMPLE.com/y ""`,
	} {
		if got := s.get(address); got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
	}
	resp, err := s.client.Post("http://good.example/p", "text/plain", strings.NewReader("a body"))
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := io.ReadAll(resp.Body); string(b) != `good got POST good.example/p "a body"` {
		t.Errorf("a body: %q", b)
	}
	resp.Body.Close()
	for _, c := range s.inlet.Shut() {
		if c.Verdict != Allowed || c.Sent == 0 || c.Received == 0 || c.Why != "" || !strings.HasPrefix(c.Address, goodAddr) || c.Count != 1 {
			t.Errorf("recorded: %+v", c)
		}
	}
}

// TestRefused holds what a command may try against what it gets. None of it may reach a server.
func TestRefused(t *testing.T) {
	s := newSetting(t)
	s.named(t)
	connect := func(to string) string { return "CONNECT " + to + " HTTP/1.1\r\nHost: " + to + "\r\n\r\n" }
	get := func(url string) string { return "GET " + url + " HTTP/1.1\r\nHost: good.example\r\n\r\n" }
	allow := []string{"good.example", "*.wide.example", "example.com", "loop.example", "meta.example", "mapped.example", "six.example", "gone.example"}
	for name, tc := range map[string]struct{ send, status, why string }{
		"another host":                {connect("evil.example:443"), "403", "not an allowed host"},
		"another host, plain":         {"GET http://evil.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", "403", "not an allowed host"},
		"a name that ends alike":      {connect("notgood.example:443"), "403", "not an allowed host"},
		"a name that begins alike":    {connect("good.example.evil.example:443"), "403", "not an allowed host"},
		"below an exact name":         {connect("x.good.example:443"), "403", "not an allowed host"},
		"a wildcard's own name":       {connect("wide.example:443"), "403", "not an allowed host"},
		"a dot before a wildcard":     {connect(".wide.example:443"), "403", "no name"},
		"two dots at the end":         {connect("good.example..:443"), "403", "no name"},
		"a homograph":                 {connect("gооd.example:443"), "403", "not an allowed host"},
		"a homograph in punycode":     {connect("xn--gd-jlc.example:443"), "403", ""},
		"a NUL":                       {connect("good.example\x00.evil.example:443"), "400", "CRLF"},
		"a percent":                   {connect("good.example%2eevil.example:443"), "400", "malformed"},
		"a user":                      {connect("good.example@evil.example:443"), "403", "no name"},
		"a user with a port":          {connect("good.example:443@evil.example:443"), "403", "addresses"},
		"a user, plain":               {get("http://good.example@evil.example/"), "403", "names a user"},
		"a user and a password":       {get("http://good.example:80@evil.example/"), "403", "names a user"},
		"a backslash":                 {get(`http://evil.example\@good.example/`), "400", "malformed"},
		"a fragment":                  {get("http://evil.example#@good.example/"), "", ""},
		"an IPv4 address":             {connect(evilAddr + ":443"), "403", "addresses"},
		"an IPv6 address":             {connect("[::1]:443"), "403", "addresses"},
		"an IPv6 address without []":  {connect("::1:443"), "400", "malformed"},
		"a number":                    {connect("2130706433:443"), "403", "addresses"},
		"a hexadecimal number":        {connect("0x7f000001:443"), "403", "addresses"},
		"an octal address":            {connect("0177.0.0.1:443"), "403", "addresses"},
		"a short address":             {connect("127.1:443"), "403", "addresses"},
		"a full-width address":        {connect("１２７.0.0.1:443"), "403", "addresses"},
		"an address, plain":           {"GET http://127.0.0.1/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", "403", "addresses"},
		"another port":                {connect("good.example:22"), "403", "port 22"},
		"another port, plain":         {"GET http://good.example:22/ HTTP/1.1\r\nHost: good.example:22\r\n\r\n", "403", "port 22"},
		"port 0":                      {connect("good.example:0"), "403", "no port"},
		"a port that wraps around":    {connect("good.example:65979"), "403", "no port"},
		"no port":                     {connect("good.example"), "403", "no port"},
		"a name for this machine":     {connect("loop.example:443"), "403", "127.0.0.1"},
		"a name for metadata":         {connect("meta.example:80"), "403", "169.254.169.254"},
		"a name for a mapped address": {connect("mapped.example:443"), "403", "10.0.0.1"},
		"a name for a 6to4 address":   {connect("six.example:443"), "403", "2002:"},
		"a name for nothing":          {connect("gone.example:443"), "502", "resolved"},
		"two hosts":                   {"GET http://good.example/ HTTP/1.1\r\nHost: evil.example\r\n\r\n", "400", "two hosts"},
		"two hosts to connect to":     {"CONNECT good.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n", "400", "two hosts"},
		"two Host headers":            {"GET http://good.example/ HTTP/1.1\r\nHost: good.example\r\nHost: evil.example\r\n\r\n", "400", "twice"},
		"no proxy request":            {"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "400", "this is a proxy"},
		"another scheme":              {get("ftp://good.example/"), "400", "this is a proxy"},
		"https in plain":              {get("https://good.example/"), "400", "this is a proxy"},
		"two lengths":                 {"POST http://good.example/ HTTP/1.1\r\nHost: good.example\r\nContent-Length: 3\r\nContent-Length: 30\r\n\r\nabc", "400", "twice"},
		"a length and chunks":         {"POST http://good.example/ HTTP/1.1\r\nHost: good.example\r\nContent-Length: 30\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET http://evil.example/ HTTP/1.1\r\n\r\n", "400", "two ways"},
		"a list of lengths":           {"POST http://good.example/ HTTP/1.1\r\nHost: good.example\r\nContent-Length: 3, 30\r\n\r\nabc", "400", "no number"},
		"a signed length":             {"POST http://good.example/ HTTP/1.1\r\nHost: good.example\r\nContent-Length: +3\r\n\r\nabc", "400", "no number"},
		"an unknown encoding":         {"POST http://good.example/ HTTP/1.1\r\nHost: good.example\r\nTransfer-Encoding: xchunked\r\n\r\n", "400", "chunked"},
		"a space before the colon":    {"POST http://good.example/ HTTP/1.1\r\nHost: good.example\r\nTransfer-Encoding : chunked\r\n\r\n", "400", "malformed"},
		"a folded line":               {"POST http://good.example/ HTTP/1.1\r\nHost: good.example\r\nX: a\r\n Transfer-Encoding: chunked\r\n\r\n", "400", "malformed"},
		"bare line feeds":             {"GET http://good.example/ HTTP/1.1\nHost: good.example\n\n", "400", "CRLF"},
		"a bare carriage return":      {"GET http://good.example/ HTTP/1.1\r\nHost: good.example\r\nX: a\rTransfer-Encoding: chunked\r\n\r\n", "400", "CRLF"},
		"a head without an end":       {"GET http://good.example/ HTTP/1.1\r\nX: " + strings.Repeat("a", maxHead) + "\r\n\r\n", "400", "too long"},
		"a body for CONNECT":          {"CONNECT good.example:443 HTTP/1.1\r\nHost: good.example:443\r\nContent-Length: 3\r\n\r\nabc", "400", "no body"},
		"SOCKS 5":                     {"\x05\x01\x00", "", "SOCKS"},
		"no TLS in a tunnel":          {connect("example.com:443") + "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", "200", "not TLS"},
		"no TLS in a tunnel to 80":    {connect("example.com:80") + "SSH-2.0-x\r\n", "200", "not TLS"},
		"another server's name":       {connect("example.com:443") + string(hello(t, "evil.example")), "200", "evil.example"},
		"a name below":                {connect("example.com:443") + string(hello(t, "x.example.com")), "200", "x.example.com"},
		"no server's name":            {connect("example.com:443") + string(hello(t, "")), "200", "does not say"},
		"half a server's name":        {connect("example.com:443") + string(hello(t, "example.com")[:60]), "200", "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			s.open(t, allow...)
			s.dialled = nil
			answer := s.raw(t, tc.send)
			list := s.inlet.Shut()
			if name == "a fragment" { // the fragment is no part of what is sent
				if strings.Contains(answer, "evil got") || len(list) != 1 || list[0].Host == "good.example" && list[0].Verdict == Allowed && strings.Contains(answer, "evil") {
					t.Errorf("%q %+v", answer, list)
				}
				return
			}
			if tc.status != "" && !strings.HasPrefix(answer, "HTTP/1.1 "+tc.status+" ") {
				t.Errorf("answer %q", answer)
			}
			if len(list) != 1 || list[0].Verdict != Refused && tc.status != "502" || !strings.Contains(list[0].Why, tc.why) || strings.Contains(answer, "got") {
				t.Errorf("recorded %+v; answer %q", list, answer)
			}
			if tc.status != "200" && len(s.dialled) > 0 {
				t.Errorf("connected to %q", s.dialled)
			}
			if len(list) == 1 && tc.status == "200" && list[0].Sent > 0 {
				t.Errorf("%d bytes got out", list[0].Sent)
			}
		})
	}
}

// hello is the first message of a TLS client for a server's name.
func hello(t testing.TB, name string) []byte {
	t.Helper()
	var sent recorder
	tls.Client(&sent, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
	if sent.Len() == 0 {
		t.Fatal("the client said nothing")
	}
	return sent.Bytes()
}

// recorder is a connection to nobody.
type recorder struct {
	net.Conn
	bytes.Buffer
}

func (r *recorder) Write(p []byte) (int, error) { return r.Buffer.Write(p) }
func (r *recorder) Read([]byte) (int, error)    { return 0, io.EOF }
func (r *recorder) Close() error                { return nil }

func TestPipelinedSecondHost(t *testing.T) {
	s := newSetting(t)
	s.open(t, "good.example")
	answer := s.raw(t, "GET http://good.example/1 HTTP/1.1\r\nHost: good.example\r\n\r\nGET http://evil.example/2 HTTP/1.1\r\nHost: evil.example\r\n\r\n")
	if !strings.Contains(answer, "good got GET good.example/1") || strings.Contains(answer, "evil got") || !strings.Contains(answer, "403 Forbidden") {
		t.Errorf("%q", answer)
	}
	if list := s.inlet.Shut(); len(list) != 2 || list[0].Verdict != Allowed || list[1].Verdict != Refused {
		t.Errorf("%+v", list)
	}
}

func TestRedirectIsCheckedAgain(t *testing.T) {
	s := newSetting(t)
	s.open(t, "good.example", "loop.example")
	for _, to := range []string{"http://evil.example/", "http://127.0.0.1/", "http://loop.example/", "http://169.254.169.254/latest/meta-data"} {
		if got := s.get("http://good.example/redirect?to=" + url.QueryEscape(to)); !strings.HasPrefix(got, "belay: ") {
			t.Errorf("%s: %q", to, got)
		}
	}
	s.inlet.Shut()
	for _, d := range s.dialled {
		if d != goodAddr+":80" {
			t.Errorf("connected to %s", d)
		}
	}
}

// TestRebinding changes what a name leads to between connections: each is checked, and what was checked is connected to.
func TestRebinding(t *testing.T) {
	s := newSetting(t)
	s.services["127.0.0.1:80"] = s.services[evilAddr+":80"]
	s.services["10.0.0.8:80"] = s.services[evilAddr+":80"]
	s.next["good.example"] = []string{"127.0.0.1"}
	s.open(t, "good.example", "mixed.example")
	if got := s.get("http://good.example/1"); got != `good got GET good.example/1 ""` {
		t.Errorf("first: %q", got)
	}
	if got := s.get("http://good.example/2"); !strings.Contains(got, "127.0.0.1, which is this machine") {
		t.Errorf("second: %q", got)
	}
	if got := s.get("http://mixed.example/"); got != `good got GET mixed.example/ ""` {
		t.Errorf("a private and a public address: %q", got)
	}
	s.inlet.Shut()
	if diff := cmp.Diff([]string{goodAddr + ":80", goodAddr + ":80"}, s.dialled); diff != "" {
		t.Error(diff)
	}
}

// TestShut ends what a command has left, so that it is not served with what the next one is allowed.
func TestShut(t *testing.T) {
	s := newSetting(t)
	s.open(t)
	if got := s.get("http://good.example/"); !strings.Contains(got, "no way out to any host") {
		t.Errorf("nothing is allowed: %q", got)
	}
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s.inlet.Shut()
	io.WriteString(c, "GET http://good.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n")
	waiting, err := net.Dial("tcp", s.addr) // it waits to be accepted
	if err != nil {
		t.Fatal(err)
	}
	defer waiting.Close()
	io.WriteString(waiting, "GET http://good.example/ HTTP/1.1\r\nHost: good.example\r\n\r\n")
	drain(s.inlet.listener)
	s.open(t, "good.example")
	for _, left := range []net.Conn{c, waiting} {
		if b, _ := io.ReadAll(left); strings.Contains(string(b), "good got") {
			t.Errorf("what an earlier command left was served: %q", b)
		}
	}
	if got := s.get("http://good.example/"); got != `good got GET good.example/ ""` {
		t.Errorf("opened again: %q", got)
	}
	if list := s.inlet.Shut(); len(list) != 1 {
		t.Errorf("%+v", list)
	}
}

func TestInjection(t *testing.T) {
	const token = "Bearer tok-4711-abcdefgh"
	s := newSetting(t, Injection{Host: "Example.COM", Header: "authorization", Value: token})
	s.named(t)
	s.names["other.example.com"] = []string{goodAddr}
	s.open(t, "example.com", "*.example.com")
	got := s.get("https://example.com/echo")
	stars := "Bearer " + strings.Repeat("*", len(token)-7)
	if !strings.Contains(got, "Authorization: "+strings.Repeat("*", len(token))) && !strings.Contains(got, "Authorization: "+stars) {
		t.Errorf("the header was not added, or its value is shown: %q", got)
	}
	if strings.Contains(got, "tok-4711") {
		t.Errorf("the value is shown: %q", got)
	}
	if got := s.get("https://other.example.com/echo"); strings.Contains(got, "Authorization") {
		t.Errorf("added for another host: %q", got)
	}
	req, _ := http.NewRequest("GET", "https://example.com/echo", nil)
	req.Header.Set("Authorization", "Bearer the agent's own")
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := io.ReadAll(resp.Body); strings.Contains(string(b), "own") || strings.Contains(resp.Header.Get("X-Echo"), "tok-4711") {
		t.Errorf("%q %q", b, resp.Header)
	}
	resp.Body.Close()
	// A second host in the connection, as one that the server might also be.
	c := s.tunnel(t, "example.com:443")
	io.WriteString(c, "GET /echo HTTP/1.1\r\nHost: evil.example\r\n\r\n")
	if b, _ := io.ReadAll(c); !strings.Contains(string(b), "421 Misdirected") {
		t.Errorf("%q", b)
	}
	list := s.inlet.Shut()
	var injected []string
	for _, c := range list {
		injected = append(injected, c.Host+" "+c.Injected+" "+c.Verdict)
		if strings.Contains(fmt.Sprint(c), "tok-4711") {
			t.Errorf("the value is in the record: %+v", c)
		}
	}
	if diff := cmp.Diff([]string{"example.com Authorization allow", "other.example.com  allow", "example.com Authorization allow", "example.com Authorization deny"}, injected); diff != "" {
		t.Error(diff)
	}
}

// tunnel speaks TLS with a host through the proxy.
func (s *setting) tunnel(t testing.TB, to string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	fmt.Fprintf(c, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to)
	in := bufio.NewReader(c)
	if resp, err := http.ReadResponse(in, nil); err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	name, _, _ := strings.Cut(to, ":")
	cfg := s.client.Transport.(*http.Transport).TLSClientConfig.Clone()
	cfg.ServerName = name
	return tls.Client(&replay{c, in}, cfg)
}

func TestAuthorityIsForItsHostsOnly(t *testing.T) {
	s := newSetting(t, Injection{Host: "example.com", Header: "X-Key", Value: "abcdefghijk"})
	leaf, err := s.proxy.authority.leaf("evil.example")
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(leaf.Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.proxy.Authority())
	if _, err := cert.Verify(x509.VerifyOptions{DNSName: "evil.example", Roots: roots}); err == nil {
		t.Error("the run's authority vouches for any host")
	}
	leaf, _ = s.proxy.authority.leaf("example.com")
	cert, _ = x509.ParseCertificate(leaf.Certificate[0])
	if _, err := cert.Verify(x509.VerifyOptions{DNSName: "example.com", Roots: roots}); err != nil {
		t.Error(err)
	}
}

// TestHider splits what a server repeats in every place.
func TestHider(t *testing.T) {
	const secret = "aabaabc"
	text := "x" + "aabaabaabc" + "--" + secret + secret + "aab"
	want := "x" + "aab*******" + "--" + strings.Repeat("*", 14) + "aab"
	for n := 1; n <= len(text); n++ {
		h := &hider{in: io.NopCloser(&chunks{text, n}), secret: []byte(secret)}
		got, err := io.ReadAll(h)
		if err != nil || string(got) != want {
			t.Errorf("%d bytes at a time: %q, %v", n, got, err)
		}
	}
}

type chunks struct {
	text string
	n    int
}

func (c *chunks) Read(p []byte) (int, error) {
	if c.text == "" {
		return 0, io.EOF
	}
	n := copy(p, c.text[:min(c.n, len(c.text))])
	c.text = c.text[n:]
	return n, nil
}

func TestFetch(t *testing.T) {
	s := newSetting(t, Injection{Host: "example.com", Header: "Authorization", Value: "Bearer abcdefghijkl"})
	s.named(t)
	allow := []string{"good.example", "example.com", "loop.example"}
	for address, want := range map[string]string{
		"https://example.com/a#b":                               `good got GET example.com/a ""`,
		"http://good.example/a":                                 `good got GET good.example/a ""`,
		"http://good.example/redirect?to=https://example.com/c": `good got GET example.com/c ""`,
		"https://example.com/redirect?to=http://good.example/":  "refused: it redirects to http://good.example/, which is not encrypted",
		"http://good.example/redirect?to=http://evil.example/":  "refused: it redirects to http://evil.example/: evil.example: it is not an allowed host; allowed are good.example, example.com, loop.example",
		"http://good.example/redirect?to=http://loop.example/":  "refused: its name leads to 127.0.0.1, which is this machine",
		"http://evil.example/":                                  "refused: evil.example: it is not an allowed host; allowed are good.example, example.com, loop.example",
		"http://loop.example/":                                  "refused: its name leads to 127.0.0.1, which is this machine",
		"http://user@good.example/":                             "refused: a URL with a user or a password is not fetched",
		"http://good.example:22/":                               "refused: good.example: port 22 is not allowed",
		"file:///etc/passwd":                                    `refused: "file:///etc/passwd" is no URL that begins with https:// or http://`,
		"http://169.254.169.254/":                               "refused: addresses are refused: a host is asked for by its name",
		"https://good.example/":                                 "failed",
		"https://example.com/echo":                              "Accept: text/markdown",
	} {
		page, list, err := s.proxy.Fetch(context.Background(), allow, address, 1000)
		got := string(page.Body)
		switch {
		case Refusal(err):
			got = "refused: " + err.Error()
		case err != nil:
			got = "failed"
		}
		if address == "https://example.com/echo" {
			if !strings.Contains(got, want) || !strings.Contains(got, "Authorization: ***") || strings.Contains(got, "abcdefghijkl") {
				t.Errorf("%s: %q", address, got)
			}
		} else if got != want {
			t.Errorf("%s: %q, want %q", address, got, want)
		}
		if err == nil && (len(list) == 0 || list[len(list)-1].Received == 0) {
			t.Errorf("%s: recorded %+v", address, list)
		}
	}
	page, _, err := s.proxy.Fetch(context.Background(), allow, "http://good.example/"+strings.Repeat("x", 2000), 100)
	if err != nil || len(page.Body) != 100 || !page.Cut {
		t.Errorf("%d bytes, cut %v, %v", len(page.Body), page.Cut, err)
	}
}

func TestFlood(t *testing.T) {
	s := newSetting(t)
	g, err := s.proxy.open([]string{"good.example"})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 5000 {
		g.record(Connection{Host: strconv.Itoa(n) + ".evil.example", Verdict: Refused})
		g.record(Connection{Host: "same.example", Verdict: Refused})
	}
	total := 0
	list := g.close()
	for _, c := range list {
		total += c.Count
	}
	if len(list) > 2*maxKept || total != 10000 {
		t.Errorf("%d records of %d connections", len(list), total)
	}
}
