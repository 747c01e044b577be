package tools

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"

	"belay/effect"
	"belay/tool"
)

//go:embed ls.md
var lsDescription string

const lsShown = 500 // entries in one answer

// LS lists a folder.
type LS struct{}

type lsArgs struct {
	Path string `json:"path"`
}

func (LS) Spec() tool.Spec {
	return tool.Spec{
		Name:        "LS",
		Classes:     []effect.Class{1, 5},
		Description: strings.TrimSpace(lsDescription),
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{
			"path":{"type":"string","description":"The folder; the current folder when left out."}}}`),
		Cut:    tool.CutHead,
		Replay: tool.Pure,
	}
}

func (LS) Plan(place tool.Place, call tool.Call) (tool.Plan, error) {
	args, err := decode[lsArgs](call)
	if err == nil {
		err = badPath(args.Path)
	}
	if err != nil {
		return tool.Plan{}, err
	}
	root := place.Resolve(args.Path)
	return tool.Plan{Effects: effect.Set{{Kind: effect.Read, Target: root}}, Summary: "list " + place.Rel(root)}, nil
}

func (LS) Run(_ context.Context, env tool.Env, call tool.Call) (tool.Result, error) {
	args, err := decode[lsArgs](call)
	if err != nil {
		return failed(err)
	}
	root, info, refusal, err := start(env, args.Path)
	if refusal != nil || err != nil {
		return deref(refusal), err
	}
	place := env.Place()
	if !info.IsDir() {
		return tool.Failf(tool.Unsupported, "Use Read to see a file.", "%s is not a folder", place.Rel(root)), nil
	}
	entries, err := env.ReadDir(root)
	if err != nil {
		return fileError(env, root, err)
	}
	var b strings.Builder
	for i, e := range entries {
		if i == lsShown {
			fmt.Fprintf(&b, "[… %d more; find names with Glob]\n", len(entries)-i)
			break
		}
		b.WriteString(shownName(e.Name))
		switch {
		case e.IsDir():
			b.WriteString("/")
		case e.Mode&fs.ModeSymlink != 0:
			b.WriteString(" (symbolic link)")
		case !e.Mode.IsRegular():
			b.WriteString(" (device, pipe or socket)")
		default:
			fmt.Fprintf(&b, " (%s)", plural(int(e.Size), "byte"))
		}
		b.WriteString("\n")
	}
	r := tool.Result{Status: tool.Success, Summary: fmt.Sprintf("%d entries in %s", len(entries), place.Rel(root)), Text: b.String(), Context: tool.Context{Dir: place.Dir}}
	if len(entries) == 0 {
		r.Text = "[the folder is empty]"
	}
	return r, nil
}
