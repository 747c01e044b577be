package loop

import (
	"context"
	"fmt"
	"strings"

	"belay/effect"
	"belay/journal"
	"belay/tool"
)

// approve has a person approve the plan once, before the first action that changes something, where that was asked for: one
// look at what is meant instead of forty at what is done. Another plan is approved anew.
func (s *session) approve(ctx context.Context, st *step) (*Outcome, error) {
	if !s.ApprovePlan || st.why != nil || st.request.Class < effect.ClassReversible {
		return nil, nil
	}
	if s.people.approved {
		st.underPlan()
		return nil, nil
	}
	if !s.plans.have {
		st.refuseHere("plan", "nothing is changed before a person has approved a plan, and there is none", "Make the plan with UpdatePlan; then make this call again.")
		return nil, nil
	}
	if s.people.refusal != nil {
		st.refusePlan(*s.people.refusal)
		return nil, nil
	}
	q := journal.Question{ID: fmt.Sprintf("q_plan_%d", s.guard.seq), Kind: "plan", Text: "Is this plan approved?\n" + planText(s.planWhole()),
		Options: []journal.Option{{ID: "yes", Label: "yes, go on"}, {ID: "no", Label: "no, because …"}}}
	if id := s.people.openPlan(); id != "" { // it was asked before the run stopped
		q = s.people.questions[id]
	} else if err := s.record(s.entry(journal.TypeQuestion, q)); err != nil {
		return nil, err
	}
	a, out, err := s.answerTo(ctx, q)
	if out != nil || err != nil {
		return out, err
	}
	if a.Choice != "yes" {
		st.refusePlan(a)
		return nil, nil
	}
	st.underPlan()
	return nil, nil
}

// underPlan lets an approved plan stand for single changes that a checkpoint covers. What goes beyond is asked about as ever, and
// so is what a rule of the person's asks about.
func (st *step) underPlan() {
	if st.asks != nil && st.request.Class == effect.ClassReversible && strings.HasPrefix(st.request.Permission.Rule, "defaults.") {
		st.asks = nil
		st.request.Permission = journal.Permission{Verdict: effect.Allow, Rule: "plan", By: "user", Reason: "a person has approved the plan"}
	}
}

func (st *step) refusePlan(a journal.Answer) {
	st.refuseHere("plan", "the person does not approve the plan: "+orNothing(a.Reason), "Change the plan as the person says, with UpdatePlan, and go on when it is approved.")
}

// refuseHere makes the step one that does not run.
func (st *step) refuseHere(rule, why, hint string) {
	st.why = &tool.Failure{Code: tool.Denied, Message: why, Hint: hint}
	st.request.Permission = journal.Permission{Verdict: effect.Deny, Rule: rule, By: "harness", Reason: why}
	st.request.Grant = effect.Grant{}
}

// openPlan is the question about the plan that has no answer yet.
func (p *people) openPlan() string {
	for id, q := range p.questions {
		if q.Kind == "plan" {
			return id
		}
	}
	return ""
}

// planText is a plan for a person.
func planText(p journal.Plan) string {
	var b strings.Builder
	if p.Objective != "" {
		fmt.Fprintf(&b, "Objective: %s\n", p.Objective)
	}
	for _, c := range p.Constraints {
		fmt.Fprintf(&b, "Constraint: %s\n", c)
	}
	for i, step := range p.Steps {
		fmt.Fprintf(&b, "%d. %s", i+1, step.Text)
		if step.Verify != "" {
			fmt.Fprintf(&b, "  (verified by: %s)", step.Verify)
		}
		b.WriteByte('\n')
	}
	for _, a := range p.Assumptions {
		fmt.Fprintf(&b, "Assumption: %s\n", a)
	}
	return strings.TrimRight(b.String(), "\n")
}
