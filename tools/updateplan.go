package tools

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"belay/journal"
	"belay/tool"
)

//go:embed updateplan.md
var updatePlanDescription string

// UpdatePlan records the plan. The loop takes it: the call itself does nothing.
type UpdatePlan struct{}

type planArgs struct {
	journal.Plan
	Contradicted string `json:"contradicted"`
}

func (UpdatePlan) Spec() tool.Spec {
	list := func(what string) string {
		return `{"type":"array","items":{"type":"string"},"description":"` + what + `"}`
	}
	return tool.Spec{
		Name:        "UpdatePlan",
		Description: strings.TrimSpace(updatePlanDescription),
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["steps"],"properties":{
			"objective":{"type":"string","description":"Leave it out: it is the person's."},
			"constraints":` + list("What must hold, from the task and from what you found.") + `,
			"steps":{"type":"array","description":"All steps, in order.","items":{"type":"object","additionalProperties":false,"required":["id","text","verify","status"],"properties":{
				"id":{"type":"string","description":"Short and stable, such as s1."},
				"text":{"type":"string","description":"What is done."},
				"verify":{"type":"string","description":"The command or the stated check that shows it is done."},
				"status":{"type":"string","enum":["pending","in_progress","done","blocked"]}}}},
			"decisions":` + list("What was decided, and why.") + `,
			"assumptions":` + list("What the plan relies on without proof.") + `,
			"errors_made":` + list("What failed and must not be tried again.") + `,
			"references":` + list("Files, results and pages worth looking at again.") + `,
			"contradicted":{"type":"string","description":"The assumption that turned out wrong, where that is why the steps change."}}}`),
		Replay: tool.Pure,
		Signal: tool.Planning,
	}
}

func (UpdatePlan) Plan(_ tool.Place, call tool.Call) (tool.Plan, error) {
	args, err := decode[planArgs](call)
	if err != nil {
		return tool.Plan{}, err
	}
	if wrong := PlanFlaw(args.Plan); wrong != "" {
		return tool.Plan{}, tool.Mistakef(tool.InvalidArguments, "Send the whole plan again.", "%s", wrong)
	}
	done := 0
	for _, s := range args.Steps {
		if s.Status == journal.StepDone {
			done++
		}
	}
	return tool.Plan{Summary: fmt.Sprintf("%s, %d done", plural(len(args.Steps), "step"), done)}, nil
}

func (UpdatePlan) Run(_ context.Context, env tool.Env, call tool.Call) (tool.Result, error) {
	args, err := decode[planArgs](call)
	if err != nil {
		return failed(err)
	}
	return tool.Result{Status: tool.Success, Summary: plural(len(args.Steps), "step"), Text: "[plan received]", Context: tool.Context{Dir: env.Place().Dir}}, nil
}

// PlanFlaw says what is wrong with the form of a plan, "" where nothing is.
func PlanFlaw(p journal.Plan) string {
	seen := map[string]bool{}
	active := ""
	if len(p.Steps) == 0 {
		return "a plan needs at least one step"
	}
	for i, s := range p.Steps {
		id := strings.TrimSpace(s.ID)
		switch {
		case id == "":
			return fmt.Sprintf("step %d has no id", i+1)
		case len(id) > 40 || strings.ContainsAny(id, "\n\t"):
			return fmt.Sprintf("the id of step %d is longer than 40 characters or has a line break", i+1)
		case seen[id]:
			return fmt.Sprintf("two steps have the id %q", id)
		case strings.TrimSpace(s.Text) == "":
			return fmt.Sprintf("step %s says nothing", id)
		case s.Status == journal.StepActive && active != "":
			return fmt.Sprintf("steps %s and %s are both in_progress: at most one is", active, id)
		case s.Status == journal.StepActive:
			active = id
		}
		seen[id] = true
	}
	return ""
}
