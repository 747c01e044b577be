package policy

import (
	"path/filepath"
	"slices"
	"strings"

	"belay/effect"
)

// hosts are the patterns of the hosts that may be reached.
func (s Situation) hosts() []string {
	if s.Rules == nil {
		return nil
	}
	var all []string
	for _, r := range s.Rules.Network {
		all = append(all, r.Text)
	}
	return all
}

// reachable says that a host, HOST or HOST:PORT, is one of those.
func (s Situation) reachable(host string) bool {
	return slices.ContainsFunc(s.hosts(), func(p string) bool { return HostMatches(p, host) })
}

// classifyFetch says what it costs to get something from another machine. What asks an allowed host can tell it something too: that is
// what allowing it means. A remote is named by what a repository calls it; the sandbox lets none but allowed hosts be reached.
func (s Situation) classifyFetch(e effect.Effect) finding {
	named := strings.Contains(e.Target, ".") && !filepath.IsAbs(e.Target) && !strings.HasPrefix(e.Target, ".")
	reason := "it gets something from another machine"
	if e.Target != "" {
		reason = "it gets something from " + e.Target
	}
	if e.Why != "" {
		reason += ": " + e.Why
	}
	switch hosts := s.hosts(); {
	case named && s.reachable(e.Target):
		return finding{class: effect.ClassReversible, reason: reason + "; the host is allowed"}
	case !named && len(hosts) > 0 && s.Sandboxed:
		return finding{class: effect.ClassReversible, reason: reason + "; no other hosts than the allowed ones can be reached"}
	case len(hosts) > 0:
		reason += "; it is not an allowed host"
	}
	return finding{class: effect.ClassExternal, reason: reason}
}

// fetched decides about a page. Where its host is none that somebody has named there is nothing to ask about: the tool could not
// reach it.
func (s Situation) fetched(e effect.Effect, a Action, d Decision) Decision {
	if d.Class < effect.ClassExternal || d.Verdict == effect.Deny {
		return d
	}
	if s.Rules != nil {
		if by := s.Rules.covers(e, a, s, ""); by != "" {
			d.Verdict, d.Rule, d.Reason = effect.Allow, "allow: "+by, sentence("a rule allows it", d.Class)
			return d
		}
	}
	d.Verdict, d.Rule = effect.Deny, "network"
	d.Reason = sentence("no page of "+e.Target+" can be had, as it is not an allowed host", d.Class) +
		" A person can allow it: network: {allow: [" + e.Target + "]} in permissions.yaml, or --allow-domain " + e.Target + ". Do without the page, or say in TaskComplete or ReportBlocker what is missing."
	return d
}

// granted adds what the sandbox then makes possible: files by the class, and the allowed hosts for what could use them. What is known to
// use none gets none.
func (s Situation) granted(a Action, d Decision) Decision {
	d.Grant = grant(d.Class, d.Verdict)
	if d.Verdict == effect.Deny || d.Class < effect.ClassReversible {
		return d
	}
	hosts := s.hosts()
	if a.Tool == "WebFetch" && s.Rules != nil {
		for _, r := range s.Rules.Allow {
			if domain, ok := strings.CutPrefix(r.Spec, "domain:"); ok && r.Tool == "WebFetch" {
				hosts = append(hosts, domain)
			}
		}
	}
	if len(hosts) == 0 || !slices.ContainsFunc(a.Effects, func(e effect.Effect) bool {
		return e.Kind == effect.Opaque || e.Kind == effect.Fetch || e.Kind == effect.Connect
	}) {
		return d
	}
	d.Grant.Network = hosts
	d.Reason += " It can reach " + strings.Join(hosts, ", ") + ": an allowed host is a way out."
	return d
}
