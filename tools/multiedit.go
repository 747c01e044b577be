package tools

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"belay/effect"
	"belay/tool"
)

//go:embed multiedit.md
var multiEditDescription string

// MultiEdit makes several replacements in one file: all of them or none.
type MultiEdit struct{}

type multiEditArgs struct {
	FilePath string   `json:"file_path"`
	Edits    []change `json:"edits"`
	DryRun   bool     `json:"dry_run"`
}

func (MultiEdit) Spec() tool.Spec {
	return tool.Spec{
		Name:        "MultiEdit",
		Classes:     []effect.Class{2, 3, 5},
		Description: strings.TrimSpace(multiEditDescription),
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["file_path","edits"],"properties":{
			"file_path":{"type":"string","minLength":1,"description":"The file, absolute or relative to the current folder."},
			"edits":{"type":"array","minItems":1,"maxItems":100,"description":"Made one after the other, each on what the one before has left.","items":{"type":"object","additionalProperties":false,"required":["old_string","new_string"],"properties":{
				"old_string":{"type":"string","minLength":1,"description":"The exact text to replace."},
				"new_string":{"type":"string","description":"The text to put there."},
				"replace_all":{"type":"boolean","description":"Replace every occurrence instead of exactly one."}}}},
			"dry_run":{"type":"boolean","description":"Show what would change and write nothing."}}}`),
		Replay: tool.Reversible,
	}
}

func (MultiEdit) Plan(place tool.Place, call tool.Call) (tool.Plan, error) {
	args, err := decode[multiEditArgs](call)
	if err == nil {
		err = badPath(args.FilePath)
	}
	if err != nil {
		return tool.Plan{}, err
	}
	for i, e := range args.Edits {
		if e.OldString == e.NewString {
			return tool.Plan{}, tool.Mistakef(tool.NoChange, "Leave it out.", "edit %d of %d changes nothing: old_string and new_string are the same", i+1, len(args.Edits))
		}
	}
	path := place.Resolve(args.FilePath)
	return editPlan(place, path, fmt.Sprintf("edit %s (%s)", place.Rel(path), plural(len(args.Edits), "replacement")), args.DryRun), nil
}

func (e MultiEdit) Run(ctx context.Context, env tool.Env, call tool.Call) (tool.Result, error) {
	args, err := decode[multiEditArgs](call)
	if err != nil {
		return failed(err)
	}
	if _, err := e.Plan(env.Place(), call); err != nil {
		return failed(err)
	}
	return edit(ctx, env, env.Place().Resolve(args.FilePath), args.Edits, args.DryRun)
}

// editPlan is what an edit does; a dry one only reads.
func editPlan(place tool.Place, path, summary string, dry bool) tool.Plan {
	plan := tool.Plan{Effects: effect.Set{{Kind: effect.Read, Target: path}}, Summary: summary}
	if dry {
		plan.Replay, plan.Summary = tool.Pure, "look at: "+summary
		return plan
	}
	plan.Effects = append(plan.Effects, effect.Effect{Kind: effect.Write, Target: path})
	return plan
}

// edit makes changes in a file.
func edit(ctx context.Context, env tool.Env, path string, changes []change, dry bool) (tool.Result, error) {
	data, refusal, err := loadText(env, path)
	if err != nil {
		return fileError(env, path, err)
	}
	if refusal != nil {
		return *refusal, nil
	}
	c, refusal := applied(env.Place().Rel(path), string(data), changes)
	if refusal != nil {
		return *refusal, nil
	}
	return settle(ctx, env, path, string(data), c, dry)
}
