package projection

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/journal"
	"belay/message"
)

func event(seq int, t journal.Type, payload any) journal.Event {
	b, err := encode(payload)
	if err != nil {
		panic(err)
	}
	return journal.Event{V: 1, Seq: int64(seq), Type: t, Turn: seq, Payload: b}
}

// story makes a run of random but lawful events: replies with none to four calls, results in any order,
// nudges, failed calls, and events that are no part of a context.
func story(rng *rand.Rand) []journal.Event {
	var events []journal.Event
	add := func(t journal.Type, payload any) { events = append(events, event(len(events)+1, t, payload)) }
	add(journal.TypeWriterOpen, journal.WriterOpen{Host: "h", PID: rng.IntN(1000)})
	add(journal.TypeSessionStart, journal.SessionStart{System: "system <" + fmt.Sprint(rng.IntN(9)) + ">", Tools: json.RawMessage(`[{"name":"Bash","description":"d","schema":{"type":"object"}}]`), Projection: Version})
	add(journal.TypeUserMessage, journal.UserMessage{Text: "the task"})
	for turn := range rng.IntN(8) {
		if rng.IntN(6) == 0 {
			add(journal.TypeModelReply, journal.ModelReply{Stop: message.StopError, Error: "busy"})
		}
		var calls []string
		reply := journal.ModelReply{Stop: message.StopToolUse, Blocks: []message.Block{message.Text(fmt.Sprint("turn ", turn))}}
		for i := range rng.IntN(5) {
			id := fmt.Sprintf("c%d_%d", turn, i)
			calls = append(calls, id)
			reply.Blocks = append(reply.Blocks, message.Block{Kind: message.KindCall, Call: &message.ToolCall{ID: id, Name: "Bash", Args: json.RawMessage(`{"command":"ls"}`)}})
		}
		add(journal.TypeModelReply, reply)
		rng.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
		if len(calls) > 0 && rng.IntN(3) == 0 { // stopped here, and a person speaks before the calls are settled
			add(journal.TypeUserMessage, journal.UserMessage{Text: "wait"})
		}
		for _, id := range calls {
			add(journal.TypeToolRequest, journal.ToolRequest{CallID: id, Args: json.RawMessage("{}")})
			add(journal.TypeToolResult, journal.ToolResult{CallID: id, Status: []string{"success", "error"}[rng.IntN(2)], Text: "result of " + id})
		}
		if rng.IntN(3) == 0 {
			add(journal.TypeUserMessage, journal.UserMessage{Text: "go on", By: "harness"})
		}
		add("hologram", map[string]int{"unknown": turn})
	}
	return events
}

// The incremental projection is the full one, at every event of many runs; and each request is a prefix of the next.
func TestIncrementalEqualsFull(t *testing.T) {
	for seed := range uint64(200) {
		events := story(rand.New(rand.NewPCG(seed, 1)))
		step := &Fold{}
		var before []message.Message
		for i, e := range events {
			if err := step.Apply(e); err != nil {
				t.Fatalf("seed %d, event %d: %v", seed, e.Seq, err)
			}
			whole, err := Project(events[:i+1])
			if err != nil {
				t.Fatal(err)
			}
			got, gotHashes, gotErr := step.Request()
			want, wantHashes, wantErr := whole.Request()
			if (gotErr == nil) != (wantErr == nil) {
				t.Fatalf("seed %d, event %d: %v and %v", seed, e.Seq, gotErr, wantErr)
			}
			if gotErr != nil {
				continue
			}
			if diff := cmp.Diff(want, got); diff != "" || gotHashes != wantHashes {
				t.Fatalf("seed %d, event %d: %v and %v\n%s", seed, e.Seq, wantHashes, gotHashes, diff)
			}
			if len(got.Messages) < len(before) || len(before) > 0 && !cmp.Equal(before, got.Messages[:len(before)]) {
				t.Fatalf("seed %d, event %d: the request is no continuation of the one before", seed, e.Seq)
			}
			before = slices.Clone(got.Messages)
			lawful(t, got.Messages)
		}
	}
}

// lawful checks what every provider demands: each call is answered, in order, in the very next message.
func lawful(t *testing.T, messages []message.Message) {
	t.Helper()
	for i, m := range messages {
		calls := message.Calls(m.Blocks)
		if len(calls) == 0 {
			continue
		}
		if i+1 == len(messages) || len(messages[i+1].Blocks) != len(calls) {
			t.Fatalf("message %d has %d calls and is not followed by as many results", i, len(calls))
		}
		for k, call := range calls {
			if r := messages[i+1].Blocks[k].Result; r == nil || r.CallID != call.ID {
				t.Fatalf("call %s is answered by %+v", call.ID, r)
			}
		}
	}
}

// The rule of the context hash is frozen: this computes it by hand.
func TestFrozenHash(t *testing.T) {
	fold, err := Project([]journal.Event{
		event(1, journal.TypeSessionStart, journal.SessionStart{System: "be <good>", Tools: json.RawMessage(`[{"name":"Bash","description":"runs","schema":{"type":"object"}}]`), Projection: Version}),
		event(2, journal.TypeUserMessage, journal.UserMessage{Text: "fix & go"}),
		event(3, journal.TypeModelReply, journal.ModelReply{Stop: message.StopEnd, Blocks: []message.Block{message.Text("done")}}),
	})
	if err != nil {
		t.Fatal(err)
	}
	_, got, err := fold.Request()
	if err != nil {
		t.Fatal(err)
	}
	head := sha256.Sum256([]byte(`{"system":"be <good>","tools":[{"name":"Bash","description":"runs","schema":{"type":"object"}}],"max_output":0}`))
	chain := sha256.Sum256([]byte("belay.ctx\n2\n" + hex.EncodeToString(head[:]) + "\n"))
	for _, m := range []string{
		`{"role":"user","blocks":[{"kind":"text","text":"fix & go"}]}`,
		`{"role":"assistant","blocks":[{"kind":"text","text":"done"}]}`,
	} {
		digest := sha256.Sum256([]byte(m))
		chain = sha256.Sum256(append(chain[:], digest[:]...))
	}
	if want := hex.EncodeToString(chain[:]); got.CtxHash != want || got.PrefixHash != hex.EncodeToString(head[:]) {
		t.Errorf("ctx %s, prefix %s; want %s, %x", got.CtxHash, got.PrefixHash, want, head)
	}
}

// A replay finds a context that is not what the journal gives, and says so where other rules made it.
func TestReplay(t *testing.T) {
	record := func(version string, change func(*journal.ModelCall)) []Context {
		events := []journal.Event{
			event(1, journal.TypeSessionStart, journal.SessionStart{System: "s", Projection: version}),
			event(2, journal.TypeUserMessage, journal.UserMessage{Text: "task"}),
		}
		fold, err := Project(events)
		if err != nil {
			t.Fatal(err)
		}
		_, h, err := fold.Request()
		if err != nil {
			t.Fatal(err)
		}
		call := journal.ModelCall{CtxHash: h.CtxHash, PrefixHash: h.PrefixHash}
		change(&call)
		events = append(events, event(3, journal.TypeModelCall, call))
		contexts, err := Replay(func(yield func(journal.Event, error) bool) {
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return contexts
	}
	for name, c := range map[string]struct {
		version string
		change  func(*journal.ModelCall)
		want    Verdict
	}{
		"as it was":     {Version, func(*journal.ModelCall) {}, Proved},
		"other context": {Version, func(c *journal.ModelCall) { c.CtxHash = c.PrefixHash }, Failed},
		"other prefix":  {Version, func(c *journal.ModelCall) { c.PrefixHash = c.CtxHash }, Failed},
		"other version": {"0", func(c *journal.ModelCall) { c.CtxHash = "?" }, Needs},
		"other purpose": {Version, func(c *journal.ModelCall) { c.Purpose, c.CtxHash = "judge", "?" }, ""},
	} {
		got := record(c.version, c.change)
		if c.want == "" && len(got) == 0 {
			continue
		}
		if len(got) != 1 || got[0].Verdict != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// What no lawful journal holds is an error, never a panic and never a context.
func TestUnlawfulEvents(t *testing.T) {
	start := event(1, journal.TypeSessionStart, journal.SessionStart{Projection: Version})
	if _, err := Project([]journal.Event{start, event(2, journal.TypeToolResult, journal.ToolResult{CallID: "c"})}); err == nil {
		t.Error("a result without a reply was taken")
	}
	fold, err := Project([]journal.Event{start, event(2, journal.TypeModelReply, journal.ModelReply{Stop: message.StopToolUse,
		Blocks: []message.Block{{Kind: message.KindCall, Call: &message.ToolCall{ID: "c", Args: json.RawMessage("{}")}}}})})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := fold.Request(); err == nil {
		t.Error("a request with an unanswered call was made")
	}
}

// At gives the request of a turn as it was sent: the last one where the turn was asked more than once.
func TestAt(t *testing.T) {
	events := []journal.Event{
		event(1, journal.TypeSessionStart, journal.SessionStart{System: "s <&>", Projection: Version}),
		event(2, journal.TypeUserMessage, journal.UserMessage{Text: "task"}),
	}
	call := func(turn int) {
		t.Helper()
		fold, err := Project(events)
		if err != nil {
			t.Fatal(err)
		}
		_, h, err := fold.Request()
		if err != nil {
			t.Fatal(err)
		}
		e := event(len(events)+1, journal.TypeModelCall, journal.ModelCall{CtxHash: h.CtxHash, PrefixHash: h.PrefixHash})
		e.Turn = turn
		events = append(events, e)
	}
	call(1)
	events = append(events, event(4, journal.TypeModelReply, journal.ModelReply{Stop: message.StopError, Error: "busy"}),
		event(5, journal.TypeUserMessage, journal.UserMessage{Text: "again"}))
	call(1) // a resumed run asks the same turn again
	events = append(events, event(7, journal.TypeModelReply, journal.ModelReply{Stop: message.StopEnd, Blocks: []message.Block{message.Text("hi")}}),
		event(8, journal.TypeUserMessage, journal.UserMessage{Text: "more"}))
	call(2)
	all := func(yield func(journal.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
	for _, c := range []struct {
		turn, seq, messages int
	}{{1, 6, 2}, {2, 9, 4}, {0, 9, 4}} {
		request, found, err := At(all, c.turn)
		if err != nil || int(found.Seq) != c.seq || found.Verdict != Proved || len(request.Messages) != c.messages {
			t.Errorf("turn %d: event %d, %s, %d messages, %v", c.turn, found.Seq, found.Verdict, len(request.Messages), err)
		}
	}
	if _, _, err := At(all, 3); !errors.Is(err, ErrNoTurn) || !strings.Contains(err.Error(), "1 to 2") {
		t.Errorf("turn 3: %v", err)
	}
	request, _, err := At(all, 1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Canonical(request)
	if want := `{"system":"s <&>","messages":[{"role":"user","blocks":[{"kind":"text","text":"task"}]},{"role":"user","blocks":[{"kind":"text","text":"again"}]}]}`; err != nil || string(b) != want {
		t.Errorf("canonical: %s, %v", b, err)
	}
	broken := errors.New("broken")
	if _, _, err := At(func(yield func(journal.Event, error) bool) { yield(journal.Event{}, broken) }, 1); !errors.Is(err, broken) {
		t.Errorf("of a broken journal: %v", err)
	}
}
