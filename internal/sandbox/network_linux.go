//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"belay/effect"
	"belay/internal/sandbox/egress"
	"belay/internal/sandbox/helper"
)

// proxyPort is where commands find the proxy on their own loopback, unless a local service has that port.
const proxyPort = 3128

// proxyPort is proxyPort, or the next that no local service has.
func (s *Sandbox) proxyPort() uint16 {
	port := uint16(proxyPort)
	for slices.Contains(s.cfg.Local, port) {
		port++
	}
	return port
}

// waysOut says what new helpers connect to.
func (s *Sandbox) waysOut() {
	s.helpers.ports = s.cfg.Local
	if len(s.cfg.Network.Allow) > 0 {
		s.helpers.proxy, s.helpers.port = s.proxy, s.proxyPort()
	}
}

// insideCertificates is where commands find the certificates to trust when belay adds headers.
const insideCertificates = "/run/belay-ca.pem"

// certificates is the file of certificates that commands are pointed to.
func (s *Sandbox) certificates() string {
	if s.proxy.Authority() != nil {
		return insideCertificates
	}
	return systemBundle()
}

// certificateSteps show the certificates.
func (s *Sandbox) certificateSteps() []helper.Step {
	all, err := s.authorities()
	if err != nil || all == nil {
		return nil // then programs do not trust what is intercepted, and say so
	}
	return []helper.Step{{Code: helper.File, Flags: 0o644, A: string(all), B: insideCertificates}}
}

// connect makes the ways out of a new helper: to local services, and to the proxy. Each is its listener.
func (h *standing) connect(ports []uint16, proxy *egress.Proxy, port uint16) error {
	if proxy != nil {
		ports = append(slices.Clone(ports), port)
	}
	if len(ports) == 0 {
		return nil
	}
	listeners, err := h.listen(ports)
	if err != nil {
		return fmt.Errorf("listening inside the sandbox: %w", err)
	}
	if proxy != nil {
		last := len(listeners) - 1
		h.inlet = proxy.Inlet(listeners[last])
		listeners, ports = listeners[:last], ports[:last]
		go func() {
			<-h.gone
			h.inlet.Close()
		}()
	}
	h.local(listeners, ports)
	return nil
}

// reach lets commands in the helper reach the granted hosts from now on, none where nothing is granted. Shut ends that, and says
// what was refused.
func (e *env) reach(h *standing) (shut func() (denied []string), err error) {
	if h.inlet == nil {
		return func() []string { return nil }, nil
	}
	if err := h.inlet.Open(e.s.reachable(e.grant.Network)); err != nil {
		return nil, err
	}
	return func() []string { return e.s.connected(h.inlet.Shut()) }, nil
}

// networkEnviron is what the environment holds for the network of one command.
func (e *env) networkEnviron() []string {
	if e.cache != agentCache {
		return e.s.verifierModules()
	}
	if len(e.s.cfg.Network.Allow) == 0 {
		return nil
	}
	env := []string{"GOMODCACHE=" + insideModules, "CARGO_HOME=" + insideCache + "/cargo", "GOFLAGS=" + strings.TrimSpace(e.s.host.env["GOFLAGS"]+" -modcacherw")}
	hosts := e.s.reachable(e.grant.Network)
	if len(hosts) == 0 {
		return env
	}
	return append(env, e.s.proxied(fmt.Sprintf("127.0.0.1:%d", e.s.proxyPort()), e.s.certificates(), hosts)...)
}

// insideModules is Go's module cache of a workspace whose commands can download modules: the host's lies below, read-only.
const insideModules = insideCache + "/go-mod"

// ownModules is where what commands of the agent have downloaded is kept: below an overlay, or as it is.
func (s *Sandbox) ownModules() string {
	if s.layersModules() {
		return filepath.Join(s.cacheDir(agentCache), "mod", "upper")
	}
	return filepath.Join(s.cacheDir(agentCache), "tree", "go-mod")
}

// layersModules says that the agent's modules lie over the host's.
func (s *Sandbox) layersModules() bool { return s.level.Overlay && s.host.modCache != "" }

// keepsModules says that a command with this access may keep what it downloads in a layered cache, of which there is one at a time.
func (s *Sandbox) keepsModules(access effect.Access) bool {
	return len(s.cfg.Network.Allow) > 0 && s.layersModules() && access == effect.ReadWrite
}

// moduleSteps show the module cache. One command at a time keeps what it downloads, the one that has the lock.
func (s *Sandbox) moduleSteps(access effect.Access) (steps []helper.Step, release func(), err error) {
	release = func() {}
	if len(s.cfg.Network.Allow) == 0 {
		return nil, release, nil
	}
	upper, work := s.ownModules(), filepath.Join(s.cacheDir(agentCache), "mod", "work")
	if !exists(upper) {
		if err := s.own(upper); err != nil {
			return nil, release, err
		}
	}
	if !s.layersModules() {
		return nil, release, nil
	}
	step := helper.Step{Code: helper.Overlay, A: upper + "\x00" + s.host.modCache, B: insideModules}
	steps = []helper.Step{{Code: helper.Dir, A: insideModules}}
	if !s.keepsModules(access) {
		return append(steps, step), release, nil
	}
	if err := os.MkdirAll(work, 0o755); err != nil {
		return nil, release, err
	}
	lock, err := os.OpenFile(filepath.Join(filepath.Dir(work), "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, release, err
	}
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return append(steps, step), func() { lock.Close() }, nil
	}
	inner := filepath.Join(work, "work")
	if err := tidy(inner); err != nil {
		lock.Close()
		return nil, release, err
	}
	step.A, step.C = s.host.modCache, upper+"\x00"+work
	return append(steps, step), func() {
		tidy(inner)
		lock.Close()
	}, nil
}

// insideDownloads is where verifiers find what commands of the agent have downloaded. Go unpacks it anew for each of them and holds
// it against go.sum: what it was unpacked to for the agent, the agent may have changed.
const insideDownloads = "/run/belay-modules"

// downloads are what commands of the agent have downloaded, "" where that is nothing.
func (s *Sandbox) downloads() string {
	if dir := moduleDownloads(s.ownModules()); len(s.cfg.Network.Allow) > 0 && exists(dir) {
		return dir
	}
	return ""
}

func (s *Sandbox) verifierModuleSteps() []helper.Step {
	dir := s.downloads()
	if dir == "" {
		return nil
	}
	steps := []helper.Step{{Code: helper.Bind, Flags: helper.ReadOnly, A: dir, B: insideDownloads}}
	if s.layersModules() {
		steps = append(steps, helper.Step{Code: helper.Overlay, A: s.host.modCache, B: insideModules})
	}
	return steps
}

func (s *Sandbox) verifierModules() []string {
	if s.downloads() == "" || !s.level.Overlay {
		return nil
	}
	return []string{"GOMODCACHE=" + insideModules, "GOPROXY=file://" + insideDownloads}
}
