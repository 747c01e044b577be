//go:build unix

package shell

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/tool"
)

var reportMark = regexp.MustCompile("\x1eM ([^\x1e]*)\x1e")

// ran is what a run of a line shows: all that a watched line must not change.
type ran struct {
	Out, Errors string
	Code        int
	Files       map[string]string
}

func runLine(t *testing.T, text string) (ran, []string) {
	t.Helper()
	dir := t.TempDir()
	c := exec.Command("bash", "--norc", "--noprofile", "-c", "--", text)
	c.Dir = dir
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C"}
	var out, diagnostics bytes.Buffer
	c.Stdout, c.Stderr = &out, &diagnostics
	c.Run()
	r := ran{Code: c.ProcessState.ExitCode(), Files: map[string]string{}}
	filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err == nil && info.Mode().IsRegular() {
			b, _ := os.ReadFile(path)
			r.Files[strings.TrimPrefix(path, dir)] = string(b)
		}
		return nil
	})
	var reports []string
	for _, m := range reportMark.FindAllStringSubmatch(out.String(), -1) {
		reports = append(reports, m[1])
	}
	r.Out = strings.ReplaceAll(reportMark.ReplaceAllString(out.String(), ""), dir, "DIR")
	r.Errors = strings.ReplaceAll(diagnostics.String(), dir, "DIR")
	return r, reports
}

func unchanged(t *testing.T, line string) (Watched, []string) {
	t.Helper()
	p, err := Analyze(line, tool.Place{Workspace: "/w", Dir: "/w"})
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	w, ok := p.Watch("M")
	if !ok {
		return w, nil
	}
	want, _ := runLine(t, p.Text)
	got, reports := runLine(t, w.Text)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%q watched as %q differs (-plain +watched):\n%s", line, w.Text, d)
	}
	return w, reports
}

// Each stage and part reports its status, and the line does what it did.
func TestWatch(t *testing.T) {
	for _, c := range []struct {
		line    string
		reports []string
	}{
		{"printf 'a\\nb\\n' | grep x | sed s/a/b/", []string{"0 0 1 0", "end 0", "exit 0"}},
		{"true; false; echo hi", []string{"0 0", "1 1", "2 0", "end 0", "exit 0"}},
		{"false && echo no || echo yes", []string{"0 1", "2 0", "end 0", "exit 0"}},
		{"set -e; true | false | cat; false | true | (exit 3); echo unreached", []string{"0 0", "1 0 1 0", "exit 1 0 3"}},
		{"set -e; false && true; echo on", []string{"0 0", "1 1", "3 0", "end 0", "exit 0"}},
		{"set -e; ! true; echo on", []string{"0 0", "1 0", "2 0", "end 0", "exit 0"}},
		{"set -euo pipefail; false | true; echo no", []string{"0 0", "exit 1 0"}},
		{"mkdir d && cd $_ && pwd", []string{"0 0", "1 0", "2 0", "end 0", "exit 0"}},
		{"true; exit 5", nil},
		{"false; echo $?", nil},
		{"f() { false; return 7; }; f; echo $?; f || echo $?", nil},
		{"cat <<EOF | tr a b; echo after\na$HOME\nEOF", nil},
		{"cat <<'A' <<B; echo x && cat <<C\n1\nA\n2\nB\n3\nC", nil},
		{"exec >out; echo a; echo b | cat", nil},
		{"exec 1>&-; echo a; true", nil},
		{"(exit 3); echo $?; { false; }; echo $?; (echo a; false) && echo b", nil},
		{"for i in 1 2; do echo $i | grep 1 || break; done; echo $?", nil},
		{"x=$(false); echo $? $x; y=2 true; echo ${y-unset}", nil},
		{"IFS=,; a='1,2'; echo $a; false | true; echo \"$IFS\"", nil},
		{"nosuchcommand; echo $?\nalso-none", nil},
		{"echo a >x && echo b >>x; cat x | while read l; do echo $l; done; wait", nil},
		{"sleep 0 & wait; echo done", nil},
		{"true && exec echo last", nil},
		{"set -u; echo a; echo $nope; echo b", nil},
		{"kill -TERM $$; echo no", nil},
		{"set -- a b; echo $# $1; shift; echo $*", nil},
		{"if false; then echo a; fi; echo $?; case x in x) false;; esac; echo $?", nil},
		{"! false | true; echo $?; ! true && echo a || echo b", nil},
		{"echo one # comment\necho two \\\n  three", nil},
		{"set -e; (false; echo in) || echo caught; (false; echo in); echo no", nil},
		{"[[ a == b ]] || ((1 > 2)) || let 1 && time true 2>/dev/null", nil},
		{"return 3; echo $?; break; echo $?", nil},
		{"echo a | { read x; echo $x; false; } ; echo ${x-none}", nil},
		{"true |& cat; yes | head -1", nil},
		{"true && nosuch\nfalse || nosuch2\nnosuch3", nil},
		{"set -a; x=1; true; env | grep -c belay", nil},
	} {
		_, reports := unchanged(t, c.line)
		if c.reports != nil {
			if d := cmp.Diff(c.reports, reports); d != "" {
				t.Errorf("%q (-want +got):\n%s", c.line, d)
			}
		}
	}
}

// Lines built of pieces that depend on the statuses before them do what plain bash does.
func TestWatchedLinesAreTheSame(t *testing.T) {
	pieces := []string{"true", "false", "(exit 3)", "echo $?", "! true", "! false", "echo $_", "f 2", "set -e", "set +e", "set -o pipefail",
		"{ echo g; false; }", "(set -e; false; echo s)", "x=$(exit 4)", "cd /", "[[ -n $x ]]", "nosuch", "true | false", "false | true", "echo a | grep b | cat",
		"if false; then :; fi", "exit 6", "echo z >>file", "while false; do :; done"}
	ops := []string{"; ", " && ", " || ", "\n", "; "}
	seed := uint32(1)
	next := func(n int) int {
		seed = seed*1664525 + 1013904223
		return int(seed>>16) % n
	}
	for range 150 {
		line := "f() { return $1; }"
		for i := range 2 + next(5) {
			op := "; "
			if i > 0 {
				op = ops[next(len(ops))]
			}
			line += op + pieces[next(len(pieces))]
		}
		unchanged(t, line)
		if t.Failed() {
			return
		}
	}
}

// A line that could notice is left alone.
func TestNotWatched(t *testing.T) {
	for _, line := range []string{"echo one", "trap 'echo x' EXIT; true", "a | b; echo ${PIPESTATUS[0]}", "set -ex; a", "set; a", "ls /proc/self/fd; b"} {
		p, err := Analyze(line, tool.Place{Workspace: "/w", Dir: "/w"})
		if err != nil {
			t.Fatal(err)
		}
		if w, ok := p.Watch("M"); ok {
			t.Errorf("%q is watched as %q", line, w.Text)
		}
	}
}
