package loop_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"belay/effect"
	"belay/internal/projection"
	"belay/journal"
	"belay/loop"
	"belay/message"
	"belay/model"
	"belay/policy"
	"belay/tool"
	"belay/verify"
)

// script is a model that gives prepared replies, one a request; the last one again and again.
type script struct {
	replies []model.Reply
	errs    map[int]error // instead of the n-th request's reply, from 0
	asked   []model.Request
}

func (s *script) Info() model.Info {
	return model.Info{Provider: "test", Model: "script", Price: &message.Price{Input: 1, Output: 2}}
}

func (s *script) Stream(_ context.Context, r model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		n := len(s.asked)
		s.asked = append(s.asked, r)
		if err := s.errs[n]; err != nil {
			yield(model.Event{}, err)
			return
		}
		reply := s.replies[min(r.Replies, len(s.replies)-1)]
		for i := range reply.Blocks {
			b := reply.Blocks[i]
			if b.Call != nil { // ids are unique in a run
				call := *b.Call
				call.ID = fmt.Sprintf("%s_%d", call.ID, r.Replies)
				b.Call = &call
			}
			if !yield(model.Event{Kind: model.BlockDone, Block: &b}, nil) {
				return
			}
		}
		if !yield(model.Event{Kind: model.UsageReport, Usage: &reply.Usage}, nil) {
			return
		}
		yield(model.Event{Kind: model.TurnDone, Stop: reply.Stop}, nil)
	}
}

// world is what the test tools act on.
type world struct {
	mu    sync.Mutex
	text  string // the whole tree
	runs  int    // of any tool
	panic bool
	meet  chan struct{} // where it is set, each Look waits until another one runs
	stuck bool          // tools return only when they are told to

	touched int // how often it was changed and changed back
}

// tree is the world as the loop sees it. A text that speaks of tests has changed them.
func (w *world) tree(context.Context) (verify.Tree, error) {
	t := verify.Tree{Digest: w.text, Stamp: fmt.Sprint(w.text, w.touched), Tests: map[string]string{"a_test": "1"}}
	if strings.Contains(w.text, "test") {
		t.Tests["a_test"] = "2"
	}
	return t, nil
}

// act is a tool that changes the world, or reads it.
type act struct {
	w     *world
	name  string
	class effect.Kind
	sign  tool.Signal
}

func (a act) Spec() tool.Spec {
	schema := `{"type":"object","properties":{"to":{"type":"string"}},"additionalProperties":false}`
	if a.sign == tool.Complete {
		schema = `{"type":"object","properties":{"summary":{"type":"string"},"evidence":{"type":"string"}},"additionalProperties":false}`
	}
	if a.sign == tool.Blocker {
		schema = `{"type":"object","properties":{"reason":{"type":"string"}},"additionalProperties":false}`
	}
	replay := tool.Pure
	if a.class == effect.Opaque {
		replay = tool.OpaqueCall
	}
	return tool.Spec{Name: a.name, Description: "test", Schema: json.RawMessage(schema), Signal: a.sign, Replay: replay}
}

func (a act) Plan(tool.Place, tool.Call) (tool.Plan, error) {
	if a.sign != tool.NoSignal {
		return tool.Plan{}, nil
	}
	return tool.Plan{Effects: effect.Set{{Kind: a.class}}, Summary: a.name}, nil
}

func (a act) Run(ctx context.Context, _ tool.Env, call tool.Call) (tool.Result, error) {
	if a.w.meet != nil {
		select {
		case a.w.meet <- struct{}{}:
		case <-a.w.meet:
		case <-ctx.Done():
		}
	}
	if a.w.stuck {
		<-ctx.Done()
	}
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	a.w.runs++
	if a.w.panic {
		panic("a bug in a tool")
	}
	var args struct{ To string }
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return tool.Result{}, err
	}
	if a.class == effect.Write {
		a.w.text = args.To
		return tool.Result{Status: tool.Success, Text: "written", Context: tool.Context{Wrote: []string{"tree"}}}, nil
	}
	if args.To == "nowhere" {
		return tool.Failf(tool.NotFound, "look elsewhere", "there is no %s", args.To), nil
	}
	if strings.HasPrefix(args.To, "fail") {
		return tool.Failf(tool.ExitStatus, "", "exit 1: %s in run %d", args.To, a.w.runs), nil
	}
	return tool.Result{Status: tool.Success, Text: "tree: " + a.w.text + args.To}, nil
}

// check is a verifier that wants the world's text to be "good".
type check struct {
	w     *world
	named bool
	after func() // what happens behind its back
}

func (c check) Name() string { return "check" }
func (c check) Named() bool  { return c.named }
func (c check) Verify(context.Context) (verify.Report, error) {
	r := verify.Report{OK: strings.HasPrefix(c.w.text, "good"), Output: "the text is " + c.w.text, Summary: "looked"}
	if !r.OK {
		r.Exit = 1
	}
	if c.after != nil {
		c.after()
	}
	return r, nil
}

// mood is a detected verifier that fails the first time, whatever it sees.
type mood struct {
	asked int
	named bool
}

func (m *mood) Name() string { return "mood" }
func (m *mood) Named() bool  { return m.named }
func (m *mood) Verify(context.Context) (verify.Report, error) {
	m.asked++
	return verify.Report{OK: m.asked > 1}, nil
}

type rig struct {
	world  *world
	model  *script
	verify []verify.Verifier
	bounds journal.Bounds
	before []journal.Entry // what an earlier process has left in the journal
	events []journal.Event
}

func (r *rig) run(t *testing.T, ctx context.Context) (loop.Outcome, error) {
	t.Helper()
	registry, err := tool.NewRegistry(act{r.world, "Look", effect.Read, ""}, act{r.world, "Change", effect.Write, ""},
		act{r.world, "Send", effect.Connect, ""}, act{r.world, "Burn", effect.Opaque, ""},
		act{r.world, "TaskComplete", "", tool.Complete}, act{r.world, "ReportBlocker", "", tool.Blocker})
	if err != nil {
		t.Fatal(err)
	}
	log, opened, err := journal.Create(t.TempDir(), journal.NewRunID(), nil, append([]journal.Entry{
		{Type: journal.TypeSessionStart, Payload: journal.SessionStart{Projection: projection.Version, System: "s", Tools: json.RawMessage("[]")}},
		{Type: journal.TypeUserMessage, Payload: journal.UserMessage{Text: "do it"}}}, r.before...)...)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	r.events = opened
	out, err := loop.Run(ctx, loop.Config{
		Log: log, Client: r.model, Tools: registry, Place: tool.Place{Workspace: "/w", Dir: "/w"},
		Judge:     judge,
		Env:       func(effect.Grant) tool.Env { return nil },
		Verifiers: r.verify, Tree: r.world.tree, Bounds: r.bounds,
		Observe: func(e journal.Event) { r.events = append(r.events, e) },
		Sleep:   func(context.Context, time.Duration) error { return nil },
	})
	r.checkJournal(t, log)
	return out, err
}

// judge allows what stays in the world and asks about the rest.
func judge(a policy.Action) policy.Decision {
	d := policy.Decision{Class: effect.ClassRead, Verdict: effect.Allow, Rule: "test"}
	for _, e := range a.Effects {
		switch e.Kind {
		case effect.Write:
			d.Class = effect.ClassReversible
		case effect.Opaque:
			d.Class = effect.ClassIrreversible
		case effect.Connect:
			d.Class, d.Verdict = effect.ClassExternal, effect.Ask
		}
	}
	return d
}

// checkJournal holds after every run, however it went: the file is sound, what was observed is what is
// stored, every context can be proved, and every call has exactly one outcome.
func (r *rig) checkJournal(t *testing.T, log *journal.File) {
	t.Helper()
	if n, findings, err := journal.Check(log.Dir()); err != nil || len(findings) > 0 || n != len(r.events) {
		t.Errorf("journal: %d events stored, %d observed, findings %v, error %v", n, len(r.events), findings, err)
	}
	contexts, err := projection.Replay(journal.Read(log.Dir()))
	if err != nil {
		t.Error(err)
	}
	for _, c := range contexts {
		if c.Verdict != projection.Proved {
			t.Errorf("turn %d: %s: %s", c.Turn, c.Verdict, c.Detail)
		}
	}
	if len(contexts) == 0 && len(r.model.asked) > 0 {
		t.Error("no context was recorded")
	}
}

// said joins what the model was told after its n-th reply.
func (r *rig) said(n int) string {
	if n >= len(r.model.asked) {
		return "(never asked)"
	}
	var b strings.Builder
	messages := r.model.asked[n].Messages
	for i := len(messages) - 1; i >= 0 && messages[i].Role == message.User; i-- {
		for _, block := range messages[i].Blocks {
			b.WriteString(block.Text)
			if block.Result != nil {
				b.WriteString(block.Result.Text)
			}
		}
	}
	return b.String()
}

func call(name, args string) message.Block {
	return message.Block{Kind: message.KindCall, Call: &message.ToolCall{ID: "c" + name, Name: name, Args: json.RawMessage(args)}}
}

func calls(blocks ...message.Block) model.Reply {
	return model.Reply{Blocks: blocks, Stop: message.StopToolUse, Usage: message.Usage{Input: 1000, Output: 100}}
}

func says(text string, stop message.StopReason) model.Reply {
	return model.Reply{Blocks: []message.Block{message.Text(text)}, Stop: stop}
}

var (
	good     = calls(call("Change", `{"to":"good"}`))
	bad      = calls(call("Change", `{"to":"bad"}`))
	complete = calls(call("TaskComplete", `{"summary":"did it","evidence":"seen"}`))
)

func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		name     string
		replies  []model.Reply
		verify   func(*world) []verify.Verifier
		start    string
		exit     loop.Exit
		standing verify.Standing
		turns    int
		heard    []string // in what the model was told after its k-th reply, "" is anything
	}{
		{name: "a named verifier proves", replies: []model.Reply{good, complete}, verify: named, exit: loop.ExitProved, standing: verify.Proved, turns: 2},
		{name: "a detected verifier proves what was red", replies: []model.Reply{good, complete}, verify: detected, start: "bad", exit: loop.ExitProved, standing: verify.Proved, turns: 2},
		{name: "a detected verifier that was green shows no regression", replies: []model.Reply{good, complete}, verify: detected, start: "good", exit: loop.ExitUnverified, standing: verify.NoRegression, turns: 2},
		{name: "no verifier is unverified", replies: []model.Reply{good, complete}, exit: loop.ExitUnverified, standing: verify.Unverified, turns: 2},
		{name: "a wrong completion is told why", replies: []model.Reply{bad, complete, good, complete}, verify: named, exit: loop.ExitProved, standing: verify.Proved, turns: 4,
			heard: []string{"", "the text is bad"}},
		{name: "three refused completions end the run", replies: []model.Reply{bad, complete}, verify: named, exit: loop.ExitFailed, turns: 4},
		{name: "a tree that changes during verification proves nothing", replies: []model.Reply{good, complete}, verify: slippery, exit: loop.ExitFailed, turns: 4,
			heard: []string{"", "changed while it was being verified"}},
		{name: "a change that is undone during verification is noticed", replies: []model.Reply{good, complete}, verify: undone, exit: loop.ExitFailed, turns: 4,
			heard: []string{"", "changed while it was being verified"}},
		{name: "a detected verifier proves nothing once the run has changed the tests", replies: []model.Reply{calls(call("Change", `{"to":"good tests"}`)), complete}, verify: detected, start: "bad", exit: loop.ExitUnverified, standing: verify.Unverified, turns: 2},
		{name: "a named verifier counts all the same", replies: []model.Reply{calls(call("Change", `{"to":"good tests"}`)), complete}, verify: named, start: "bad", exit: loop.ExitProved, standing: verify.Proved, turns: 2},
		{name: "red and green on the same tree is no proof", replies: []model.Reply{calls(call("Change", `{"to":"bad"}`)), complete}, verify: moody, start: "bad", exit: loop.ExitFailed, turns: 4,
			heard: []string{"", "the very same"}},
		{name: "a named verifier's second opinion on the same tree is no proof", replies: []model.Reply{good, calls(call("Change", `{"to":"bad"}`)), complete}, verify: moodyNamed, start: "bad", exit: loop.ExitFailed, turns: 5,
			heard: []string{"", "", "", "the very same"}},
		{name: "an answer needs no proof", replies: []model.Reply{says("42", message.StopEnd)}, verify: detected, start: "good", exit: loop.ExitUnverified, standing: verify.Unverified, turns: 1},
		{name: "a claim without TaskComplete is verified all the same", replies: []model.Reply{good, says("done", message.StopEnd)}, verify: named, exit: loop.ExitProved, standing: verify.Proved, turns: 3,
			heard: []string{"", "Nothing is finished by saying so"}},
		{name: "a claim with a named verifier is no answer", replies: []model.Reply{says("done", message.StopEnd)}, verify: named, start: "bad", exit: loop.ExitFailed, turns: 4},
		{name: "a blocker ends the run", replies: []model.Reply{calls(call("ReportBlocker", `{"reason":"no network"}`))}, verify: named, exit: loop.ExitFailed, turns: 1},
		{name: "a refusal waits for a person", replies: []model.Reply{says("I will not", message.StopRefusal)}, exit: loop.ExitWaiting, turns: 1},
		{name: "a cut reply's calls are not run", replies: []model.Reply{{Blocks: good.Blocks, Stop: message.StopLength}, calls(call("Look", `{}`)), complete}, exit: loop.ExitUnverified, standing: verify.Unverified, turns: 3,
			heard: []string{"cut by the output limit", "tree: bad"}, start: "bad"},
		{name: "a cut text goes on", replies: []model.Reply{says("The answer", message.StopLength), says("is 42", message.StopEnd)}, exit: loop.ExitUnverified, standing: verify.Unverified, turns: 2,
			heard: []string{"Go on where it stopped"}},
		{name: "a pause goes on with the same content", replies: []model.Reply{says("thinking", message.StopPause), says("42", message.StopEnd)}, exit: loop.ExitUnverified, standing: verify.Unverified, turns: 2},
		{name: "an empty reply is asked once", replies: []model.Reply{calls(call("Look", `{}`)), {Stop: message.StopEnd}, says("42", message.StopEnd)}, exit: loop.ExitUnverified, standing: verify.Unverified, turns: 3,
			heard: []string{"", "Your reply was empty"}},
		{name: "an unknown tool is told", replies: []model.Reply{calls(call("Jump", `{}`)), says("sorry", message.StopEnd)}, exit: loop.ExitUnverified, standing: verify.Unverified, turns: 2,
			heard: []string{"Look, Change, Send"}},
		{name: "wrong arguments are told", replies: []model.Reply{calls(call("Change", `{"too":"good"}`)), says("sorry", message.StopEnd)}, exit: loop.ExitUnverified, standing: verify.Unverified, turns: 2,
			heard: []string{"too"}},
		{name: "an external effect is refused", replies: []model.Reply{calls(call("Send", `{}`)), says("sorry", message.StopEnd)}, exit: loop.ExitUnverified, standing: verify.Unverified, turns: 2,
			heard: []string{"class 4"}},
		{name: "TaskComplete before other calls is refused", replies: []model.Reply{calls(complete.Blocks[0], good.Blocks[0]), complete}, verify: named, exit: loop.ExitProved, standing: verify.Proved, turns: 2,
			heard: []string{"other calls come after TaskComplete"}},
		{name: "all results of a reply come in one message", replies: []model.Reply{calls(call("Look", `{}`), good.Blocks[0]), complete}, verify: named, start: "bad", exit: loop.ExitProved, standing: verify.Proved, turns: 2,
			heard: []string{"tree: badwritten"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &rig{world: &world{text: c.start}, model: &script{replies: c.replies}}
			if c.verify != nil {
				r.verify = c.verify(r.world)
			}
			out, err := r.run(t, t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if out.Exit != c.exit || out.Standing != c.standing || out.Turns != c.turns {
				t.Errorf("exit %d, standing %q, %d turns (%s); want %d, %q, %d", out.Exit, out.Standing, out.Turns, out.Reason, c.exit, c.standing, c.turns)
			}
			if (out.Exit == loop.ExitProved) != (len(out.Proof) > 0 && out.Standing == verify.Proved) {
				t.Errorf("exit %d with the proof %v", out.Exit, out.Proof)
			}
			for k, want := range c.heard {
				if got := r.said(k + 1); !strings.Contains(got, want) {
					t.Errorf("after reply %d the model was told %q, which lacks %q", k+1, got, want)
				}
			}
		})
	}
}

func named(w *world) []verify.Verifier    { return []verify.Verifier{check{w: w, named: true}} }
func detected(w *world) []verify.Verifier { return []verify.Verifier{check{w: w}} }
func undone(w *world) []verify.Verifier {
	return []verify.Verifier{check{w: w, named: true, after: func() { w.touched++ }}}
}
func moody(w *world) []verify.Verifier      { return []verify.Verifier{&mood{}} }
func moodyNamed(w *world) []verify.Verifier { return []verify.Verifier{&mood{named: true}} }
func slippery(w *world) []verify.Verifier {
	return []verify.Verifier{check{w: w, named: true, after: func() { w.text += " " }}}
}

func TestBounds(t *testing.T) {
	look := calls(call("Look", `{}`))
	for _, c := range []struct {
		name   string
		bounds journal.Bounds
		turns  int
		reason string
	}{
		{"turns", journal.Bounds{Turns: 2}, 2, "--max-turns"},
		{"money", journal.Bounds{Money: message.USD(0.0025)}, 3, "--budget-usd"}, // each turn costs 0.0012
		{"tokens", journal.Bounds{Tokens: 2000}, 2, "--max-tokens"},
		{"repetition", journal.Bounds{}, 5, "same result 5 times"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := &rig{world: &world{}, model: &script{replies: []model.Reply{look}}, bounds: c.bounds}
			out, err := r.run(t, t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if out.Exit != loop.ExitBound || out.Turns != c.turns || !strings.Contains(out.Reason, c.reason) {
				t.Errorf("exit %d after %d turns: %s", out.Exit, out.Turns, out.Reason)
			}
		})
	}
}

// A repetition is told before it ends the run, and a change in between makes it none.
func TestRepetition(t *testing.T) {
	look := calls(call("Look", `{}`))
	r := &rig{world: &world{}, model: &script{replies: []model.Reply{look, look, look, says("I see", message.StopEnd)}}}
	if out, err := r.run(t, t.Context()); err != nil || out.Exit != loop.ExitUnverified {
		t.Fatalf("%+v, %v", out, err)
	}
	if got := r.said(3); !strings.Contains(got, "same result 3 times") {
		t.Errorf("after the third repetition the model was told %q", got)
	}
	var replies []model.Reply
	for i := range 6 {
		replies = append(replies, look, calls(call("Change", fmt.Sprintf(`{"to":"%d"}`, i))))
	}
	r = &rig{world: &world{}, model: &script{replies: append(replies, complete)}}
	if out, err := r.run(t, t.Context()); err != nil || out.Turns != 13 {
		t.Errorf("looking after each change is no repetition: %+v, %v", out, err)
	}
}

func TestModelErrors(t *testing.T) {
	busy := &model.Error{Class: model.Transient, Status: 529, Message: "overloaded"}
	answer := []model.Reply{says("42", message.StopEnd)}
	r := &rig{world: &world{}, model: &script{replies: answer, errs: map[int]error{0: busy, 1: busy}}}
	out, err := r.run(t, t.Context())
	if err != nil || out.Exit != loop.ExitUnverified || len(r.model.asked) != 3 || out.Turns != 1 {
		t.Errorf("two busy answers should pass unnoticed: %+v, %v", out, err)
	}
	garbled := &model.Error{Class: model.Transient, Kind: model.MalformedCall, Message: "a call in the text"}
	r = &rig{world: &world{}, model: &script{replies: answer, errs: map[int]error{0: garbled, 1: garbled, 2: garbled}}}
	if out, err = r.run(t, t.Context()); err != nil || len(r.model.asked) != 1+model.MalformedTries || out.Exit == loop.ExitUnverified {
		t.Errorf("a model that writes no sound call is asked again twice, not %d times: %+v, %v", len(r.model.asked)-1, out, err)
	}
	wrongKey := &model.Error{Class: model.Environment, Status: 401, Message: "wrong key"}
	r = &rig{world: &world{}, model: &script{replies: answer, errs: map[int]error{0: wrongKey}}}
	if out, err = r.run(t, t.Context()); err != nil || out.Exit != loop.ExitEnvironment || len(r.model.asked) != 1 {
		t.Errorf("a wrong key is not tried again: %+v, %v", out, err)
	}
	script1 := &model.Error{Class: model.Script, Message: "turn 1 expected FAIL"}
	r = &rig{world: &world{}, model: &script{replies: answer, errs: map[int]error{0: script1}}}
	if out, err = r.run(t, t.Context()); !errors.Is(err, script1) || out.Exit != loop.ExitFault {
		t.Errorf("a failed expectation is a fault: %+v, %v", out, err)
	}
}

// A tool that panics is the harness's fault: the run ends, and its journal is whole.
func TestToolPanic(t *testing.T) {
	r := &rig{world: &world{panic: true}, model: &script{replies: []model.Reply{calls(call("Look", `{}`))}}}
	out, err := r.run(t, t.Context())
	if err == nil || out.Exit != loop.ExitFault {
		t.Errorf("%+v, %v", out, err)
	}
}

// Ctrl-C ends the run with its code, and the journal is whole.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	w := &world{}
	r := &rig{world: w, model: &script{replies: []model.Reply{good}}}
	r.verify = []verify.Verifier{check{w: w, after: cancel}}
	out, err := r.run(t, ctx)
	if err != nil || out.Exit != loop.ExitInterrupted || w.runs != 0 {
		t.Errorf("%+v, %v; the tool ran %d times", out, err, w.runs)
	}
}

// look is a Look at something of its own, so that no two are the same.
func look(n int) model.Reply { return calls(call("Look", fmt.Sprintf(`{"to":"%d"}`, n))) }

// A model that is near a bound is told, once, before it is stopped there.
func TestSoftThreshold(t *testing.T) {
	var replies []model.Reply
	for i := range 12 {
		replies = append(replies, look(i))
	}
	r := &rig{world: &world{}, model: &script{replies: replies}, bounds: journal.Bounds{Turns: 10}}
	out, err := r.run(t, t.Context())
	if err != nil || out.Exit != loop.ExitBound || out.Turns != 10 {
		t.Fatalf("%+v, %v", out, err)
	}
	told := 0
	for n := range r.model.asked {
		if strings.Contains(r.said(n), "80 % of this run's turns is used") {
			told++
			if n != 8 {
				t.Errorf("it was told at request %d", n)
			}
		}
	}
	if told != 1 {
		t.Errorf("it was told %d times", told)
	}
}

// Errors in a row are told before a person is called; a success in between makes them none.
func TestErrorsInARow(t *testing.T) {
	wrong := func(n int) model.Reply { return calls(call("Nonesuch", fmt.Sprintf(`{"n":%d}`, n))) }
	var row []model.Reply
	for i := range 8 {
		row = append(row, wrong(i))
	}
	r := &rig{world: &world{}, model: &script{replies: row}}
	out, err := r.run(t, t.Context())
	if err != nil || out.Exit != loop.ExitWaiting && out.Exit != loop.ExitBound || out.Turns != 5 {
		t.Errorf("%+v, %v", out, err)
	}
	if got := r.said(3); !strings.Contains(got, "3 calls in a row failed") && !strings.Contains(got, "same result 3 times") {
		t.Errorf("after three errors the model was told %q", got)
	}
	r = &rig{world: &world{}, model: &script{replies: []model.Reply{wrong(0), wrong(1), look(0), calls(call("Look", `{"to":"nowhere"}`)), wrong(2), look(1), says("I give up", message.StopEnd)}}}
	if out, err := r.run(t, t.Context()); err != nil || out.Turns != 7 {
		t.Errorf("%+v, %v", out, err)
	}
}

// Programs that fail one after another are errors in a row, whatever each says; one program that fails in
// another way each time is what work looks like.
func TestFailingPrograms(t *testing.T) {
	failing := func(what string) model.Reply { return calls(call("Look", `{"to":"fail `+what+`"}`)) }
	r := &rig{world: &world{}, model: &script{replies: []model.Reply{failing("a"), failing("b"), failing("c"), failing("d"), failing("e"), failing("f")}}}
	if out, err := r.run(t, t.Context()); err != nil || out.Exit != loop.ExitWaiting || out.Turns != 5 || !strings.Contains(r.said(3), "3 calls in a row failed") {
		t.Errorf("%+v, %v; after three: %q", out, err, r.said(3))
	}
	r = &rig{world: &world{}, model: &script{replies: []model.Reply{failing("a"), failing("a"), failing("a"), failing("a"), says("hm", message.StopEnd)}}}
	if out, err := r.run(t, t.Context()); err != nil || out.Exit != loop.ExitUnverified || strings.Contains(r.said(4), "in a row") {
		t.Errorf("%+v, %v; %q", out, err, r.said(4))
	}
}

// A run in which nothing changes and nothing new is seen is told so, then handed to a person.
func TestStandstill(t *testing.T) {
	replies := []model.Reply{look(0), look(1), look(2)}
	for i := range 9 { // round and round, slowly enough to be no repetition
		replies = append(replies, look(i%3), says("hm", message.StopLength))
	}
	r := &rig{world: &world{}, model: &script{replies: replies}}
	out, err := r.run(t, t.Context())
	if err != nil || out.Exit == loop.ExitUnverified || out.Turns > 14 {
		t.Errorf("%+v, %v", out, err)
	}
}

// Time is a bound for what runs, too: a call that never returns is stopped, and the run pauses.
func TestTimeBound(t *testing.T) {
	r := &rig{world: &world{stuck: true}, model: &script{replies: []model.Reply{look(0)}}, bounds: journal.Bounds{WallMS: 300}}
	out, err := r.run(t, t.Context())
	if err != nil || out.Exit != loop.ExitBound || !strings.Contains(out.Reason, "--timeout") {
		t.Errorf("%+v, %v", out, err)
	}
	for _, e := range r.events {
		if e.Type == journal.TypeToolResult && !strings.Contains(string(e.Payload), "time was used up") {
			t.Errorf("the call's result is %s", e.Payload)
		}
	}
}

// Calls that only read run side by side: each of these waits for another one. Their results are in order.
func TestReadsRunSideBySide(t *testing.T) {
	both := calls(call("Look", `{"to":"1"}`), message.Block{Kind: message.KindCall, Call: &message.ToolCall{ID: "other", Name: "Look", Args: json.RawMessage(`{"to":"2"}`)}})
	r := &rig{world: &world{meet: make(chan struct{})}, model: &script{replies: []model.Reply{both, says("seen", message.StopEnd)}}, bounds: journal.Bounds{WallMS: 60_000}}
	out, err := r.run(t, t.Context())
	if err != nil || out.Exit != loop.ExitUnverified {
		t.Fatalf("%+v, %v", out, err)
	}
	if got := r.said(1); !strings.HasPrefix(got, "tree: 1tree: 2") {
		t.Errorf("the results came as %q", got)
	}
}

// What a dead process left open is settled before the model is asked again: a reading call runs again, any
// other has an unknown outcome, and one that was never recorded takes its ordinary way.
func TestOpenCallsAreSettled(t *testing.T) {
	asked := []message.Block{
		{Kind: message.KindCall, Call: &message.ToolCall{ID: "read", Name: "Look", Args: json.RawMessage(`{}`)}},
		{Kind: message.KindCall, Call: &message.ToolCall{ID: "wrote", Name: "Change", Args: json.RawMessage(`{"to":"bad"}`)}},
		{Kind: message.KindCall, Call: &message.ToolCall{ID: "never", Name: "Change", Args: json.RawMessage(`{"to":"good"}`)}},
	}
	recorded := func(id, name, args string, class effect.Class, replay tool.Replay) journal.Entry {
		return journal.Entry{Type: journal.TypeToolRequest, Turn: 1, Payload: journal.ToolRequest{CallID: id, Tool: name, Args: json.RawMessage(args), Class: class,
			Replay: string(replay), Permission: journal.Permission{Verdict: effect.Allow}, Grant: effect.Grant{Workspace: effect.ReadOnly}}}
	}
	r := &rig{world: &world{text: "old"}, model: &script{replies: []model.Reply{{}, says("I see", message.StopEnd), says("done", message.StopEnd)}}, before: []journal.Entry{
		{Type: journal.TypeModelReply, Turn: 1, Payload: journal.ModelReply{Blocks: asked, Stop: message.StopToolUse}},
		recorded("read", "Look", `{}`, effect.ClassRead, tool.Pure),
		recorded("wrote", "Change", `{"to":"bad"}`, effect.ClassReversible, tool.OpaqueCall),
	}}
	out, err := r.run(t, t.Context())
	if err != nil || out.Exit != loop.ExitUnverified || r.world.text != "good" || r.world.runs != 2 {
		t.Fatalf("%+v, %v; the tree is %q after %d runs", out, err, r.world.text, r.world.runs)
	}
	got := r.said(0)
	for _, want := range []string{"tree: old", "outcome unknown", "written"} {
		if !strings.Contains(got, want) {
			t.Errorf("the model was told %q, which lacks %q", got, want)
		}
	}
}

// An effect that nothing takes back happens once in a step, however the call is spelt; where it is known to have failed,
// it may be tried again.
func TestNothingIrreversibleTwice(t *testing.T) {
	burn := func(to string) model.Reply { return calls(call("Burn", to)) }
	for name, c := range map[string]struct {
		replies []model.Reply
		runs    int
		told    string
	}{
		"the same":         {[]model.Reply{burn(`{"to":"ash"}`), burn(`{"to":"ash"}`)}, 1, "tree: oldash"},
		"spelt otherwise":  {[]model.Reply{burn(`{"to":"ash"}`), burn(` { "to" : "\u0061sh" } `)}, 1, "not run again: call cBurn_0"},
		"another":          {[]model.Reply{burn(`{"to":"ash"}`), burn(`{"to":"dust"}`)}, 2, "tree: olddust"},
		"one that failed":  {[]model.Reply{burn(`{"to":"nowhere"}`), burn(`{"to":"nowhere"}`)}, 2, "there is no nowhere"},
		"one that repeats": {[]model.Reply{calls(call("Look", `{}`)), calls(call("Look", `{}`))}, 2, "tree: old"},
	} {
		r := &rig{world: &world{text: "old"}, model: &script{replies: append(c.replies, says("done", message.StopEnd))}}
		if _, err := r.run(t, t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := r.said(2); r.world.runs != c.runs || !strings.Contains(got, c.told) {
			t.Errorf("%s: %d runs, and the model was told %q", name, r.world.runs, got)
		}
		for _, e := range r.events {
			var p journal.ToolRequest
			if e.Type != journal.TypeToolRequest || e.Decode(&p) != nil {
				continue
			}
			if (p.Key != "") != (p.Tool == "Burn") {
				t.Errorf("%s: %s has the key %q", name, p.Tool, p.Key)
			}
		}
	}
}

// An irreversible call of unknown outcome stops the run until a person has spoken, however often it is resumed; what
// they said stands behind the results, so that the history is one that a provider takes.
func TestAPersonSaysWhetherItHappened(t *testing.T) {
	open := []journal.Entry{
		{Type: journal.TypeModelReply, Turn: 1, Payload: journal.ModelReply{Stop: message.StopToolUse, Blocks: []message.Block{
			{Kind: message.KindCall, Call: &message.ToolCall{ID: "b", Name: "Burn", Args: json.RawMessage(`{}`)}}}}},
		{Type: journal.TypeToolRequest, Turn: 1, Payload: journal.ToolRequest{CallID: "b", Tool: "Burn", Args: json.RawMessage(`{}`), Class: effect.ClassIrreversible,
			Replay: string(tool.OpaqueCall), Key: "k", Permission: journal.Permission{Verdict: effect.Allow}, Summary: "burn it"}},
	}
	settled := journal.Entry{Type: journal.TypeToolResult, Turn: 1, Payload: journal.ToolResult{CallID: "b", Status: "error", Code: string(tool.Interrupted)}}
	word := journal.Entry{Type: journal.TypeUserMessage, Payload: journal.UserMessage{Text: "it did, go on"}}
	for name, c := range map[string]struct {
		before []journal.Entry
		exit   loop.Exit
	}{
		"just killed":                      {open, loop.ExitWaiting},
		"killed, settled, killed again":    {append(slices.Clone(open), settled), loop.ExitWaiting},
		"a person spoke":                   {append(slices.Clone(open), word), loop.ExitUnverified},
		"a person spoke after it was said": {append(slices.Clone(open), settled, word), loop.ExitUnverified},
	} {
		r := &rig{world: &world{text: "old"}, model: &script{replies: []model.Reply{{}, says("done", message.StopEnd)}}, before: c.before}
		out, err := r.run(t, t.Context())
		if err != nil || out.Exit != c.exit || r.world.runs != 0 {
			t.Errorf("%s: %+v, %v, %d runs", name, out, err, r.world.runs)
		}
		if c.exit == loop.ExitWaiting {
			if len(r.model.asked) > 0 || !strings.Contains(out.Reason, "burn it") {
				t.Errorf("%s: the model was asked %d times; %s", name, len(r.model.asked), out.Reason)
			}
			continue
		}
		messages := r.model.asked[0].Messages
		if n := len(messages); messages[n-3].Blocks[0].Result == nil || messages[n-2].Blocks[0].Text != "it did, go on" {
			t.Errorf("%s: the history is %+v", name, messages)
		}
	}
}

// A process that died right after a reply that was cut, or refused, leaves calls that must never run.
func TestCutCallsAreNotRunOnResume(t *testing.T) {
	for _, stop := range []message.StopReason{message.StopLength, message.StopPause, message.StopRefusal} {
		r := &rig{world: &world{text: "old"}, model: &script{replies: []model.Reply{{}, says("I see", message.StopEnd)}}, before: []journal.Entry{
			{Type: journal.TypeModelReply, Turn: 1, Payload: journal.ModelReply{Blocks: good.Blocks, Stop: stop}},
		}}
		out, err := r.run(t, t.Context())
		if err != nil || out.Exit != loop.ExitUnverified || r.world.text != "old" || r.world.runs != 0 || !strings.Contains(r.said(0), "not executed") {
			t.Errorf("%s: %+v, %v; the tree is %q; the model was told %q", stop, out, err, r.world.text, r.said(0))
		}
	}
}
