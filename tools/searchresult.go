package tools

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"belay/tool"
)

//go:embed searchresult.md
var searchResultDescription string

// SearchResult looks into the stored results of the run.
type SearchResult struct {
	// Stored returns a whole result by its call id, or by at least eight characters of its blob's hash; ok says whether
	// there is one. Nil is a run without any.
	Stored func(ref string) (text string, ok bool, err error)
}

type searchArgs struct {
	Ref     string `json:"ref"`
	Pattern string `json:"pattern"`
	Lines   string `json:"lines"`
}

const (
	searchMatches = 200 // lines that match and are shown, at most
	searchRange   = 400 // lines of one range
)

func (SearchResult) Spec() tool.Spec {
	return tool.Spec{
		Name:        "SearchResult",
		Description: strings.TrimSpace(searchResultDescription),
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["ref"],"properties":{
			"ref":{"type":"string","minLength":1,"description":"The call id of the result, as the erased or cut text names it."},
			"pattern":{"type":"string","minLength":1,"description":"A regular expression; matching lines are shown with their numbers."},
			"lines":{"type":"string","description":"A range of lines, such as 120-180 or 300."}}}`),
		Cut:    tool.CutBoth,
		Replay: tool.Pure,
	}
}

func (SearchResult) Plan(_ tool.Place, call tool.Call) (tool.Plan, error) {
	args, err := decode[searchArgs](call)
	if err != nil {
		return tool.Plan{}, err
	}
	if args.Pattern != "" {
		if _, err := regexp.Compile(args.Pattern); err != nil {
			return tool.Plan{}, tool.Mistakef(tool.InvalidArguments, "Write it in Go's syntax of regular expressions.", "the pattern cannot be read: %v", err)
		}
	}
	if _, _, err := lineRange(args.Lines); err != nil {
		return tool.Plan{}, err
	}
	return tool.Plan{Summary: "look into the result " + oneLine(args.Ref)}, nil
}

func (t SearchResult) Run(_ context.Context, env tool.Env, call tool.Call) (tool.Result, error) {
	args, err := decode[searchArgs](call)
	if err != nil {
		return failed(err)
	}
	from, to, err := lineRange(args.Lines)
	if err != nil {
		return failed(err)
	}
	text, ok := "", false
	if t.Stored != nil {
		if text, ok, err = t.Stored(args.Ref); err != nil {
			return tool.Result{}, fmt.Errorf("read the stored result %s: %w", args.Ref, err)
		}
	}
	if !ok {
		return tool.Failf(tool.NotFound, "Give the call id that the erased or cut result names.", "no result is stored under %q", args.Ref), nil
	}
	lines := splitLines(text)
	var b strings.Builder
	summary := ""
	if args.Pattern != "" {
		pattern, err := regexp.Compile(args.Pattern)
		if err != nil {
			return tool.Result{}, err // it was compiled when it was planned
		}
		found := 0
		for i, line := range lines {
			if n := i + 1; to > 0 && (n < from || n > to) || !pattern.MatchString(line) {
				continue
			}
			if found++; found <= searchMatches {
				fmt.Fprintf(&b, "%6d\t%s\n", i+1, clipped(line))
			}
		}
		summary = fmt.Sprintf("%s of %d match", plural(found, "line"), len(lines))
		if found > searchMatches {
			summary += fmt.Sprintf("; the first %d are shown", searchMatches)
		}
	} else {
		if to == 0 {
			from, to = 1, searchRange
		}
		to = min(to, len(lines), from+searchRange-1)
		for n := from; n <= to; n++ {
			fmt.Fprintf(&b, "%6d\t%s\n", n, clipped(lines[n-1]))
		}
		summary = fmt.Sprintf("lines %d-%d of %d", from, max(to, from-1), len(lines))
	}
	return tool.Result{Status: tool.Success, Summary: summary, Text: b.String() + "[" + summary + "]", Context: tool.Context{Dir: env.Place().Dir}}, nil
}

func clipped(line string) string {
	if len(line) > 500 {
		return strings.ToValidUTF8(line[:500], "") + fmt.Sprintf("[… %d bytes of this line left out]", len(line)-500)
	}
	return line
}

// lineRange reads "120-180" or "300"; "" is no range, 0 and 0.
func lineRange(s string) (from, to int, err error) {
	if strings.TrimSpace(s) == "" {
		return 0, 0, nil
	}
	first, last, both := strings.Cut(s, "-")
	from, err = strconv.Atoi(strings.TrimSpace(first))
	to = from
	if err == nil && both {
		to, err = strconv.Atoi(strings.TrimSpace(last))
	}
	if err != nil || from < 1 || to < from {
		return 0, 0, tool.Mistakef(tool.InvalidArguments, "Write it as 120-180.", "%q is no range of lines", s)
	}
	return from, to, nil
}
