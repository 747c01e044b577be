package loop

import (
	"context"
	"fmt"

	"belay/journal"
	"belay/tool"
	"belay/verify"
)

// verifySteps runs the verification of each step that a plan newly calls done, where that is a command. It returns why one is
// not done; the steps that were shown to be done are named.
func (s *session) verifySteps(ctx context.Context, next journal.Plan) (why *tool.Failure, proved []string, err error) {
	if s.StepVerifier == nil {
		return nil, nil, nil
	}
	before := map[string]string{}
	for _, step := range s.plans.plan.Steps {
		before[step.ID] = step.Status
	}
	for _, step := range next.Steps {
		if step.Status != journal.StepDone || before[step.ID] == journal.StepDone {
			continue
		}
		v := s.StepVerifier(step.Verify)
		if v == nil {
			continue // a check in words: the verifiers at the end look at the whole
		}
		report, err := s.verifyStep(ctx, step.ID, v)
		if err != nil {
			return nil, nil, err
		}
		if !report.OK {
			return &tool.Failure{Code: tool.Unverified, Message: fmt.Sprintf("the plan is not taken: step %s is not done, its verification `%s` failed (%s).", step.ID, v.Name(), report.Summary), Hint: hintOf(report)}, nil, nil
		}
		proved = append(proved, step.ID)
	}
	return nil, proved, nil
}

// verifyStep runs it on the tree as it is, and once more where it failed: what passes only then is flaky, and shows nothing.
func (s *session) verifyStep(ctx context.Context, id string, v verify.Verifier) (verify.Report, error) {
	tree, err := s.look(ctx)
	if err != nil {
		return verify.Report{}, err
	}
	first, err := s.verify(ctx, v, tree, how{step: id})
	if err != nil || first.OK {
		return first, err
	}
	again, err := s.verify(ctx, v, tree, how{step: id, again: true})
	if err == nil && again.OK {
		first.Summary = "flaky: it failed and passed on the same tree; the first time: " + first.Summary
	}
	return first, err
}
