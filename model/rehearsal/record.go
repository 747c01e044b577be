package rehearsal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"belay/message"
	"belay/model"
	"belay/model/stream"
)

// Recording is what a model said in a run.
type Recording struct {
	Name    string         // of the script; one line
	Price   *message.Price // nil is unknown
	Notes   []string       // comments at the head of the file, one line each
	Replies []model.Reply  // of the main loop, in order
}

// YAML is the recording as a script that Parse reads and that says the same. What a script cannot say is left out and
// named in a comment: a provider's own bytes, and the order of texts and calls that alternate.
func (r Recording) YAML() []byte {
	var turns bytes.Buffer
	var opaque, mixed int
	for _, reply := range r.Replies {
		o, m := recordTurn(&turns, reply)
		opaque += o
		mixed += m
	}
	var b bytes.Buffer
	notes := r.Notes
	if opaque > 0 {
		notes = append(notes[:len(notes):len(notes)], fmt.Sprintf("Left out: %d parts that only their provider can read.", opaque))
	}
	if mixed > 0 {
		notes = append(notes[:len(notes):len(notes)], fmt.Sprintf("Put in order: in %d replies, text came after a call, or thinking after text.", mixed))
	}
	for _, note := range notes {
		b.WriteString("# " + strings.Join(strings.Fields(note), " ") + "\n")
	}
	b.WriteString("version: 1\nname: " + scalar(r.Name) + "\n")
	if p := r.Price; p != nil {
		fmt.Fprintf(&b, "model: {price: {input: %g, output: %g, cache_read: %g, cache_write: %g}}\n", p.Input, p.Output, p.CacheRead, p.CacheWrite)
	}
	if len(r.Replies) > 0 {
		b.WriteString("turns:\n")
	} else {
		b.WriteString("otherwise: {say: \"The recorded run asked nothing.\"}\n")
	}
	b.Write(turns.Bytes())
	return b.Bytes()
}

// recordTurn writes one turn; it returns how many opaque parts it left out, and 1 where it changed the order of parts.
func recordTurn(b *bytes.Buffer, reply model.Reply) (opaque, mixed int) {
	var say, thinking, calls []string
	for _, block := range reply.Blocks {
		if block.Opaque != nil {
			opaque++
		}
		switch {
		case block.Call != nil:
			calls = append(calls, recordCall(*block.Call))
		case block.Kind == message.KindThinking && block.Text != "":
			thinking = append(thinking, block.Text)
			if len(say)+len(calls) > 0 {
				mixed = 1
			}
		case block.Kind == message.KindText && block.Text != "":
			say = append(say, block.Text)
			if len(calls) > 0 {
				mixed = 1
			}
		}
	}
	lead := "  - "
	line := func(format string, args ...any) {
		fmt.Fprintf(b, lead+format+"\n", args...)
		lead = "    "
	}
	if len(thinking) > 0 {
		line("thinking: %s", scalar(strings.Join(thinking, "\n")))
	}
	if len(say) > 0 {
		line("say: %s", scalar(strings.Join(say, "\n")))
	}
	if len(calls) > 0 {
		line("calls:")
		for _, call := range calls {
			line("  - %s", call)
		}
	}
	usual := message.StopEnd
	if len(calls) > 0 {
		usual = message.StopToolUse
	}
	ordinary := reply.Stop == message.StopEnd || reply.Stop == message.StopToolUse // then calls alone decide
	for _, s := range stops {
		if s.reason == reply.Stop && (!ordinary || reply.Stop == usual && len(say)+len(thinking)+len(calls) == 0) {
			line("stop: %s", s.name)
		}
	}
	u := reply.Usage
	line("usage: {input: %d, output: %d, cache_read: %d, cache_write: %d}", u.Input, u.Output, u.CacheRead, u.CacheWrite)
	return opaque, mixed
}

func recordCall(c message.ToolCall) string {
	if c.BadArgs == "" {
		return fmt.Sprintf("{tool: %s, args: %s}", scalar(c.Name), c.Args)
	}
	raw := string(c.Args) // of what is no JSON at all, a JSON string is kept
	var text string
	if json.Unmarshal(c.Args, &text) == nil {
		if args, bad := stream.Args(text); bad == c.BadArgs && bytes.Equal(args, c.Args) {
			raw = text
		}
	}
	return fmt.Sprintf("{tool: %s, bad_args: %s}", scalar(c.Name), scalar(raw))
}

// scalar is a text as JSON spells it, which YAML reads as well.
func scalar(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string cannot fail
	return strings.TrimSuffix(b.String(), "\n")
}
