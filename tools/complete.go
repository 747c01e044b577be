package tools

import (
	"context"
	_ "embed"
	"encoding/json"
	"strings"

	"belay/effect"
	"belay/tool"
)

//go:embed complete.md
var completeDescription string

// TaskComplete asks for the end of the run. The harness verifies; the call itself proves nothing.
type TaskComplete struct{}

type completeArgs struct {
	Summary  string `json:"summary"`
	Evidence string `json:"evidence"`
}

func (TaskComplete) Spec() tool.Spec {
	return tool.Spec{
		Name:        "TaskComplete",
		Classes:     []effect.Class{1},
		Description: strings.TrimSpace(completeDescription),
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["summary","evidence"],"properties":{
			"summary":{"type":"string","minLength":1,"description":"What was done, and what a person still has to do."},
			"evidence":{"type":"string","minLength":1,"description":"What you ran that shows it, and its outcome."}}}`),
		Replay: tool.Pure,
		Signal: tool.Complete,
	}
}

func (TaskComplete) Plan(_ tool.Place, call tool.Call) (tool.Plan, error) {
	args, err := decode[completeArgs](call)
	return tool.Plan{Summary: oneLine(args.Summary)}, err
}

func (TaskComplete) Run(_ context.Context, env tool.Env, call tool.Call) (tool.Result, error) {
	args, err := decode[completeArgs](call)
	if err != nil {
		return failed(err)
	}
	return tool.Result{Status: tool.Success, Summary: oneLine(args.Summary), Text: "[completion requested; it counts when the verifiers pass]", Context: tool.Context{Dir: env.Place().Dir}}, nil
}

// oneLine is the first line that says something, at most 120 characters.
func oneLine(s string) string {
	for _, l := range strings.Split(s, "\n") {
		if l = strings.TrimSpace(l); l != "" {
			if r := []rune(l); len(r) > 120 {
				l = string(r[:119]) + "…"
			}
			return l
		}
	}
	return "(nothing said)"
}
