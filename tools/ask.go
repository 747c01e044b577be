package tools

import (
	"context"
	_ "embed"
	"encoding/json"
	"slices"
	"strings"

	"belay/effect"
	"belay/tool"
)

//go:embed ask.md
var askDescription string

// AskUser puts a question to the person and waits for the answer.
type AskUser struct{}

type askArgs struct {
	Question string `json:"question"`
	Options  []struct {
		ID    string `json:"id"`
		Label string `json:"label"`
	} `json:"options"`
	Default   string  `json:"default"`
	Timeout   float64 `json:"timeout"`
	OnTimeout string  `json:"on_timeout"`
}

func (AskUser) Spec() tool.Spec {
	return tool.Spec{
		Name:        "AskUser",
		Classes:     []effect.Class{1},
		Description: strings.TrimSpace(askDescription),
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["question"],"properties":{
			"question":{"type":"string","minLength":1,"description":"What the person must decide, with all that is needed to decide it."},
			"options":{"type":"array","description":"The answers to choose from; without them the person writes one.","items":{"type":"object","additionalProperties":false,"required":["id","label"],"properties":{
				"id":{"type":"string","minLength":1,"description":"A short name, such as a."},
				"label":{"type":"string","minLength":1,"description":"What it means."}}}},
			"default":{"type":"string","description":"The id of the option that holds when nobody answers in time."},
			"timeout":{"type":"number","minimum":1,"description":"Seconds to wait; without it, as long as it takes."},
			"on_timeout":{"type":"string","enum":["pause","default"],"description":"What happens when nobody answers in time: the run pauses (pause, when left out), or the default holds."}}}`),
		Replay: tool.Pure,
		Signal: tool.Question,
	}
}

func (AskUser) Plan(_ tool.Place, call tool.Call) (tool.Plan, error) {
	args, err := decode[askArgs](call)
	if err != nil {
		return tool.Plan{}, err
	}
	var ids []string
	for _, o := range args.Options {
		if slices.Contains(ids, o.ID) {
			return tool.Plan{}, tool.Mistakef(tool.InvalidArguments, "Give every option an id of its own.", "two options have the id %q", o.ID)
		}
		ids = append(ids, o.ID)
	}
	if args.Default != "" && len(ids) > 0 && !slices.Contains(ids, args.Default) {
		return tool.Plan{}, tool.Mistakef(tool.InvalidArguments, "Use one of: "+strings.Join(ids, ", ")+".", "default %q is no option", args.Default)
	}
	if args.OnTimeout == "default" && args.Default == "" {
		return tool.Plan{}, tool.Mistakef(tool.InvalidArguments, "Give the default, or leave on_timeout out.", "on_timeout is default, and there is none")
	}
	return tool.Plan{Summary: oneLine(args.Question)}, nil
}

// Run is never reached: the loop asks.
func (AskUser) Run(_ context.Context, env tool.Env, _ tool.Call) (tool.Result, error) {
	return tool.Result{Status: tool.Success, Text: "The person was asked.", Context: tool.Context{Dir: env.Place().Dir}}, nil
}
