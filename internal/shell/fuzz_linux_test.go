package shell

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"belay/effect"
	"belay/internal/sandbox"
	"belay/internal/sandbox/helper"
	"belay/tool"
)

func TestMain(m *testing.M) {
	helper.Init() // the sandbox runs this program again as its helper
	os.Exit(m.Run())
}

// frames put lines of the corpus where a shell would run them too; A and B stand for them.
var frames = []string{
	"A", "A; B", "A && B", "A || B", "A | B", "A & B", "A\nB", "(A)", "{ A; }", "! A", "$(A)", "echo $(A)", "echo \"$(A)\"", "echo `A`", "cat <(A)", "cat < <(A)", "cat <<EOF\n$(A)\nEOF", "cat <<< \"$(A)\"", "ls > >(A)", "X=$(A)", "x=$(A); B", "a=($(A)); B",
	"echo ${x:-$(A)}", "echo ${x/$(A)/y}", "echo $(( $(A) ))", "echo {a,$(A)}", "[[ -n $(A) ]]", "[ -n \"$(A)\" ]", "if A; then B; fi", "if true; then A; else B; fi", "while A; do B; break; done", "for v in 1 2; do A; done", "for v in $(A); do B; done", "case x in x) A;; *) B;; esac", "case $(A) in *) B;; esac",
	"f() { A; }; f", "f() { A; }; B; f", "time A", "timeout 5 A", "env A", "nice A", "command A", "xargs A < x", "echo x | xargs A", "find . -name x -exec A {} \\;", "bash -c 'A'", "sh -c 'A'", "eval 'A'", "exec A", "x='A'; $x", "x='A'; eval \"$x\"", "set -e; A", "cd src; A", "cd src && A; B", "A 2>&1 | head -3", "A > /dev/null", "A < x", "A --output=OWNED", "A -o OWNED", "A -i", "A *", "A \"$X\"", "A $X", "-A", "A\\\nB", "A # B", "A '", "\"A\"", "\\A",
}

// FuzzAgainstBash puts lines of the corpus into one another and runs what comes out as a read, in a real bash in a sandbox
// with the workspace writable: no file may change.
func FuzzAgainstBash(f *testing.F) {
	var lines []string
	for _, l := range reads(f) {
		if !strings.Contains(l, "sleep") && !strings.Contains(l, "tail -f") && !strings.Contains(l, "while true") {
			lines = append(lines, l)
		}
	}
	for _, o := range others(f) {
		lines = append(lines, o.line)
	}
	for i := range frames {
		f.Add(uint16(i), uint16(i*31), uint16(i*57), "", uint8(0))
	}
	var place tool.Place
	var files func() map[string]string
	var before map[string]string
	var box *sandbox.Sandbox
	dirs := f.TempDir()
	fresh := func(t *testing.T) {
		// The workspace outlives one input, as long as nothing changes it.
		home, err := os.MkdirTemp(dirs, "state")
		if err != nil {
			t.Fatal(err)
		}
		dir, err := os.MkdirTemp(dirs, "")
		if err != nil {
			t.Fatal(err)
		}
		place, files = workspaceIn(t, dir)
		before = files()
		if box, err = sandbox.New(sandbox.Config{Workspace: place.Workspace, Home: home}); err != nil {
			t.Fatal(err)
		}
		if box.Level().Isolation == sandbox.None {
			return
		}
		// A write must be seen, or nothing that follows proves anything.
		if _, err := box.Env(effect.Grant{Workspace: effect.ReadWrite}, place.Dir).Exec(context.Background(), tool.Command{Argv: []string{"touch", "canary"}, Dir: place.Dir, Timeout: time.Minute}); err != nil {
			t.Fatal(err)
		}
		if cmp.Equal(before, files()) {
			t.Fatal("a file that a command makes is not seen")
		}
		if err := os.Remove(place.Workspace + "/canary"); err != nil {
			t.Fatal(err)
		}
	}
	f.Fuzz(func(t *testing.T, frame, a, b uint16, insert string, at uint8) {
		if len(insert) > 40 {
			t.Skip()
		}
		line := strings.NewReplacer("A", lines[int(a)%len(lines)], "B", lines[int(b)%len(lines)]).Replace(frames[int(frame)%len(frames)])
		if k := int(at) % (len(line) + 1); insert != "" {
			line = line[:k] + insert + line[k:]
		}
		if box == nil {
			fresh(t)
		}
		p, err := Analyze(line, place)
		if err != nil || !p.Reads() {
			return
		}
		if box.Level().Isolation == sandbox.None {
			return // never outside of a sandbox: TestReadsChangeNothing runs the corpus itself
		}
		env := box.Env(effect.Grant{Workspace: effect.ReadWrite}, place.Dir)
		if _, err := env.Exec(context.Background(), tool.Command{Argv: []string{"bash", "--norc", "--noprofile", "-c", "--", p.Text}, Dir: place.Dir, Output: io.Discard, Timeout: 3 * time.Second}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before, files()); diff != "" {
			box = nil
			t.Fatalf("%q runs as %q and changes files: %s", line, p.Text, diff)
		}
	})
}
