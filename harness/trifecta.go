package harness

import (
	"fmt"
	"slices"
	"strings"

	"belay/effect"
	"belay/journal"
	"belay/policy"
	"belay/tool"
)

// Review is the review of the trifecta for a configuration and its rules, with a sandbox.
func Review(cfg Config, rules *policy.Rules) (*journal.Trifecta, error) {
	all, err := registry(cfg)
	if err != nil {
		return nil, err
	}
	return review(all.Specs(), policy.Situation{Rules: rules, Off: cfg.Sandbox == "off"}, cfg.Sandbox != "off", len(cfg.Local) > 0), nil
}

// review says which tools of a configuration read private data, which read what strangers may have written, and which ways
// out there are: all three together let data leave on a stranger's word.
func review(specs []tool.Spec, s policy.Situation, isolated, local bool) *journal.Trifecta {
	t := &journal.Trifecta{Private: []string{}, Untrusted: []string{}, Sends: []string{}}
	var hosts []string
	if s.Rules != nil {
		for _, r := range s.Rules.Network {
			hosts = append(hosts, r.Text)
		}
	}
	fetches := slices.Clone(hosts)
	for _, spec := range specs {
		switch spec.Name {
		case "Read", "Grep", "Bash":
			t.Private = append(t.Private, spec.Name)
			t.Untrusted = append(t.Untrusted, spec.Name) // what others have committed, dependencies, logs
		case "Memory", "SearchResult":
			t.Private = append(t.Private, spec.Name)
		case "WebFetch":
			t.Untrusted = append(t.Untrusted, spec.Name)
			if s.Rules != nil {
				for _, r := range s.Rules.Allow {
					if domain, ok := strings.CutPrefix(r.Spec, "domain:"); ok && r.Tool == "WebFetch" {
						fetches = append(fetches, domain)
					}
				}
			}
			if len(fetches) > 0 {
				t.Sends = append(t.Sends, "WebFetch: what it asks the allowed hosts for: "+strings.Join(fetches, ", "))
			}
		}
		if strings.HasPrefix(spec.Name, "mcp__") {
			t.Private, t.Untrusted = append(t.Private, spec.Name), append(t.Untrusted, spec.Name)
			if slices.ContainsFunc(spec.Classes, func(c effect.Class) bool { return c >= 4 }) || len(spec.Classes) == 0 {
				t.Sends = append(t.Sends, spec.Name+": a server's tool")
			}
		}
		if spec.Name != "Bash" {
			continue
		}
		switch {
		case !isolated && s.Off:
			t.Sends = append(t.Sends, "Bash: no sandbox, so any program can send")
		case len(hosts) > 0:
			t.Sends = append(t.Sends, "Bash: the allowed hosts "+strings.Join(hosts, ", "))
		}
		if local {
			t.Sends = append(t.Sends, "Bash: services on this machine that are let in")
		}
	}
	t.Complete = len(t.Private) > 0 && len(t.Untrusted) > 0 && len(t.Sends) > 0
	switch {
	case t.Complete:
		t.Note = fmt.Sprintf("data could leave on a stranger's word: %s read private data, %s read what strangers may have written, and there is a way out (%s)",
			strings.Join(t.Private, ", "), strings.Join(t.Untrusted, ", "), strings.Join(t.Sends, "; "))
	case len(t.Sends) == 0:
		t.Note = "no tool has a way out: what is read goes to the model's provider and nowhere else"
	default:
		t.Note = "not all three come together"
	}
	return t
}
