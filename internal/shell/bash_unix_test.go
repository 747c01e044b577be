//go:build unix

package shell

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"belay/tool"
)

// workspace makes a repository in which every read of the corpus has something to read, and whose git configuration is
// hostile: it names programs that leave a trace.
func workspace(t *testing.T) (tool.Place, func() map[string]string) {
	t.Helper()
	return workspaceIn(t, t.TempDir())
}

func workspaceIn(t *testing.T, dir string) (tool.Place, func() map[string]string) {
	t.Helper()
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	ws, home := filepath.Join(root, "ws"), filepath.Join(root, "home")
	for _, dir := range []string{filepath.Join(ws, "src"), filepath.Join(ws, "sub"), home} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string]string{"a.go": "func main\n", "x": "foo b c\n1\n2\n", "y": "y\n", "src/main.go": "package x\n", "package.json": `{"name":"x","version":"1.0.0","scripts":{"test":"x"}}`, "b.go": "package b\n", "x.go": "package x\n// TODO foo\n", "list.txt": "x\ny\n", "x.json": `{"a":1,"items":[]}`, "x.csv": "a,1\nb,2\n", "x.py": "def foo(): pass\n", "README.md": "# x\n", "VERSION": "1\n",
		"script.sh": "echo x\n", "json.py": "open('OWNED','w')\n", "argparse.py": "open('OWNED','w')\n", "sitecustomize.py": "open('OWNED','w')\n", "-i": "x\n", "-delete": "x\n", "--output=OWNED": "x\n", ".npmrc": "node-options=--require=./evil.js\n", "evil.js": "require('fs').writeFileSync('OWNED','')\n", ".ripgreprc": "--pre=./evil\n", "src/x.go": "package x\n", "a": "a\n", "b": "b\n", "x.tsv": "a\tb\n", "go.mod": "module x\n", ".gitattributes": "* diff=evil\n"} {
		if err := os.WriteFile(filepath.Join(ws, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	evil := "touch '" + ws + "/OWNED'; cat"
	for _, c := range [][]string{{"init", "-q"}, {"config", "user.name", "me"}, {"config", "user.email", "me@example.com"}, {"add", "."}, {"commit", "-qm", "first"},
		{"config", "core.fsmonitor", evil}, {"config", "core.pager", evil}, {"config", "diff.external", evil}, {"config", "diff.evil.textconv", evil}, {"config", "diff.evil.command", evil}, {"config", "log.showSignature", "true"},
		{"config", "gpg.program", evil}, {"config", "core.hooksPath", ws + "/hooks"}, {"config", "format.pretty", "format:%G?"}, {"config", "pretty.evil", "format:%G?"}, {"config", "status.submoduleSummary", "true"}, {"config", "tag.sort", "signature"}, {"config", "core.sshCommand", evil}, {"config", "pager.diff", evil}, {"config", "pager.status", evil}, {"config", "interactive.diffFilter", evil}, {"config", "gpg.ssh.program", evil}, {"config", "difftool.x.cmd", evil}, {"config", "protocol.ext.allow", "always"}, {"config", "pager.log", "true"}, {"config", "alias.status", "!" + evil}, {"config", "core.editor", evil}, {"config", "credential.helper", "!" + evil}} {
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
			// The go command counts its own calls, and keeps what it asked the C compiler, in the home, and rustup its settings: the
			// sandbox's home is private and read-only for a line that reads.
			if strings.HasPrefix(p, filepath.Join(home, ".config/go/telemetry")) || strings.HasPrefix(p, filepath.Join(home, ".cache/go-build")) || strings.HasPrefix(p, filepath.Join(home, ".rustup")) {
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
	lines := reads(t)
	const shards, batch = 6, 15
	for shard := range shards {
		t.Run(fmt.Sprint(shard), func(t *testing.T) {
			t.Parallel()
			place, files := workspace(t)
			before := files()
			var texts []string
			check := func() {
				if cmp.Equal(before, files()) {
					texts = nil
					return
				}
				place, files := workspace(t)
				before := files()
				for _, text := range texts {
					run(t, place, text)
					if diff := cmp.Diff(before, files()); diff != "" {
						t.Errorf("%q changes files: %s", text, diff)
						before = files()
					}
				}
				texts = nil
			}
			for i := shard; i < len(lines); i += shards {
				p, err := Analyze(lines[i], place)
				if err != nil || !p.Reads() {
					t.Errorf("%q: %v %v", lines[i], p.Effects, err)
					continue
				}
				run(t, place, p.Text)
				if texts = append(texts, p.Text); len(texts) == batch {
					check()
					before = files()
				}
			}
			check()
		})
	}
}

// TestFiltersOfARepository gives a repository a filter, which git would start while it compares files.
func TestFiltersOfARepository(t *testing.T) {
	place, _ := workspace(t)
	for _, line := range []string{"git status", "git diff", "git diff HEAD", "cd src && git status", "git -C src status", "git blame x", "git ls-files -m"} {
		if p, err := Analyze(line, place); err != nil || !p.Reads() {
			t.Errorf("without a filter %q: %v, %v", line, p.Effects, err)
		}
	}
	config := filepath.Join(place.Workspace, ".git/config")
	for _, text := range []string{"[filter \"x\"]\n\tclean = touch OWNED\n", "[FILTER \"x\"]\n\tprocess = x\n", "[include]\n\tpath = x\n", "[includeIf \"gitdir:x\"]\n\tpath = x\n"} {
		if err := os.WriteFile(config, []byte("[core]\n\tbare = false\n"+text), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, line := range []string{"git status", "git diff", "git diff HEAD", "cd src && git status", "git -C src status", "git blame x", "git ls-files -m", `cd "$X" && git status`, "git -C / -C " + place.Workspace + " status"} {
			if p, err := Analyze(line, place); err != nil || p.Reads() {
				t.Errorf("with %q %q: %v, %v", text, line, p.Effects, err)
			}
		}
		if p, err := Analyze("git log -3", place); err != nil || !p.Reads() {
			t.Errorf("git log looks at no file of the workspace: %v, %v", p.Effects, err)
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
	// Some lines wait for ever on purpose; what matters is what they leave.
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "--norc", "--noprofile", "-c", "--", text)
	cmd.Dir = place.Dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + place.Home, "LANG=C.UTF-8", "GIT_CONFIG_NOSYSTEM=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil && (strings.Contains(string(out), "syntax error") || strings.Contains(string(out), "unknown option") || strings.Contains(string(out), "unrecognized argument") || strings.Contains(string(out), "usage: git")) {
		t.Errorf("%q is not what the program takes: %s", text, out)
	}
}
