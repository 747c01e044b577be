package tui

import (
	"fmt"
	"strings"
	"time"

	"belay/internal/render"
	"belay/journal"
)

// card is a question on the screen. Nothing answers it within its first moment: a stray key accepts nothing.
type card struct {
	q       journal.Question
	answer  chan<- journal.Answer
	opened  time.Time
	at      int  // the chosen option
	because bool // the reason of a no is being typed
	details bool
}

// guard is how long a card takes no answer.
const guard = 400 * time.Millisecond

func (c *card) lines(s render.Screen) []string {
	q := c.q
	options := q.Options
	q.Options = nil
	lines := render.Question(s, q)
	if c.details {
		for _, e := range q.Effects {
			lines = append(lines, s.Dim("  · "+render.Line(fmt.Sprintf("%s %s %s", e.Kind, e.Target, e.Why))))
		}
		lines = append(lines, s.Dim("  rule: "+render.Line(q.Rule)+" · risk: "+risk(q)), s.Dim("  arguments: "+render.Cut(render.Line(string(q.Args)), 400)))
	}
	for i, o := range options {
		mark := "  "
		if i == c.at {
			mark = "› "
		}
		label := fmt.Sprintf("%s%d %s", mark, i+1, render.Line(o.Label))
		if i == c.at {
			label = s.Bold(label)
		}
		lines = append(lines, label)
	}
	return lines
}

// risk is how bad it is if the answer is wrong.
func risk(q journal.Question) string {
	switch {
	case q.Class <= 1:
		return "low"
	case q.Class == 2:
		return "medium"
	}
	return "high"
}

func (c *card) hint() string {
	if c.because {
		return "type why, Enter sends it · Esc back"
	}
	if len(c.q.Options) == 0 {
		return "type your answer, Enter sends it"
	}
	hint := "↑↓ or a number, Enter answers"
	if c.q.Kind == "permission" {
		hint += " · y once · n no, because… · ? explain"
	}
	return hint
}

// key takes a key press. Done says that the question is answered.
func (c *card) key(key string, now time.Time) (choice string, done bool) {
	if now.Sub(c.opened) < guard {
		return "", false
	}
	has := func(id string) bool {
		for _, o := range c.q.Options {
			if o.ID == id {
				return true
			}
		}
		return false
	}
	switch {
	case key == "up":
		c.at = max(0, c.at-1)
	case key == "down" || key == "tab":
		c.at = min(len(c.q.Options)-1, c.at+1)
	case key == "?":
		c.details = !c.details
		if c.details && c.q.Kind == "permission" && c.q.Explanation == nil {
			return "?", true // a model explains it, and it comes again
		}
	case c.q.Kind == "permission" && (key == "n" || key == "esc") && has("no"):
		c.because = true
	case c.q.Kind == "permission" && key == "y" && has("once"):
		return "once", true
	case len(key) == 1 && key[0] >= '1' && int(key[0]-'1') < len(c.q.Options):
		c.at = int(key[0] - '1')
		return c.chosen()
	case key == "enter" && len(c.q.Options) > 0:
		return c.chosen()
	}
	return "", false
}

func (c *card) chosen() (string, bool) {
	id := c.q.Options[c.at].ID
	if id == "no" && c.q.Kind == "permission" {
		c.because = true
		return "", false
	}
	return id, true
}

// words are what a person typed as an answer.
func (c *card) words(text string) journal.Answer {
	if c.because {
		return journal.Answer{Choice: "no", Reason: strings.TrimSpace(text)}
	}
	return journal.Answer{Choice: strings.TrimSpace(text)}
}
