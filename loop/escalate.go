package loop

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"belay/effect"
	"belay/journal"
	"belay/policy"
	"belay/tool"
)

// attempted escalates a refused call of class 5: a person has to know that it was tried.
func (s *session) attempted(r journal.ToolRequest) []journal.Entry {
	if r.Class < effect.ClassConfiguration || r.Permission.Verdict != effect.Deny || r.Permission.By != "policy" {
		return nil
	}
	what := r.Summary
	if what == "" {
		what = r.Tool
	}
	why := fmt.Sprintf("the agent tried %s, and no agent may: %s", cutWords(what, 400), policy.Decision{Reason: r.Permission.Reason}.Why())
	return []journal.Entry{s.entry(journal.TypeEscalate, journal.Escalation{Why: why, To: "person", Kind: "class 5", CallID: r.CallID, Class: r.Class, Rule: r.Permission.Rule})}
}

// escalated keeps what is to be named when the run ends.
func (s *session) escalated(e *decoded) error {
	if e.Type != journal.TypeEscalate {
		return nil
	}
	var p journal.Escalation
	if err := e.Decode(&p); err != nil {
		return err
	}
	if p.Kind == "class 5" && !slices.Contains(s.attempts, p.Why) {
		s.attempts = append(s.attempts, p.Why)
	}
	return nil
}

// misjudged says that the sandbox refused what the plan of a call had not named. A plan that admits to unknown effects has
// named them all.
func (s *session) misjudged(r journal.ToolRequest, result tool.Result) []journal.Entry {
	var denied []string
	for _, d := range result.Stats.Denied {
		if !named(r.Effects, d) {
			denied = append(denied, d)
		}
	}
	if r.Class == effect.ClassRead && result.Status != tool.Success && strings.Contains(result.Text, "Read-only file system") && !slices.ContainsFunc(r.Effects, admits) {
		denied = append(denied, "write: the workspace is read-only for a call that only reads")
	}
	if len(denied) == 0 {
		return nil
	}
	return []journal.Entry{s.entry(journal.TypeMisjudged, journal.Misjudged{CallID: r.CallID, Class: r.Class, Denied: denied})}
}

func admits(e effect.Effect) bool { return e.Kind == effect.Opaque }

// named says whether a plan holds what the sandbox refused, "write PATH: why" or "connect: why".
func named(planned effect.Set, denial string) bool {
	what, _, _ := strings.Cut(denial, ":")
	kind, path, _ := strings.Cut(what, " ")
	if kind != "write" && kind != "connect" {
		return true // a limit, which no plan speaks of
	}
	return slices.ContainsFunc(planned, func(e effect.Effect) bool {
		switch {
		case admits(e):
			return true
		case kind == "connect":
			return e.Kind == effect.Connect || e.Kind == effect.Fetch
		case e.Kind != effect.Write && e.Kind != effect.Delete:
			return false
		}
		base := strings.TrimSuffix(strings.TrimSuffix(e.Target, "/**"), "/*")
		return base == "" || path == base || strings.HasPrefix(path, strings.TrimSuffix(base, "/")+"/")
	})
}

// askWhetherItHappened asks a person about effects of class 3 or 4 of which nobody knows whether they happened: the model
// alone must not guess. What the person says is told to the model in the person's name. A message since then is an answer too.
func (s *session) askWhetherItHappened(ctx context.Context) (*Outcome, error) {
	open := s.once.unanswered()
	var questions []journal.Question
	for _, d := range open {
		q := s.whether(d.request)
		questions = append(questions, q)
		_, asked := s.people.questions[q.ID]
		if _, answered := s.people.answers[q.ID]; asked || answered {
			continue
		}
		if err := s.record(s.entry(journal.TypeQuestion, q)); err != nil {
			return nil, err
		}
	}
	var words []string
	for i, q := range questions {
		a, answered := s.people.answers[q.ID]
		if !answered {
			var out *Outcome
			var err error
			if a, out, err = s.answerTo(ctx, q); out != nil || err != nil {
				return out, err
			}
		}
		said := a.Choice
		for _, o := range q.Options {
			if o.ID == a.Choice {
				said = o.Label
			}
		}
		words = append(words, strings.TrimSpace(fmt.Sprintf("About the call %s that was interrupted (%s): %s. %s", open[i].request.CallID, open[i].request.Summary, said, a.Reason)))
	}
	if len(words) == 0 {
		return nil, nil
	}
	return nil, s.record(s.entry(journal.TypeUserMessage, journal.UserMessage{Text: strings.Join(words, "\n")}))
}

func (s *session) whether(r journal.ToolRequest) journal.Question {
	what := r.Summary
	if what == "" {
		what = r.Tool
	}
	return journal.Question{ID: "q_outcome_" + r.CallID, Kind: "outcome", CallID: r.CallID, Tool: r.Tool, Summary: r.Summary, Class: r.Class, Effects: r.Effects,
		Text: fmt.Sprintf("belay stopped while %q ran, and nobody knows whether it had its effect (class %d, %v). Look, then say. Did it?", what, r.Class, r.Class),
		Options: []journal.Option{
			{ID: "happened", Label: "it had its effect: go on from there"},
			{ID: "not", Label: "it had no effect: it may be done again"},
			{ID: "unsure", Label: "it is not known: find out without repeating it"}}}
}
