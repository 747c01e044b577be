package tools

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"belay/effect"
	"belay/tool"
)

//go:embed glob.md
var globDescription string

const globShown = 100 // files in one answer

// Glob finds files by the pattern of their path.
type Glob struct{}

type globArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
}

func (Glob) Spec() tool.Spec {
	return tool.Spec{
		Name:        "Glob",
		Classes:     []effect.Class{1, 5},
		Description: strings.TrimSpace(globDescription),
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["pattern"],"properties":{
			"pattern":{"type":"string","minLength":1,"description":"A pattern such as **/*.go or src/**/test_*.py, relative to path."},
			"path":{"type":"string","description":"The folder to search; the current folder when left out."}}}`),
		Replay: tool.Pure,
	}
}

func (Glob) read(call tool.Call) (globArgs, error) {
	args, err := decode[globArgs](call)
	if err == nil {
		err = badPath(args.Path)
	}
	if err == nil && !doublestar.ValidatePattern(args.Pattern) {
		err = tool.Mistakef(tool.InvalidArguments, "Check brackets and braces, for example **/*.{go,md}.", "the pattern %q is malformed", args.Pattern)
	}
	if err == nil && (filepath.IsAbs(args.Pattern) || slices.Contains(strings.Split(args.Pattern, "/"), "..")) {
		err = tool.Mistakef(tool.InvalidArguments, "Give the folder as path and the pattern relative to it.", "the pattern %q leaves the folder that is searched", args.Pattern)
	}
	return args, err
}

func (g Glob) Plan(place tool.Place, call tool.Call) (tool.Plan, error) {
	args, err := g.read(call)
	if err != nil {
		return tool.Plan{}, err
	}
	root := place.Resolve(args.Path)
	return tool.Plan{Effects: effect.Set{{Kind: effect.Read, Target: root}}, Summary: fmt.Sprintf("glob %s in %s", args.Pattern, place.Rel(root))}, nil
}

func (g Glob) Run(ctx context.Context, env tool.Env, call tool.Call) (tool.Result, error) {
	args, err := g.read(call)
	if err != nil {
		return failed(err)
	}
	root, info, refusal, err := start(env, args.Path)
	if refusal != nil || err != nil {
		return deref(refusal), err
	}
	place := env.Place()
	if !info.IsDir() {
		return tool.Failf(tool.Unsupported, "Give a folder as path.", "%s is not a folder", place.Rel(root)), nil
	}
	type hit struct {
		rel  string
		info tool.FileInfo
	}
	var hits []hit
	pattern := strings.TrimPrefix(args.Pattern, "./")
	w := walk{env: env, hidden: true, visit: func(rel string, info tool.FileInfo) bool {
		if ok, _ := doublestar.Match(pattern, rel); ok && !info.IsDir() {
			hits = append(hits, hit{rel, info})
		}
		return true
	}}
	if err := w.run(ctx, root); err != nil {
		return walkFailed(env, root, err)
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return b.info.ModTime.Compare(a.info.ModTime) })
	var b strings.Builder
	for i, h := range hits {
		if i == globShown {
			fmt.Fprintf(&b, "[… %d more; make the pattern narrower or give a path]\n", len(hits)-i)
			break
		}
		b.WriteString(shownName(place.Rel(filepath.Join(root, filepath.FromSlash(h.rel)))) + "\n")
	}
	r := tool.Result{Status: tool.Success, Summary: plural(len(hits), "file"), Text: b.String(), Context: tool.Context{Dir: place.Dir}}
	if len(hits) == 0 {
		r.Text = "[no file matches; files that .gitignore leaves out are not searched]"
	}
	return bounded(r, w), nil
}

func deref(r *tool.Result) tool.Result {
	if r == nil {
		return tool.Result{}
	}
	return *r
}

// bounded marks a result whose walk did not see everything.
func bounded(r tool.Result, w walk) tool.Result {
	if w.partial {
		r.Status = tool.Partial
		r.Text = strings.TrimSuffix(r.Text, "\n") + fmt.Sprintf("\n[incomplete: a folder could not be read, or more than %d entries lie there; give a path]", walkLimit)
	}
	return r
}
