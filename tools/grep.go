package tools

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"belay/effect"
	"belay/tool"
)

//go:embed grep.md
var grepDescription string

const (
	grepShown = 50      // matching lines in one answer, unless head_limit says otherwise
	grepFile  = 4 << 20 // bytes of the largest file that is searched
	grepLine  = 300     // bytes of a line that are shown
)

// Grep searches the contents of files.
type Grep struct{}

type grepArgs struct {
	Pattern    string `json:"pattern"`
	Path       string `json:"path"`
	Glob       string `json:"glob"`
	OutputMode string `json:"output_mode"`
	IgnoreCase bool   `json:"ignore_case"`
	Context    int    `json:"context"`
	HeadLimit  int    `json:"head_limit"`
}

func (Grep) Spec() tool.Spec {
	return tool.Spec{
		Name:        "Grep",
		Classes:     []effect.Class{1, 5},
		Description: strings.TrimSpace(grepDescription),
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["pattern"],"properties":{
			"pattern":{"type":"string","minLength":1,"description":"A regular expression (RE2 syntax), matched line by line."},
			"path":{"type":"string","description":"The folder or file to search; the current folder when left out."},
			"glob":{"type":"string","description":"Search only files whose name or path matches, for example *.go."},
			"output_mode":{"type":"string","enum":["content","files_with_matches","count"],"description":"content shows the matching lines (the default)."},
			"ignore_case":{"type":"boolean","description":"Do not tell upper and lower case apart."},
			"context":{"type":"integer","minimum":0,"maximum":20,"description":"Lines to show before and after each match."},
			"head_limit":{"type":"integer","minimum":1,"maximum":1000,"description":"How many matches to show, at most; 50 when left out."}}}`),
		Cut:    tool.CutHead,
		Replay: tool.Pure,
	}
}

func (Grep) read(call tool.Call) (grepArgs, *regexp.Regexp, error) {
	args, err := decode[grepArgs](call)
	if err == nil {
		err = badPath(args.Path)
	}
	if err != nil {
		return args, nil, err
	}
	expr := args.Pattern
	if args.IgnoreCase {
		expr = "(?i)" + expr
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return args, nil, tool.Mistakef(tool.InvalidArguments, "Escape literal ( ) [ ] { } . * + ? with a backslash; there are no look-arounds and back references.", "the pattern is no regular expression: %v", err)
	}
	if args.Glob != "" && !doublestar.ValidatePattern(args.Glob) {
		return args, nil, tool.Mistakef(tool.InvalidArguments, "Check brackets and braces, for example *.{go,md}.", "the glob %q is malformed", args.Glob)
	}
	return args, re, nil
}

func (g Grep) Plan(place tool.Place, call tool.Call) (tool.Plan, error) {
	args, _, err := g.read(call)
	if err != nil {
		return tool.Plan{}, err
	}
	root := place.Resolve(args.Path)
	return tool.Plan{Effects: effect.Set{{Kind: effect.Read, Target: root}}, Summary: oneLine(fmt.Sprintf("grep %s in %s", args.Pattern, place.Rel(root)))}, nil
}

// search is one run of Grep.
type search struct {
	args    grepArgs
	re      *regexp.Regexp
	out     strings.Builder
	limit   int
	matches int // all of them
	shown   int
	files   []string
	skipped int // binary, too large, or not readable
}

func (g Grep) Run(ctx context.Context, env tool.Env, call tool.Call) (tool.Result, error) {
	args, re, err := g.read(call)
	if err != nil {
		return failed(err)
	}
	root, info, refusal, err := start(env, args.Path)
	if refusal != nil || err != nil {
		return deref(refusal), err
	}
	place := env.Place()
	s := &search{args: args, re: re, limit: grepShown}
	if args.HeadLimit > 0 {
		s.limit = args.HeadLimit
	}
	w := walk{env: env, visit: func(rel string, info tool.FileInfo) bool {
		if ctx.Err() != nil {
			return false
		}
		if info.Mode.IsRegular() && s.wants(rel) {
			s.file(env, filepath.Join(root, filepath.FromSlash(rel)), info)
		}
		return true
	}}
	if info.IsDir() {
		if err := w.run(ctx, root); err != nil {
			return walkFailed(env, root, err)
		}
		if ctx.Err() != nil {
			return walkFailed(env, root, ctx.Err())
		}
	} else {
		s.file(env, root, info)
	}
	return bounded(s.result(place), w), nil
}

func (s *search) wants(rel string) bool {
	if s.args.Glob == "" {
		return true
	}
	glob, name := strings.TrimPrefix(s.args.Glob, "./"), rel
	if !strings.Contains(glob, "/") {
		name = path.Base(rel)
	}
	ok, _ := doublestar.Match(glob, name)
	return ok
}

func (s *search) file(env tool.Env, file string, info tool.FileInfo) {
	if info.Size > grepFile {
		s.skipped++
		return
	}
	data, err := env.ReadFile(file)
	if err != nil || bytes.IndexByte(data[:min(len(data), 8192)], 0) >= 0 {
		s.skipped++
		return
	}
	if !s.re.Match(data) && !strings.ContainsAny(s.args.Pattern, "^$") {
		return
	}
	shown := shownName(env.Place().Rel(file))
	lines := splitLines(string(data))
	count, last := 0, -1 // last line printed
	for i, line := range lines {
		line = strings.TrimSuffix(line, "\r")
		if !s.re.MatchString(line) {
			continue
		}
		count++
		s.matches++
		if s.args.OutputMode != "" && s.args.OutputMode != "content" || s.shown >= s.limit {
			continue
		}
		s.shown++
		from, to := max(i-s.args.Context, last+1), min(i+s.args.Context, len(lines)-1)
		if s.args.Context > 0 && last >= 0 && from > last+1 {
			s.out.WriteString("--\n")
		}
		for j := from; j <= to; j++ {
			mark := ":"
			if j != i && !s.re.MatchString(lines[j]) {
				mark = "-"
			}
			fmt.Fprintf(&s.out, "%s%s%d%s%s\n", shown, mark, j+1, mark, s.line(strings.TrimSuffix(lines[j], "\r")))
			last = j
		}
	}
	if count > 0 {
		s.files = append(s.files, shown)
		if s.args.OutputMode == "count" && s.shown < s.limit {
			s.shown++
			fmt.Fprintf(&s.out, "%s:%d\n", shown, count)
		}
		if s.args.OutputMode == "files_with_matches" && s.shown < s.limit {
			s.shown++
			s.out.WriteString(shown + "\n")
		}
	}
}

// line shows at most grepLine bytes of a line, around the match.
func (s *search) line(line string) string {
	if len(line) <= grepLine {
		return escapeBytes(line)
	}
	from := 0
	if at := s.re.FindStringIndex(line); at != nil {
		from = max(0, min(at[0]-grepLine/3, len(line)-grepLine))
	}
	to := from + grepLine
	for from > 0 && line[from]&0xC0 == 0x80 {
		from--
	}
	for to < len(line) && line[to]&0xC0 == 0x80 {
		to--
	}
	return fmt.Sprintf("[…]%s[… %d bytes of this line left out]", escapeBytes(line[from:to]), len(line)-(to-from))
}

func (s *search) result(place tool.Place) tool.Result {
	total := s.matches
	what := "matching line"
	if s.args.OutputMode == "files_with_matches" || s.args.OutputMode == "count" {
		total = len(s.files)
		what = "file"
	}
	r := tool.Result{Status: tool.Success, Summary: fmt.Sprintf("%s in %s", plural(s.matches, "matching line"), plural(len(s.files), "file")), Text: s.out.String(), Context: tool.Context{Dir: place.Dir}}
	if s.matches == 0 {
		r.Text = "[no match; files that .gitignore leaves out and names that start with a dot are searched only when path names them]"
	}
	if s.shown < total {
		r.Text += fmt.Sprintf("[%d of %s in %s shown: make the pattern narrower, add a path or a glob, or raise head_limit]\n", s.shown, plural(total, what), plural(len(s.files), "file"))
	}
	if s.skipped > 0 {
		r.Text = strings.TrimSuffix(r.Text, "\n") + fmt.Sprintf("\n[%s skipped: binary, unreadable or larger than %d bytes]\n", plural(s.skipped, "file"), grepFile)
	}
	return r
}
