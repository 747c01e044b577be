package render

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/message"
	"belay/model"
)

// A request is shown whole, every kind of part of it, and nothing in it reaches the terminal as a command.
func TestRequest(t *testing.T) {
	r := model.Request{
		System: "# Role\n\nBe \x1b[31mgood\x1b[0m.\n",
		Tools:  []model.Tool{{Name: "Read", Description: "Shows a file.\nUse it.", Schema: json.RawMessage(`{"type":"object"}`)}},
		Messages: []message.Message{
			message.UserText("fix it\nnow"),
			{Role: message.Assistant, Blocks: []message.Block{
				{Kind: message.KindThinking, Text: "hm", Opaque: &message.Opaque{Provider: "p", Raw: json.RawMessage(`"sig"`)}},
				{Kind: message.KindOpaque, Opaque: &message.Opaque{Provider: "p", Raw: json.RawMessage(`"bytes"`)}},
				{Kind: message.KindCall, Call: &message.ToolCall{ID: "c1", Name: "Read", Args: json.RawMessage(`{"file_path":"a","limit":3}`)}},
				{Kind: message.KindCall, Call: &message.ToolCall{ID: "c2", Name: "Read", Args: json.RawMessage(`"{"`), BadArgs: "{"}},
			}},
			{Role: message.User, Blocks: []message.Block{
				{Kind: message.KindResult, Result: &message.ToolResult{CallID: "c1", Text: "1\talpha"}},
				{Kind: message.KindResult, Result: &message.ToolResult{CallID: "c2", Text: "no", Error: true}},
			}},
		},
		MaxOutput: 100,
	}
	want := `system
  # Role

  Be good.

tools  1
  Read
    Shows a file.
    Use it.
    schema {"type":"object"}

messages  3
  1 user
    text
      fix it
      now
  2 assistant
    thinking
      hm
    opaque of p (7 bytes, for that provider alone)
    call c1 Read
      file_path: a
      limit: 3
    call c2 Read (not a JSON object)
      {
  3 user
    result of c1
      1	alpha
    result of c2 (an error)
      no

output  at most 100 tokens`
	if diff := cmp.Diff(want, strings.Join(Request(Screen{}, r), "\n")); diff != "" {
		t.Error(diff)
	}
}
