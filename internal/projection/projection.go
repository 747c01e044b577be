// Package projection turns the events of a journal into the next model request: a pure function, the same bytes on every machine.
package projection

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"belay/journal"
	"belay/message"
	"belay/model"
)

// Version names the rules by which events become a request. It is part of every context hash, so a context
// made by other rules can be told from a damaged one.
const Version = "2"

// Known says whether contexts of that version can be recomputed. Version 1 knew no recap, erase, compaction or fresh
// session, and had no other rule.
func Known(version string) bool { return version == "1" || version == Version }

// Fold is the projection of the events it was given so far. Applying one event costs what that event adds,
// never what came before; a test shows that it equals a fold from the start at every event.
type Fold struct {
	request model.Request
	prefix  [32]byte // digest of what stands before all messages
	chain   [32]byte // over prefix and the digest of every message
	bytes   int64    // of the neutral request
	picture int64    // of bytes, what images take: they are no text

	pictures int64 // how many images there are
	started  bool
	version  string

	metas      []meta // beside each message; replaced, never changed
	stored     map[string]stored
	episodes   []episode
	inMessages int64 // of bytes, those of messages
	calling    int64 // bytes of text in the request that was sent last
	rate       rate
	turns      int // replies of the main loop since the last break of the prefix
	broken     bool
	dropped    bool // earlier summaries are left out

	calls   []message.ToolCall // of the last reply
	results map[string]message.ToolResult
	waiting []message.Message // until each call has its result

	seq   int64 // events taken so far: the number of the last one
	marks []mark
}

// mark is the fold after an event that left no call open: there a rewind may cut the context.
type mark struct {
	seq  int64
	fold Fold // without marks; what it holds is only ever replaced or added to
}

// Hashes identify a context. CtxHash is
//
//	c(0) = SHA-256("belay.ctx\n" + projection version + "\n" + hex(head) + "\n"), head = SHA-256(JSON of {system, tools, max_output})
//	c(i) = SHA-256(c(i-1) + SHA-256(JSON of message i))
//
// in hex, for the last message i: a chain, so that it costs only what is new. PrefixHash is hex(head).
// JSON is compact, with fields in the order of the Go types, without HTML escapes.
type Hashes struct {
	CtxHash    string
	PrefixHash string
	Messages   int
	Bytes      int64 // of the neutral request, about
	Estimate   int64 // tokens, at four bytes each
}

// Project folds all the events.
func Project(events []journal.Event) (*Fold, error) {
	f := &Fold{}
	for _, e := range events {
		if err := f.Apply(e); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Apply takes the next event of the main loop's journal.
func (f *Fold) Apply(e journal.Event) error { return f.From(e.Seq).Take(e.Type, e) }

// From says which event is taken next, for who uses Take: without it, the one after the last.
func (f *Fold) From(seq int64) *Fold {
	f.seq = seq - 1
	return f
}

// Payload is decoded into the struct that belongs to its event's type.
type Payload interface{ Decode(v any) error }

// Take is Apply for who has a payload decoded already.
func (f *Fold) Take(t journal.Type, e Payload) error {
	f.seq++
	before := f.chain
	if err := f.take(t, e); err != nil {
		return err
	}
	if f.chain != before && len(f.calls) == 0 {
		m := mark{f.seq, *f}
		m.fold.marks = nil
		f.marks = append(f.marks, m)
	}
	return nil
}

// rewind makes the context what it was after event p.ToSeq, or after the last one before it at which no call was open.
func (f *Fold) rewind(p journal.Rewind) error {
	if p.Context {
		n := len(f.marks)
		for n > 0 && f.marks[n-1].seq > p.ToSeq {
			n--
		}
		if n == 0 {
			return fmt.Errorf("rewind to event %d: no context ends there", p.ToSeq)
		}
		seq, replies, marks := f.seq, f.request.Replies, f.marks
		*f = f.marks[n-1].fold
		f.seq, f.request.Replies, f.marks = seq, replies, marks // a script goes on and does not begin again
		f.request.Messages = f.request.Messages[:len(f.request.Messages):len(f.request.Messages)]
		f.metas = f.metas[:len(f.metas):len(f.metas)]
	}
	if p.Told == "" {
		return nil
	}
	return f.hear(message.UserText(p.Told))
}

func (f *Fold) take(t journal.Type, e Payload) error {
	switch t {
	case journal.TypeRewind:
		var p journal.Rewind
		if err := e.Decode(&p); err != nil {
			return err
		}
		return f.rewind(p)
	case journal.TypeSessionStart:
		var p journal.SessionStart
		if err := e.Decode(&p); err != nil {
			return err
		}
		return f.start(p)
	case journal.TypeUserMessage:
		var p journal.UserMessage
		if err := e.Decode(&p); err != nil {
			return err
		}
		m := message.UserText(p.Text)
		for _, img := range p.Images {
			m.Blocks = append(m.Blocks, message.Block{Kind: message.KindImage, Image: &img})
		}
		return f.hear(m)
	case journal.TypeModelReply:
		var p journal.ModelReply
		if err := e.Decode(&p); err != nil {
			return err
		}
		return f.reply(p)
	case journal.TypeModelCall:
		var p journal.ModelCall
		if err := e.Decode(&p); err != nil {
			return err
		}
		if p.Purpose == "" {
			f.calling = f.text()
		}
	case journal.TypeRecap:
		var p journal.Recap
		if err := e.Decode(&p); err != nil {
			return err
		}
		return f.hear(message.UserText(p.Text))
	case journal.TypeErase:
		var p journal.Erase
		if err := e.Decode(&p); err != nil {
			return err
		}
		return f.erase(p)
	case journal.TypeCompaction:
		var p journal.Compaction
		if err := e.Decode(&p); err != nil {
			return err
		}
		return f.compact(p)
	case journal.TypeToolResult:
		var p journal.ToolResult
		if err := e.Decode(&p); err != nil {
			return err
		}
		return f.result(p)
	}
	return nil
}

func (f *Fold) start(p journal.SessionStart) error {
	if f.started && !p.Fresh {
		return nil // a resumed session goes on with the context it has
	}
	version := f.version
	if !f.started {
		version = p.Projection
	}
	*f = Fold{started: true, seq: f.seq, marks: f.marks, version: version, rate: f.rate, request: model.Request{Replies: f.request.Replies}}
	f.request.System, f.request.MaxOutput = p.System, p.MaxOutput
	if len(p.Tools) > 0 {
		if err := json.Unmarshal(p.Tools, &f.request.Tools); err != nil {
			return fmt.Errorf("session.start: tools: %w", err)
		}
	}
	head, err := encode(struct {
		System    string       `json:"system"`
		Tools     []model.Tool `json:"tools"`
		MaxOutput int64        `json:"max_output"`
	}{f.request.System, f.request.Tools, f.request.MaxOutput})
	if err != nil {
		return err
	}
	f.bytes += int64(len(head))
	f.prefix = sha256.Sum256(head)
	f.request.PrefixHash = hex.EncodeToString(f.prefix[:])
	f.chain = sha256.Sum256([]byte("belay.ctx\n" + f.version + "\n" + f.request.PrefixHash + "\n"))
	return nil
}

func (f *Fold) reply(p journal.ModelReply) error {
	if p.Purpose != "" || p.Stop == message.StopError {
		return nil
	}
	f.request.Replies++
	f.turns++
	f.rate.learn(f.calling, p.Usage)
	if len(p.Blocks) == 0 {
		return nil
	}
	f.calls, f.results = message.Calls(p.Blocks), map[string]message.ToolResult{}
	return f.say(message.Message{Role: message.Assistant, Blocks: p.Blocks})
}

// hear takes what is said to the model. While calls of the last reply have no result, it waits: every provider wants
// the results in the very next message. So it is where a run was stopped in the middle of a call, and its person
// speaks before that is settled.
func (f *Fold) hear(m message.Message) error {
	if len(f.calls) > 0 {
		f.waiting = append(f.waiting, m)
		return nil
	}
	return f.say(m)
}

// result keeps a result until all of the reply's calls have theirs: they are told in one message, in the
// order of the calls.
func (f *Fold) result(p journal.ToolResult) error {
	if f.results == nil {
		return fmt.Errorf("result of call %q follows no reply that asked for it", p.CallID)
	}
	f.results[p.CallID] = message.ToolResult{CallID: p.CallID, Text: p.Text, Error: p.Status == "error", Images: p.Images}
	if f.stored == nil {
		f.stored = map[string]stored{}
	}
	f.stored[p.CallID] = stored{summary: p.Summary, size: p.Size}
	if len(f.results) < len(f.calls) {
		return nil
	}
	told := message.Message{Role: message.User}
	for _, call := range f.calls {
		result, ok := f.results[call.ID]
		if !ok {
			return fmt.Errorf("the reply's call %q has no result, and other calls have", call.ID)
		}
		told.Blocks = append(told.Blocks, message.Block{Kind: message.KindResult, Result: &result})
	}
	f.calls, f.results = nil, nil
	err := f.say(told)
	for _, m := range f.waiting {
		err = errors.Join(err, f.say(m))
	}
	f.waiting = nil
	return err
}

func (f *Fold) say(m message.Message) error {
	b, err := encode(m)
	if err != nil {
		return err
	}
	digest := sha256.Sum256(b)
	f.chain = sha256.Sum256(append(f.chain[:], digest[:]...))
	f.bytes += int64(len(b))
	f.request.Messages = append(f.request.Messages, m)
	n, picture := picturesOf(m)
	f.inMessages += int64(len(b))
	f.metas = append(f.metas, meta{seq: f.seq, digest: digest, bytes: int64(len(b)), pictures: n, picture: picture})
	f.pictures, f.picture = f.pictures+n, f.picture+picture
	return nil
}

// Open lists the calls of the last reply that have no result yet.
func (f *Fold) Open() []message.ToolCall {
	var open []message.ToolCall
	for _, call := range f.calls {
		if _, ok := f.results[call.ID]; !ok {
			open = append(open, call)
		}
	}
	return open
}

// Request is the next request, and its hashes. It fails where a call has no result: no provider takes that.
func (f *Fold) Request() (model.Request, Hashes, error) {
	if !f.started {
		return model.Request{}, Hashes{}, fmt.Errorf("no session has started")
	}
	if open := f.Open(); len(open) > 0 {
		return model.Request{}, Hashes{}, fmt.Errorf("call %q has no result yet", open[0].ID)
	}
	r := f.request
	r.Messages = r.Messages[:len(r.Messages):len(r.Messages)] // later events must not grow into it
	return r, Hashes{
		CtxHash:    hex.EncodeToString(f.chain[:]),
		PrefixHash: r.PrefixHash,
		Messages:   len(r.Messages),
		Bytes:      f.bytes,
		Estimate:   f.estimate(),
	}, nil
}

// imageTokens is about what an image costs: providers scale down what is larger.
const imageTokens = 1500

// encode is the JSON that is hashed: compact, no HTML escapes, no newline.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode for hashing: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
