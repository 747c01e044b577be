package render

import (
	"fmt"
	"slices"
	"strings"

	"belay/journal"
)

// Question is what a person is shown before an answer: what exactly would happen, what it does, how it is judged and why, and
// what can be undone.
func Question(s Screen, q journal.Question) []string {
	head := "question"
	if q.Kind == "permission" {
		head = fmt.Sprintf("%s asks", Line(q.Tool))
	}
	lines := []string{s.paint(alarm, "? "+head) + s.paint(dim, "  "+Line(q.ID))}
	if q.Kind != "permission" {
		lines = append(lines, "  "+strings.ReplaceAll(Clean(q.Text), "\n", "\n  "))
	} else {
		for line := range strings.SplitSeq(Clean(q.Summary), "\n") {
			lines = append(lines, "  "+s.paint(bold, line))
		}
		var effects []string
		for _, e := range q.Effects {
			effect := strings.TrimSpace(string(e.Kind) + " " + Line(e.Target))
			if !slices.Contains(effects, effect) {
				effects = append(effects, effect)
			}
		}
		const few = 6
		for i, e := range effects {
			if i == few {
				lines = append(lines, s.paint(dim, fmt.Sprintf("  · and %d more effects", len(effects)-few)))
				break
			}
			lines = append(lines, s.paint(dim, "  · "+e))
		}
		lines = append(lines, fmt.Sprintf("  class %d (%v): %s", q.Class, q.Class, Line(q.Why)))
		if q.Undo != "" {
			lines = append(lines, s.paint(dim, "  to undo: "+Line(q.Undo)))
		}
	}
	for _, o := range q.Options {
		mark := ""
		if o.ID == q.Default {
			mark = s.paint(dim, " (default)")
		}
		lines = append(lines, "  "+s.paint(bold, Line(o.ID))+"  "+Line(o.Label)+mark)
	}
	return lines
}

// asked, replied and permitted tell the same in a run's story.
func (t *teller) question(q journal.Question) []string { return t.block(Question(t.screen, q)) }

func (t *teller) replied(a journal.Answer) []string {
	line := "  " + t.screen.paint(green, "→") + " " + Line(a.By) + " answers: " + t.screen.paint(bold, Line(a.Choice))
	if a.Reason != "" {
		line += ": " + Line(a.Reason)
	}
	return []string{line}
}

func (t *teller) permitted(p journal.Permitted) []string {
	if r, open := t.calls[p.CallID]; open {
		r.Permission.Verdict, r.Permission.By, r.Permission.Reason = p.Verdict, p.By, p.Reason
		t.calls[p.CallID] = r
	}
	if len(p.Rules) == 0 {
		return nil
	}
	return []string{t.screen.paint(dim, "  remembered, "+Line(p.For)+": "+Line(strings.Join(p.Rules, " ")))}
}
