package projection

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"

	"belay/journal"
	"belay/model"
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

// ErrNoTurn says that a run has no request of the turn that was asked for.
var ErrNoTurn = errors.New("no such turn")

// At recomputes the request of one turn of the main loop and compares it with what was recorded when it was sent. Turn
// 0 is the last one. A turn that was asked more than once, since a call failed or the run was resumed, gives its last
// request. Where there is none the error wraps ErrNoTurn.
func At(events iter.Seq2[journal.Event, error], turn int) (model.Request, Context, error) {
	var found Context
	var request model.Request
	last := 0
	for c, err := range replay(events) {
		if err != nil {
			return model.Request{}, Context{}, err
		}
		if last = c.Turn; turn == 0 || c.Turn == turn {
			found, request = c.Context, c.request
		}
	}
	switch {
	case found.Seq > 0:
		return request, found, nil
	case last == 0:
		return request, found, fmt.Errorf("%w: the run asked no model", ErrNoTurn)
	}
	return request, found, fmt.Errorf("%w: the run has turns 1 to %d, and no %d", ErrNoTurn, last, turn)
}

// Replay recomputes every context of a run from its events and compares it with what was recorded when it
// was sent. An error says that the events themselves cannot be read.
func Replay(events iter.Seq2[journal.Event, error]) ([]Context, error) {
	var contexts []Context
	for c, err := range replay(events) {
		if err != nil {
			return contexts, err
		}
		contexts = append(contexts, c.Context)
	}
	return contexts, nil
}

// replayed is a recomputed request and what was found about it.
type replayed struct {
	Context
	request model.Request
}

// replay yields every request of the main loop, or the error that makes the events unreadable.
func replay(events iter.Seq2[journal.Event, error]) iter.Seq2[replayed, error] {
	return func(yield func(replayed, error) bool) {
		fold, version := &Fold{}, Version
		for e, err := range events {
			var start journal.SessionStart
			var call journal.ModelCall
			if err == nil {
				switch e.Type {
				case journal.TypeSessionStart:
					err = e.Decode(&start)
					version = start.Projection
				case journal.TypeModelCall:
					err = e.Decode(&call)
				}
			}
			if err == nil && e.Type == journal.TypeModelCall && call.Purpose == "" && !yield(replayOne(fold, e, call, version), nil) {
				return
			}
			if err == nil {
				if err = fold.Apply(e); err != nil {
					err = fmt.Errorf("event %d: %w", e.Seq, err)
				}
			}
			if err != nil {
				yield(replayed{}, err)
				return
			}
		}
	}
}

func replayOne(fold *Fold, e journal.Event, call journal.ModelCall, version string) replayed {
	request, hashes, err := fold.Request()
	c := Context{Seq: e.Seq, Turn: e.Turn, CtxHash: call.CtxHash, Verdict: Failed}
	switch {
	case !Known(version):
		c.Verdict, c.Detail = Needs, "made by projection version "+version
	case err != nil:
		c.Detail = err.Error()
	case hashes.CtxHash != call.CtxHash:
		c.Detail = "the journal gives the context " + hashes.CtxHash
	case hashes.PrefixHash != call.PrefixHash:
		c.Detail = "the journal gives the prefix " + hashes.PrefixHash
	default:
		c.Verdict = Proved
	}
	return replayed{c, request}
}

// Canonical is the JSON of a request whose parts the context's hash is made of: compact, with fields in the order of
// the Go types, without HTML escapes.
func Canonical(r model.Request) ([]byte, error) { return encode(r) }

// Digest is the SHA-256, in hex, of a request that is no part of the main loop's chain, and its size in bytes.
func Digest(r model.Request) (hash string, size int64, err error) {
	b, err := encode(r)
	if err != nil {
		return "", 0, err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), int64(len(b)), nil
}
