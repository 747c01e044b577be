package rehearsal

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"belay/message"
	"belay/model"
	"belay/model/stream"
)

// What may stand where. docs/rehearsal.md explains each; a test holds the two together.
var (
	scriptKeys  = []string{"version", "name", "model", "turns", "when", "otherwise"}
	modelKeys   = []string{"context_window", "price"}
	priceKeys   = []string{"input", "output", "cache_read", "cache_write"}
	replyKeys   = []string{"say", "thinking", "calls", "expect", "stop", "usage", "error", "cut_stream", "delay"}
	turnKeys    = append(slices.Clone(replyKeys), "repeat")
	repeatKeys  = append([]string{"times", "turns"}, replyKeys...)
	whenKeys    = append([]string{"purpose"}, replyKeys...)
	callKeys    = []string{"tool", "args", "bad_args"}
	usageKeys   = []string{"input", "output", "cache_read", "cache_write"}
	failureKeys = []string{"status", "retry_after", "message", "context_too_large"}
)

// purposes are those that a request beside the main loop can have.
var purposes = []model.Purpose{model.Compaction, model.Judge}

// stops are the reasons as a script spells them.
var stops = []struct {
	name   string
	reason message.StopReason
}{
	{"end", message.StopEnd},
	{"tool_use", message.StopToolUse},
	{"max_tokens", message.StopLength},
	{"refusal", message.StopRefusal},
	{"pause", message.StopPause},
}

const (
	counter     = "{{n}}"
	maxRepeat   = 1_000_000
	maxTokens   = 1_000_000_000
	maxPerToken = 1e6 // USD per million tokens
)

// Parse reads a script. Name stands for the file in every message. The error is an *Error.
func Parse(name string, data []byte) (*Script, error) {
	d, root, err := open(name, data)
	if err != nil {
		return nil, err
	}
	fields, err := d.fields(root, "the script", scriptKeys...)
	if err != nil {
		return nil, err
	}
	s := &Script{File: name, ContextWindow: DefaultContextWindow, when: map[model.Purpose]Turn{}}
	s.Name = strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
	versioned := false
	for _, f := range fields {
		switch f.name {
		case "version":
			versioned = true
			if num, ok := number(f.node); !ok || num != "1" {
				return nil, d.errorf(position(f.node), "version must be 1, the only one this belay reads")
			}
		case "name":
			s.Name, err = d.text(f.node, "name")
			if err == nil && (strings.TrimSpace(s.Name) == "" || strings.ContainsAny(s.Name, "\n\r")) {
				err = d.errorf(position(f.node), "name must be one line of text")
			}
		case "model":
			err = d.model(s, f.node)
		case "turns":
			err = d.turns(s, f.node)
		case "when":
			err = d.when(s, f.node)
		case "otherwise":
			var t Turn
			t, err = d.reply(f.node, "otherwise", false, replyKeys)
			s.otherwise = &t
		}
		if err != nil {
			return nil, err
		}
	}
	if !versioned {
		return nil, d.errorf(position(root), "the script has no version; write \"version: 1\"")
	}
	if s.turns == 0 && s.otherwise == nil {
		return nil, d.errorf(position(root), "the script says nothing: it needs turns, or at least otherwise")
	}
	return s, nil
}

func (d *document) model(s *Script, n ast.Node) error {
	fields, err := d.fields(n, "model", modelKeys...)
	if err != nil {
		return err
	}
	for _, f := range fields {
		switch f.name {
		case "context_window":
			s.bounded = true
			s.ContextWindow, err = d.integer(f.node, "context_window", 1, maxTokens)
		case "price":
			s.Price, err = d.price(f.node)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *document) price(n ast.Node) (*message.Price, error) {
	fields, err := d.fields(n, "price", priceKeys...)
	if err != nil {
		return nil, err
	}
	var p message.Price
	into := map[string]*float64{"input": &p.Input, "output": &p.Output, "cache_read": &p.CacheRead, "cache_write": &p.CacheWrite}
	for _, f := range fields {
		if *into[f.name], err = d.amount(f.node, f.name, maxPerToken); err != nil {
			return nil, err
		}
	}
	return &p, nil
}

func (d *document) turns(s *Script, n ast.Node) error {
	items, err := d.list(n, "turns")
	if err != nil {
		return err
	}
	for _, item := range items {
		fields, err := d.fields(item, "a turn", turnKeys...)
		if err != nil {
			return err
		}
		p := passage{first: s.turns, times: 1}
		if i := slices.IndexFunc(fields, func(f field) bool { return f.name == "repeat" }); i >= 0 {
			if len(fields) > 1 {
				return d.errorf(fields[i].at, "repeat stands alone in its turn; put the other keys under it")
			}
			err = d.repeat(&p, fields[i].node)
		} else {
			var t Turn
			t, err = d.reply(item, "a turn", false, turnKeys)
			p.turns = []Turn{t}
		}
		if err != nil {
			return err
		}
		s.turns += p.times * len(p.turns)
		if s.turns > maxRepeat {
			return d.errorf(position(item), "the script has more than %d turns, repetitions counted", maxRepeat)
		}
		s.passages = append(s.passages, p)
	}
	return nil
}

func (d *document) repeat(p *passage, n ast.Node) error {
	p.repeated, p.times = true, 0
	fields, err := d.fields(n, "repeat", repeatKeys...)
	if err != nil {
		return err
	}
	var own []string // keys of a single repeated turn
	for _, f := range fields {
		switch f.name {
		case "times":
			times, err := d.integer(f.node, "times", 1, maxRepeat)
			if err != nil {
				return err
			}
			p.times = int(times)
		case "turns":
			items, err := d.list(f.node, "turns")
			if err != nil {
				return err
			}
			for _, item := range items {
				t, err := d.reply(item, "a repeated turn", true, replyKeys)
				if err != nil {
					return err
				}
				p.turns = append(p.turns, t)
			}
			if len(p.turns) == 0 {
				return d.errorf(position(f.node), "turns is empty; repeat needs at least one")
			}
		default:
			own = append(own, f.name)
		}
	}
	switch {
	case p.times == 0:
		return d.errorf(position(n), "repeat needs times, how often")
	case p.turns != nil && own != nil:
		return d.errorf(position(n), "repeat has either turns or one turn's own keys (here: %s), not both", strings.Join(own, ", "))
	case p.turns == nil:
		t, err := d.reply(n, "repeat", true, repeatKeys)
		if err != nil {
			return err
		}
		p.turns = []Turn{t}
	}
	return nil
}

func (d *document) when(s *Script, n ast.Node) error {
	items, err := d.list(n, "when")
	if err != nil {
		return err
	}
	for _, item := range items {
		fields, err := d.fields(item, "an entry of when", whenKeys...)
		if err != nil {
			return err
		}
		var purpose model.Purpose
		for _, f := range fields {
			if f.name != "purpose" {
				continue
			}
			name, _ := text(f.node)
			purpose = model.Purpose(name)
			if !slices.Contains(purposes, purpose) {
				return d.errorf(position(f.node), "unknown purpose; allowed: %s", quoted(purposes))
			}
		}
		if purpose == "" {
			return d.errorf(position(item), "an entry of when needs a purpose; allowed: %s", quoted(purposes))
		}
		if _, twice := s.when[purpose]; twice {
			return d.errorf(position(item), "the purpose %q is answered twice", purpose)
		}
		t, err := d.reply(item, "an entry of when", false, whenKeys)
		if err != nil {
			return err
		}
		t.Label = "when " + string(purpose)
		s.when[purpose] = t
	}
	return nil
}

// reply reads what one turn says. Keys of the surrounding (times, purpose) are its caller's.
func (d *document) reply(n ast.Node, what string, repeated bool, allowed []string) (Turn, error) {
	t := Turn{Line: position(n).Line}
	fields, err := d.fields(n, what, allowed...)
	if err != nil {
		return t, err
	}
	var say, thinking string
	var calls []message.Block
	for _, f := range fields {
		switch f.name {
		case "say":
			say, err = d.text(f.node, "say")
		case "thinking":
			thinking, err = d.text(f.node, "thinking")
		case "calls":
			calls, err = d.calls(f.node)
		case "expect":
			t.Expect, err = d.expect(f.node, repeated)
		case "stop":
			t.Stop, err = d.stop(f.node)
		case "usage":
			t.Usage, err = d.usage(f.node)
		case "error":
			t.Failure, err = d.failure(f.node)
		case "cut_stream":
			t.Cut, err = d.cut(f.node)
		case "delay":
			t.Delay, err = d.duration(f.node, "delay")
		}
		if err != nil {
			return t, err
		}
	}
	if thinking != "" {
		t.Blocks = append(t.Blocks, message.Block{Kind: message.KindThinking, Text: thinking})
	}
	if say != "" {
		t.Blocks = append(t.Blocks, message.Text(say))
	}
	t.Blocks = append(t.Blocks, calls...)
	t.hasReply = len(t.Blocks) > 0 || t.Stop != ""
	switch {
	case !t.hasReply && t.Cut != nil:
		return t, d.errorf(position(n), "%s cuts the stream of an empty reply; give it say, thinking or calls", what)
	case !t.hasReply && t.Failure == nil:
		return t, d.errorf(position(n), "%s says nothing: it needs say, thinking, calls, stop or error", what)
	}
	if t.Stop == "" {
		t.Stop = message.StopEnd
		if len(calls) > 0 {
			t.Stop = message.StopToolUse
		}
	}
	if (t.Stop == message.StopEnd && len(calls) > 0) || (t.Stop == message.StopToolUse && len(calls) == 0) {
		return t, d.errorf(position(n), "%s: a reply with calls stops with tool_use, and one without never does; every client corrects it", what)
	}
	t.varies = repeated && holdsCounter(t)
	return t, nil
}

func holdsCounter(t Turn) bool {
	for _, b := range t.Blocks {
		if strings.Contains(b.Text, counter) {
			return true
		}
		if c := b.Call; c != nil && (strings.Contains(c.Name, counter) || bytes.Contains(c.Args, []byte(counter))) {
			return true
		}
	}
	return slices.ContainsFunc(t.Expect, func(e Expectation) bool { return strings.Contains(e.Want, counter) })
}

func (d *document) calls(n ast.Node) ([]message.Block, error) {
	items, err := d.list(n, "calls")
	if err != nil {
		return nil, err
	}
	var blocks []message.Block
	for _, item := range items {
		fields, err := d.fields(item, "a call", callKeys...)
		if err != nil {
			return nil, err
		}
		c := message.ToolCall{Args: json.RawMessage("{}")}
		var both string
		for _, f := range fields {
			switch f.name {
			case "tool":
				c.Name, err = d.text(f.node, "tool")
			case "args":
				both += "a"
				switch f.node.(type) {
				case *ast.MappingNode, *ast.MappingValueNode:
					var buf bytes.Buffer
					err = d.json(&buf, f.node, "args", 1)
					c.Args = buf.Bytes()
				default:
					err = d.wrong(f.node, "args", "a mapping (bad_args sends anything else)")
				}
			case "bad_args":
				both += "b"
				var raw string
				raw, err = d.text(f.node, "bad_args")
				if err == nil {
					c.Args, c.BadArgs = stream.Args(raw) // as every client judges what arrives
					if c.BadArgs == "" {
						err = d.errorf(position(f.node), "bad_args holds a good JSON object, or one that belay repairs; write it as args")
					}
				}
			}
			if err != nil {
				return nil, err
			}
		}
		switch {
		case c.Name == "":
			return nil, d.errorf(position(item), "a call needs a tool, the name the model asks for")
		case len(both) > 1:
			return nil, d.errorf(position(item), "a call has either args or bad_args, not both")
		}
		blocks = append(blocks, message.Block{Kind: message.KindCall, Call: &c})
	}
	return blocks, nil
}

func (d *document) stop(n ast.Node) (message.StopReason, error) {
	name, _ := text(n)
	var allowed []string
	for _, s := range stops {
		if s.name == name {
			return s.reason, nil
		}
		allowed = append(allowed, s.name)
	}
	return "", d.errorf(position(n), "unknown stop; allowed: %s", strings.Join(allowed, ", "))
}

func (d *document) usage(n ast.Node) (*message.Usage, error) {
	fields, err := d.fields(n, "usage", usageKeys...)
	if err != nil {
		return nil, err
	}
	var u message.Usage
	into := map[string]*int64{"input": &u.Input, "output": &u.Output, "cache_read": &u.CacheRead, "cache_write": &u.CacheWrite}
	for _, f := range fields {
		if *into[f.name], err = d.integer(f.node, f.name, 0, maxTokens); err != nil {
			return nil, err
		}
	}
	return &u, nil
}

func quoted[T ~string](names []T) string {
	list := make([]string, len(names))
	for i, n := range names {
		list[i] = string(n)
	}
	return strings.Join(list, ", ")
}
