package projection

import (
	"encoding/json"
	"fmt"
	"strings"

	"belay/journal"
	"belay/message"
)

// stored is what is known of a result whose text may leave the context.
type stored struct {
	summary string
	size    int64
	erased  bool
}

// erasedText stands in the place of a result. The call itself stays where it is.
func erasedText(callID string, s stored) string {
	what := strings.TrimSpace(s.summary)
	if what == "" {
		what = "no summary"
	}
	if len(what) > 200 {
		what = strings.ToValidUTF8(what[:200], "") + "…"
	}
	ref, _ := json.Marshal(callID) // a string cannot fail
	return fmt.Sprintf("[erased to save space: %s · %d bytes are stored; look inside with SearchResult {\"ref\":%s}]", what, s.size, ref)
}

// Due says what the policy wants done to the context before the next request: an erasure, a compaction, or neither.
// With force it wants whatever makes the context smaller, and does not wait.
func (f *Fold) Due(p Policy, force bool) (erase *journal.Erase, compact bool) {
	estimate := f.estimate()
	if estimate <= p.share(p.EraseAt) && !force {
		return nil, false
	}
	near := force || p.near(estimate)
	if !near && f.broken && f.turns < p.Between {
		return nil, false
	}
	e := f.erasable(p)
	if force {
		e.Reason = "overflow"
	}
	gain := e.Before - e.After
	if len(e.Results) > 0 && e.After <= p.share(p.EraseAt) && (!force || gain*5 >= e.Before) {
		return &e, false
	}
	if (estimate > p.share(p.CompactAt) || force) && f.worthwhile(p, near) {
		return nil, true
	}
	if len(e.Results) > 0 && gain*20 >= e.Before {
		return &e, false
	}
	return nil, false
}

// erasable takes the texts of results, the oldest first, until the context is as small as the policy wants it. Those of
// the last rounds stay, so that each one has been read.
func (f *Fold) erasable(p Policy) journal.Erase {
	e := journal.Erase{Reason: "size", Before: f.estimate()}
	e.After = e.Before
	rounds := f.rounds()
	if len(rounds) <= p.KeepRounds {
		return e
	}
	saved := int64(0)
	for _, m := range f.request.Messages[:rounds[len(rounds)-p.KeepRounds]] {
		for _, b := range m.Blocks {
			if b.Result == nil {
				continue
			}
			known, ok := f.stored[b.Result.CallID]
			if !ok || known.erased || len(b.Result.Text) < p.SmallText && len(b.Result.Images) == 0 {
				continue
			}
			text := erasedText(b.Result.CallID, known)
			if len(text) >= len(b.Result.Text) && len(b.Result.Images) == 0 {
				continue
			}
			e.Results = append(e.Results, journal.Erased{CallID: b.Result.CallID, Text: text})
			saved += int64(len(b.Result.Text) - len(text))
			e.After = e.Before - f.rate.of(saved) - int64(len(b.Result.Images))*imageTokens
			if e.After <= p.share(p.EraseTo) {
				return e
			}
		}
	}
	return e
}

// Cut is where a compaction would cut: how many messages stay at the end, and how many rounds that are. Zero messages
// say that nothing can be summarised.
func (f *Fold) Cut(p Policy) (keep, rounds int) {
	at := f.rounds()
	if len(at) <= p.KeepRounds || len(f.calls) > 0 {
		return 0, 0
	}
	cut := at[len(at)-p.KeepRounds]
	if cut <= f.first() {
		return 0, 0
	}
	return len(f.request.Messages) - cut, p.KeepRounds
}

// first is the first message that a compaction may summarise: the task and earlier summaries stay.
func (f *Fold) first() int {
	if len(f.episodes) > 0 {
		return 2
	}
	return 1
}

// Middle is what a compaction that keeps so many messages would summarise.
func (f *Fold) Middle(keep int) []message.Message {
	return f.request.Messages[f.first() : len(f.request.Messages)-keep]
}

// Until is the last event of that.
func (f *Fold) Until(keep int) int64 { return f.metas[len(f.metas)-keep-1].seq }

// MiddleBytes is its size as it is in the request.
func (f *Fold) MiddleBytes(keep int) (n int64) {
	for _, m := range f.metas[f.first() : len(f.metas)-keep] {
		n += m.bytes
	}
	return n
}

// worthwhile is the rule of progress: a summary is made only of what is much of the context, so that no compaction
// follows another for nothing.
func (f *Fold) worthwhile(p Policy, near bool) bool {
	keep, _ := f.Cut(p)
	if keep == 0 {
		return false
	}
	tokens := f.rate.of(f.MiddleBytes(keep))
	if near {
		return tokens >= 500
	}
	return tokens*5 >= f.estimate()
}

// DropFor is how many of the oldest summaries must go so that all fit the policy's budget with another one.
func (f *Fold) DropFor(p Policy, summary string) int {
	size := int64(len(summary))
	for _, e := range f.episodes {
		size += int64(len(e.text))
	}
	drop := 0
	for drop < len(f.episodes) && f.rate.of(size) > p.Episodes {
		size -= int64(len(f.episodes[drop].text))
		drop++
	}
	return drop
}

// Since is the last event that is summarised already.
func (f *Fold) Since() int64 {
	if len(f.episodes) == 0 {
		return 0
	}
	return f.episodes[len(f.episodes)-1].to
}

// Transcript is messages as somebody reads them who is to summarise them.
func Transcript(messages []message.Message) string {
	var b strings.Builder
	for _, m := range messages {
		for _, block := range m.Blocks {
			switch {
			case block.Call != nil:
				fmt.Fprintf(&b, "[call %s] %s\n", block.Call.Name, block.Call.Args)
			case block.Result != nil:
				word := "result"
				if block.Result.Error {
					word = "error"
				}
				fmt.Fprintf(&b, "[%s] %s\n", word, strings.TrimSpace(block.Result.Text))
			case block.Kind == message.KindText && m.Role == message.Assistant:
				fmt.Fprintf(&b, "[agent] %s\n", strings.TrimSpace(block.Text))
			case block.Kind == message.KindText:
				fmt.Fprintf(&b, "[told] %s\n", strings.TrimSpace(block.Text))
			}
		}
	}
	return b.String()
}
