// Package redact puts placeholders in the place of secrets before anything is stored, and their values back inside the environment of a tool.
package redact

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"belay/tool"
)

// Config says which secrets are known from the start, and where those that are found are kept.
type Config struct {
	Home    string   // belay's state; the values lie in Home/vault. "" keeps them in memory only
	RunID   string   // whose vault it is; needed with Home
	Known   []string // credentials that belay itself holds, hidden wherever they appear
	Environ []string // "NAME=value"; the values of those with a secret's name are known too
}

// Redactor hides secrets: those of a known shape, those in a place that only a secret takes, and known values. A
// value has one placeholder, the same in every text and every run of a state directory; it tells nothing about the
// value without the key in the vault. Texts are in one of two spaces: real, as on the disk of a person, or hidden,
// as in the journal and before the model. It is safe for concurrent use.
type Redactor struct {
	vault vault

	mu     sync.RWMutex
	names  map[string]string   // value -> placeholder
	values map[string]*secret  // placeholder -> what it stands for
	known  map[string][]string // values that are hidden without any context, by their first minValue bytes
	table  [1 << 16]uint8      // what two neighbouring bytes may begin: a group of anchors, and anyKnown
	groups [][]anchor
}

// secret is a value that was found.
type secret struct {
	value string
	bare  bool // hidden without any context
	saved bool // the vault holds it
	wrote bool // the vault knows that it is bare
}

// anyKnown marks two bytes with which a known value begins.
const anyKnown = 0x80

// minValue is the size in bytes below which nothing is taken for a secret.
const minValue = 6

// Open makes the redactor of a run and reads its vault, where it has one.
func Open(cfg Config) (*Redactor, error) {
	r := &Redactor{names: map[string]string{}, values: map[string]*secret{}, known: map[string][]string{}}
	r.index()
	if err := r.vault.open(cfg.Home, cfg.RunID); err != nil {
		return nil, err
	}
	if err := r.vault.load(r.recall); err != nil {
		return nil, err
	}
	for _, value := range append(slices.Clone(cfg.Known), fromEnviron(cfg.Environ)...) {
		for _, form := range forms(value) {
			r.learn(form, "own", true)
		}
	}
	return r, nil
}

// Text hides the secrets of a text that is about to be stored or shown. Placeholders in it stay what they are, so
// a text that was hidden before does not change.
func (r *Redactor) Text(s string) string {
	for range maxPasses {
		next, found := r.pass(s, r.find)
		if !found {
			return s
		}
		s = next
	}
	return s
}

// maxPasses bounds how often a text is looked at again since a value that was found in it, or the end that a
// placeholder makes, may show another one.
const maxPasses = 32

// Hide brings a real text into the hidden space: Restore of it is the same text again, byte for byte, even where
// the text itself holds what looks like a placeholder.
func (r *Redactor) Hide(s string) string {
	if strings.Contains(s, opening) {
		var b strings.Builder
		for {
			at := strings.Index(s, opening)
			if at < 0 {
				b.WriteString(s)
				break
			}
			n := max(placeholderLen(s[at:]), len(opening))
			b.WriteString(s[:at])
			b.WriteString(r.learn(s[at:at+n], "literal", false))
			s = s[at+n:]
		}
		s = b.String()
	}
	return r.Text(s)
}

// Restore brings a hidden text back into the real space. A placeholder that stands for nothing is a *tool.Mistake:
// it must reach no file. What is restored is hidden everywhere from then on, whatever stands around it.
func (r *Redactor) Restore(s string) (string, error) { return r.restore(s, nil) }

// restore asks check, where there is one, about every value before it is used.
func (r *Redactor) restore(s string, check func(placeholder, value string) error) (string, error) {
	if !strings.Contains(s, opening) {
		return s, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var b strings.Builder
	for {
		at := strings.Index(s, opening)
		if at < 0 {
			b.WriteString(s)
			return b.String(), nil
		}
		b.WriteString(s[:at])
		s = s[at:]
		n := placeholderLen(s)
		if n == 0 {
			return "", tool.Mistakef(tool.InvalidArguments, "Copy a placeholder whole and exactly as it was shown. These characters cannot be written otherwise.",
				"%q begins a placeholder of a secret but is none", s[:min(len(s), 40)])
		}
		found, ok := r.values[s[:n]]
		if !ok {
			return "", tool.Mistakef(tool.InvalidArguments, "Copy a placeholder exactly as it was shown; one that was not shown in this run stands for nothing.",
				"the placeholder %s stands for no secret of this run", s[:n])
		}
		if check != nil {
			if err := check(s[:n], found.value); err != nil {
				return "", err
			}
		}
		if kindOf(s[:n]) != "literal" {
			r.expose(found)
		}
		b.WriteString(found.value)
		s = s[n:]
	}
}

// exact hides known values only: for bytes that their maker must get back unchanged.
func (r *Redactor) exact(s string) string {
	s, _ = r.pass(s, r.findKnown)
	return s
}

// whole hides all of a text that is a secret because of where it stands.
func (r *Redactor) whole(s, kind string) string { return r.learn(s, kind, false) }

// pass hides what find finds between the placeholders of a text, and says whether that was anything.
func (r *Redactor) pass(s string, find func(string, []span) []span) (string, bool) {
	var b strings.Builder
	kept := 0 // of s, up to where b holds it
	for from := 0; from < len(s); {
		end, next := len(s), len(s)
		if at := nextPlaceholder(s[from:]); at >= 0 {
			end = from + at
			next = end + placeholderLen(s[end:])
		}
		r.mu.RLock()
		spans := merge(find(s[from:end], nil))
		r.mu.RUnlock()
		for _, sp := range spans {
			b.WriteString(s[kept : from+sp.start])
			b.WriteString(r.learn(s[from+sp.start:from+sp.end], sp.kind, false))
			kept = from + sp.end
		}
		from = next
	}
	if kept == 0 {
		return s, false
	}
	b.WriteString(s[kept:])
	return b.String(), true
}

// learn gives a value its placeholder. A value that can hardly be anything else is hidden everywhere from then on.
func (r *Redactor) learn(value, kind string, bare bool) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	name, ok := r.names[value]
	if !ok {
		if own := shapeOf(value); own != "" && kind != "literal" { // whatever stood around it: one value, one name
			kind = own
		}
		for salt := 0; ; salt++ {
			name = r.vault.name(value, kind, salt)
			if _, taken := r.values[name]; !taken {
				break
			}
		}
		r.names[value], r.values[name] = name, &secret{value: value}
	}
	if kind != "literal" && (bare || strong(value, kind)) {
		r.expose(r.values[name])
	}
	return name
}

// recall takes a value from the vault.
func (r *Redactor) recall(name, value string, bare bool) {
	s, ok := r.values[name]
	if !ok {
		s = &secret{value: value}
		r.names[value], r.values[name] = name, s
	}
	s.saved, s.wrote = true, bare
	if bare {
		r.expose(s)
	}
}

// expose makes a value one that is hidden wherever it stands. The lock is held.
func (r *Redactor) expose(s *secret) {
	if s.bare || len(s.value) < minValue {
		return
	}
	s.bare = true
	k := s.value[:minValue]
	longer := func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) }
	at, _ := slices.BinarySearchFunc(r.known[k], s.value, longer)
	r.known[k] = slices.Insert(r.known[k], at, s.value)
	r.table[pair(s.value, 0)] |= anyKnown
}

// Keep makes the values of all placeholders in the texts durable. It comes before anything that names them.
func (r *Redactor) Keep(texts ...string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var fresh []record
	var kept []*secret
	for _, s := range texts {
		for at := nextPlaceholder(s); at >= 0; at = nextPlaceholder(s) {
			n := placeholderLen(s[at:])
			name := s[at : at+n]
			s = s[at+n:]
			if found, ok := r.values[name]; ok && (!found.saved || found.bare != found.wrote) && !slices.Contains(kept, found) {
				fresh = append(fresh, record{Name: name, Value: []byte(found.value), Bare: found.bare})
				kept = append(kept, found)
			}
		}
	}
	if err := r.vault.save(fresh); err != nil {
		return err
	}
	for _, s := range kept {
		s.saved, s.wrote = true, s.bare
	}
	return nil
}
