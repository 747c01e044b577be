package harness

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"belay/effect"
	"belay/internal/sandbox"
	"belay/journal"
	"belay/policy"
)

// Connections says of connections what a journal says.
func Connections(list []sandbox.Connection) []journal.Connection {
	var out []journal.Connection
	for _, c := range list {
		j := journal.Connection{Host: c.Host, Port: c.Port, Address: c.Address, Verdict: effect.Verdict(c.Verdict), Reason: c.Why, Injected: c.Injected,
			Sent: c.Sent, Received: c.Received, DurationMS: c.Took.Milliseconds()}
		if c.Count > 1 {
			j.Count = c.Count
		}
		out = append(out, j)
	}
	return out
}

// network is what a run's commands were connected to since it was last asked.
type network struct {
	mu   sync.Mutex
	list []journal.Connection
}

func (n *network) hear(list []sandbox.Connection) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, Connections(list)...)
}

func (n *network) take() []journal.Connection {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := n.list
	n.list = nil
	return list
}

// allowDomains adds the hosts that a person named for this run to the rules.
func allowDomains(rules *policy.Rules, hosts []string) *policy.Rules {
	if len(hosts) == 0 {
		return rules
	}
	var own policy.Rules
	if rules != nil {
		own = *rules
	}
	own.Network = slices.Clone(own.Network)
	for _, host := range hosts {
		own.Network = append(own.Network, policy.Host(host, "--allow-domain"))
	}
	return &own
}

// reach is the network that the rules let commands have, with the values of what is to be injected. None of them is known to
// anything but the proxy.
func (a *agent) reach(rules *policy.Rules, value func(name string) string) (sandbox.Network, error) {
	n := sandbox.Network{Connected: a.network.hear}
	if rules == nil {
		return n, nil
	}
	for _, r := range rules.Network {
		if err := sandbox.CheckHost(r.Text); err != nil {
			return n, &UsageError{fmt.Errorf("%s: network: %w", r.From, err)}
		}
		n.Allow = append(n.Allow, r.Text)
	}
	n.Ports = rules.Ports
	for _, in := range rules.Inject {
		secret := value(in.FromEnv)
		if secret == "" {
			return n, &UsageError{fmt.Errorf("%s: inject: the environment variable %s is not set: set it, or take the entry out", in.From, in.FromEnv)}
		}
		if !slices.ContainsFunc(n.Allow, func(p string) bool { return policy.HostMatches(p, in.Host) }) {
			return n, &UsageError{fmt.Errorf("%s: inject: %s is not an allowed host: name it under allow too", in.From, in.Host)}
		}
		n.Inject = append(n.Inject, sandbox.Injection{Host: in.Host, Header: in.Header, Value: in.Prefix + secret})
	}
	return n, nil
}

// injected are the secrets of the environment that are added to requests, for the redaction.
func injected(rules *policy.Rules, value func(name string) string) []string {
	if rules == nil {
		return nil
	}
	var all []string
	for _, in := range rules.Inject {
		if secret := value(in.FromEnv); secret != "" {
			all = append(all, secret)
		}
	}
	return all
}

var errOffNetwork = errors.New("--allow-domain has no meaning with --sandbox off: without a sandbox commands reach every host")
