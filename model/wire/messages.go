package wire

import (
	"strings"

	"belay/message"
)

// Arrange makes a conversation that providers take: user messages that follow each other are one, results stand
// first in it and in the order of their calls, every call has a result, a result without a call is told as text,
// calls end their message, and blocks that keep drops or that say nothing are gone. Assistant messages stay apart.
func Arrange(messages []message.Message, keep func(message.Block) bool) []message.Message {
	var out []message.Message
	var open []message.ToolCall // calls of the last assistant message
	answered := true
	answer := func(blocks []message.Block) {
		results := map[string]*message.ToolResult{}
		var rest []message.Block
		for _, b := range blocks {
			if b.Result != nil && results[b.Result.CallID] == nil && asked(open, b.Result.CallID) {
				results[b.Result.CallID] = b.Result
			} else if b.Result != nil {
				rest = append(rest, message.Text("Result of a call that is not shown any more ("+b.Result.CallID+"):\n"+b.Result.Text))
			} else {
				rest = append(rest, b)
			}
		}
		m := message.Message{Role: message.User}
		for _, c := range open {
			r := results[c.ID]
			if r == nil {
				r = &message.ToolResult{CallID: c.ID, Text: "Interrupted: there is no result.", Error: true}
			}
			m.Blocks = append(m.Blocks, message.Block{Kind: message.KindResult, Result: r})
		}
		if m.Blocks = append(m.Blocks, rest...); len(m.Blocks) > 0 {
			out = append(out, m)
		}
		open, answered = nil, true
	}
	var pending []message.Block // of user messages that follow each other
	for _, m := range messages {
		blocks := said(m.Blocks, keep)
		if m.Role == message.User {
			pending, answered = append(pending, blocks...), false
			continue
		}
		if len(blocks) == 0 {
			continue
		}
		if !answered || len(open) > 0 {
			answer(pending)
			pending = nil
		}
		var calls []message.Block
		said := message.Message{Role: message.Assistant}
		for _, b := range blocks {
			if b.Call != nil {
				calls = append(calls, b)
				open = append(open, *b.Call)
			} else {
				said.Blocks = append(said.Blocks, b)
			}
		}
		said.Blocks = append(said.Blocks, calls...)
		out = append(out, said)
	}
	if !answered || len(open) > 0 {
		answer(pending)
	}
	return out
}

func asked(open []message.ToolCall, id string) bool {
	for _, c := range open {
		if c.ID == id {
			return true
		}
	}
	return false
}

// said returns the blocks that a provider can be sent.
func said(blocks []message.Block, keep func(message.Block) bool) []message.Block {
	var out []message.Block
	for _, b := range blocks {
		if (b.Kind == message.KindText && strings.TrimSpace(b.Text) == "") || !keep(b) {
			continue
		}
		out = append(out, b)
	}
	return out
}

// Bound says whether an opaque block goes to this provider and model, with this prefix.
func Bound(o *message.Opaque, provider, model, prefix string) bool {
	return o != nil && o.Provider == provider && o.Model == model && (o.Prefix == "" || prefix == "" || o.Prefix == prefix)
}
