package shell

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"belay/tool"
)

// workspace makes a repository in which every read of the corpus has something to read, and whose git configuration is
// hostile: it names programs that leave a trace.
func workspace(t *testing.T) (tool.Place, func() map[string]string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ws, home := filepath.Join(root, "ws"), filepath.Join(root, "home")
	for _, dir := range []string{filepath.Join(ws, "src"), filepath.Join(ws, "sub"), home} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string]string{"a.go": "func main\n", "x": "foo b c\n1\n2\n", "y": "y\n", "src/main.go": "package x\n", "package.json": `{"scripts":{"test":"x"}}`, "go.mod": "module x\n", ".gitattributes": "* diff=evil\n"} {
		if err := os.WriteFile(filepath.Join(ws, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	evil := "touch '" + ws + "/OWNED'; cat"
	for _, c := range [][]string{{"init", "-q"}, {"config", "user.name", "me"}, {"config", "user.email", "me@example.com"}, {"add", "."}, {"commit", "-qm", "first"},
		{"config", "core.fsmonitor", evil}, {"config", "core.pager", evil}, {"config", "diff.external", evil}, {"config", "diff.evil.textconv", evil}, {"config", "diff.evil.command", evil}, {"config", "log.showSignature", "true"},
		{"config", "gpg.program", evil}, {"config", "pager.log", "true"}, {"config", "alias.status", "!" + evil}, {"config", "core.editor", evil}, {"config", "credential.helper", "!" + evil}} {
		cmd := exec.Command("git", c...)
		cmd.Dir = ws
		cmd.Env = append(os.Environ(), "HOME="+home, "GIT_CONFIG_NOSYSTEM=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", c, err, out)
		}
	}
	// A changed file with an unchanged size makes git compare, and refresh its index where it may.
	if err := os.WriteFile(filepath.Join(ws, "a.go"), []byte("func maim\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(ws, "y"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	return tool.Place{Workspace: ws, Dir: ws, Home: home}, func() map[string]string {
		files := map[string]string{}
		err := filepath.Walk(root, func(p string, info os.FileInfo, err error) error {
			if err != nil || info.IsDir() {
				return err
			}
			// The go command counts its own calls, and keeps what it asked the C compiler, in the home: the
			// sandbox's home is private and read-only for a line that reads.
			if strings.HasPrefix(p, filepath.Join(home, ".config/go/telemetry")) || strings.HasPrefix(p, filepath.Join(home, ".cache/go-build")) {
				return nil
			}
			b, err := os.ReadFile(p)
			files[p] = info.Mode().String() + info.ModTime().String() + string(b)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
}

// TestReadsChangeNothing runs what was judged to read, in a real bash with everything writable: no file may change.
func TestReadsChangeNothing(t *testing.T) {
	place, files := workspace(t)
	before := files()
	for _, line := range reads {
		p, err := Analyze(line, place)
		if err != nil || !p.Reads() {
			t.Errorf("%q: %v %v", line, p.Effects, err)
			continue
		}
		run(t, place, p.Text)
		after := files()
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("%q runs as %q and changes files: %s", line, p.Text, diff)
			before = after
		}
	}
}

// TestHostileRepositoryWouldAct makes sure that the test above can fail: unguarded, git does what the configuration says.
func TestHostileRepositoryWouldAct(t *testing.T) {
	for _, line := range []string{"git status", "git diff", "git log -p -1", "git show", "git blame x"} {
		place, files := workspace(t)
		run(t, place, line)
		if _, ok := files()[filepath.Join(place.Workspace, "OWNED")]; !ok {
			t.Errorf("%q starts nothing: the workspace proves nothing about it", line)
		}
	}
}

func run(t *testing.T, place tool.Place, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "--norc", "--noprofile", "-c", "--", text)
	cmd.Dir = place.Dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + place.Home, "LANG=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1"}
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Errorf("%q does not end: %s", text, out)
	}
	if err != nil && (strings.Contains(string(out), "syntax error") || strings.Contains(string(out), "unknown option") || strings.Contains(string(out), "unrecognized argument") || strings.Contains(string(out), "usage: git")) {
		t.Errorf("%q is not what the program takes: %s", text, out)
	}
}
