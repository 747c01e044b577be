package model

import (
	"fmt"
	"net/url"
	"strings"
)

// Spec names a model and where it is.
type Spec struct {
	Provider string // "anthropic", "openai" or "rehearsal"
	Name     string // the model's name, or the rehearsal's file
	BaseURL  string // "" is the provider's own
}

// SpecForms are the ways to write a Spec, for help and errors.
const SpecForms = "anthropic:NAME, openai:NAME, openai:NAME@http://127.0.0.1:11434/v1 or rehearsal:FILE"

// ParseSpec reads "anthropic:NAME", "openai:NAME", either followed by "@" and the base URL of a compatible server,
// or "rehearsal:FILE". Names may hold colons and @ themselves.
func ParseSpec(text string) (Spec, error) {
	provider, rest, ok := strings.Cut(strings.TrimSpace(text), ":")
	if !ok {
		return Spec{}, fmt.Errorf("model %q has no provider: write %s", text, SpecForms)
	}
	s := Spec{Provider: strings.ToLower(provider), Name: rest}
	switch s.Provider {
	case "rehearsal":
		if rest == "" {
			return Spec{}, fmt.Errorf("model %q names no file: write rehearsal:FILE", text)
		}
		return s, nil
	case "anthropic", "openai":
	default:
		return Spec{}, fmt.Errorf("unknown model %q: no provider is called %q; write %s", text, provider, SpecForms)
	}
	if i := max(strings.LastIndex(rest, "@http://"), strings.LastIndex(rest, "@https://")); i >= 0 {
		s.Name, s.BaseURL = rest[:i], strings.TrimRight(rest[i+1:], "/")
		u, err := url.Parse(s.BaseURL)
		switch {
		case err != nil || u.Hostname() == "":
			return Spec{}, fmt.Errorf("model %q has the base URL %q, which is none: write it like http://127.0.0.1:11434/v1", text, s.BaseURL)
		case u.User != nil:
			return Spec{}, fmt.Errorf("model %s:%s has a password in its base URL, which would be recorded: leave it out and give a key", s.Provider, s.Name)
		case u.RawQuery != "" || u.Fragment != "":
			return Spec{}, fmt.Errorf("model %q has a base URL with ? or #: a path is put behind it", text)
		}
	} else if i := strings.LastIndex(rest, "@"); i > 0 && strings.ContainsAny(rest[i:], ":/") && !strings.Contains(rest[:i], "/") {
		return Spec{}, fmt.Errorf("model %q has an address without http:// or https://: write %s:%s@http://%s", text, s.Provider, rest[:i], rest[i+1:])
	}
	if strings.TrimSpace(s.Name) == "" || strings.ContainsAny(s.Name, " \t\r\n") {
		return Spec{}, fmt.Errorf("model %q has no usable name: write %s", text, SpecForms)
	}
	return s, nil
}

// String is what ParseSpec reads.
func (s Spec) String() string {
	if s.BaseURL == "" {
		return s.Provider + ":" + s.Name
	}
	return s.Provider + ":" + s.Name + "@" + s.BaseURL
}
