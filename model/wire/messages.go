package wire

import (
	"strings"

	"belay/message"
)

// Arrange makes a conversation that providers take: user messages that follow each other are one, results stand
// first in it and in the order of their calls, every call has a result, a result without a call is told as text,
// calls end their message, and blocks that keep drops or that say nothing are gone. Assistant messages stay apart.
func Arrange(messages []message.Message, keep func(message.Block) bool) []message.Message {
	return arrange(messages, keep, arranger{answered: true})
}

// ArrangeInOrder is Arrange for dialects in which calls stay where they were made among the other blocks.
func ArrangeInOrder(messages []message.Message, keep func(message.Block) bool) []message.Message {
	return arrange(messages, keep, arranger{answered: true, inOrder: true})
}

func arrange(messages []message.Message, keep func(message.Block) bool, a arranger) []message.Message {
	for _, m := range messages {
		a.add(m, keep)
	}
	return append(a.out, a.end()...)
}

// arranger arranges a conversation message by message. What is in out stays as it is.
type arranger struct {
	out      []message.Message
	open     []message.ToolCall // calls of the last assistant messages
	pending  []message.Block    // of user messages that follow each other
	answered bool
	inOrder  bool // calls stay among the other blocks
}

func (a *arranger) add(m message.Message, keep func(message.Block) bool) {
	blocks := said(m.Blocks, keep)
	if m.Role == message.User {
		a.pending, a.answered = append(a.pending, blocks...), false
		return
	}
	if len(blocks) == 0 {
		return
	}
	a.out = append(a.out, a.end()...)
	a.open, a.pending, a.answered = nil, nil, true
	var calls []message.Block
	said := message.Message{Role: message.Assistant}
	for _, b := range blocks {
		if b.Call != nil {
			a.open = append(a.open, *b.Call)
		}
		if b.Call != nil && !a.inOrder {
			calls = append(calls, b)
		} else {
			said.Blocks = append(said.Blocks, b)
		}
	}
	said.Blocks = append(said.Blocks, calls...)
	a.out = append(a.out, said)
}

// end is what would come after out, were the conversation to end here: what the user said, and the results.
func (a *arranger) end() []message.Message {
	if a.answered && len(a.open) == 0 {
		return nil
	}
	results := map[string]*message.ToolResult{}
	var rest []message.Block
	for _, b := range a.pending {
		if b.Result != nil && results[b.Result.CallID] == nil && asked(a.open, b.Result.CallID) {
			results[b.Result.CallID] = b.Result
		} else if b.Result != nil {
			rest = append(rest, message.Text("Result of a call that is not shown any more ("+b.Result.CallID+"):\n"+b.Result.Text))
		} else {
			rest = append(rest, b)
		}
	}
	m := message.Message{Role: message.User}
	for _, c := range a.open {
		r := results[c.ID]
		if r == nil {
			r = &message.ToolResult{CallID: c.ID, Text: "Interrupted: there is no result.", Error: true}
		}
		m.Blocks = append(m.Blocks, message.Block{Kind: message.KindResult, Result: r})
	}
	if m.Blocks = append(m.Blocks, rest...); len(m.Blocks) == 0 {
		return nil
	}
	return []message.Message{m}
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
