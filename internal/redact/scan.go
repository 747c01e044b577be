package redact

import (
	"cmp"
	"slices"
	"strings"
)

// span is a secret in a text: its bytes from start to end.
type span struct {
	start, end int
	kind       string
}

// anchor is a literal that stands in or beside a secret, and the function that looks for the secret around it. With
// fold, lit is in lower case and stands for any case.
type anchor struct {
	lit  string
	fold bool
	find func(t string, at int, spans []span) []span
}

// index builds the table by which most bytes of a text are passed over at one look each.
func (r *Redactor) index() {
	byPair := map[int]int{} // pair -> group
	add := func(p int, a anchor) {
		g, ok := byPair[p]
		if !ok {
			r.groups = append(r.groups, nil)
			g = len(r.groups)
			byPair[p] = g
			r.table[p] = uint8(g)
		}
		r.groups[g-1] = append(r.groups[g-1], a)
	}
	for _, a := range anchors() {
		firsts, seconds := a.lit[:1], a.lit[1:2]
		if a.fold {
			firsts += strings.ToUpper(firsts)
			seconds += strings.ToUpper(seconds)
		}
		seen := map[int]bool{}
		for i := range len(firsts) {
			for j := range len(seconds) {
				if p := int(firsts[i])<<8 | int(seconds[j]); !seen[p] {
					seen[p] = true
					add(p, a)
				}
			}
		}
	}
	if len(r.groups) >= anyKnown {
		panic("redact: more groups of anchors than the table can name")
	}
}

// find finds secrets by shape, by place and by value. The lock is held for reading.
func (r *Redactor) find(t string, spans []span) []span {
	if len(t) < minValue {
		return spans
	}
	prev, covered := int(t[0]), 0 // what a span covers is not looked at again, so that no text costs its square
	for i := 1; i < len(t); i++ {
		next := int(t[i])
		hit := r.table[prev<<8|next]
		prev = next
		if hit == 0 {
			continue
		}
		at := i - 1
		if n := len(spans); n > 0 {
			covered = max(covered, spans[n-1].end)
		}
		if hit&anyKnown != 0 {
			spans = r.knownAt(t, at, spans)
		}
		if g := hit &^ anyKnown; g > 0 && at >= covered {
			for _, a := range r.groups[g-1] {
				if len(t)-at < len(a.lit) {
					continue
				}
				if got := t[at : at+len(a.lit)]; got == a.lit || a.fold && strings.EqualFold(got, a.lit) {
					spans = a.find(t, at, spans)
				}
			}
		}
	}
	return spans
}

// findKnown finds known values only. The lock is held for reading.
func (r *Redactor) findKnown(t string, spans []span) []span {
	for at := 0; at+minValue <= len(t); at++ {
		if r.table[pair(t, at)]&anyKnown != 0 {
			spans = r.knownAt(t, at, spans)
		}
	}
	return spans
}

func (r *Redactor) knownAt(t string, at int, spans []span) []span {
	if len(t)-at < minValue {
		return spans
	}
	for _, value := range r.known[t[at:at+minValue]] { // the longest first
		if strings.HasPrefix(t[at:], value) {
			return append(spans, span{at, at + len(value), "value"})
		}
	}
	return spans
}

// merge puts spans in order and joins those that overlap, so that no part of a secret stays.
func merge(spans []span) []span {
	if len(spans) < 2 {
		return spans
	}
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end)) })
	out := spans[:1]
	for _, s := range spans[1:] {
		if last := &out[len(out)-1]; s.start < last.end {
			last.end = max(last.end, s.end)
		} else {
			out = append(out, s)
		}
	}
	return out
}

func pair(t string, at int) int { return int(t[at])<<8 | int(t[at+1]) }
