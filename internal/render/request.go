package render

import (
	"fmt"
	"strings"

	"belay/message"
	"belay/model"
)

// Request is what a model was sent, to read: system prompt, tools, messages. Nothing is left out and no line is cut;
// only what could move a terminal's cursor is made harmless.
func Request(s Screen, r model.Request) []string {
	lines := []string{s.paint(bold, "system")}
	lines = append(lines, inset(r.System)...)
	lines = append(lines, "", s.paint(bold, "tools")+s.paint(dim, fmt.Sprintf("  %d", len(r.Tools))))
	for _, t := range r.Tools {
		lines = append(lines, "  "+s.paint(cyan, Line(t.Name)))
		for _, line := range inset(t.Description) {
			lines = append(lines, "  "+line)
		}
		lines = append(lines, s.paint(dim, "    schema "+Line(string(t.Schema))))
	}
	lines = append(lines, "", s.paint(bold, "messages")+s.paint(dim, fmt.Sprintf("  %d", len(r.Messages))))
	for i, m := range r.Messages {
		lines = append(lines, s.paint(cyan, fmt.Sprintf("  %d %s", i+1, Line(string(m.Role)))))
		for _, b := range m.Blocks {
			lines = append(lines, block(s, b)...)
		}
	}
	if r.MaxOutput > 0 {
		lines = append(lines, "", s.paint(bold, "output")+fmt.Sprintf("  at most %d tokens", r.MaxOutput))
	}
	return lines
}

func block(s Screen, b message.Block) []string {
	var head, body string
	switch {
	case b.Call != nil:
		head = "call " + Line(b.Call.ID) + " " + Line(b.Call.Name)
		body = arguments(b.Call.Args)
		if b.Call.BadArgs != "" {
			head, body = head+" (not a JSON object)", b.Call.BadArgs
		}
	case b.Result != nil:
		head, body = "result of "+Line(b.Result.CallID), b.Result.Text
		if b.Result.Error {
			head += " (an error)"
		}
	case b.Opaque != nil && b.Text == "":
		head = fmt.Sprintf("%s of %s (%d bytes, for that provider alone)", b.Kind, Line(b.Opaque.Provider), len(b.Opaque.Raw))
	default:
		head, body = Line(string(b.Kind)), b.Text
	}
	lines := []string{"    " + s.paint(dim, head)}
	if body != "" {
		for _, line := range inset(body) {
			lines = append(lines, "    "+line)
		}
	}
	return lines
}

// inset is a text's lines, clean and moved to the right.
func inset(text string) []string {
	lines := strings.Split(strings.TrimRight(Clean(text), "\n"), "\n")
	for i, line := range lines {
		if lines[i] = "  " + line; line == "" {
			lines[i] = ""
		}
	}
	return lines
}
