package journal

import (
	"context"
	"errors"
	"iter"
	"time"
)

// followEvery is how often a follower looks for more: a person who watches sees it at once, and it costs nothing.
const followEvery = 100 * time.Millisecond

// Follow is Read that waits for more at the end, and changes nothing. It ends when ctx ends, or when nobody
// writes the run and everything is told.
func Follow(ctx context.Context, dir string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		p := place{osDisk{}, dir}
		c := newChain(p.runID(), nil)
		var at position
		// tell yields lines and says whether to go on.
		tell := func(lines iter.Seq2[storedLine, error]) bool {
			for line, err := range lines {
				if err != nil {
					yield(Event{}, err)
					return false
				}
				e, err := line.whole()
				if !yield(e, err) || err != nil {
					return false
				}
				if line.place == p {
					at = position{line.end, line.number}
				}
			}
			return true
		}
		for lines := p.lines(c, -1); tell(lines); lines = p.scan(c, at, -1) {
			w, written, err := readWriter(p)
			if err != nil {
				yield(Event{}, err)
				return
			}
			if !written || !w.Alive() {
				// What it wrote between the look at the file and the look for it.
				tell(p.scan(c, at, -1))
				return
			}
			select {
			case <-ctx.Done():
				if cause := context.Cause(ctx); !errors.Is(cause, context.Canceled) {
					yield(Event{}, cause)
				}
				return
			case <-time.After(followEvery):
			}
		}
	}
}
