package tools

import (
	"context"
	_ "embed"
	"encoding/json"
	"strings"

	"belay/effect"
	"belay/tool"
)

//go:embed blocker.md
var blockerDescription string

// ReportBlocker ends the run and tells a person what stands in the way.
type ReportBlocker struct{}

type blockerArgs struct {
	Reason string `json:"reason"`
	Needs  string `json:"needs"`
}

func (ReportBlocker) Spec() tool.Spec {
	return tool.Spec{
		Name:        "ReportBlocker",
		Classes:     []effect.Class{1},
		Description: strings.TrimSpace(blockerDescription),
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["reason"],"properties":{
			"reason":{"type":"string","minLength":1,"description":"What stands in the way, and what you tried."},
			"needs":{"type":"string","description":"What a person has to do or decide so that the work can go on."}}}`),
		Replay: tool.Pure,
		Signal: tool.Blocker,
	}
}

func (ReportBlocker) Plan(_ tool.Place, call tool.Call) (tool.Plan, error) {
	args, err := decode[blockerArgs](call)
	return tool.Plan{Summary: oneLine(args.Reason)}, err
}

func (ReportBlocker) Run(_ context.Context, env tool.Env, call tool.Call) (tool.Result, error) {
	args, err := decode[blockerArgs](call)
	if err != nil {
		return failed(err)
	}
	return tool.Result{Status: tool.Success, Summary: oneLine(args.Reason), Text: "[blocker reported; a person is told]", Context: tool.Context{Dir: env.Place().Dir}}, nil
}
