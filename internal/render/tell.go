package render

import "belay/journal"

// Teller turns the events of a run, in their order, into lines for a screen, as Live and Story do.
type Teller struct{ t teller }

// NewTeller tells for a screen; with full nothing is cut.
func NewTeller(s Screen, full bool) *Teller {
	return &Teller{teller{screen: s, full: full, story: false}}
}

// Tell is what a person reads about the next event; nothing where it says nothing new.
func (t *Teller) Tell(e journal.Event) []string { return t.t.tell(e) }

// Open lists what is being done: the calls without a result, as they came.
func (t *Teller) Open() []string {
	var open []string
	for _, c := range t.t.open() {
		open = append(open, Line(c.Tool)+" "+describe(c))
	}
	return open
}
