package stream

import (
	"bytes"
	"encoding/json"
	"fmt"

	"belay/message"
	"belay/model"
)

// Limits of one reply. They are far above what a model writes, and far below what hurts.
const (
	MaxCalls = 512
	MaxReply = 64 << 20 // bytes of text, thinking and arguments together
)

// CallDelta is what one piece of a stream says about a call. Empty fields say nothing.
type CallDelta struct {
	Index *int // what the server calls the call's position: a key that may be missing, constant, or start anywhere
	ID    string
	Name  string
	Args  []byte
}

// Calls assembles tool calls from deltas. The rules come from what servers were seen to do: ids only once, in
// every piece, never, or changing; names repeated; one index for all calls; arguments in one piece, byte by
// byte, twice, or interleaved. Nothing is final before the stream has ended.
type Calls struct{ slots []*slot }

type slot struct {
	index *int
	id    string
	name  string
	args  []byte
}

// whole says that the arguments collected so far are a complete value.
func (s *slot) whole() bool { return len(s.args) > 0 && json.Valid(s.args) }

// Add takes a delta and returns the position of its call, in the order of first appearance, and whether this is
// the first time that its name is known.
func (c *Calls) Add(d CallDelta) (position int, named bool, err error) {
	position = c.find(d)
	if position < 0 {
		if len(c.slots) == MaxCalls {
			return 0, false, &model.Error{Class: model.Transient, Message: fmt.Sprintf("the reply asks for more than %d tool calls", MaxCalls)}
		}
		c.slots = append(c.slots, &slot{index: d.Index})
		position = len(c.slots) - 1
	}
	s := c.slots[position]
	if s.id == "" {
		s.id = d.ID
	}
	if s.name == "" && d.Name != "" { // set once: some servers repeat it in every piece
		s.name, named = d.Name, true
	}
	if d.repeats(s) {
		return position, named, nil
	}
	s.args = append(s.args, d.Args...)
	return position, named, nil
}

// repeats says that the delta sends the complete arguments a second time.
func (d CallDelta) repeats(s *slot) bool {
	return len(d.Args) > 1 && len(d.Args) == len(s.args) && d.Args[0] == '{' && bytes.Equal(d.Args, s.args) && json.Valid(s.args)
}

// find returns the position of the call that the delta goes on with, -1 for a new one.
func (c *Calls) find(d CallDelta) int {
	byID, candidate := -1, -1
	for i, s := range c.slots {
		if d.ID != "" && s.id == d.ID {
			byID = i
		}
		if d.Index == nil || (s.index != nil && *s.index == *d.Index) {
			candidate = i // the last one: an index may be used again
		}
	}
	if byID >= 0 {
		return byID
	}
	if candidate < 0 {
		return -1
	}
	s := c.slots[candidate]
	switch {
	case d.ID != "" && s.id != "": // another id
		if d.Name == "" && len(d.Args) > 0 && !s.whole() {
			return candidate // each piece has an id of its own
		}
		return -1
	case d.ID != "" && d.Index == nil: // the first id after pieces without any
		if d.Name != "" && s.name != "" {
			return -1
		}
	case d.ID == "" && d.Name != "" && s.name != "": // no id to tell calls apart, and a name again
		if s.whole() && len(d.Args) > 0 && !d.repeats(s) && d.Args[0] == '{' {
			return -1
		}
		if d.Name != s.name && (s.whole() || len(s.args) == 0) {
			return -1
		}
	}
	return candidate
}

// finish returns the calls at their positions, nil where one has no name: nothing can be done with it. Ids that
// are missing or taken are made from the turn and the position, so that they are unique in a run.
func (c *Calls) finish(turn int, taken func(id string) bool) []*message.ToolCall {
	calls := make([]*message.ToolCall, len(c.slots))
	used := map[string]bool{}
	n := 0
	for i, s := range c.slots {
		if s.name == "" {
			continue
		}
		n++
		call := &message.ToolCall{ID: s.id, Name: s.name}
		for try := 0; call.ID == "" || used[call.ID] || taken(call.ID); try++ {
			call.ID = fmt.Sprintf("call_%d_%d", turn, n)
			if try > 0 {
				call.ID += fmt.Sprintf("_%d", try)
			}
		}
		used[call.ID] = true
		call.Args, call.BadArgs = Args(Join(s.args))
		calls[i] = call
	}
	return calls
}
