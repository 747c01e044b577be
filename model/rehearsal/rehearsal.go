// Package rehearsal is the scripted model: it answers from a YAML script instead of from a neural network, says so, and makes every behaviour of a loop testable offline.
package rehearsal

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"

	"belay/message"
	"belay/model"
)

// Script is a parsed rehearsal. It does not change after Parse and may be used by many clients at once.
// The format is described in docs/rehearsal.md.
type Script struct {
	File          string         // where it came from, for messages
	Name          string         // the model's name; the file's base name where the script gives none
	ContextWindow int64          // tokens
	Price         *message.Price // nil is unknown

	bounded   bool      // the script gave the window itself: larger requests are refused
	passages  []passage // in order
	turns     int       // in all passages, repetitions counted
	when      map[model.Purpose]Turn
	cases     []occasion // of when, those that also ask what the request says
	otherwise *Turn
}

// DefaultContextWindow, in tokens, is what a script has that does not say.
const DefaultContextWindow = 200_000

// passage is one entry of turns: a single turn, or some that are repeated.
type passage struct {
	first    int // index of its first turn
	times    int
	repeated bool
	turns    []Turn
}

// Turn is one scripted reply and what comes before it: an expectation, a delay, a failure, a cut.
type Turn struct {
	Number  int // from 1, over the whole run; 0 for an answer under when
	Label   string
	Line    int // in the script
	Blocks  []message.Block
	Stop    message.StopReason
	Usage   *message.Usage // nil: estimated, see RequestTokens
	Expect  []Expectation
	Failure *Failure // sent instead of the reply, once
	Cut     *Cut     // breaks the stream, once
	Delay   time.Duration
	Drip    time.Duration // between the pieces of a stream over HTTP

	hasReply bool // without one, the failure is all there is and stays
	varies   bool // holds {{n}}
}

// occasion is an answer to requests of one purpose whose last message holds a text.
type occasion struct {
	purpose  model.Purpose
	contains string
	turn     Turn
}

// Load reads and parses the script at path.
func Load(path string) (*Script, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read rehearsal: %w", err)
	}
	return Parse(path, data)
}

// Turns returns how many turns the script has before it falls back to otherwise.
func (s *Script) Turns() int { return s.turns }

// Info describes the scripted model.
func (s *Script) Info() model.Info {
	return model.Info{Provider: "rehearsal", Model: s.Name, ContextWindow: s.ContextWindow, Price: s.Price, Scripted: true}
}

// Turn returns what the script says to a request that follows so many replies of the main loop. It is a pure
// function, so that a repeated or resumed request gets the same turn. The error is a *model.Error of class Script.
func (s *Script) Turn(replies int, purpose model.Purpose) (Turn, error) {
	switch {
	case replies < 0:
		return Turn{}, s.fault("the request claims %d earlier replies", replies)
	case purpose != model.MainLoop:
		t, ok := s.when[purpose]
		if !ok {
			return Turn{}, s.fault("a request has the purpose %q, which the script does not answer; add it under when: - {purpose: %s, say: \"…\"}", purpose, purpose)
		}
		return t.played(0, fmt.Sprintf("call_%s_%d", purpose, replies+1), 0), nil
	case replies < s.turns:
		i := sort.Search(len(s.passages), func(i int) bool { return s.passages[i].first > replies }) - 1
		p := s.passages[i]
		k := replies - p.first
		t, n := p.turns[k%len(p.turns)], k/len(p.turns)+1
		t = t.played(replies+1, "call_"+strconv.Itoa(replies+1), n)
		t.Label = fmt.Sprintf("turn %d", replies+1)
		if p.repeated {
			t.Label += fmt.Sprintf(" (repetition %d of %d)", n, p.times)
		}
		return t, nil
	case s.otherwise != nil:
		t := s.otherwise.played(replies+1, "call_"+strconv.Itoa(replies+1), 0)
		t.Label = fmt.Sprintf("turn %d (otherwise)", replies+1)
		return t, nil
	}
	return Turn{}, s.fault("turn %d was asked for, but the script has %d and no \"otherwise\"; the loop went on longer than the script expects", replies+1, s.turns)
}

// For returns what the script says to a request: as Turn does, but for answers under when that also look at the text of its
// last message. Of those the first that fits holds.
func (s *Script) For(req model.Request) (Turn, error) {
	if req.Purpose != model.MainLoop && len(req.Messages) > 0 {
		last := message.PlainText(req.Messages[len(req.Messages)-1].Blocks)
		for _, c := range s.cases {
			if c.purpose == req.Purpose && strings.Contains(last, c.contains) {
				return c.turn.played(0, fmt.Sprintf("call_%s_%d", req.Purpose, req.Replies+1), 0), nil
			}
		}
	}
	return s.Turn(req.Replies, req.Purpose)
}

func (s *Script) fault(format string, args ...any) error {
	return &model.Error{Class: model.Script, Message: "rehearsal " + s.File + ": " + fmt.Sprintf(format, args...)}
}

// played returns the turn as it is said in its place: numbered, with call ids, and with {{n}} filled in.
func (t Turn) played(number int, id string, n int) Turn {
	t.Number = number
	fill := func(s string) string { return s }
	if t.varies {
		fill = func(s string) string { return strings.ReplaceAll(s, counter, strconv.Itoa(n)) }
	}
	blocks, calls := make([]message.Block, len(t.Blocks)), 0
	for i, b := range t.Blocks {
		b.Text = fill(b.Text)
		if b.Call != nil {
			calls++
			c := *b.Call
			c.ID = id + "_" + strconv.Itoa(calls)
			c.Name, c.BadArgs = fill(c.Name), fill(c.BadArgs)
			c.Args = []byte(fill(string(c.Args)))
			b.Call = &c
		}
		blocks[i] = b
	}
	t.Blocks = blocks
	if t.varies && len(t.Expect) > 0 {
		expect := make([]Expectation, len(t.Expect))
		for i, e := range t.Expect {
			e.Want = fill(e.Want)
			expect[i] = e
		}
		t.Expect = expect
	}
	return t
}

// Reply returns the turn's whole answer to a request.
func (t Turn) Reply(req model.Request) model.Reply {
	r := model.Reply{Blocks: t.Blocks, Stop: t.Stop}
	if t.Usage != nil {
		r.Usage = *t.Usage
	} else {
		r.Usage = message.Usage{Input: RequestTokens(req), Output: ReplyTokens(t.Blocks)}
	}
	return r
}

// RequestTokens estimates a request at four bytes a token, rounded up. It counts only what every provider's
// wire carries unchanged (system prompt, tool names and descriptions, text, calls, results), so that a script
// costs the same in process and over HTTP, and only lengths, so that a long run does not pay for its length.
func RequestTokens(req model.Request) int64 {
	n := len(req.System)
	for _, t := range req.Tools {
		n += len(t.Name) + len(t.Description)
	}
	for _, m := range req.Messages {
		n += size(m.Blocks, false)
	}
	return tokens(n)
}

// ReplyTokens estimates a reply in the same way, thinking included.
func ReplyTokens(blocks []message.Block) int64 { return tokens(size(blocks, true)) }

func tokens(bytes int) int64 { return int64(bytes+3) / 4 }

func size(blocks []message.Block, thinking bool) (n int) {
	for _, b := range blocks {
		switch {
		case b.Call != nil:
			n += len(b.Call.Name) + len(b.Call.Args)
		case b.Result != nil:
			n += len(b.Result.Text)
		case b.Kind == message.KindText, thinking && b.Kind == message.KindThinking:
			n += len(b.Text)
		}
	}
	return n
}
