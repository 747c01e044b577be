package tools

import (
	"context"
	_ "embed"
	"encoding/json"
	"strings"

	"belay/tool"
)

//go:embed memory.md
var memoryDescription string

// Memory keeps notes in belay's own state, and touches nothing else.
type Memory struct {
	Edit func(tool.MemoryEdit) (text string, err error) // nil is a run without a memory
}

func (Memory) Spec() tool.Spec {
	return tool.Spec{
		Name:        "Memory",
		Description: strings.TrimSpace(memoryDescription),
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["command"],"properties":{
			"command":{"type":"string","enum":["view","create","str_replace","insert","delete","rename"]},
			"scope":{"type":"string","enum":["workspace","user"],"description":"workspace when left out."},
			"path":{"type":"string","description":"A file inside the memory, such as MEMORY.md."},
			"text":{"type":"string","description":"What is kept."},
			"old":{"type":"string","description":"For str_replace: the text that is replaced; it occurs once."},
			"line":{"type":"integer","minimum":0,"description":"For insert: the line after which the text comes; 0 is the start."},
			"to":{"type":"string","description":"For rename: the new name."},
			"source":{"type":"string","enum":["tools","agent"],"description":"tools where the content came from tool output."}}}`),
		Replay: tool.OpaqueCall,
	}
}

func (Memory) Plan(_ tool.Place, call tool.Call) (tool.Plan, error) {
	args, err := decode[tool.MemoryEdit](call)
	plan := tool.Plan{Summary: "memory: " + strings.TrimSpace(args.Command+" "+oneLine(args.Path))}
	if args.Path == "" {
		plan.Summary = "memory: " + args.Command
	}
	if args.Command == "view" {
		plan.Replay = tool.Pure
	}
	return plan, err
}

func (m Memory) Run(_ context.Context, env tool.Env, call tool.Call) (tool.Result, error) {
	args, err := decode[tool.MemoryEdit](call)
	if err != nil {
		return failed(err)
	}
	if m.Edit == nil {
		return tool.Failf(tool.Unsupported, "Go on without it.", "this run has no memory"), nil
	}
	text, err := m.Edit(args)
	if err != nil {
		return failed(err)
	}
	return tool.Result{Status: tool.Success, Summary: oneLine(text), Text: text, Context: tool.Context{Dir: env.Place().Dir}}, nil
}
