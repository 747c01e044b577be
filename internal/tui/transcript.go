package tui

import (
	"strings"

	"belay/internal/render"
	"belay/journal"
	"belay/message"
)

// transcript is what has happened, as lines for the width of the screen.
type transcript struct {
	width  int
	full   bool
	color  bool
	teller *render.Teller
	lines  []string
}

// mostLines bounds what is kept: older lines are in the journal.
const mostLines = 50_000

// setMost is how many texts are set in Markdown when a long run is drawn anew; older ones stay plain.
const setMost = 200

func (t *transcript) reset(width int) {
	t.width, t.lines = width, nil
	t.teller = render.NewTeller(render.Screen{Color: t.color, Columns: func() int { return width }}, t.full)
}

// add draws an event. Set says whether texts are set in Markdown.
func (t *transcript) add(e journal.Event, set bool) {
	lines := t.teller.Tell(e)
	if e.Type == journal.TypeQuestion && len(lines) > 0 && !t.full { // the card shows the rest
		kept := lines[:0:0]
		for _, line := range lines {
			if kept = append(kept, line); strings.TrimSpace(line) != "" && len(kept) > 2 {
				break
			}
		}
		lines = kept
	}
	if set && e.Type == journal.TypeModelReply {
		var p journal.ModelReply
		if e.Decode(&p) == nil && p.Purpose == "" {
			if text := render.Clean(message.PlainText(p.Blocks)); marked(text) {
				lines = append([]string{""}, setMarkdown(text, t.width, t.color)...)
			}
		}
	}
	t.push(lines...)
}

func (t *transcript) push(lines ...string) {
	t.lines = append(t.lines, lines...)
	if over := len(t.lines) - mostLines; over > mostLines/10 {
		t.lines = append([]string(nil), t.lines[over:]...)
	}
}

// marked says whether a text uses Markdown at all: setting costs a millisecond.
func marked(text string) bool {
	return strings.Contains(text, "```") || strings.Contains(text, "**") || strings.Contains(text, "`") || strings.HasPrefix(text, "#") ||
		strings.Contains(text, "\n#") || strings.Contains(text, "\n- ") || strings.Contains(text, "\n1. ") || strings.Contains(text, "\n|") || strings.HasPrefix(text, "- ")
}
