// Package modeltest is the conformance suite that every model.Client passes: the same rehearsal gives the same replies, whatever lies between.
package modeltest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"belay/message"
	"belay/model"
	"belay/model/rehearsal"
)

// Make makes a client that plays the script. What it opens it closes with t.Cleanup.
type Make func(t *testing.T, script *rehearsal.Script) model.Client

// Run runs the whole suite.
func Run(t *testing.T, make Make) {
	t.Run("conversation", func(t *testing.T) { conversation(t, make) })
	t.Run("events", func(t *testing.T) { events(t, make) })
	t.Run("stops", func(t *testing.T) { stops(t, make) })
	t.Run("errors", func(t *testing.T) { faults(t, make) })
	t.Run("cuts", func(t *testing.T) { cuts(t, make) })
	t.Run("purpose", func(t *testing.T) { purpose(t, make) })
	t.Run("cancel", func(t *testing.T) { cancel(t, make) })
	t.Run("encode", func(t *testing.T) { encode(t, make) })
}

// Conversation is a script that holds everything a reply can hold.
const Conversation = `version: 1
name: everything
turns:
  - say: "Größe prüfen: 日本語 🧗 <b>&amp;</b> \"quoted\" \\ and\na line"
    thinking: "First I look. 🤔 Then I act."
    calls:
      - {tool: Bash, args: {command: "printf 'ä\\n\\t\"x\"' | wc -c", timeout: 1.50, big: 12345678901234567890, deep: [{a: [null, true, {}]}]}}
      - {tool: LS}
  - expect: {last_result_contains: ["result of call_1_1", "result of call_1_2"], results: 2, system_contains: "You climb", tools_contains: Bash}
    calls: [{tool: Bash, bad_args: '{"command": "ls'}, {tool: Read, bad_args: '[1, 2]'}, {tool: Read, bad_args: '"text"'}]
  - expect: {last_result_error: true, request_contains: '{\"command\": \"ls'}
    thinking: "only thinking and a call"
    calls: [{tool: Write, args: {content: "` + "{{long}}" + `"}}]
  - say: "  white space around  "
    calls: [{tool: Bash, args: {command: "true"}}]
    usage: {input: 1200, output: 80, cache_read: 900, cache_write: 7}
  - repeat: {times: 5, calls: [{tool: Bash, args: {command: "echo {{n}}"}}, {tool: Bash, args: {command: "echo {{n}}"}}]}
  - stop: max_tokens
    say: "cut by the lim"
  - expect: {last_user_contains: go on}
    say: "Done."
otherwise: {say: "Nothing left."}
`

func parse(t *testing.T, text string) *rehearsal.Script {
	t.Helper()
	s, err := rehearsal.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Script parses Conversation.
func Script(t *testing.T) *rehearsal.Script {
	t.Helper()
	long := strings.Repeat("a long line that is written to a file – ", 2000)
	return parse(t, strings.ReplaceAll(Conversation, "{{long}}", long))
}

// Tools are those that the conversation's requests offer.
var Tools = []model.Tool{
	{Name: "Bash", Description: "Runs a <command> & more.", Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`)},
	{Name: "Read", Description: "Reads.", Schema: json.RawMessage(`{"type":"object","properties":{}}`)},
}

// Diff is empty where both have the same JSON, as a journal would hold it, else it shows where they part.
func Diff(t *testing.T, want, got any) string {
	t.Helper()
	a, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if string(a) == string(b) {
		return ""
	}
	i := 0
	for i < min(len(a), len(b)) && a[i] == b[i] {
		i++
	}
	around := func(s []byte) string { return fmt.Sprintf("…%s…", s[max(0, i-200):min(len(s), i+200)]) }
	return fmt.Sprintf("want %s\n got %s", around(a), around(b))
}

// Exchange is one request and its reply.
type Exchange struct {
	Request model.Request
	Reply   model.Reply
}

// Converse plays a conversation of so many turns as the loop would: every call gets a result, a cut reply is told.
func Converse(t *testing.T, c model.Client, turns int) []Exchange {
	t.Helper()
	req := model.Request{System: "You climb.", Tools: Tools, PrefixHash: strings.Repeat("ab", 32), Messages: []message.Message{message.UserText("Go. 日本語")}}
	var all []Exchange
	for range turns {
		reply, err := model.Collect(c.Stream(t.Context(), req), nil)
		if err != nil {
			t.Fatalf("turn %d: %v", req.Replies+1, err)
		}
		all = append(all, Exchange{req, reply})
		said := message.Message{Role: message.Assistant, Blocks: reply.Blocks}
		told := message.Message{Role: message.User}
		for _, call := range message.Calls(reply.Blocks) {
			r := &message.ToolResult{CallID: call.ID, Text: "result of " + call.ID + " – ok"}
			if call.BadArgs != "" {
				r.Error, r.Text = true, "Error (INVALID): "+call.BadArgs
			}
			told.Blocks = append(told.Blocks, message.Block{Kind: message.KindResult, Result: r})
		}
		req.Messages = append(req.Messages[:len(req.Messages):len(req.Messages)], said)
		if len(told.Blocks) > 0 {
			req.Messages = append(req.Messages, told)
		}
		if len(told.Blocks) != 1 { // a recap after some results, a nudge after a reply without calls
			req.Messages = append(req.Messages, message.UserText("Please go on."))
		}
		req.Replies++
	}
	return all
}

const turnsOfConversation = 13

func conversation(t *testing.T, make Make) {
	s := Script(t)
	for i, x := range Converse(t, make(t, s), turnsOfConversation) {
		turn, err := s.Turn(i, model.MainLoop)
		if err != nil {
			t.Fatal(err)
		}
		if d := Diff(t, turn.Reply(x.Request), x.Reply); d != "" {
			t.Errorf("turn %d:\n%s", i+1, d)
		}
	}
}

func events(t *testing.T, make Make) {
	s := Script(t)
	c := make(t, s)
	for replies := range 4 {
		texts, names := map[int]string{}, map[int]string{}
		var last model.EventKind
		var done []model.Event
		ask := model.Request{Replies: replies, Messages: history(s, t, replies), System: "You climb.", Tools: Tools}
		_, err := model.Collect(c.Stream(t.Context(), ask), func(ev model.Event) {
			if last == model.TurnDone {
				t.Errorf("%s after the terminal event", ev.Kind)
			}
			last = ev.Kind
			texts[ev.Index] += ev.Delta
			switch ev.Kind {
			case model.CallStarted:
				if names[ev.Index] != "" || texts[ev.Index] != "" {
					t.Errorf("block %d starts late or twice", ev.Index)
				}
				names[ev.Index] = ev.Name
			case model.BlockDone:
				done = append(done, ev)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if last != model.TurnDone {
			t.Errorf("the last event is %s", last)
		}
		for _, ev := range done {
			want := ev.Block.Text
			if call := ev.Block.Call; call != nil {
				if names[ev.Index] != call.Name {
					t.Errorf("block %d started as %q, is %q", ev.Index, names[ev.Index], call.Name)
				}
				if call.BadArgs != "" {
					continue // what was shown is what came
				}
				if want = string(call.Args); want == "{}" && texts[ev.Index] == "" {
					want = ""
				}
			}
			if texts[ev.Index] != want {
				t.Errorf("block %d: deltas %q, block %q", ev.Index, texts[ev.Index], want)
			}
		}
	}
}

// history is what precedes a turn of the script, with a result for every call.
func history(s *rehearsal.Script, t *testing.T, replies int) []message.Message {
	t.Helper()
	messages := []message.Message{message.UserText("Go.")}
	for i := range replies {
		turn, err := s.Turn(i, model.MainLoop)
		if err != nil {
			t.Fatal(err)
		}
		told := message.Message{Role: message.User}
		for _, call := range message.Calls(turn.Blocks) {
			told.Blocks = append(told.Blocks, message.Block{Kind: message.KindResult, Result: &message.ToolResult{CallID: call.ID, Text: "Error: result of " + call.ID, Error: true}})
		}
		messages = append(messages, message.Message{Role: message.Assistant, Blocks: turn.Blocks}, told)
	}
	return messages
}

var ask = model.Request{System: "You climb.", Messages: []message.Message{message.UserText("Go.")}}

func stops(t *testing.T, make Make) {
	for text, want := range map[string]model.Reply{
		`{say: hi}`:                           {Stop: message.StopEnd, Blocks: []message.Block{message.Text("hi")}},
		`{stop: end}`:                         {Stop: message.StopEnd},
		`{say: hi, stop: max_tokens}`:         {Stop: message.StopLength, Blocks: []message.Block{message.Text("hi")}},
		`{say: no, stop: refusal}`:            {Stop: message.StopRefusal, Blocks: []message.Block{message.Text("no")}},
		`{say: wait, stop: pause}`:            {Stop: message.StopPause, Blocks: []message.Block{message.Text("wait")}},
		`{calls: [{tool: A}]}`:                {Stop: message.StopToolUse, Blocks: []message.Block{called("A", "{}", "")}},
		`{calls: [{tool: A}], stop: refusal}`: {Stop: message.StopRefusal, Blocks: []message.Block{called("A", "{}", "")}},
		`{calls: [{tool: A, bad_args: '{"x": "y'}], stop: max_tokens}`: {Stop: message.StopLength,
			Blocks: []message.Block{called("A", `"{\"x\": \"y"`, "not valid JSON: unexpected end of JSON input")}},
		`{thinking: hm, stop: end}`: {Stop: message.StopEnd, Blocks: []message.Block{{Kind: message.KindThinking, Text: "hm"}}},
	} {
		got, err := model.Collect(make(t, parse(t, "version: 1\nturns: ["+text+"]\n")).Stream(t.Context(), ask), nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		want.Usage = message.Usage{Input: rehearsal.RequestTokens(ask), Output: rehearsal.ReplyTokens(want.Blocks)}
		if strings.Contains(text, "bad_args") {
			want.Usage = got.Usage
		}
		if d := Diff(t, want, got); d != "" {
			t.Errorf("%s:\n%s", text, d)
		}
	}
}

func called(name, args, bad string) message.Block {
	return message.Block{Kind: message.KindCall, Call: &message.ToolCall{ID: "call_1_1", Name: name, Args: json.RawMessage(args), BadArgs: bad}}
}

const tooLarge = "a request above the context window"

func faults(t *testing.T, make Make) {
	for text, want := range map[string]model.Error{
		`{say: x, error: {status: 529}}`:                       {Class: model.Transient, Status: 529},
		`{say: x, error: {status: 429, retry_after: 2.5}}`:     {Class: model.Transient, Status: 429, RetryAfter: 2500 * time.Millisecond},
		`{say: x, error: {status: 500, message: boom}}`:        {Class: model.Transient, Status: 500, Message: "boom"},
		`{error: {status: 401}}`:                               {Class: model.Environment, Status: 401},
		`{error: {status: 402}}`:                               {Class: model.Environment, Status: 402},
		`{error: {status: 403, message: not you}}`:             {Class: model.Environment, Status: 403, Message: "not you"},
		`{error: {status: 404}}`:                               {Class: model.Environment, Status: 404},
		`{error: {status: 400, message: odd}}`:                 {Class: model.Validation, Status: 400, Message: "odd"},
		`{error: {status: 422}}`:                               {Class: model.Validation, Status: 422},
		`{error: {status: 413}}`:                               {Class: model.Validation, Status: 413, ContextTooLarge: true},
		`{error: {status: 400, context_too_large: true}}`:      {Class: model.Validation, Status: 400, ContextTooLarge: true},
		`{say: x, expect: {system_contains: summit}}`:          {Class: model.Script, Message: "system_contains"},
		`{say: x, expect: {last_result_contains: x}}`:          {Class: model.Script, Message: "not in the request at all"},
		`{say: x, cut_stream: true}`:                           {Class: model.Transient, Message: "ended before"},
		`{calls: [{tool: A, args: {x: 1}}], cut_stream: 1000}`: {Class: model.Transient, Message: "ended before"},
		tooLarge: {Class: model.Validation, Status: 400, ContextTooLarge: true},
	} {
		script := "version: 1\nturns: [" + text + "]\n"
		if text == tooLarge {
			script = "version: 1\nturns: [{say: x}]\nmodel: {context_window: 2}\n"
		}
		c := make(t, parse(t, script))
		got, err := model.Collect(c.Stream(t.Context(), ask), nil)
		var e *model.Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %+v, error %v", text, got, err)
			continue
		}
		if e.Class != want.Class || e.Status != want.Status || e.RetryAfter != want.RetryAfter || e.ContextTooLarge != want.ContextTooLarge || !strings.Contains(e.Message, want.Message) {
			t.Errorf("%s:\n got %+v\nwant %+v", text, *e, want)
		}
		_, err = model.Collect(c.Stream(t.Context(), ask), nil)
		if transient := want.Class == model.Transient; transient != (err == nil) {
			t.Errorf("%s: the second time: %v", text, err)
		}
	}
}

// cuts breaks the stream after every number of events until it arrives whole.
func cuts(t *testing.T, make Make) {
	for n := range 40 {
		c := make(t, parse(t, fmt.Sprintf("version: 1\nturns: [{thinking: hm, say: hello there, calls: [{tool: A, args: {x: 1}}, {tool: B}], cut_stream: %d}]\n", n)))
		var done []model.Event
		_, err := model.Collect(c.Stream(t.Context(), ask), func(ev model.Event) {
			if ev.Kind == model.TurnDone {
				done = append(done, ev)
			}
		})
		if e := model.AsError(err); err == nil || !e.Retryable() || len(done) > 0 {
			t.Errorf("cut after %d events: %v, %d terminal events", n, err, len(done))
		}
		if r, err := model.Collect(c.Stream(t.Context(), ask), nil); err != nil || len(r.Blocks) != 4 || r.Stop != message.StopToolUse {
			t.Errorf("again after %d events: %+v %v", n, r, err)
		}
	}
}

func purpose(t *testing.T, make Make) {
	c := make(t, parse(t, "version: 1\nturns: [{say: main}, {stop: end}, {say: third}]\nwhen: [{purpose: compaction, say: summary}]\n"))
	for _, x := range []struct {
		replies int
		purpose model.Purpose
		want    string
	}{{0, "", "main"}, {0, model.Compaction, "summary"}, {2, "", "third"}} { // the second reply left nothing in the conversation
		req := ask
		req.Replies, req.Purpose = x.replies, x.purpose
		r, err := model.Collect(c.Stream(t.Context(), req), nil)
		if err != nil || message.PlainText(r.Blocks) != x.want {
			t.Errorf("%+v: %+v %v", x, r, err)
		}
	}
}

func cancel(t *testing.T, make Make) {
	c := make(t, Script(t))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	_, err := model.Collect(c.Stream(ctx, ask), func(model.Event) { stop() })
	if !errors.Is(err, context.Canceled) && err != nil {
		t.Errorf("cancelled in the stream: %v", err)
	}
	if _, err := model.Collect(c.Stream(ctx, ask), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
	slow := make(t, parse(t, "version: 1\nturns: [{say: x, delay: 1h}]\n"))
	ctx, stop = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := model.Collect(slow.Stream(ctx, ask), nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("cancelled in the delay: %v", err)
	}
	for ev, err := range c.Stream(t.Context(), ask) { // leaving early must not hang, nor yield again
		if err != nil {
			t.Errorf("%v", err)
		}
		_ = ev
		break
	}
}

// encode holds Encoders to their promise: the same bytes each time, and what never changes first.
func encode(t *testing.T, make Make) {
	c := make(t, Script(t))
	enc, ok := c.(model.Encoder)
	if !ok {
		return // an in-process model has no wire
	}
	if enc.Codec() == "" {
		t.Error("the encoding has no name")
	}
	var before string
	for i, x := range Converse(t, c, turnsOfConversation) {
		body, err := enc.Encode(x.Request)
		if err != nil {
			t.Fatal(err)
		}
		again, err := enc.Encode(x.Request)
		if err != nil || string(again) != string(body) {
			t.Errorf("turn %d: the second body differs (%v)", i+1, err)
		}
		if !json.Valid(body) {
			t.Errorf("turn %d: no JSON", i+1)
		}
		// Cache marks move; without them one request begins with the one before it.
		now := strings.ReplaceAll(string(body), `,"cache_control":{"type":"ephemeral"}`, "")
		if prefix := strings.TrimSuffix(before, "]}"); !strings.HasPrefix(now, prefix) {
			t.Errorf("turn %d: the request before it is no prefix:\n%.300s\n%.300s", i+1, prefix, now)
		}
		before = now
	}
}
