package projection

import (
	"fmt"
	"iter"

	"belay/journal"
)

// Verdict says what a replay found about one recorded context.
type Verdict string

const (
	Proved Verdict = "proved" // the journal gives the very context that was sent
	Failed Verdict = "failed"
	Needs  Verdict = "needs" // it was made by another version of the projection
)

// Context is one recorded model call and what its replay found.
type Context struct {
	Seq     int64   `json:"seq"` // of the model.call event
	Turn    int     `json:"turn"`
	Verdict Verdict `json:"verdict"`
	CtxHash string  `json:"ctx_hash"` // as recorded
	Detail  string  `json:"detail,omitempty"`
}

// Replay recomputes every context of a run from its events and compares it with what was recorded when it
// was sent. An error says that the events themselves cannot be read.
func Replay(events iter.Seq2[journal.Event, error]) ([]Context, error) {
	var contexts []Context
	fold, version := &Fold{}, Version
	for e, err := range events {
		if err != nil {
			return contexts, err
		}
		switch e.Type {
		case journal.TypeSessionStart:
			var start journal.SessionStart
			if err := e.Decode(&start); err != nil {
				return contexts, err
			}
			version = start.Projection
		case journal.TypeModelCall:
			var call journal.ModelCall
			if err := e.Decode(&call); err != nil {
				return contexts, err
			}
			if call.Purpose == "" {
				contexts = append(contexts, replayOne(fold, e, call, version))
			}
		}
		if err := fold.Apply(e); err != nil {
			return contexts, fmt.Errorf("event %d: %w", e.Seq, err)
		}
	}
	return contexts, nil
}

func replayOne(fold *Fold, e journal.Event, call journal.ModelCall, version string) Context {
	c := Context{Seq: e.Seq, Turn: e.Turn, CtxHash: call.CtxHash, Verdict: Failed}
	if version != Version {
		c.Verdict, c.Detail = Needs, "made by projection version "+version
		return c
	}
	_, hashes, err := fold.Request()
	switch {
	case err != nil:
		c.Detail = err.Error()
	case hashes.CtxHash != call.CtxHash:
		c.Detail = "the journal gives the context " + hashes.CtxHash
	case hashes.PrefixHash != call.PrefixHash:
		c.Detail = "the journal gives the prefix " + hashes.PrefixHash
	default:
		c.Verdict = Proved
	}
	return c
}
