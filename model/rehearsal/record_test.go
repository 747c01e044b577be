package rehearsal

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/message"
	"belay/model"
	"belay/model/stream"
)

func call(name, args string) message.Block {
	c := message.ToolCall{Name: name, Args: json.RawMessage(args)}
	return message.Block{Kind: message.KindCall, Call: &c}
}

func badCall(raw string) message.Block {
	c := message.ToolCall{Name: "Bash"}
	c.Args, c.BadArgs = stream.Args(raw)
	return message.Block{Kind: message.KindCall, Call: &c}
}

// What is recorded says, when it is played, what was said: every kind of reply, and texts that YAML could read otherwise.
func TestRecording(t *testing.T) {
	replies := []model.Reply{
		{Stop: message.StopToolUse, Usage: message.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4}, Blocks: []message.Block{
			{Kind: message.KindThinking, Text: "so: - # {{n}}\n\ttab"}, message.Text("\"quoted\" 'too' \\ \u2028 \u00e9 \U0001f600 <&> no"), call("Bash", `{"command":"a\nb","n":1.5,"deep":{"x":[true,null,"y: #"]}}`), call("LS", `{}`)}},
		{Stop: message.StopToolUse, Blocks: []message.Block{badCall(`{"file_path": `), badCall(`"a"`), badCall(`[1,2]`), badCall(`"\"a\""`), badCall("no json: #")}},
		{Stop: message.StopLength, Blocks: []message.Block{message.Text("  cut ")}},
		{Stop: message.StopRefusal, Blocks: []message.Block{}},
		{Stop: message.StopPause, Blocks: []message.Block{message.Text("null")}},
		{Stop: message.StopEnd, Blocks: []message.Block{}},
	}
	text := Recording{Name: "r: 1", Price: &message.Price{Input: 1, Output: 0.25}, Notes: []string{"a\nversion: 2"}, Replies: replies}.YAML()
	s, err := Parse("recorded.yaml", text)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if s.Name != "r: 1" || s.Price == nil || s.Price.Output != 0.25 || s.Turns() != len(replies) {
		t.Errorf("name %q, price %v, %d turns", s.Name, s.Price, s.Turns())
	}
	for i, want := range replies {
		turn, err := s.Turn(i, model.MainLoop)
		if err != nil {
			t.Fatal(err)
		}
		got := turn.Reply(model.Request{})
		for k := range got.Blocks {
			if c := got.Blocks[k].Call; c != nil {
				c.ID = ""
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("reply %d: %s\n%s", i+1, diff, text)
		}
	}
}

// Some servers say "end" with calls in the reply, or "tool_use" without any: calls alone decide.
func TestRecordingOfAnOddStop(t *testing.T) {
	text := Recording{Name: "r", Replies: []model.Reply{
		{Stop: message.StopEnd, Blocks: []message.Block{call("LS", `{}`)}},
		{Stop: message.StopToolUse, Blocks: []message.Block{message.Text("hi")}},
	}}.YAML()
	s, err := Parse("r.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []message.StopReason{message.StopToolUse, message.StopEnd} {
		if turn, err := s.Turn(i, model.MainLoop); err != nil || turn.Stop != want {
			t.Errorf("reply %d stops with %q, %v; want %q", i+1, turn.Stop, err, want)
		}
	}
}

// What a script cannot say is named.
func TestRecordingNamesWhatItLeavesOut(t *testing.T) {
	text := string(Recording{Name: "r", Replies: []model.Reply{{Stop: message.StopToolUse, Blocks: []message.Block{
		call("LS", `{}`), message.Text("afterwards"), {Kind: message.KindOpaque, Opaque: &message.Opaque{Provider: "p"}},
	}}}}.YAML())
	for _, want := range []string{"# Left out: 1 parts", "# Put in order: in 1 replies"} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	if _, err := Parse("r.yaml", []byte(text)); err != nil {
		t.Error(err)
	}
}

func FuzzRecording(f *testing.F) {
	f.Add("say", "think", `{"a":1}`)
	f.Add("- #: {{n}}", "\u0085\u2028\x00", `{"a":`)
	f.Fuzz(func(t *testing.T, say, thinking, args string) {
		say, thinking = strings.ToValidUTF8(say, ""), strings.ToValidUTF8(thinking, "")
		c := message.ToolCall{Name: "T"}
		c.Args, c.BadArgs = stream.Args(args)
		want := []message.Block{{Kind: message.KindThinking, Text: thinking}, message.Text(say), {Kind: message.KindCall, Call: &c}}
		s, err := Parse("f.yaml", Recording{Name: "f", Replies: []model.Reply{{Blocks: want, Stop: message.StopToolUse}}}.YAML())
		if err != nil {
			t.Fatal(err)
		}
		turn, err := s.Turn(0, model.MainLoop)
		if err != nil {
			t.Fatal(err)
		}
		if got := message.PlainText(turn.Blocks); got != say {
			t.Errorf("said %q, played %q", say, got)
		}
	})
}
