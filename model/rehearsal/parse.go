package rehearsal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"belay/internal/yaml"
	"belay/message"
	"belay/model"
	"belay/model/stream"
)

// What may stand where. docs/rehearsal.md explains each; a test holds the two together.
var (
	scriptKeys  = []string{"version", "name", "model", "turns", "when", "otherwise"}
	modelKeys   = []string{"context_window", "price"}
	priceKeys   = []string{"input", "output", "cache_read", "cache_write"}
	replyKeys   = []string{"say", "thinking", "calls", "expect", "stop", "usage", "error", "cut_stream", "delay", "drip"}
	turnKeys    = append(slices.Clone(replyKeys), "repeat")
	repeatKeys  = append([]string{"times", "turns"}, replyKeys...)
	whenKeys    = append([]string{"purpose", "contains"}, replyKeys...)
	callKeys    = []string{"tool", "args", "bad_args"}
	usageKeys   = []string{"input", "output", "cache_read", "cache_write"}
	cutKeys     = []string{"after", "bytes", "how"}
	failureKeys = []string{"status", "retry_after", "message", "context_too_large"}
)

// purposes are those that a request beside the main loop can have.
var purposes = []model.Purpose{model.Compaction, model.Judge, model.Explain}

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

// Error is a mistake in a script, at a place in its file.
type Error = yaml.Error

// Parse reads a script. Name stands for the file in every message. The error is an *Error.
func Parse(name string, data []byte) (*Script, error) {
	root, err := yaml.Parse(name, "the script", data)
	if err != nil {
		return nil, err
	}
	if root.Empty() {
		return nil, root.Errorf("the script is empty; it starts with \"version: 1\" and has turns")
	}
	fields, err := root.Fields("the script", scriptKeys...)
	if err != nil {
		return nil, err
	}
	s := &Script{File: name, ContextWindow: DefaultContextWindow, when: map[model.Purpose]Turn{}}
	s.Name = strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
	versioned := false
	for _, f := range fields {
		switch f.Name {
		case "version":
			versioned = true
			if num, ok := f.Value.Decimal(); !ok || num != "1" {
				return nil, f.Value.Errorf("version must be 1, the only one this belay reads")
			}
		case "name":
			s.Name, err = f.Value.Text("name")
			if err == nil && (strings.TrimSpace(s.Name) == "" || strings.ContainsAny(s.Name, "\n\r")) {
				err = f.Value.Errorf("name must be one line of text")
			}
		case "model":
			err = readModel(s, f.Value)
		case "turns":
			err = readTurns(s, f.Value)
		case "when":
			err = readWhen(s, f.Value)
		case "otherwise":
			var t Turn
			t, err = readReply(f.Value, "otherwise", false, replyKeys)
			s.otherwise = &t
		}
		if err != nil {
			return nil, err
		}
	}
	if !versioned {
		return nil, root.Errorf("the script has no version; write \"version: 1\"")
	}
	if s.turns == 0 && s.otherwise == nil {
		return nil, root.Errorf("the script says nothing: it needs turns, or at least otherwise")
	}
	return s, nil
}

func readModel(s *Script, n yaml.Node) error {
	fields, err := n.Fields("model", modelKeys...)
	if err != nil {
		return err
	}
	for _, f := range fields {
		switch f.Name {
		case "context_window":
			s.bounded = true
			s.ContextWindow, err = f.Value.Int("context_window", 1, maxTokens)
		case "price":
			s.Price, err = readPrice(f.Value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func readPrice(n yaml.Node) (*message.Price, error) {
	fields, err := n.Fields("price", priceKeys...)
	if err != nil {
		return nil, err
	}
	var p message.Price
	into := map[string]*float64{"input": &p.Input, "output": &p.Output, "cache_read": &p.CacheRead, "cache_write": &p.CacheWrite}
	for _, f := range fields {
		if *into[f.Name], err = f.Value.Amount(f.Name, maxPerToken); err != nil {
			return nil, err
		}
	}
	return &p, nil
}

func readTurns(s *Script, n yaml.Node) error {
	items, err := n.List("turns")
	if err != nil {
		return err
	}
	for _, item := range items {
		fields, err := item.Fields("a turn", turnKeys...)
		if err != nil {
			return err
		}
		p := passage{first: s.turns, times: 1}
		if i := slices.IndexFunc(fields, func(f yaml.Field) bool { return f.Name == "repeat" }); i >= 0 {
			if len(fields) > 1 {
				return fields[i].Key.Errorf("repeat stands alone in its turn; put the other keys under it")
			}
			err = readRepeat(&p, fields[i].Value)
		} else {
			var t Turn
			t, err = readReply(item, "a turn", false, turnKeys)
			p.turns = []Turn{t}
		}
		if err != nil {
			return err
		}
		s.turns += p.times * len(p.turns)
		if s.turns > maxRepeat {
			return item.Errorf("the script has more than %d turns, repetitions counted", maxRepeat)
		}
		s.passages = append(s.passages, p)
	}
	return nil
}

func readRepeat(p *passage, n yaml.Node) error {
	p.repeated, p.times = true, 0
	fields, err := n.Fields("repeat", repeatKeys...)
	if err != nil {
		return err
	}
	var own []string // keys of a single repeated turn
	for _, f := range fields {
		switch f.Name {
		case "times":
			times, err := f.Value.Int("times", 1, maxRepeat)
			if err != nil {
				return err
			}
			p.times = int(times)
		case "turns":
			items, err := f.Value.List("turns")
			if err != nil {
				return err
			}
			for _, item := range items {
				t, err := readReply(item, "a repeated turn", true, replyKeys)
				if err != nil {
					return err
				}
				p.turns = append(p.turns, t)
			}
			if len(p.turns) == 0 {
				return f.Value.Errorf("turns is empty; repeat needs at least one")
			}
		default:
			own = append(own, f.Name)
		}
	}
	switch {
	case p.times == 0:
		return n.Errorf("repeat needs times, how often")
	case p.turns != nil && own != nil:
		return n.Errorf("repeat has either turns or one turn's own keys (here: %s), not both", strings.Join(own, ", "))
	case p.turns == nil:
		t, err := readReply(n, "repeat", true, repeatKeys)
		if err != nil {
			return err
		}
		p.turns = []Turn{t}
	}
	return nil
}

func readWhen(s *Script, n yaml.Node) error {
	items, err := n.List("when")
	if err != nil {
		return err
	}
	for _, item := range items {
		fields, err := item.Fields("an entry of when", whenKeys...)
		if err != nil {
			return err
		}
		var purpose model.Purpose
		contains := ""
		for _, f := range fields {
			if f.Name == "contains" {
				if contains, err = f.Value.Text("contains"); err != nil {
					return err
				}
				if contains == "" {
					return f.Value.Errorf("contains must name a text that the request's last message holds")
				}
			}
			if f.Name != "purpose" {
				continue
			}
			name, _ := f.Value.Literal()
			purpose = model.Purpose(name)
			if !slices.Contains(purposes, purpose) {
				return f.Value.Errorf("unknown purpose; allowed: %s", quoted(purposes))
			}
		}
		if purpose == "" {
			return item.Errorf("an entry of when needs a purpose; allowed: %s", quoted(purposes))
		}
		if _, twice := s.when[purpose]; twice && contains == "" {
			return item.Errorf("the purpose %q is answered twice", purpose)
		}
		t, err := readReply(item, "an entry of when", false, whenKeys)
		if err != nil {
			return err
		}
		t.Label = "when " + string(purpose)
		if contains != "" {
			t.Label += fmt.Sprintf(" (contains %q)", contains)
			s.cases = append(s.cases, occasion{purpose, contains, t})
			continue
		}
		s.when[purpose] = t
	}
	return nil
}

// reply reads what one turn says. Keys of the surrounding (times, purpose) are its caller's.
func readReply(n yaml.Node, what string, repeated bool, allowed []string) (Turn, error) {
	t := Turn{Line: n.Line()}
	fields, err := n.Fields(what, allowed...)
	if err != nil {
		return t, err
	}
	var say, thinking string
	var calls []message.Block
	for _, f := range fields {
		switch f.Name {
		case "say":
			say, err = f.Value.Text("say")
		case "thinking":
			thinking, err = f.Value.Text("thinking")
		case "calls":
			calls, err = readCalls(f.Value)
		case "expect":
			t.Expect, err = readExpect(f.Value, repeated)
		case "stop":
			t.Stop, err = readStop(f.Value)
		case "usage":
			t.Usage, err = readUsage(f.Value)
		case "error":
			t.Failure, err = readFailure(f.Value)
		case "cut_stream":
			t.Cut, err = readCut(f.Value)
		case "delay":
			t.Delay, err = f.Value.Duration("delay", time.Hour)
		case "drip":
			t.Drip, err = f.Value.Duration("drip", time.Minute)
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
		return t, n.Errorf("%s cuts the stream of an empty reply; give it say, thinking or calls", what)
	case !t.hasReply && t.Failure == nil:
		return t, n.Errorf("%s says nothing: it needs say, thinking, calls, stop or error", what)
	}
	if t.Stop == "" {
		t.Stop = message.StopEnd
		if len(calls) > 0 {
			t.Stop = message.StopToolUse
		}
	}
	if (t.Stop == message.StopEnd && len(calls) > 0) || (t.Stop == message.StopToolUse && len(calls) == 0) {
		return t, n.Errorf("%s: a reply with calls stops with tool_use, and one without never does; every client corrects it", what)
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

func readCalls(n yaml.Node) ([]message.Block, error) {
	items, err := n.List("calls")
	if err != nil {
		return nil, err
	}
	var blocks []message.Block
	for _, item := range items {
		fields, err := item.Fields("a call", callKeys...)
		if err != nil {
			return nil, err
		}
		c := message.ToolCall{Args: json.RawMessage("{}")}
		var both string
		for _, f := range fields {
			switch f.Name {
			case "tool":
				c.Name, err = f.Value.Text("tool")
			case "args":
				both += "a"
				if f.Value.Kind() != yaml.Mapping {
					err = f.Value.Wrong("args", "a mapping (bad_args sends anything else)")
				} else {
					c.Args, err = f.Value.JSON("args")
				}
			case "bad_args":
				both += "b"
				var raw string
				raw, err = f.Value.Text("bad_args")
				if err == nil {
					c.Args, c.BadArgs = stream.Args(raw) // as every client judges what arrives
					if c.BadArgs == "" {
						err = f.Value.Errorf("bad_args holds a good JSON object, or one that belay repairs; write it as args")
					}
				}
			}
			if err != nil {
				return nil, err
			}
		}
		switch {
		case c.Name == "":
			return nil, item.Errorf("a call needs a tool, the name the model asks for")
		case len(both) > 1:
			return nil, item.Errorf("a call has either args or bad_args, not both")
		}
		blocks = append(blocks, message.Block{Kind: message.KindCall, Call: &c})
	}
	return blocks, nil
}

func readStop(n yaml.Node) (message.StopReason, error) {
	name, _ := n.Literal()
	var allowed []string
	for _, s := range stops {
		if s.name == name {
			return s.reason, nil
		}
		allowed = append(allowed, s.name)
	}
	return "", n.Errorf("unknown stop; allowed: %s", strings.Join(allowed, ", "))
}

func readUsage(n yaml.Node) (*message.Usage, error) {
	fields, err := n.Fields("usage", usageKeys...)
	if err != nil {
		return nil, err
	}
	var u message.Usage
	into := map[string]*int64{"input": &u.Input, "output": &u.Output, "cache_read": &u.CacheRead, "cache_write": &u.CacheWrite}
	for _, f := range fields {
		if *into[f.Name], err = f.Value.Int(f.Name, 0, maxTokens); err != nil {
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
