package rehearsal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"belay/message"
	"belay/model"
)

func play(c *Client, req model.Request) (model.Reply, error) {
	return model.Collect(c.Stream(context.Background(), req), nil)
}

func results(texts ...string) message.Message {
	m := message.Message{Role: message.User}
	for i, s := range texts {
		m.Blocks = append(m.Blocks, message.Block{Kind: message.KindResult, Result: &message.ToolResult{CallID: fmt.Sprint(i), Text: s, Error: strings.HasPrefix(s, "Error")}})
	}
	return m
}

func TestSameRequestSameReply(t *testing.T) {
	c := New(parse(t, "version: 1\nturns:\n- {say: one, calls: [{tool: A}, {tool: B}]}\n- {say: two}\n"))
	req := model.Request{Messages: []message.Message{message.UserText("go")}}
	first, err := play(c, req)
	if err != nil {
		t.Fatal(err)
	}
	again, err := play(c, req)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(first, again); d != "" {
		t.Error(d)
	}
	if first.Stop != message.StopToolUse || len(message.Calls(first.Blocks)) != 2 {
		t.Errorf("first: %+v", first)
	}
	req.Replies = 1
	if second, err := play(c, req); err != nil || second.Stop != message.StopEnd || message.PlainText(second.Blocks) != "two" {
		t.Errorf("second: %+v %v", second, err)
	}
}

func TestEventsCarryTheReply(t *testing.T) {
	long := strings.Repeat("größer ", 40)
	s := parse(t, "version: 1\nturns: [{thinking: "+long+", say: "+long+", calls: [{tool: A, args: {x: "+long+"}}]}]\n")
	deltas := map[int]string{}
	var kinds []model.EventKind
	reply, err := model.Collect(New(s).Stream(context.Background(), model.Request{}), func(ev model.Event) {
		deltas[ev.Index] += ev.Delta
		if len(kinds) == 0 || kinds[len(kinds)-1] != ev.Kind {
			kinds = append(kinds, ev.Kind)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []model.EventKind{model.ThinkingDelta, model.BlockDone, model.TextDelta, model.BlockDone, model.CallStarted, model.ArgsDelta, model.BlockDone, model.UsageReport, model.TurnDone}
	if d := cmp.Diff(want, kinds); d != "" {
		t.Error(d)
	}
	for i, b := range reply.Blocks {
		body := b.Text
		if b.Call != nil {
			body = string(b.Call.Args)
		}
		if deltas[i] != body {
			t.Errorf("deltas of block %d: %q, want %q", i, deltas[i], body)
		}
	}
}

func TestUsage(t *testing.T) {
	s := parse(t, "version: 1\nturns: [{say: a, usage: {output: 7, cache_read: 9}}, {say: \"123456789\", thinking: abc}]\n")
	req := model.Request{
		System:   "1234",
		Tools:    []model.Tool{{Name: "ab", Description: "cd", Schema: []byte(`{"ignored": true}`)}},
		Messages: []message.Message{message.UserText("123"), results("12")},
	}
	given, err := play(New(s), req)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(message.Usage{Output: 7, CacheRead: 9}, given.Usage); d != "" {
		t.Error(d)
	}
	req.Replies = 1
	estimated, err := play(New(s), req)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(message.Usage{Input: 4, Output: 3}, estimated.Usage); d != "" { // 4+4+3+2 and 9+3 bytes
		t.Error(d)
	}
}

func TestFailuresAndCutsAreUsedUp(t *testing.T) {
	s := parse(t, "version: 1\nturns: [{say: at last, error: {status: 429, retry_after: 2}, cut_stream: true}]\n")
	c := New(s)
	_, err := play(c, model.Request{})
	if e := model.AsError(err); e.Class != model.Transient || e.Status != 429 || e.RetryAfter != 2*time.Second {
		t.Errorf("first: %+v", e)
	}
	_, err = play(c, model.Request{})
	if e := model.AsError(err); e.Class != model.Transient || e.Status != 0 || !strings.Contains(e.Message, "ended before") {
		t.Errorf("second: %+v", e)
	}
	if r, err := play(c, model.Request{}); err != nil || message.PlainText(r.Blocks) != "at last" {
		t.Errorf("third: %+v %v", r, err)
	}
	if _, err := play(New(s), model.Request{}); err == nil {
		t.Error("another client has its own failures")
	}
}

func TestFailureIsSentOnceToConcurrentRequests(t *testing.T) {
	c := New(parse(t, "version: 1\nturns: [{say: hi, error: {status: 529}}]\n"))
	var failed atomic.Int32
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			if _, err := play(c, model.Request{}); err != nil {
				failed.Add(1)
			}
		})
	}
	wg.Wait()
	if n := failed.Load(); n != 1 {
		t.Errorf("%d requests failed, want 1", n)
	}
}

func TestOnlyAnErrorStays(t *testing.T) {
	c := New(parse(t, "version: 1\nturns: [{error: {status: 401, message: \"bad key\"}}]\n"))
	for range 3 {
		_, err := play(c, model.Request{})
		if e := model.AsError(err); e.Class != model.Environment || !strings.Contains(e.Message, "bad key") || !strings.Contains(e.Message, "turn 1") {
			t.Errorf("got %+v", e)
		}
	}
}

func TestClasses(t *testing.T) {
	for status, want := range map[int]model.Class{
		400: model.Validation, 413: model.Validation, 422: model.Validation, 401: model.Environment, 402: model.Environment,
		403: model.Environment, 404: model.Environment, 408: model.Transient, 429: model.Transient, 500: model.Transient, 503: model.Transient, 529: model.Transient,
	} {
		if got := (Failure{Status: status}).Error().Class; got != want {
			t.Errorf("%d: %s, want %s", status, got, want)
		}
	}
}

func TestCutAtEveryEvent(t *testing.T) {
	whole, err := play(New(parse(t, "version: 1\nturns: [{say: hi, calls: [{tool: A}]}]\n")), model.Request{})
	if err != nil {
		t.Fatal(err)
	}
	total := len(Events(whole))
	for n := range total + 2 {
		c := New(parse(t, fmt.Sprintf("version: 1\nturns: [{say: hi, calls: [{tool: A}], cut_stream: %d}]\n", n)))
		arrived := 0
		_, err := model.Collect(c.Stream(context.Background(), model.Request{}), func(model.Event) { arrived++ })
		if err == nil || arrived != min(n, total-1) {
			t.Errorf("cut after %d: %d of %d arrived, error %v", n, arrived, total, err)
		}
	}
}

func TestExpectations(t *testing.T) {
	req := model.Request{
		System: "You climb.",
		Tools:  []model.Tool{{Name: "Bash"}, {Name: "Read"}},
		Messages: []message.Message{
			message.UserText("fix the bug"),
			{Role: message.Assistant, Blocks: []message.Block{message.Text("looking"), {Kind: message.KindCall, Call: &message.ToolCall{Name: "Bash", Args: []byte(`{"command":"ls"}`)}}}},
			results("old result"),
			results("--- FAIL: TestAdd", "Error (NOT_FOUND): no file"),
			message.UserText("recap: go on"),
		},
		Replies: 0,
	}
	for _, c := range []struct {
		expect string
		want   string // part of the message; "" where it holds
	}{
		{`last_result_contains: FAIL`, ""},
		{`last_result_contains: [FAIL, NOT_FOUND]`, ""},
		{`last_result_contains: [FAIL, PASS]`, `turn 1 (line 4) expects last_result_contains "PASS", but the results of the last round held:` + "\n  --- FAIL: TestAdd\n  Error"},
		{`last_result_contains: old`, `"old"`},
		{`last_result_lacks: old`, ""},
		{`last_result_lacks: FAIL`, `last_result_lacks "FAIL"`},
		{`last_result_matches: "(?m)^Error \\("`, ""},
		{`last_result_matches: "^Error"`, `last_result_matches "^Error"`},
		{`last_user_contains: recap`, ""},
		{`last_user_contains: fix`, "held:\n  recap: go on"},
		{`request_contains: [fix the bug, '{"command":"ls"}', old result, looking]`, ""},
		{`request_lacks: looking`, "the conversation held"},
		{`system_contains: climb`, ""},
		{`tools_matches: "(?m)^Read$"`, ""},
		{`tools_lacks: Bash`, "the offered tools held:\n  Bash\n  Read"},
		{`results: 2`, ""},
		{`results: 1`, "expects results 1, but the last round has 2 results"},
		{`last_result_error: true`, ""},
		{`last_result_error: false`, "has errors: true"},
	} {
		s := parse(t, "version: 1\nturns:\n  - say: hi\n    expect: {"+c.expect+"}\n")
		_, err := play(New(s), req)
		switch e := model.AsError(err); {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", c.expect, err)
		case c.want != "" && err == nil:
			t.Errorf("%s: holds, but should not", c.expect)
		case c.want != "" && (e.Class != model.Script || !strings.Contains(e.Message, "rehearsal test.yaml") || !strings.Contains(e.Message, c.want)):
			t.Errorf("%s: class %s\n%v\nwant %s", c.expect, e.Class, err, c.want)
		}
	}
	s := parse(t, "version: 1\nturns: [{say: hi, expect: {last_result_lacks: x}}]\n")
	if _, err := play(New(s), model.Request{}); err == nil || !strings.Contains(err.Error(), "not in the request at all") {
		t.Errorf("no results at all: %v", err)
	}
}

func TestLongResultsAreCutInTheMessage(t *testing.T) {
	s := parse(t, "version: 1\nturns: [{say: hi, expect: {last_result_contains: needle}}]\n")
	_, err := play(New(s), model.Request{Messages: []message.Message{results("head " + strings.Repeat("ü", 5000) + " tail")}})
	if err == nil || len(err.Error()) > 1200 || !strings.Contains(err.Error(), "head ") || !strings.Contains(err.Error(), " tail") {
		t.Errorf("got %v", err)
	}
}

func TestWindowIsABoundWhereGiven(t *testing.T) {
	req := model.Request{Messages: []message.Message{message.UserText(strings.Repeat("x", 900_000))}}
	_, err := play(New(parse(t, "version: 1\nmodel: {context_window: 1000}\nturns: [{say: hi}]\n")), req)
	if e := model.AsError(err); !e.ContextTooLarge || e.Class != model.Validation {
		t.Errorf("got %v", err)
	}
	if _, err := play(New(parse(t, "version: 1\nturns: [{say: hi}]\n")), req); err != nil {
		t.Errorf("a window that the script did not give: %v", err)
	}
}

func TestDelayEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(parse(t, "version: 1\nturns: [{say: hi, delay: 1m, error: {status: 529}}]\n"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		_, err := model.Collect(c.Stream(ctx, model.Request{}), nil)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		_, err = play(c, model.Request{}) // the error was never sent, so it is still there
		if e := model.AsError(err); e.Status != 529 || time.Since(start) != time.Minute+time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
	})
}

func TestCancelledContextStopsTheStream(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := New(parse(t, "version: 1\nturns: [{say: hi}]\n"))
	_, err := model.Collect(c.Stream(ctx, model.Request{}), func(model.Event) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestCallIDsAreUnique(t *testing.T) {
	s := parse(t, "version: 1\nturns: [{repeat: {times: 100, calls: [{tool: A}, {tool: B}]}}]\notherwise: {calls: [{tool: C}]}\nwhen: [{purpose: judge, calls: [{tool: D}]}]\n")
	seen := map[string]bool{}
	for i := range 200 {
		for _, p := range []model.Purpose{"", model.Judge} {
			for _, c := range message.Calls(turn(t, s, i, p).Blocks) {
				if seen[c.ID] {
					t.Fatalf("call id %s twice", c.ID)
				}
				seen[c.ID] = true
			}
		}
	}
}

// BenchmarkTurn2000 is one turn at the end of a long run: what the estimate costs there.
func BenchmarkTurn2000(b *testing.B) {
	s, err := Parse("b.yaml", []byte("version: 1\nturns: [{repeat: {times: 2001, calls: [{tool: Bash, args: {command: \"echo {{n}}\"}}]}}]\n"))
	if err != nil {
		b.Fatal(err)
	}
	req := model.Request{Replies: 2000, Messages: []message.Message{message.UserText("go")}}
	for i := range 2000 {
		t, err := s.Turn(i, "")
		if err != nil {
			b.Fatal(err)
		}
		req.Messages = append(req.Messages, message.Message{Role: message.Assistant, Blocks: t.Blocks}, results(strings.Repeat("x", 4000)))
	}
	c := New(s)
	for b.Loop() {
		if _, err := play(c, req); err != nil {
			b.Fatal(err)
		}
	}
}
