package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"belay/internal/sandbox/egress"
	"belay/tool"
)

// Network says which hosts commands can reach when their grant holds them. Everything else of the network stays away.
type Network struct {
	Allow  []string    // names, and *.NAME for all names below one
	Ports  []uint16    // none is 80 and 443
	Inject []Injection // headers that are added on the way out
	// Connected hears of the connections of each command and fetch, when it has ended, from any goroutine; nil is nobody.
	Connected func([]Connection)

	world egress.Config // for tests: how names are resolved and addresses reached
}

// Connection is what became of one connection that was asked for.
type Connection = egress.Connection

// Injection adds a header to the requests to one host, with a value that nothing in the sandbox sees.
type Injection = egress.Injection

// CheckHost says why a text is no host that can be allowed.
func CheckHost(text string) error {
	_, err := egress.Pattern(text)
	return err
}

// network makes the proxy. Without hosts commands are not shown any.
func (s *Sandbox) network() error {
	n := &s.cfg.Network
	n.Allow = slices.Clone(n.Allow)
	for i, text := range n.Allow {
		p, err := egress.Pattern(text)
		if err != nil {
			return err
		}
		n.Allow[i] = p
	}
	cfg := n.world
	cfg.Ports, cfg.Inject = n.Ports, n.Inject
	var err error
	s.proxy, err = egress.New(cfg)
	return err
}

// reachable are the hosts of a grant that this sandbox has a way to.
func (s *Sandbox) reachable(granted []string) []string {
	var out []string
	for _, text := range granted {
		if p, err := egress.Pattern(text); err == nil && slices.Contains(s.cfg.Network.Allow, p) && !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// maxDenials is how many refused connections a command's result names.
const maxDenials = 20

// connected tells of connections, and gives what was refused in words.
func (s *Sandbox) connected(list []Connection) (denied []string) {
	if len(list) == 0 {
		return nil
	}
	if s.cfg.Network.Connected != nil {
		s.cfg.Network.Connected(list)
	}
	more := 0
	for _, c := range list {
		d := c.Denial()
		switch {
		case d == "" || slices.Contains(denied, d):
		case len(denied) == maxDenials:
			more++
		default:
			denied = append(denied, d)
		}
	}
	if more > 0 {
		denied = append(denied, fmt.Sprintf("connect: %d further connections were refused", more))
	}
	return denied
}

// bundles are where systems keep the certificates that they trust, in one file.
var bundles = []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem"}

// systemBundle is the file of these that is there, "" without one.
func systemBundle() string {
	for _, path := range bundles {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

// authorities are the certificates that commands trust where belay adds headers: the system's, and the run's own.
func (s *Sandbox) authorities() ([]byte, error) {
	own := s.proxy.Authority()
	if own == nil {
		return nil, nil
	}
	var all []byte
	if path := systemBundle(); path != "" {
		var err error
		if all, err = os.ReadFile(path); err != nil {
			return nil, fmt.Errorf("the system's certificates: %w", err)
		}
	}
	return append(append(all, '\n'), own...), nil
}

// proxied is the environment of a command that can reach hosts through the proxy at address HOST:PORT. Certificates is a
// file, "" for what each program trusts by itself.
func (s *Sandbox) proxied(address, certificates string, hosts []string) []string {
	url := "http://" + address
	var env []string
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy", "YARN_HTTP_PROXY", "YARN_HTTPS_PROXY", "npm_config_proxy", "npm_config_https_proxy", "CARGO_HTTP_PROXY"} {
		env = append(env, name+"="+url)
	}
	env = append(env, "NO_PROXY=localhost,127.0.0.1,::1", "no_proxy=localhost,127.0.0.1,::1", "NODE_USE_ENV_PROXY=1", "CARGO_NET_GIT_FETCH_WITH_CLI=true")
	if certificates != "" {
		for _, name := range []string{"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "NODE_EXTRA_CA_CERTS", "npm_config_cafile", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO", "AWS_CA_BUNDLE", "DENO_CERT", "BUNDLE_SSL_CA_CERT", "NIX_SSL_CERT_FILE"} {
			env = append(env, name+"="+certificates)
		}
	}
	return append(env, goModules(lookup(s.cfg.Environ, "GOPROXY"), hosts)...)
}

// goModules says where Go gets modules from: from those of the person's proxies that can be reached, else from the usual one, else
// from where they are developed. Checksums are looked up where their database can be reached.
func goModules(own string, hosts []string) []string {
	can := func(host string) bool { return egress.Allows(hosts, host) }
	proxies := ""
	for rest := own; rest != ""; {
		at := strings.IndexAny(rest, ",|")
		one, separator := rest, ""
		if at >= 0 {
			one, separator = rest[:at], rest[at:at+1]
			rest = rest[at+1:]
		} else {
			rest = ""
		}
		host := strings.TrimPrefix(one, "https://")
		host, _, _ = strings.Cut(host, "/")
		if strings.HasPrefix(one, "https://") && !strings.Contains(host, "@") && can(host) {
			proxies += one + separator
		}
	}
	proxies = strings.TrimRight(proxies, ",|")
	switch {
	case proxies != "":
	case can("proxy.golang.org"):
		proxies = "https://proxy.golang.org"
	default:
		proxies = "direct"
	}
	if !strings.HasSuffix(proxies, "direct") {
		proxies += ",direct"
	}
	sums := "off"
	if can("sum.golang.org") {
		sums = "sum.golang.org"
	}
	return []string{"GOPROXY=" + proxies, "GOSUMDB=" + sums}
}

// Fetch gets a page from a host of the grant, or, as a person's choice goes without a sandbox, from one that was allowed all
// the same. An error that wraps tool.ErrDenied says what is not allowed.
func (e *env) Fetch(ctx context.Context, url string, limit int64) (tool.Page, error) {
	page, list, err := e.s.proxy.Fetch(ctx, e.grant.Network, url, limit)
	e.s.connected(list)
	if egress.Refusal(err) {
		return tool.Page{}, fmt.Errorf("%w: %w", err, tool.ErrDenied)
	}
	return tool.Page{URL: page.URL, Status: page.Status, Type: page.Type, Body: page.Body, Cut: page.Cut}, err
}

// moduleDownloads are the modules that Go has downloaded, as a proxy would give them, below a module cache.
func moduleDownloads(cache string) string { return filepath.Join(cache, "cache", "download") }
