package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"belay/effect"
	"belay/internal/projection"
	"belay/journal"
	"belay/loop"
	"belay/message"
	"belay/model"
	"belay/tool"
)

// walker is a model that plans once, then looks at things for many turns, and answers. Its summaries are as told.
type walker struct {
	turns   int
	summary func(ctx context.Context, r model.Request) (string, error)
	asked   []model.Request
	sums    int
}

func (w *walker) Info() model.Info { return model.Info{Provider: "test", Model: "walker"} }

func (w *walker) Stream(ctx context.Context, r model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		var blocks []message.Block
		stop := message.StopEnd
		switch {
		case r.Purpose == model.Compaction:
			w.sums++
			text, err := w.summary(ctx, r)
			if err != nil {
				yield(model.Event{}, err)
				return
			}
			blocks = []message.Block{message.Text(text)}
		default:
			w.asked = append(w.asked, r)
			name, args := "Look", fmt.Sprintf(`{"to":"place %d %s"}`, r.Replies, strings.Repeat("far away ", 40))
			if r.Replies == 0 {
				name, args = "UpdatePlan", `{"constraints":["the RULE-9 holds"],"steps":[{"id":"s1","text":"walk to the end","verify":"the end is seen","status":"in_progress"}]}`
			}
			if r.Replies%10 == 5 {
				name, args = "Change", fmt.Sprintf(`{"to":"tree %d"}`, r.Replies)
			}
			if r.Replies >= w.turns {
				blocks = []message.Block{message.Text("seen")}
				break
			}
			stop = message.StopToolUse
			blocks = []message.Block{message.Text(strings.Repeat("I think. ", 30)), {Kind: message.KindCall, Call: &message.ToolCall{ID: fmt.Sprintf("c_%d", r.Replies), Name: name, Args: json.RawMessage(args)}}}
		}
		for i := range blocks {
			if !yield(model.Event{Kind: model.BlockDone, Block: &blocks[i]}, nil) {
				return
			}
		}
		yield(model.Event{Kind: model.TurnDone, Stop: stop}, nil)
	}
}

// planning is UpdatePlan as the loop sees it.
type planning struct{ act }

func (planning) Spec() tool.Spec {
	return tool.Spec{Name: "UpdatePlan", Description: "test", Signal: tool.Planning, Replay: tool.Pure,
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"constraints":{"type":"array"},"steps":{"type":"array"},"objective":{"type":"string"}}}`)}
}
func (planning) Plan(tool.Place, tool.Call) (tool.Plan, error) {
	return tool.Plan{Summary: "plan"}, nil
}

func walkPolicy() projection.Policy {
	p := projection.Preset200k
	p.Window, p.Reserve, p.Episodes, p.KeepRounds, p.Between, p.SmallText = 12_000, 500, 1000, 3, 5, 200
	return p
}

func walk(t *testing.T, w *walker, before []journal.Event, policy projection.Policy) (loop.Outcome, []journal.Event) {
	t.Helper()
	entries := []journal.Entry{
		{Type: journal.TypeSessionStart, Payload: journal.SessionStart{Projection: projection.Version, System: "s", Tools: json.RawMessage("[]")}},
		{Type: journal.TypeUserMessage, Payload: journal.UserMessage{Text: "Walk, with FLAG-7 <kept> & whole"}}}
	if before != nil {
		entries = nil
	}
	for _, e := range before {
		if e.Type != journal.TypeWriterOpen {
			entries = append(entries, journal.Entry{Type: e.Type, Session: e.Session, Turn: e.Turn, Step: e.Step, Payload: e.Payload})
		}
	}
	log, events, err := journal.Create(t.TempDir(), journal.NewRunID(), nil, entries...)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	world := &world{text: "old"}
	for _, e := range before { // the world is as it was left
		var r journal.ToolRequest
		if e.Type == journal.TypeToolRequest && e.Decode(&r) == nil && r.Tool == "Change" {
			var to struct{ To string }
			if err := json.Unmarshal(r.Args, &to); err != nil {
				t.Fatal(err)
			}
			world.text = to.To
		}
	}
	registry, err := tool.NewRegistry(act{world, "Look", effect.Read, ""}, act{world, "Change", effect.Write, ""}, planning{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := loop.Run(t.Context(), loop.Config{Log: log, Client: w, Tools: registry, Place: tool.Place{Workspace: "/w", Dir: "/w"}, Judge: judge, Context: policy,
		Env: func(effect.Grant) tool.Env { return nil }, Tree: world.tree,
		Observe: func(e journal.Event) { events = append(events, e) }, Sleep: func(context.Context, time.Duration) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	contexts, err := projection.Replay(journal.Read(log.Dir()))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range contexts {
		if c.Verdict != projection.Proved {
			t.Fatalf("turn %d: %s", c.Turn, c.Detail)
		}
	}
	return out, events
}

func nine(files string) string {
	var b strings.Builder
	for _, s := range projection.Sections {
		body := "none"
		if s == "Files changed" {
			body = files
		}
		fmt.Fprintf(&b, "## %s\n- %s\n", s, body)
	}
	return b.String()
}

// However summaries go wrong, the goal stands in every request, the run ends as it would, and nothing is ever lost.
func TestSummariesThatGoWrong(t *testing.T) {
	for name, c := range map[string]struct {
		summary func(ctx context.Context, r model.Request) (string, error)
		by      string
	}{
		"sound": {func(context.Context, model.Request) (string, error) { return nine("tree: changed"), nil }, "test:walker"},
		"drops": {func(context.Context, model.Request) (string, error) { return "All went well.", nil }, "harness"},
		"lies": {func(context.Context, model.Request) (string, error) {
			return nine("tree: changed\n- /etc/passwd: changed"), nil
		}, "harness"},
		"fails":     {func(context.Context, model.Request) (string, error) { return "", errors.New("busy") }, "harness"},
		"times out": {func(ctx context.Context, _ model.Request) (string, error) { <-ctx.Done(); return "", ctx.Err() }, "harness"},
		"grows": {func(context.Context, model.Request) (string, error) {
			return nine("tree: changed") + strings.Repeat("and more and more ", 5000), nil
		}, "harness"},
		"forgets a file": {func(context.Context, model.Request) (string, error) { return nine("none"), nil }, "harness"},
		"panics":         {func(context.Context, model.Request) (string, error) { panic("a bug") }, "harness"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &walker{turns: 300, summary: c.summary}
			policy := walkPolicy()
			if name == "times out" {
				policy.Seconds, w.turns = 1, 40
			}
			out, events := walk(t, w, nil, policy)
			if out.Exit != loop.ExitUnverified || len(w.asked) != w.turns+2 {
				t.Fatalf("%+v after %d requests", out, len(w.asked))
			}
			for i, r := range w.asked {
				text := projection.Transcript(r.Messages)
				if !strings.Contains(text, "FLAG-7 <kept> & whole") {
					t.Fatalf("request %d lacks the task", i)
				}
				if i > 1 && (!strings.Contains(text, "the RULE-9 holds") || !strings.Contains(text, "walk to the end")) {
					t.Fatalf("request %d lost the plan", i)
				}
			}
			compactions, told := 0, 0
			for _, e := range events {
				switch e.Type {
				case journal.TypeCompaction:
					var p journal.Compaction
					if err := e.Decode(&p); err != nil {
						t.Fatal(err)
					}
					if p.By != c.by {
						t.Errorf("by %s (%s), want %s", p.By, p.Flaws, c.by)
					}
					if compactions++; p.After >= p.Before {
						t.Errorf("%d tokens became %d", p.Before, p.After)
					}
				case journal.TypeDegraded:
					told++
				}
			}
			if compactions == 0 {
				t.Error("nothing was summarised: this tests nothing")
			}
			if c.by == "harness" && (told != compactions || w.sums != 2*compactions) {
				t.Errorf("%d compactions, the person was told %d times, and the model asked %d times", compactions, told, w.sums)
			}
		})
	}
}

// A run that is killed after any event goes on with the request that it would have sent.
func TestKilledAnywhere(t *testing.T) {
	sound := func(context.Context, model.Request) (string, error) { return nine("tree: changed"), nil }
	w := &walker{turns: 45, summary: sound}
	_, events := walk(t, w, nil, walkPolicy())
	for cut := 3; cut < len(events); cut++ {
		replies := 0
		for _, e := range events[:cut] {
			if e.Type == journal.TypeModelReply && !strings.Contains(string(e.Payload), `"purpose"`) {
				replies++
			}
		}
		if replies > w.turns {
			break
		}
		again := &walker{turns: w.turns, summary: sound}
		walk(t, again, events[:cut], walkPolicy())
		want, got := w.asked[replies], again.asked[0]
		a, err := projection.Canonical(want)
		if err != nil {
			t.Fatal(err)
		}
		b, err := projection.Canonical(got)
		if err != nil {
			t.Fatal(err)
		}
		if string(a) != string(b) && events[cut-1].Type != journal.TypeToolRequest { // the outcome of that one is unknown
			t.Fatalf("cut after event %d (%s): the next request is another one:\n%.3000s\n\n%.3000s", cut, events[cut-1].Type, a[max(0, len(a)-1500):], b[max(0, len(b)-1500):])
		}
	}
}

// A context that cannot be made small enough ends in a stop, with the reason.
func TestNothingLeftToShrink(t *testing.T) {
	policy := walkPolicy()
	policy.KeepRounds, policy.Window = 1000, 3000
	out, _ := walk(t, &walker{turns: 300}, nil, policy)
	if out.Exit != loop.ExitBound || !strings.Contains(out.Reason, "--fresh") {
		t.Errorf("%+v", out)
	}
}
