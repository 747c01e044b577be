package render

import (
	"fmt"
	"slices"
	"strings"

	"belay/effect"
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
		for line := range strings.SplitSeq(Clean(q.Text), "\n") {
			lines = append(lines, "  "+line)
		}
	} else {
		exact := q.Runs
		if exact == "" {
			exact = q.Summary
		}
		for line := range strings.SplitSeq(strings.TrimRight(Clean(exact), "\n"), "\n") {
			lines = append(lines, "  "+s.paint(bold, line))
		}
		for _, p := range q.Parts {
			lines = append(lines, s.paint(dim, fmt.Sprintf("  ▸ class %d  ", p.Class))+Line(p.Text)+s.paint(dim, "  "+strings.Join(effectWords(p.Effects, 3), ", ")))
		}
		for _, e := range effectWords(q.Effects, 6) {
			lines = append(lines, s.paint(dim, "  · "+e))
		}
		lines = append(lines, fmt.Sprintf("  class %d (%v): %s", q.Class, q.Class, Line(q.Why)))
		if q.Undo != "" {
			lines = append(lines, s.paint(dim, "  to undo: "+Line(q.Undo)))
		}
	}
	lines = append(lines, explained(s, q)...)
	for _, o := range q.Options {
		mark := ""
		if o.ID == q.Default {
			mark = s.paint(dim, " (default)")
		}
		lines = append(lines, "  "+s.paint(bold, Line(o.ID))+"  "+Line(o.Label)+mark)
	}
	return lines
}

// effectWords names effects once each, at most some of them.
func effectWords(set effect.Set, most int) []string {
	var words []string
	for _, e := range set {
		if e.Kind == effect.Exec {
			continue // the command says that itself
		}
		target := Line(e.Target)
		if target == "" {
			target = "(known only when it runs)"
		}
		if word := string(e.Kind) + " " + target; !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	if len(words) > most {
		words = append(words[:most:most], fmt.Sprintf("and %d more effects", len(words)-most))
	}
	return words
}

// explained is what a model says about it, where a person asked for that.
func explained(s Screen, q journal.Question) []string {
	if q.Explanation == nil {
		return nil
	}
	e := q.Explanation
	risk := s.paint(green, "low")
	switch e.Risk {
	case "medium":
		risk = s.paint(yellow, "medium")
	case "high":
		risk = s.paint(red, "high")
	}
	lines := []string{"  risk: " + risk + s.paint(dim, "  explained by "+Line(e.By)+", which may be wrong")}
	for line := range strings.SplitSeq(strings.TrimSpace(Clean(e.Text)), "\n") {
		lines = append(lines, wrapped(s, line)...)
	}
	return lines
}

func wrapped(s Screen, line string) []string {
	width := s.reading()
	if width > 0 {
		width = max(20, width-4)
	}
	lines := wrap(line, width)
	for i := range lines {
		lines[i] = "    " + lines[i]
	}
	return lines
}

// asked, replied and permitted tell the same in a run's story.
func (t *teller) question(q journal.Question) []string {
	if q.Explanation != nil { // it stands there already
		return explained(t.screen, q)
	}
	t.asks++
	t.ask = q.ID
	return t.block(Question(t.screen, q))
}

// judgement is told where it blocks; with full, always.
func (t *teller) judgement(j journal.Judgement) []string {
	if j.Verdict == effect.Allow {
		if !t.full {
			return nil
		}
		return []string{t.screen.paint(dim, "  · judged by "+Line(j.Model)+": allow: "+Line(j.Reason))}
	}
	return []string{"  " + t.screen.paint(yellow, "⚑ judged by "+Line(j.Model)+": block") + ": " + Line(j.Reason)}
}

func (t *teller) escalation(e journal.Escalation) []string {
	if e.Kind == "bound" && !t.full {
		return nil // the end says the same
	}
	return []string{"  " + t.screen.paint(alarm, "!! for a person: ") + Line(e.Why)}
}

func (t *teller) misjudged(m journal.Misjudged) []string {
	return []string{"  " + t.screen.paint(yellow, "! the plan did not name what the sandbox refused") + ": " + Line(strings.Join(m.Denied, "; "))}
}

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
