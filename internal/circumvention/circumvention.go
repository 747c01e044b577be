// Package circumvention names what a change does to the things that judge it: tests, their configuration, and code that knows when it is tested.
package circumvention

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Change is what became of one file. A path is relative to the workspace, with slashes.
type Change struct {
	Path          string
	Before, After string // its text
	Added, Gone   bool
	Decides       bool // it decides what passes: a test, or the configuration of one
}

// Finding is one thing that could make a verifier pass without the work.
type Finding struct {
	Kind string
	File string
	Line int // in the text after the change; 0 where it is about what is gone
	Text string
	// Decisive says that running the tests as they were does not undo it.
	Decisive bool
}

// maxFindings of one file are enough to see what it is about.
const maxFindings = 20

// Inspect looks at changed files. Tests are the texts of all tests before the change: what their literals are is what
// the code must not simply hold.
func Inspect(changes []Change, tests []string) []Finding {
	var all []Finding
	for _, c := range changes {
		var found []Finding
		switch {
		case c.Decides:
			found = judges(c)
		case prose(c.Path):
		default:
			found = append(subject(c), literals(c, tests)...)
		}
		slices.SortStableFunc(found, func(a, b Finding) int { return a.Line - b.Line })
		if len(found) > maxFindings {
			found = found[:maxFindings]
		}
		all = append(all, found...)
	}
	slices.SortStableFunc(all, func(a, b Finding) int { return cmp.Compare(a.File, b.File) })
	return all
}

// prose says that nothing runs a file.
func prose(file string) bool {
	switch strings.ToLower(path.Ext(file)) {
	case ".md", ".rst", ".txt", ".adoc", ".html", ".css", ".csv":
		return true
	}
	return false
}

// rule names lines that match.
type rule struct {
	kind string
	text string
	re   func() *regexp.Regexp
}

func rules(pairs ...string) []rule {
	var all []rule
	for i := 0; i < len(pairs); i += 2 {
		text := pairs[i+1]
		all = append(all, rule{pairs[i], text, sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })})
	}
	return all
}

// testRules are about lines that were added to what judges.
var testRules = rules(
	"skip added", `\.Skip(Now|f)?\(|@?unittest\.skip|pytest\.mark\.(skip|xfail)|pytest\.(skip|xfail|importorskip)\(|expectedFailure|\.skipTest\(|SkipTest\b|\b(it|test|describe|suite|context)\.(skip|todo|failing|fails)\b|\bx(it|describe|test|specify)\(|#\[ignore|@(Disabled|Ignore)\b|^//go:build\s+(ignore|never|skip|disabled)|\bskip:\s*(true|['"])|\btodo:\s*true|\bDISABLED_\w|__test__\s*=\s*False|collect_ignore|# (SKIP|TODO)\b`,
	"only some tests selected", `\b(it|test|describe|suite)\.only\(|\bf(it|describe)\(|\bonly:\s*true`,
	"early exit in a test file", `os\.Exit\(0?\)|sys\.exit\(\s*(0|None)?\s*\)|os\._exit\(|\bquit\(\)|process\.exit\(0?\)|(^|[;&|]\s*|then\s+)\s*exit(\s+0)?\s*(;|$)|process::exit\(0\)|pytest\.exit\(|raise SystemExit(\(0?\))?\s*$|runtime\.Goexit\(\)`,
	"subject mocked", `unittest\.mock|\bmock\.patch|@patch\b|monkeypatch\.|MagicMock|\b(jest|vi)\.(mock|spyOn|fn)\(|\bsinon\.|\bmock\.(module|method|fn)\(|\bgomock\b|sys\.modules\[|require\.cache\[`,
	"assertion that always holds", `assert\s+True\b|assertTrue\(\s*True\b|assertFalse\(\s*False\b|expect\(\s*true\s*\)|assert(\.ok|\.equal)?\(\s*true\b|assert!\(\s*true\s*\)|assertEqual\(\s*(\w+)\s*,\s*(\w+)\s*\)\s*# always|if\s+false\b|\bor\s+True\b|\|\|\s*true\s*\)|assert\s+1\b|\[\s*1\s+(-eq|=)\s+1\s*\]`,
	"failure ignored", `\|\|\s*(true|:|exit\s+0|echo\b)|;\s*true\s*['"]?\s*$|\bset\s+\+e\b|^\t-\s*[a-z@]|continue-on-error:\s*true|allow_failure:\s*true|--passWithNoTests|passWithNoTests|--exit-zero|--no-error|^\.IGNORE|^MAKEFLAGS.*-[a-z]*[ik]|except(\s+\w+)?:\s*(pass|return)?\s*$|catch\s*(\(\w*\))?\s*\{\s*\}|recover\(\)|contextlib\.suppress|exitstatus\s*=\s*0|process\.exitCode\s*=\s*0|trap\s+['"]?exit 0`,
	"tests deselected", `--deselect|--ignore[= ]|-k\s+['"]?not\b|--skip\b|testPathIgnorePatterns|norecursedirs|--collect-only|--co\b|\s-run[= ]['"]?\^?(\$|X|None)|--testNamePattern|-t\s+['"]|--list\b|--no-run\b|-short\b`,
)

var (
	assertion = once(`\bassert|\bexpect\(|\.(Error|Errorf|Fatal|Fatalf|Fail|FailNow)\(|\brequire\.\w+\(t|\bshould\.|\bself\.fail\(|^\s*\[\s|\btest\s+["$]|\bgrep\s+-q|\bdiff\b|cmp\.Diff`)
	declared  = once(`^\s*func\s+(Test|Fuzz|Example)\w*\(|^\s*(async\s+)?def\s+test\w*\(|^\s*(it|test)\(|#\[test\]|^\s*test_\w+\s*\(\)|^@test\b`)
	coverage  = once(`fail_under|cov-fail-under|coverageThreshold|\b(branches|functions|lines|statements)["']?\s*:\s*\d|minimum_coverage|threshold|MINIMUM`)
	numeral   = once(`\d+(\.\d+)?`)
	early     = once(`^\s*return;?\s*$`)
)

func once(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// line is a line of a text, with its number.
type line struct {
	number int
	text   string
}

// differ gives the lines that only one of two texts has, each as often as it has more of it.
func differ(before, after string) (removed, added []line) {
	count := map[string]int{}
	for l := range strings.Lines(before) {
		count[strings.TrimSpace(l)]++
	}
	left := map[string]int{}
	n := 0
	for l := range strings.Lines(after) {
		n++
		key := strings.TrimSpace(l)
		if left[key]++; left[key] > count[key] && key != "" {
			added = append(added, line{n, strings.TrimRight(l, "\r\n")})
		}
	}
	n = 0
	for l := range strings.Lines(before) {
		n++
		key := strings.TrimSpace(l)
		if count[key] > left[key] && key != "" {
			count[key]--
			removed = append(removed, line{n, strings.TrimRight(l, "\r\n")})
		}
	}
	return removed, added
}

// judges inspects a file that decides what passes.
func judges(c Change) []Finding {
	note := func(kind string, l line) Finding {
		return Finding{Kind: kind, File: c.Path, Line: l.number, Text: short(l.text)}
	}
	what := sort(c.Path)
	if c.Gone {
		return []Finding{{Kind: what + " removed", File: c.Path}}
	}
	removed, added := differ(c.Before, c.After)
	var found []Finding
	for _, l := range added {
		for _, r := range testRules {
			if r.re().MatchString(l.text) {
				found = append(found, note(r.kind, l))
			}
		}
		if early().MatchString(l.text) && what == "test" && !c.Added {
			found = append(found, note("early return in a test file", l))
		}
	}
	if c.Added {
		if what != "test" && what != "test data" {
			found = append(found, Finding{Kind: what + " added", File: c.Path})
		}
		return found
	}
	if before, after := len(declared().FindAllString(strings.ReplaceAll(c.Before, "\r", ""), -1)), 0; before >= 0 {
		before, after = countLines(c.Before, declared()), countLines(c.After, declared())
		if after < before {
			found = append(found, Finding{Kind: "test removed", File: c.Path})
		}
	}
	var newAssertions []line
	for _, l := range added {
		if assertion().MatchString(l.text) && !comment(l.text) {
			newAssertions = append(newAssertions, l)
		}
	}
	for _, l := range removed {
		switch {
		case coverage().MatchString(l.text):
			found = append(found, Finding{Kind: "coverage threshold changed", File: c.Path, Text: short(l.text)})
		case comment(l.text):
		case assertion().MatchString(l.text):
			kind, at := "assertion removed", line{0, l.text}
			for i, a := range newAssertions {
				if shape(a.text) == shape(l.text) {
					kind, at = "expected value changed", a
				} else if close(a.text, l.text) {
					kind, at = "assertion weakened or rewritten", a
				} else {
					continue
				}
				newAssertions = slices.Delete(newAssertions, i, i+1)
				break
			}
			found = append(found, note(kind, at))
		case what == "test" && numeral().MatchString(l.text):
			for _, a := range added {
				if shape(a.text) == shape(l.text) {
					found = append(found, note("expected value changed", a))
					break
				}
			}
		}
	}
	if len(found) == 0 && what != "test" && (len(added) > 0 || len(removed) > 0) {
		at := line{}
		if len(added) > 0 {
			at = added[0]
		}
		found = append(found, note(what+" changed", at))
	}
	return found
}

func countLines(text string, re *regexp.Regexp) int {
	n := 0
	for l := range strings.Lines(text) {
		if re.MatchString(l) {
			n++
		}
	}
	return n
}

func comment(l string) bool {
	l = strings.TrimSpace(l)
	return strings.HasPrefix(l, "//") || strings.HasPrefix(l, "#") && !strings.HasPrefix(l, "#[") || strings.HasPrefix(l, "*") || strings.HasPrefix(l, "/*")
}

var literal = once(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|` + "`[^`]*`" + `|\b\d+(?:\.\d+)?\b`)

// shape is a line without its literals.
func shape(l string) string { return literal().ReplaceAllString(strings.TrimSpace(l), "~") }

// close says that two lines are about the same: they share most of their names.
func close(a, b string) bool {
	words := func(s string) []string {
		return strings.FieldsFunc(s, func(r rune) bool {
			return !(r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z')
		})
	}
	in := words(a)
	if len(in) == 0 {
		return false
	}
	same := 0
	other := words(b)
	for _, w := range in {
		if slices.Contains(other, w) {
			same++
		}
	}
	return same*2 >= len(in)
}

// sort is what kind of judge a file is.
func sort(file string) string {
	base := path.Base(file)
	stem := strings.TrimSuffix(base, path.Ext(base))
	switch {
	case strings.HasPrefix(file, ".github/"), strings.HasPrefix(file, ".circleci/"), strings.HasPrefix(base, ".gitlab-ci"), base == "Jenkinsfile", base == "azure-pipelines.yml", base == ".travis.yml":
		return "CI configuration"
	case strings.HasPrefix(base, ".coverage"), strings.HasPrefix(base, "codecov"), strings.HasPrefix(base, ".codecov"), base == ".nycrc", base == ".nycrc.json":
		return "coverage configuration"
	case base == "conftest.py", strings.HasSuffix(base, "_test.go"), strings.HasPrefix(base, "test"), strings.HasSuffix(stem, "_test"), strings.HasSuffix(stem, ".test"), strings.HasSuffix(stem, ".spec"):
		if base == "conftest.py" {
			return "test configuration"
		}
		return "test"
	case strings.Contains("/"+file, "/testdata/"), strings.Contains("/"+file, "/tests/"), strings.Contains("/"+file, "/test/"), strings.Contains("/"+file, "/__tests__/"), strings.Contains("/"+file, "/spec/"):
		if slices.Contains([]string{".go", ".py", ".js", ".ts", ".mjs", ".cjs", ".tsx", ".jsx", ".rs", ".sh", ".rb"}, path.Ext(base)) {
			return "test"
		}
		return "test data"
	}
	return "test configuration"
}

func short(text string) string {
	text = strings.TrimSpace(text)
	if r := []rune(text); len(r) > 120 {
		return string(r[:119]) + "…"
	}
	return text
}
