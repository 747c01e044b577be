package loop

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"belay/journal"
)

// namesAFile finds what looks like a file's name.
var namesAFile = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\b[\w-]+\.[a-z]{1,5}\b`) })

// maxRecapTask is the longest task in bytes that a recap repeats in full. The first message of every context holds it in
// any case.
const maxRecapTask = 8000

// remind records a recap where the goal, the plan or a tenth of a budget has changed, and after every break of the
// prefix: so every request holds one that is true.
func (s *session) remind() error {
	p := &s.plans
	if p.objective == "" {
		return nil
	}
	left := s.guard.left()
	why := p.need
	if why == "" && p.recap == nil {
		why = "start"
	}
	if why == "" && !slices.Equal(left, p.recap.Left) {
		why = "budget"
	}
	if why == "" {
		return nil
	}
	r := journal.Recap{Objective: p.objective, Constraints: p.plan.Constraints, Said: p.said, Steps: p.plan.Steps, Left: left, Why: why}
	r.Text = recapText(r, p.plan)
	return s.note(s.entry(journal.TypeRecap, r))
}

func recapText(r journal.Recap, plan journal.Plan) string {
	var b strings.Builder
	b.WriteString("<recap>\nObjective:\n")
	if len(r.Objective) > maxRecapTask {
		fmt.Fprintf(&b, "%s… (the whole of it is the first message)\n", strings.ToValidUTF8(r.Objective[:maxRecapTask], ""))
	} else {
		b.WriteString(r.Objective + "\n")
	}
	list := func(title string, items []string) {
		if len(items) == 0 {
			return
		}
		b.WriteString(title + ":\n")
		for _, item := range items {
			b.WriteString("- " + item + "\n")
		}
	}
	list("The person has said since", r.Said)
	list("Constraints", r.Constraints)
	if len(r.Steps) > 0 {
		b.WriteString("Plan:\n")
		for _, s := range r.Steps {
			mark := map[string]string{journal.StepDone: "x", journal.StepActive: ">", journal.StepBlocked: "!"}[s.Status]
			if mark == "" {
				mark = " "
			}
			fmt.Fprintf(&b, "[%s] %s: %s (verify: %s)\n", mark, s.ID, s.Text, s.Verify)
		}
		if now := plan.Current(); now.ID != "" {
			fmt.Fprintf(&b, "Current step: %s: %s\n", now.ID, now.Text)
		} else {
			b.WriteString("Current step: none, all are done. Call TaskComplete.\n")
		}
	}
	list("Decisions", plan.Decisions)
	list("Assumptions", plan.Assumptions)
	list("What failed and must not be tried again", plan.ErrorsMade)
	if len(r.Left) > 0 {
		var parts []string
		for _, l := range r.Left {
			parts = append(parts, fmt.Sprintf("%s %d %% of %s", l.Bound, 10*l.Tenths, l.Of))
		}
		b.WriteString("Budget left, about: " + strings.Join(parts, " · ") + "\n")
	}
	b.WriteString("</recap>")
	return b.String()
}

// left is what is left of each bound, in tenths, rounded up.
func (g *guard) left() []journal.Left {
	var all []journal.Left
	for _, b := range g.boundList() {
		if b.limit == 0 || b.name == "mib" {
			continue
		}
		tenths := int(math.Ceil(10 - 10*b.value/b.limit))
		all = append(all, journal.Left{Bound: b.what, Tenths: min(max(tenths, 0), 10), Of: b.show})
	}
	return all
}
