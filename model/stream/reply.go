package stream

import (
	"fmt"

	"belay/message"
	"belay/model"
)

// Reply assembles one reply from the pieces that a dialect decodes, and yields the neutral events. Blocks are
// final, and told, only in Finish.
type Reply struct {
	req   model.Request
	parts []*part
	byKey map[int]*part
	calls Calls
	size  int
	usage *message.Usage
}

// part is one block in the making.
type part struct {
	index  int
	kind   message.Kind
	text   []byte
	told   int // bytes of text that were yielded as deltas
	opaque *message.Opaque
	call   int // position among the calls
}

// NewReply starts the reply to req.
func NewReply(req model.Request) *Reply { return &Reply{req: req, byKey: map[int]*part{}} }

// Empty says that nothing has arrived.
func (r *Reply) Empty() bool { return len(r.parts) == 0 }

// Open makes sure that the block with the dialect's key exists.
func (r *Reply) Open(key int, kind message.Kind) *part {
	p := r.byKey[key]
	if p == nil || p.kind != kind {
		p = &part{index: len(r.parts), kind: kind}
		r.parts, r.byKey[key] = append(r.parts, p), p
	}
	return p
}

// Text adds to the text or thinking block with this key and returns what can be shown of it.
func (r *Reply) Text(key int, kind message.Kind, delta Fragment) ([]model.Event, error) {
	p := r.Open(key, kind)
	if err := r.grow(len(delta)); err != nil || len(delta) == 0 {
		return nil, err
	}
	p.text = append(p.text, delta...)
	event := model.Event{Kind: model.TextDelta, Index: p.index}
	if kind == message.KindThinking {
		event.Kind = model.ThinkingDelta
	}
	n := shown(p.text)
	event.Delta = Join(p.text[p.told:n])
	p.told = n
	if event.Delta == "" {
		return nil, nil
	}
	return []model.Event{event}, nil
}

// Call takes what a piece says about a call.
func (r *Reply) Call(d CallDelta) ([]model.Event, error) {
	if err := r.grow(len(d.Args)); err != nil {
		return nil, err
	}
	position, named, err := r.calls.Add(d)
	if err != nil {
		return nil, err
	}
	var p *part
	for _, q := range r.parts {
		if q.kind == message.KindCall && q.call == position {
			p = q
		}
	}
	if p == nil {
		p = &part{index: len(r.parts), kind: message.KindCall, call: position}
		r.parts = append(r.parts, p)
	}
	var events []model.Event
	s := r.calls.slots[position]
	if named {
		events = append(events, model.Event{Kind: model.CallStarted, Index: p.index, Name: s.name})
	}
	if n := shown(s.args); n > p.told {
		events = append(events, model.Event{Kind: model.ArgsDelta, Index: p.index, Delta: Join(s.args[p.told:n])})
		p.told = n
	}
	return events, nil
}

// Opaque adds a provider's own block, which is only kept for replay.
func (r *Reply) Opaque(key int, raw []byte, provider, name string) error {
	if err := r.grow(len(raw)); err != nil {
		return err
	}
	r.Open(key, message.KindOpaque).opaque = r.Own(raw, provider, name)
	return nil
}

// Sign puts the provider's own bytes beside the block with this key.
func (r *Reply) Sign(key int, raw []byte, provider, name string) {
	if p := r.byKey[key]; p != nil {
		p.opaque = r.Own(raw, provider, name)
	}
}

// Own labels a provider's bytes with what they are bound to.
func (r *Reply) Own(raw []byte, provider, name string) *message.Opaque {
	return &message.Opaque{Provider: provider, Model: name, Prefix: r.req.PrefixHash, Raw: raw}
}

// TextOf returns the text collected for a key.
func (r *Reply) TextOf(key int) string {
	if p := r.byKey[key]; p != nil {
		return Join(p.text)
	}
	return ""
}

// Usage replaces what was reported before.
func (r *Reply) Usage(u message.Usage) { r.usage = &u }

func (r *Reply) grow(n int) error {
	if r.size += n; r.size > MaxReply {
		return &model.Error{Class: model.Transient, Message: fmt.Sprintf("the reply is larger than %d MiB", MaxReply>>20)}
	}
	return nil
}

// Finish ends the reply after the dialect's terminal event. Stop is what the raw reason means in this dialect,
// "" where belay does not know it. It returns the final events, TurnDone last, or why the reply cannot be used:
// a call without the content to run it, or an end that nobody can interpret.
func (r *Reply) Finish(raw string, stop message.StopReason) ([]model.Event, error) {
	calls := r.calls.finish(r.req.Replies+1, r.taken)
	var blocks []message.Block
	var events []model.Event
	n := 0
	done := func(p *part, b message.Block) {
		blocks = append(blocks, b)
		events = append(events, model.Event{Kind: model.BlockDone, Index: p.index, Block: &b})
	}
	for _, p := range r.parts {
		text := Join(p.text)
		switch {
		case p.kind == message.KindCall: // below: no provider takes text after a call
		case p.kind == message.KindOpaque:
			done(p, message.Block{Kind: p.kind, Opaque: p.opaque})
		case text != "" || p.opaque != nil:
			done(p, message.Block{Kind: p.kind, Text: text, Opaque: p.opaque})
		}
	}
	for _, p := range r.parts {
		if p.kind == message.KindCall && calls[p.call] != nil {
			n++
			done(p, message.Block{Kind: message.KindCall, Call: calls[p.call]})
		}
	}
	stop, err := stopClass(raw, stop, n, len(blocks))
	if err != nil {
		return nil, err
	}
	if r.usage == nil { // bounds on tokens must bite with servers that do not count, too
		u := Estimate(r.req, blocks)
		r.usage = &u
	}
	return append(events,
		model.Event{Kind: model.UsageReport, Usage: r.usage},
		model.Event{Kind: model.TurnDone, Stop: stop}), nil
}

func (r *Reply) taken(id string) bool {
	for _, m := range r.req.Messages {
		for _, b := range m.Blocks {
			if b.Call != nil && b.Call.ID == id {
				return true
			}
		}
	}
	return false
}

// stopClass derives why a reply ended from the reason and from what is there: servers say "stop" with calls
// and "tool_calls" without any.
func stopClass(raw string, stop message.StopReason, calls, blocks int) (message.StopReason, error) {
	switch {
	case stop == message.StopToolUse && calls == 0:
		return "", &model.Error{Class: model.Transient, Message: fmt.Sprintf("the reply stops for tools (%q) but holds no call that can be read", raw)}
	case stop == message.StopEnd && calls > 0:
		return message.StopToolUse, nil
	case stop == "" && (calls > 0 || blocks == 0):
		return "", &model.Error{Class: model.Transient, Message: fmt.Sprintf("the reply ended for an unknown reason, %q", raw)}
	case stop == "":
		return message.StopEnd, nil
	}
	return stop, nil
}

// Truncated is the error for a stream that ended without its terminal event.
func Truncated(err error) error {
	return &model.Error{Class: model.Transient, Message: "the stream ended before the reply did", Err: err}
}

// Estimate counts the tokens of a request and its reply at four bytes each, for servers that report nothing.
func Estimate(req model.Request, reply []message.Block) message.Usage {
	in := len(req.System)
	for _, t := range req.Tools {
		in += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	for _, m := range req.Messages {
		in += size(m.Blocks)
	}
	return message.Usage{Input: int64(in+3) / 4, Output: int64(size(reply)+3) / 4}
}

func size(blocks []message.Block) (n int) {
	for _, b := range blocks {
		n += len(b.Text)
		if b.Call != nil {
			n += len(b.Call.Name) + len(b.Call.Args)
		}
		if b.Result != nil {
			n += len(b.Result.Text)
		}
	}
	return n
}

// HasCalls says that a call has begun.
func (r *Reply) HasCalls() bool { return len(r.calls.slots) > 0 }
