package tools

import (
	"context"
	"errors"
	"path"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"belay/tool"
)

// walkLimit is how many entries a walk visits before it stops and says so.
const walkLimit = 200_000

// walk visits the files and folders below root, in the order of their names, without what .gitignore files leave out
// and without .git. rel is slash-separated and relative to root. Symbolic links are not followed.
type walk struct {
	env     tool.Env
	hidden  bool // also visit names that start with a dot
	visit   func(rel string, info tool.FileInfo) (more bool)
	seen    int
	partial bool // stopped at a bound, or a folder could not be read
	stopped bool
}

// run walks. The error is the context's or the harness's own.
func (w *walk) run(ctx context.Context, root string) error {
	// The ignore files above root, up to the workspace, hold inside it too.
	var rules []ignoreRule
	place := w.env.Place()
	if rel := place.Rel(root); rel != root && rel != "." {
		at, below := place.Workspace, strings.Split(filepath.ToSlash(rel), "/")
		for i := range below {
			rules = append(rules, readIgnore(w.env, at, strings.Repeat("../", len(below)-i), strings.Join(below[i:], "/"))...)
			at = filepath.Join(at, below[i])
		}
	}
	return w.dir(ctx, root, "", rules)
}

func (w *walk) dir(ctx context.Context, dir, rel string, rules []ignoreRule) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	entries, err := w.env.ReadDir(dir)
	if err != nil {
		if rel == "" {
			return err
		}
		w.partial = true
		return nil
	}
	rules = append(rules[:len(rules):len(rules)], readIgnore(w.env, dir, "", rel)...)
	for _, e := range entries {
		name := path.Join(rel, e.Name)
		if e.Name == ".git" || !w.hidden && strings.HasPrefix(e.Name, ".") || ignored(rules, name, e.IsDir()) {
			continue
		}
		if w.seen++; w.seen > walkLimit {
			w.partial, w.stopped = true, true
		}
		if w.stopped || !w.visit(name, e) {
			w.stopped = true
			return nil
		}
		if e.IsDir() {
			if err := w.dir(ctx, filepath.Join(dir, e.Name), name, rules); err != nil {
				return err
			}
			if w.stopped {
				return nil
			}
		}
	}
	return nil
}

// ignoreRule is one line of a .gitignore.
type ignoreRule struct {
	above   string // what stands before a path below root to make it relative to the file's folder, for files above root
	base    string // the file's folder below root
	pattern string
	negated bool
	folders bool // it matches folders only
}

func readIgnore(env tool.Env, dir, up, rel string) []ignoreRule {
	data, err := env.ReadFile(filepath.Join(dir, ".gitignore"))
	if err != nil || len(data) > 1<<20 {
		return nil
	}
	var rules []ignoreRule
	for _, line := range splitLines(string(data)) {
		line = strings.TrimRight(line, " \t\r")
		if line == "" || line[0] == '#' {
			continue
		}
		var r ignoreRule
		if up != "" {
			r.above = rel
		} else {
			r.base = rel
		}
		if line[0] == '!' {
			r.negated, line = true, line[1:]
		}
		line = strings.TrimPrefix(line, `\`)
		if strings.HasSuffix(line, "/") {
			r.folders, line = true, strings.TrimRight(line, "/")
		}
		if !strings.Contains(line, "/") {
			line = "**/" + line
		}
		r.pattern = strings.TrimPrefix(line, "/")
		if doublestar.ValidatePattern(r.pattern) {
			rules = append(rules, r)
		}
	}
	return rules
}

// ignored applies the rules as git does: the last that matches decides.
func ignored(rules []ignoreRule, rel string, folder bool) bool {
	out := false
	for _, r := range rules {
		if r.folders && !folder {
			continue
		}
		p := rel
		if r.above != "" {
			p = path.Join(r.above, rel)
		} else if r.base != "" {
			p = strings.TrimPrefix(rel, r.base+"/")
		}
		if ok, _ := doublestar.Match(r.pattern, p); ok {
			out = !r.negated
		}
	}
	return out
}

// start resolves the folder or file at which a search starts, and refuses what is not there.
func start(env tool.Env, given string) (string, tool.FileInfo, *tool.Result, error) {
	if given == "" {
		given = "."
	}
	root := env.Place().Resolve(given)
	info, err := env.Stat(root)
	if err != nil {
		r, err := fileError(env, root, err)
		return root, info, &r, err
	}
	return root, info, nil, nil
}

// walkFailed turns an error of a walk into a result for the model, where it is one.
func walkFailed(env tool.Env, root string, err error) (tool.Result, error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return tool.Failf(tool.Interrupted, "Search a smaller folder.", "the search was interrupted"), nil
	}
	return fileError(env, root, err)
}
