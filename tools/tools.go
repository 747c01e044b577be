// Package tools holds the tools that ship: each is one .go file and one .md file, the description that the model reads.
package tools

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"belay/tool"
)

// Standard returns the tools that every run has, in the order in which a model sees them.
func Standard() []tool.Tool {
	return []tool.Tool{Bash{}, Read{}, Write{}, Edit{}, MultiEdit{}, Glob{}, Grep{}, LS{}, SearchResult{}, Memory{}, UpdatePlan{}, TaskComplete{}, ReportBlocker{}, AskUser{}}
}

// decode reads the arguments of a call. The registry has validated them; what still does not fit is the
// model's mistake.
func decode[T any](call tool.Call) (T, error) {
	var args T
	raw := call.Args
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&args); err != nil {
		return args, tool.Mistakef(tool.InvalidArguments, "Check the names and types of the arguments against the schema.", "the arguments of %s cannot be read: %v", call.Name, err)
	}
	return args, nil
}

// failed turns an error from decoding or planning inside Run into a result for the model.
func failed(err error) (tool.Result, error) {
	var mistake *tool.Mistake
	if errors.As(err, &mistake) {
		return tool.Fail(mistake.Failure), nil
	}
	return tool.Result{}, err
}

// fileError turns an error of Env about a path into a result for the model. What is neither a refusal nor a
// state of the file is the harness's fault.
func fileError(env tool.Env, path string, err error) (tool.Result, error) {
	shown := env.Place().Rel(path)
	switch {
	case errors.Is(err, tool.ErrDenied):
		return tool.Failf(tool.Denied, "Work on files inside the workspace, or call ReportBlocker and say what is needed.", "%s: %v", shown, err), nil
	case errors.Is(err, fs.ErrNotExist):
		return notFound(env, path), nil
	case errors.Is(err, fs.ErrPermission):
		return tool.Failf(tool.Denied, "The file's permissions do not allow it. Call ReportBlocker if the task needs it.", "%s: permission denied", shown), nil
	case errors.Is(err, syscall.EROFS):
		return tool.Failf(tool.Denied, "Nothing can be changed here: answer from what you can read, or call ReportBlocker.", "%s lies on a file system that is read-only", shown), nil
	case errors.Is(err, syscall.ENOTDIR):
		return tool.Failf(tool.NotFound, "A part of the path is a file. Look at its folder with LS.", "%s does not exist", shown), nil
	case errors.Is(err, syscall.EISDIR):
		return tool.Failf(tool.Unsupported, "Use LS to see what is in it.", "%s is a directory", shown), nil
	case errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.EINVAL):
		return tool.Failf(tool.InvalidArguments, "Check the path.", "%.80s…: %s", shown, "this cannot be the path of a file"), nil
	}
	return tool.Result{}, fmt.Errorf("access to %s: %w", path, err)
}

// notFound says which names are near, or how far the path exists.
func notFound(env tool.Env, path string) tool.Result {
	place := env.Place()
	hint := ""
	dir := filepath.Dir(path)
	entries, err := env.ReadDir(dir)
	if err != nil {
		for parent := filepath.Dir(dir); parent != dir; dir, parent = parent, filepath.Dir(parent) {
			if info, err := env.Stat(parent); err == nil && info.IsDir() {
				hint = fmt.Sprintf("The folder %s does not exist either; %s does. Look with LS.", place.Rel(filepath.Dir(path)), place.Rel(parent))
				break
			}
		}
	} else {
		var names []string
		for _, e := range entries {
			names = append(names, e.Name)
		}
		if near := tool.Nearest(filepath.Base(path), names, 3); len(near) > 0 {
			for i := range near {
				near[i] = place.Rel(filepath.Join(dir, near[i]))
			}
			hint = "Did you mean " + strings.Join(near, " or ") + "?"
		} else {
			hint = fmt.Sprintf("No name in %s is near it. Look with LS, or search with Glob.", place.Rel(dir))
		}
	}
	if hint == "" {
		hint = "Look with LS, or search with Glob."
	}
	return tool.Failf(tool.NotFound, hint, "%s does not exist", place.Rel(path))
}

// plural is "1 line", "2 lines".
func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// badPath refuses what cannot be a path of a file.
func badPath(path string) error {
	if strings.ContainsRune(path, 0) {
		return tool.Mistakef(tool.InvalidArguments, "Give a path without NUL characters.", "the path holds a NUL character")
	}
	if len(path) > maxPath {
		return tool.Mistakef(tool.InvalidArguments, "Give a shorter path.", "a path of %d bytes is longer than most programs can take (%d)", len(path), maxPath)
	}
	return nil
}

// maxPath is the longest path in bytes that a tool takes: what Linux takes in one call is a little more.
const maxPath = 4000

// shownName is a file's name or path on one line, whatever characters it holds.
func shownName(s string) string {
	return strings.NewReplacer("\n", `\x0a`, "\t", `\x09`).Replace(escapeBytes(s))
}
