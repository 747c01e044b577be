package modeltest_test

import (
	"strings"
	"testing"

	"belay/message"
	"belay/model"
	"belay/model/anthropic"
	"belay/model/openai"
	"belay/model/rehearsal"
)

// BenchmarkEncode2000 is one request at the end of a long run, of 8 MB.
func BenchmarkEncode2000(b *testing.B) {
	s, err := rehearsal.Parse("b.yaml", []byte("version: 1\nturns: [{repeat: {times: 2001, calls: [{tool: Bash, args: {command: \"echo {{n}}\"}}]}}]\n"))
	if err != nil {
		b.Fatal(err)
	}
	req := model.Request{Replies: 2000, System: "s", Messages: []message.Message{message.UserText("go")}}
	for i := range 2000 {
		t, err := s.Turn(i, "")
		if err != nil {
			b.Fatal(err)
		}
		id := t.Blocks[0].Call.ID
		req.Messages = append(req.Messages, message.Message{Role: message.Assistant, Blocks: t.Blocks},
			message.Message{Role: message.User, Blocks: []message.Block{{Kind: message.KindResult, Result: &message.ToolResult{CallID: id, Text: strings.Repeat("x", 4000)}}}})
	}
	for name, c := range map[string]model.Encoder{"anthropic": anthropic.New(anthropic.Config{Model: "m"}), "openai": openai.New(openai.Config{Model: "m"})} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := c.Encode(req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
