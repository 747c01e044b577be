package tools

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"belay/effect"
	"belay/tool"
)

//go:embed edit.md
var editDescription string

// Edit replaces exact text in a file.
type Edit struct{}

type editArgs struct {
	FilePath   string `json:"file_path"`
	OldString  string `json:"old_string"`
	NewString  string `json:"new_string"`
	ReplaceAll bool   `json:"replace_all"`
	DryRun     bool   `json:"dry_run"`
}

func (Edit) Spec() tool.Spec {
	return tool.Spec{
		Name:        "Edit",
		Classes:     []effect.Class{2, 3, 5},
		Description: strings.TrimSpace(editDescription),
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["file_path","old_string","new_string"],"properties":{
			"file_path":{"type":"string","minLength":1,"description":"The file, absolute or relative to the current folder."},
			"old_string":{"type":"string","minLength":1,"description":"The exact text to replace, with its whitespace and without line numbers."},
			"new_string":{"type":"string","description":"The text to put there."},
			"replace_all":{"type":"boolean","description":"Replace every occurrence instead of exactly one."},
			"dry_run":{"type":"boolean","description":"Show what would change and write nothing."}}}`),
		Replay: tool.Reversible,
	}
}

func (Edit) Plan(place tool.Place, call tool.Call) (tool.Plan, error) {
	args, err := decode[editArgs](call)
	if err == nil {
		err = badPath(args.FilePath)
	}
	if err != nil {
		return tool.Plan{}, err
	}
	if args.OldString == args.NewString {
		return tool.Plan{}, tool.Mistakef(tool.NoChange, "Give a new_string that differs, or do not edit.", "old_string and new_string are the same: nothing would change")
	}
	path := place.Resolve(args.FilePath)
	return editPlan(place, path, fmt.Sprintf("edit %s (+%d -%d)", place.Rel(path), lineCount(args.NewString), lineCount(args.OldString)), args.DryRun), nil
}

func lineCount(s string) int { return len(splitLines(s)) }

func (e Edit) Run(ctx context.Context, env tool.Env, call tool.Call) (tool.Result, error) {
	args, err := decode[editArgs](call)
	if err != nil {
		return failed(err)
	}
	if _, err := e.Plan(env.Place(), call); err != nil {
		return failed(err)
	}
	return edit(ctx, env, env.Place().Resolve(args.FilePath), []change{{args.OldString, args.NewString, args.ReplaceAll}}, args.DryRun)
}

// lineEndings gives the strings the line endings of the file, where the model, which does not see them, wrote plain newlines.
func lineEndings(file, old, replacement string) (string, string) {
	crlf, lf := strings.Count(file, "\r\n"), strings.Count(file, "\n")
	if crlf == 0 || strings.Contains(replacement, "\r") {
		return old, replacement
	}
	if !strings.Contains(file, old) && strings.Contains(old, "\n") && !strings.Contains(old, "\r") {
		if with := strings.ReplaceAll(old, "\n", "\r\n"); strings.Contains(file, with) {
			return with, strings.ReplaceAll(replacement, "\n", "\r\n")
		}
	}
	if crlf == lf {
		if strings.Contains(old, "\r\n") || !strings.Contains(old, "\n") {
			replacement = strings.ReplaceAll(replacement, "\n", "\r\n")
		}
	}
	return old, replacement
}

// around shows the lines of a change with two more on each side, at most 40.
func around(text string, first, count int) string {
	lines := splitLines(text)
	from, to := max(first-2, 1), min(first+count+1, len(lines))
	to = min(to, from+39)
	if from > to {
		return ""
	}
	shown, _ := window(lines[:to], from, to-from+1)
	return strings.TrimSuffix(shown, "\n")
}

func notUnique(shown, file, old string, n int) tool.Result {
	var at []string
	line, rest := 1, file
	for len(at) < 20 {
		i := strings.Index(rest, old)
		if i < 0 {
			break
		}
		line += strings.Count(rest[:i], "\n")
		at = append(at, fmt.Sprint(line))
		line += strings.Count(old, "\n")
		rest = rest[i+len(old):]
	}
	if n > len(at) {
		at = append(at, "…")
	}
	return tool.Failf(tool.NotUnique, "Add lines around it to old_string until it is unique, or set replace_all to change all of them.", "old_string occurs %d times in %s, at lines %s", n, shown, strings.Join(at, ", "))
}

var numbered = regexp.MustCompile(`(?m)^ *\d+\t`)

// notMatched says what the nearest text is, and which difference it is that people cannot see.
func notMatched(shown, file, old string) tool.Result {
	hint := ""
	switch {
	case len(numbered.FindAllString(old, -1)) > 0 && strings.Contains(file, numbered.ReplaceAllString(old, "")):
		hint = "It carries the line numbers that Read shows: leave them out."
	case strings.Contains(squeeze(file), squeeze(old)) && squeeze(old) != "":
		hint = "The same text is there with other whitespace (blanks, tabs or line endings): copy it exactly as Read shows it."
	}
	near := nearLines(file, old)
	if near != "" {
		if hint != "" {
			hint += "\n"
		}
		hint += "The nearest lines are:\n" + near
	}
	if hint == "" {
		hint = "Nothing in the file is near it. Read the file again."
	}
	return tool.Failf(tool.NotFound, hint, "old_string is not in %s", shown)
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

// nearLines shows up to three lines that are most like the first telling line of old.
func nearLines(file, old string) string {
	want := ""
	for _, l := range splitLines(old) {
		if l = squeeze(l); len(l) > 3 {
			want = l
			break
		}
	}
	if want == "" {
		return ""
	}
	type near struct {
		line  int
		score float64
	}
	var best []near
	lines := splitLines(file)
	for i, l := range lines {
		if s := likeness(want, squeeze(l)); s >= 0.5 {
			best = append(best, near{i, s})
		}
		if len(best) > 3 {
			worst := 0
			for j, b := range best {
				if b.score < best[worst].score {
					worst = j
				}
			}
			best = append(best[:worst], best[worst+1:]...)
		}
	}
	var b strings.Builder
	for _, n := range best {
		line, _ := window(lines[:n.line+1], n.line+1, 1)
		b.WriteString(line)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// likeness is the share of pairs of neighbouring bytes that two lines have in common (Dice's coefficient), 0 to 1.
func likeness(a, b string) float64 {
	if a == b {
		return 1
	}
	a, b = a[:min(len(a), 200)], b[:min(len(b), 200)]
	if len(a) < 2 || len(b) < 2 || len(a) > 4*len(b) || len(b) > 4*len(a) {
		return 0
	}
	pairs := map[[2]byte]int{}
	for i := 0; i+1 < len(a); i++ {
		pairs[[2]byte{a[i], a[i+1]}]++
	}
	common := 0
	for i := 0; i+1 < len(b); i++ {
		if p := [2]byte{b[i], b[i+1]}; pairs[p] > 0 {
			pairs[p]--
			common++
		}
	}
	return 2 * float64(common) / float64(len(a)+len(b)-2)
}
