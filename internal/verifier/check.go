package verifier

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"belay/tool"
	"belay/verify"
)

// World is what verifiers that run no command of their own look at.
type World struct {
	Workspace string
	Env       tool.Env                                          // for what is run
	Changed   func(context.Context) (paths []string, err error) // files that the work changed, removed or added
}

// Inspect is a verifier that looks at files itself: of the types schema, diff_bound, forbidden and metamorphic.
type Inspect struct {
	Spec verify.Check
	World
}

func (v *Inspect) Name() string { return cmp.Or(v.Spec.Name, v.Spec.Type) }

func (v *Inspect) Named() bool { return true }

func (v *Inspect) Level() verify.Level { return cmp.Or(v.Spec.Level, verify.CheckTypes[v.Spec.Type]) }

func (v *Inspect) Verify(ctx context.Context) (verify.Report, error) {
	started := time.Now()
	var wrong []string
	var did string
	var err error
	switch v.Spec.Type {
	case "schema":
		did, wrong, err = v.schema()
	case "diff_bound", "forbidden":
		did, wrong, err = v.changes(ctx)
	case "metamorphic":
		did, wrong, err = v.metamorphic(ctx)
	default:
		return verify.Report{}, fmt.Errorf("a check of type %q is none that looks at files", v.Spec.Type)
	}
	if err != nil {
		return verify.Report{}, err
	}
	report := verify.Report{Verifier: v.Name(), OK: len(wrong) == 0, Summary: did, Output: strings.Join(append([]string{did}, wrong...), "\n") + "\n", Duration: time.Since(started), Sandbox: "harness"}
	if !report.OK {
		report.Exit, report.Summary = 1, wrong[0]
		report.Failure = &verify.Failure{Message: wrong[0]}
	}
	sum := sha256.Sum256([]byte(report.Output))
	report.LogHash = hex.EncodeToString(sum[:])
	return report, nil
}

// Matches says whether a path lies under a pattern: "src/**" and "src" are all below src, "*.lock" any file so called.
func Matches(pattern, file string) bool {
	pattern = strings.TrimPrefix(pattern, "./")
	dir := strings.TrimSuffix(strings.TrimSuffix(pattern, "**"), "/")
	if pattern == "**" || dir != "" && !strings.ContainsAny(dir, "*?[") && (file == dir || strings.HasPrefix(file, dir+"/")) {
		return true
	}
	if ok, _ := path.Match(pattern, file); ok {
		return true
	}
	if tail, any := strings.CutPrefix(pattern, "**/"); any {
		for rest := file; ; {
			if Matches(tail, rest) {
				return true
			}
			_, after, more := strings.Cut(rest, "/")
			if !more {
				return false
			}
			rest = after
		}
	}
	if !strings.Contains(pattern, "/") {
		ok, _ := path.Match(pattern, path.Base(file))
		return ok
	}
	return false
}

func (v *Inspect) changes(ctx context.Context) (string, []string, error) {
	changed, err := v.Changed(ctx)
	if err != nil {
		return "", nil, fmt.Errorf("see what was changed: %w", err)
	}
	slices.Sort(changed)
	var wrong []string
	for _, file := range changed {
		inside := slices.ContainsFunc(v.Spec.Paths, func(p string) bool { return Matches(p, file) })
		switch {
		case v.Spec.Type == "forbidden" && inside:
			wrong = append(wrong, file+" was changed, which is forbidden")
		case v.Spec.Type == "diff_bound" && len(v.Spec.Paths) > 0 && !inside:
			wrong = append(wrong, file+" was changed, which lies outside "+strings.Join(v.Spec.Paths, ", "))
		}
	}
	if limit := v.Spec.MaxFiles; limit > 0 && len(changed) > limit {
		wrong = append(wrong, fmt.Sprintf("%d files were changed; at most %d may be", len(changed), limit))
	}
	return fmt.Sprintf("%d files changed", len(changed)), wrong, nil
}

// maxDocument bounds what is read as JSON, in bytes.
const maxDocument = 16 << 20

func (v *Inspect) read(root *os.Root, name string) ([]byte, error) {
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("it is no file")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxDocument+1))
	if len(data) > maxDocument {
		err = fmt.Errorf("it is larger than %d bytes", maxDocument)
	}
	return data, err
}

func (v *Inspect) schema() (string, []string, error) {
	root, err := os.OpenRoot(v.Workspace)
	if err != nil {
		return "", nil, err
	}
	defer root.Close()
	schema, err := v.read(root, v.Spec.Schema)
	if err != nil {
		return "", []string{fmt.Sprintf("the schema %s: %v", v.Spec.Schema, err)}, nil
	}
	var wrong []string
	seen := 0
	for _, pattern := range v.Spec.Paths {
		names, err := filepath.Glob(filepath.Join(v.Workspace, filepath.FromSlash(pattern)))
		if err != nil {
			return "", nil, err
		}
		for _, name := range names {
			rel, err := filepath.Rel(v.Workspace, name)
			if err != nil {
				return "", nil, err
			}
			seen++
			data, err := v.read(root, filepath.ToSlash(rel))
			if err == nil {
				err = tool.CheckDocument(schema, data)
			}
			if err != nil {
				wrong = append(wrong, fmt.Sprintf("%s: %v", filepath.ToSlash(rel), err))
			}
		}
	}
	if seen == 0 {
		wrong = append(wrong, "no document is there: "+strings.Join(v.Spec.Paths, ", "))
	}
	return fmt.Sprintf("%d documents checked against %s", seen, v.Spec.Schema), wrong, nil
}

// metamorphic runs a command twice: on the lines of its input, and on the same lines in another order.
func (v *Inspect) metamorphic(ctx context.Context) (string, []string, error) {
	root, err := os.OpenRoot(v.Workspace)
	if err != nil {
		return "", nil, err
	}
	defer root.Close()
	input, err := v.read(root, v.Spec.Input)
	if err != nil {
		return "", []string{fmt.Sprintf("the input %s: %v", v.Spec.Input, err)}, nil
	}
	lines := strings.Split(strings.TrimRight(string(input), "\n"), "\n")
	other := slices.Clone(lines)
	slices.Reverse(other)
	half := len(other) / 3 // neither reversed nor as it was
	other = append(other[half:], other[:half]...)
	if slices.Equal(lines, other) {
		return "", []string{fmt.Sprintf("the input %s needs lines that differ, to be put into another order", v.Spec.Input)}, nil
	}
	var got [2]string
	for i, text := range [][]string{lines, other} {
		var out bytes.Buffer
		exit, err := v.Env.Exec(ctx, tool.Command{Argv: []string{"sh", "-c", v.Spec.Run}, Stdin: strings.NewReader(strings.Join(text, "\n") + "\n"), Output: &out, Timeout: DefaultTimeout})
		if err != nil {
			return "", nil, err
		}
		if exit.Code != 0 {
			return "", []string{fmt.Sprintf("`%s` exits with %d: %s", v.Spec.Run, exit.Code, out.String())}, nil
		}
		got[i] = out.String()
	}
	did := fmt.Sprintf("`%s` gives the same for %d lines in another order", v.Spec.Run, len(lines))
	if v.Spec.Compare == "lines" {
		for i := range got {
			sorted := strings.Split(got[i], "\n")
			slices.Sort(sorted)
			got[i] = strings.Join(sorted, "\n")
		}
	}
	if got[0] != got[1] {
		return did, []string{fmt.Sprintf("`%s` gives another output for the same lines in another order: %.200q and %.200q", v.Spec.Run, got[0], got[1])}, nil
	}
	return did, nil, nil
}
