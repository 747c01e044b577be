package harness

import (
	"context"

	"belay/effect"
	jury "belay/internal/judge"
	"belay/journal"
	"belay/loop"
	"belay/model"
	"belay/policy"
)

// auto judges what autonomous mode allows and nothing brings back; nil where no model is asked.
func auto(mode policy.Mode, rules *policy.Rules) loop.Auto {
	if mode != policy.Autonomous || rules != nil && rules.JudgeOff[mode] {
		return nil
	}
	var own policy.Prose
	if rules != nil {
		own = rules.Prose
	}
	all := jury.Rules(own)
	return func(ctx context.Context, c policy.Case, ask func(context.Context, model.Request) (model.Reply, error)) (journal.Judgement, error) {
		r, err := jury.Judge(ctx, all, c, ask)
		ruling := journal.Judgement{Verdict: effect.Deny, Rule: r.Rule, LiftedBy: r.LiftedBy, Quote: r.Quote, Reason: r.Reason}
		if r.Allowed {
			ruling.Verdict = effect.Allow
		}
		return ruling, err
	}
}
