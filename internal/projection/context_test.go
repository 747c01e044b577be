package projection

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/journal"
	"belay/message"
)

const goal = "Keep the FLAG-7 rule <verbatim> & whole"

func recapEvent(seq int) journal.Event {
	return event(seq, journal.TypeRecap, journal.Recap{Objective: goal, Why: "start", Text: "<recap>\n" + goal + "\n- constraint C1\n[>] s1: open step\n</recap>"})
}

// long makes a lawful run that obeys a policy: it erases and summarises where the policy wants it.
func long(t *testing.T, rng *rand.Rand, policy Policy, turns int) []journal.Event {
	t.Helper()
	var events []journal.Event
	fold, facts := &Fold{}, &Facts{}
	add := func(typ journal.Type, payload any) {
		e := event(len(events)+1, typ, payload)
		events = append(events, e)
		if err := fold.Apply(e); err != nil {
			t.Fatalf("event %d: %v", e.Seq, err)
		}
		if err := facts.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
	add(journal.TypeSessionStart, journal.SessionStart{System: "s", Workspace: "/w", Projection: Version})
	add(journal.TypeUserMessage, journal.UserMessage{Text: goal})
	recap := func() { add(journal.TypeRecap, mustRecap(recapEvent(0))) }
	recap()
	for turn := range turns {
		for range 3 {
			erase, compact := fold.Due(policy, fold.Estimate() > policy.Limit())
			if erase != nil {
				add(journal.TypeErase, *erase)
				recap()
			} else if compact {
				keep, rounds := fold.Cut(policy)
				since, until := fold.Since(), fold.Until(keep)
				summary := facts.Summary(since, until)
				if int64(len(summary)) >= fold.MiddleBytes(keep) {
					break
				}
				add(journal.TypeCompaction, journal.Compaction{From: since + 1, To: until, Keep: keep, Rounds: rounds, Summary: summary, Drop: fold.DropFor(policy, summary)})
				recap()
			}
		}
		_, h, err := fold.Request()
		if err != nil {
			t.Fatal(err)
		}
		add(journal.TypeModelCall, journal.ModelCall{CtxHash: h.CtxHash, PrefixHash: h.PrefixHash})
		reply := journal.ModelReply{Stop: message.StopToolUse, Blocks: []message.Block{message.Text(strings.Repeat("thought ", rng.IntN(60)))}, Usage: message.Usage{Input: fold.text() * 10 / 33}}
		var ids []string
		for i := range 1 + rng.IntN(3) {
			id := fmt.Sprintf("c%d_%d", turn, i)
			ids = append(ids, id)
			reply.Blocks = append(reply.Blocks, message.Block{Kind: message.KindCall, Call: &message.ToolCall{ID: id, Name: "Bash", Args: json.RawMessage(`{"command":"ls"}`)}})
		}
		add(journal.TypeModelReply, reply)
		for _, id := range ids {
			r := journal.ToolResult{CallID: id, Status: []string{"success", "error"}[rng.IntN(2)], Summary: "did", Text: strings.Repeat("line of output\n", rng.IntN(120))}
			if rng.IntN(4) == 0 {
				r.Status, r.Wrote = "success", []string{fmt.Sprintf("/w/f%d.go", turn%7)}
			}
			add(journal.TypeToolResult, r)
		}
		if rng.IntN(9) == 0 {
			add(journal.TypeUserMessage, journal.UserMessage{Text: "nudge", By: "harness"})
		}
	}
	return events
}

func mustRecap(e journal.Event) journal.Recap {
	var r journal.Recap
	if err := e.Decode(&r); err != nil {
		panic(err)
	}
	return r
}

func small() Policy {
	p := Preset200k
	p.Window, p.Reserve, p.Episodes, p.KeepRounds, p.SmallText = 9000, 500, 900, 3, 200
	return p
}

// Every request of every run is lawful, holds the goal, is a continuation of the one before but after a recorded break,
// and is the same when it is projected from the start.
func TestBreaksKeepTheGoal(t *testing.T) {
	erased, compacted, dropped := 0, 0, 0
	for seed := range uint64(25) {
		policy := small()
		events := long(t, rand.New(rand.NewPCG(seed, 9)), policy, 120)
		step := &Fold{}
		var before []message.Message
		prefix, broke := "", true
		for i, e := range events {
			if err := step.Apply(e); err != nil {
				t.Fatal(err)
			}
			switch e.Type {
			case journal.TypeErase:
				erased, broke = erased+1, true
			case journal.TypeCompaction:
				compacted, broke = compacted+1, true
				if step.dropped {
					dropped++
				}
			}
			got, h, err := step.Request()
			if err != nil || len(got.Messages) == 0 {
				continue
			}
			lawful(t, got.Messages)
			if got.Messages[0].Role != message.User {
				t.Fatal("a context begins with the model")
			}
			if !broke && (h.PrefixHash != prefix || len(got.Messages) < len(before) || !cmp.Equal(before, got.Messages[:len(before)])) {
				t.Fatalf("seed %d, event %d: the prefix broke, and nothing says so", seed, e.Seq)
			}
			if broke && prefix != "" && h.PrefixHash == prefix {
				t.Fatalf("seed %d, event %d: the prefix broke and kept its hash", seed, e.Seq)
			}
			before, prefix, broke = got.Messages, h.PrefixHash, false
			if i+1 < len(events) && events[i+1].Type == journal.TypeModelCall {
				text := Transcript(got.Messages)
				for _, want := range []string{goal, "constraint C1", "open step"} {
					if !strings.Contains(text, want) {
						t.Fatalf("seed %d, event %d: %q is lost", seed, e.Seq, want)
					}
				}
			}
			if i%17 == 0 || i == len(events)-1 {
				whole, err := Project(events[:i+1])
				if err != nil {
					t.Fatal(err)
				}
				want, wantHashes, err := whole.Request()
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want, got); d != "" || wantHashes != h {
					t.Fatalf("seed %d, event %d: %s", seed, e.Seq, d)
				}
			}
		}
		contexts, err := Replay(func(yield func(journal.Event, error) bool) {
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
			}
		})
		if err != nil || len(contexts) != 120 {
			t.Fatal(len(contexts), err)
		}
		for _, c := range contexts {
			if c.Verdict != Proved {
				t.Fatalf("turn %d: %s", c.Turn, c.Detail)
			}
		}
	}
	if erased == 0 || compacted == 0 || dropped == 0 {
		t.Errorf("%d erasures, %d compactions, %d with dropped summaries: this tests nothing", erased, compacted, dropped)
	}
}

// Between two breaks for size there are as many turns as the policy wants, unless the limit is near.
func TestTurnsBetweenBreaks(t *testing.T) {
	policy := small()
	policy.Window, policy.Reserve = 40_000, 1000
	fold := &Fold{}
	since := 1000
	for _, e := range long(t, rand.New(rand.NewPCG(1, 4)), policy, 300) {
		near := policy.near(fold.Estimate())
		if e.Type == journal.TypeErase || e.Type == journal.TypeCompaction {
			if since < policy.Between && !near {
				t.Fatalf("event %d: %d turns after a break", e.Seq, since)
			}
			since = 0
		}
		if e.Type == journal.TypeModelReply {
			since++
		}
		if err := fold.Apply(e); err != nil {
			t.Fatal(err)
		}
	}
}

// The estimate follows what the provider counts.
func TestEstimateIsCalibrated(t *testing.T) {
	for _, per := range []float64{0.2, 0.25, 0.31, 0.4} {
		fold := &Fold{}
		seq := 0
		add := func(typ journal.Type, payload any) {
			seq++
			if err := fold.Apply(event(seq, typ, payload)); err != nil {
				t.Fatal(err)
			}
		}
		add(journal.TypeSessionStart, journal.SessionStart{System: strings.Repeat("system ", 500), Projection: Version})
		add(journal.TypeUserMessage, journal.UserMessage{Text: "task"})
		for turn := 1; turn <= 12; turn++ {
			truth := int64(float64(fold.text()) * per)
			if off := float64(fold.Estimate()-truth) / float64(truth); turn > 3 && (off > 0.1 || off < -0.1) {
				t.Errorf("%v tokens a byte, turn %d: %d, and there are %d", per, turn, fold.Estimate(), truth)
			}
			add(journal.TypeModelCall, journal.ModelCall{})
			add(journal.TypeModelReply, journal.ModelReply{Stop: message.StopEnd, Blocks: []message.Block{message.Text(strings.Repeat("word ", 100*turn))}, Usage: message.Usage{Input: truth / 3, CacheRead: truth - truth/3}})
			add(journal.TypeUserMessage, journal.UserMessage{Text: strings.Repeat("more ", 200)})
		}
	}
}

// A policy is what its file says, and what makes no sense is refused.
func TestParsePolicy(t *testing.T) {
	p, err := ParsePolicy([]byte(`{"preset":"1m","keep_rounds":4}`), Preset200k)
	if err != nil || p.Window != 1_000_000 || p.KeepRounds != 4 {
		t.Errorf("%+v, %v", p, err)
	}
	for _, bad := range []string{`{"preset":"9k"}`, `{"erase_at":2}`, `{"erase_at":0.9}`, `{"window":0}`, `{"keep_rounds":0}`, `{"wobble":1}`, `[]`, `{`} {
		if _, err := ParsePolicy([]byte(bad), Preset200k); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

// What another policy would have sent holds the goal too, and changes where the policy differs.
func TestWhatIf(t *testing.T) {
	events := long(t, rand.New(rand.NewPCG(3, 3)), small(), 60)
	all := func(yield func(journal.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
	same, err := WhatIf(all, small())
	if err != nil || len(same) != 60 {
		t.Fatal(len(same), err)
	}
	wide, err := WhatIf(all, Preset1M)
	if err != nil {
		t.Fatal(err)
	}
	if last := wide[59]; last.WouldBe <= last.Tokens || last.WouldBreak != "" {
		t.Errorf("a wide window keeps more: %+v", last)
	}
	for _, turn := range wide {
		lawful(t, turn.Request().Messages)
	}
}

// BenchmarkLongRun is the projection of 10,000 events: `go test -bench LongRun` shows what an event costs in its first and
// in its last tenth.
func BenchmarkLongRun(b *testing.B) {
	policy := PolicyFor(200_000)
	t := &testing.T{}
	events := long(t, rand.New(rand.NewPCG(5, 5)), policy, 2000)
	tenth := len(events) / 10
	var first, last float64
	for b.Loop() {
		fold := &Fold{}
		lap := func(part []journal.Event) float64 {
			start := b.Elapsed()
			for _, e := range part {
				if err := fold.Apply(e); err != nil {
					b.Fatal(err)
				}
				if e.Type == journal.TypeModelCall {
					if _, _, err := fold.Request(); err != nil {
						b.Fatal(err)
					}
				}
			}
			return float64((b.Elapsed() - start).Nanoseconds())
		}
		first += lap(events[:tenth])
		lap(events[tenth : len(events)-tenth])
		last += lap(events[len(events)-tenth:])
	}
	b.ReportMetric(float64(len(events)), "events")
	b.ReportMetric(last/first, "last/first")
}
