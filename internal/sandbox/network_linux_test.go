//go:build amd64 || arm64

package sandbox

import (
	"archive/zip"
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"belay/effect"
	"belay/internal/sandbox/egress"
	"belay/tool"
)

// internet has example.com and registry.example at a public address, which is a server of this test, and nothing else.
type internet struct {
	mu   sync.Mutex
	list []Connection
	egress.Config
	secure *httptest.Server
	asked  []string
}

func newInternet(t testing.TB) *internet {
	t.Helper()
	n := &internet{}
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.mu.Lock()
		n.asked = append(n.asked, r.Host+r.URL.Path+" "+r.Header.Get("Authorization"))
		n.mu.Unlock()
		fmt.Fprintf(w, "%s%s %q", r.Host, r.URL.Path, r.Header.Get("Authorization"))
	})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	n.secure = secure
	n.Roots = x509.NewCertPool()
	n.Roots.AddCert(secure.Certificate())
	n.Resolve = func(_ context.Context, host string) ([]netip.Addr, error) {
		switch host {
		case "example.com", "registry.example":
			return []netip.Addr{netip.MustParseAddr("203.0.113.1")}, nil
		case "inside.example":
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}
		return nil, &net.DNSError{Err: "no such host", IsNotFound: true}
	}
	n.Dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
		real := plain.Listener.Addr().String()
		if to.Port() == 443 {
			real = secure.Listener.Addr().String()
		}
		var d net.Dialer
		return d.DialContext(ctx, "tcp", real)
	}
	return n
}

func (n *internet) connected(list []Connection) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, list...)
}

func (n *internet) sandbox(t testing.TB, inject ...Injection) *Sandbox {
	t.Helper()
	s := newSandbox(t, func(c *Config) {
		c.Network = Network{Allow: []string{"Example.com", "registry.example", "inside.example"}, Inject: inject, Connected: n.connected, world: n.Config}
	})
	t.Cleanup(s.Close)
	needIsolation(t, s)
	return s
}

// certificate puts the test server's certificate into the workspace, for programs that know no other.
func (n *internet) certificate(t testing.TB, s *Sandbox) string {
	path := filepath.Join(s.workspace, "ca.pem")
	put(t, path, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: n.secure.Certificate().Raw})))
	return path
}

func online(hosts ...string) effect.Grant {
	return effect.Grant{Workspace: effect.ReadWrite, Network: hosts}
}

func TestGrantedHosts(t *testing.T) {
	n := newInternet(t)
	s := n.sandbox(t)
	ca := n.certificate(t, s)
	both := s.Env(online("example.com", "registry.example"), "")
	if got := must(t, both, "curl -sS http://example.com/a"); got != `example.com/a ""` {
		t.Errorf("plain: %q", got)
	}
	if got := must(t, both, "curl -sS --cacert '"+ca+"' https://example.com/b"); got != `example.com/b ""` {
		t.Errorf("TLS: %q", got)
	}
	if len(n.list) != 2 || n.list[0].Verdict != egress.Allowed || n.list[1].Host != "example.com" || n.list[1].Port != 443 || n.list[1].Received == 0 {
		t.Errorf("told: %+v", n.list)
	}
	for name, tc := range map[string]struct {
		grant effect.Grant
		line  string
		why   string
	}{
		"a host that is not granted": {online("example.com"), "curl -sS --fail http://registry.example/", "connect registry.example:80: it is not an allowed host; allowed are example.com"},
		"a host that is not allowed": {online("example.com", "evil.example"), "curl -sS --fail http://evil.example/", "connect evil.example:80: it is not an allowed host"},
		"a name that leads here":     {online("inside.example"), "curl -sS --fail http://inside.example/", "connect inside.example:80: its name leads to 127.0.0.1"},
		"another name in TLS":        {online("example.com"), "curl -sS -k --connect-to registry.example:443:example.com:443 https://registry.example/", "the TLS connection is for another server"},
		"nothing granted":            {write, "curl -sS --fail -x http://127.0.0.1:3128 http://example.com/", "connect example.com:80: this command has no way out to any host"},
		"a command that only reads":  {read, "curl -sS --fail -x http://127.0.0.1:3128 http://example.com/", "connect example.com:80: this command has no way out to any host"},
		"a grant without a way":      {online("other.example"), "curl -sS --fail http://other.example/", "no way out to the granted hosts"},
	} {
		t.Run(name, func(t *testing.T) {
			out, exit := sh(t, s.Env(tc.grant, ""), tc.line)
			if exit.Code == 0 || !strings.Contains(strings.Join(exit.Denied, "\n"), tc.why) {
				t.Errorf("%q %+v", out, exit)
			}
		})
	}
	for name, line := range map[string]string{
		"past the proxy":  "curl -sS --noproxy '*' --max-time 5 http://203.0.113.1/",
		"resolving":       "getent hosts example.com",
		"a name server":   "printf x | timeout 2 bash -c 'cat >/dev/udp/8.8.8.8/53' && exit 7; exit 7",
		"a local service": fmt.Sprintf("curl -sS --noproxy '*' --max-time 5 http://%s/", n.secure.Listener.Addr()),
	} {
		if out, exit := sh(t, both, line); exit.Code == 0 {
			t.Errorf("%s: %q", name, out)
		}
	}
	if out := must(t, s.Env(write, ""), "env"); strings.Contains(strings.ToLower(out), "_proxy=") {
		t.Errorf("a command without a grant is shown a proxy: %s", out)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, asked := range n.asked {
		if !strings.HasPrefix(asked, "example.com/") {
			t.Errorf("a server was asked for %s", asked)
		}
	}
}

// TestInjectedHeader uses a token that nothing inside sees.
func TestInjectedHeader(t *testing.T) {
	const token = "Bearer tok-very-secret-4711"
	n := newInternet(t)
	s := n.sandbox(t, Injection{Host: "example.com", Header: "Authorization", Value: token})
	e := s.Env(online("example.com", "registry.example"), "")
	got := must(t, e, "curl -sS https://example.com/b; cat /proc/self/environ; env; cat /run/belay-ca.pem | tail -1")
	if !strings.Contains(got, "example.com/b") || strings.Contains(got, "4711") {
		t.Errorf("%q", got)
	}
	if len(n.asked) != 1 || n.asked[0] != "example.com/b "+token {
		t.Errorf("the server was asked %q", n.asked)
	}
	if got := must(t, e, "curl -sS http://example.com/c"); !strings.HasSuffix(got, `/c ""`) {
		t.Errorf("without TLS: %q", got)
	}
	if len(n.list) == 0 || n.list[0].Injected != "Authorization" || strings.Contains(fmt.Sprint(n.list), "4711") {
		t.Errorf("told: %+v", n.list)
	}
}

// TestLeftBehind has a command leave a request where nobody has accepted it yet: what comes later has other rights.
func TestLeftBehind(t *testing.T) {
	n := newInternet(t)
	s := n.sandbox(t)
	line := `for i in 1 2 3 4 5 6 7 8; do (exec 9<>/dev/tcp/127.0.0.1/3128; printf 'GET http://example.com/left HTTP/1.1\r\nHost: example.com\r\n\r\n' >&9) & done; wait`
	for range 5 {
		run(t, s.Env(write, ""), tool.Command{Argv: []string{"bash", "-c", line}})
		must(t, s.Env(online("example.com"), ""), "curl -sS http://example.com/granted")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.asked) != 5 {
		t.Errorf("%q", n.asked)
	}
}

func TestFetchesOfTools(t *testing.T) {
	n := newInternet(t)
	s := n.sandbox(t)
	f := s.Env(online("example.com", "inside.example"), "").(tool.Fetcher)
	page, err := f.Fetch(context.Background(), "https://example.com/page", 100)
	if err != nil || string(page.Body) != `example.com/page ""` || page.Status != 200 {
		t.Errorf("%+v %v", page, err)
	}
	for _, url := range []string{"https://registry.example/", "https://inside.example/", "https://203.0.113.1/"} {
		if _, err := f.Fetch(context.Background(), url, 100); err == nil || !strings.Contains(err.Error(), tool.ErrDenied.Error()) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestGoModules downloads a module and has a verifier find it, and nothing else that the agent left in its cache.
func TestGoModules(t *testing.T) {
	n := newInternet(t)
	s := n.sandbox(t)
	if !s.hasProgram("go") {
		t.Fatal("there is no go here")
	}
	module := httptest.NewServer(http.FileServer(http.Dir(goProxy(t))))
	t.Cleanup(module.Close)
	s.proxy, _ = egress.New(egress.Config{Resolve: n.Resolve, Dial: func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", module.Listener.Addr().String())
	}})
	s.helpers.proxy = s.proxy
	put(t, filepath.Join(s.workspace, "go.mod"), "module work.example/x\n\ngo 1.21\n\nrequire registry.example/dep v1.0.0\n")
	put(t, filepath.Join(s.workspace, "main.go"), "package main\n\nimport \"registry.example/dep\"\n\nfunc main() { println(dep.Answer) }\n")
	e := s.Env(online("registry.example"), "")
	must(t, e, "GOPROXY=http://registry.example GOFLAGS=-mod=mod go mod download registry.example/dep && GOPROXY=off GOFLAGS=-mod=mod go mod tidy")
	if out := must(t, s.Env(write, ""), "go run ."); out != "42" {
		t.Errorf("without a network, later: %q", out)
	}
	must(t, e, `cd "$GOMODCACHE/registry.example/dep@v1.0.0" && chmod -R u+w . && echo 'package dep; const Answer = 43' > dep.go`)
	v := s.VerifierEnv(read, "")
	if out := must(t, v, "go run ."); !strings.HasSuffix(out, "\n42") {
		t.Errorf("the verifier takes what the agent has changed in its cache: %q", out)
	}
	if out := must(t, v, "env"); strings.Contains(strings.ToLower(out), "_proxy=") {
		t.Errorf("a verifier is shown a proxy: %s", out)
	}
}

// goProxy is a folder that a Go module proxy could serve: one module.
func goProxy(t testing.TB) string {
	dir := t.TempDir()
	at := filepath.Join(dir, "registry.example", "dep", "@v")
	put(t, filepath.Join(at, "list"), "v1.0.0\n")
	put(t, filepath.Join(at, "v1.0.0.info"), `{"Version":"v1.0.0","Time":"2020-01-01T00:00:00Z"}`)
	put(t, filepath.Join(at, "v1.0.0.mod"), "module registry.example/dep\n")
	f, err := os.Create(filepath.Join(at, "v1.0.0.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := zipModule(f, map[string]string{"registry.example/dep@v1.0.0/go.mod": "module registry.example/dep\n", "registry.example/dep@v1.0.0/dep.go": "package dep\n\nconst Answer = 42\n"}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func zipModule(to io.Writer, files map[string]string) error {
	z := zip.NewWriter(to)
	for name, content := range files {
		w, err := z.Create(name)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, content); err != nil {
			return err
		}
	}
	return z.Close()
}
