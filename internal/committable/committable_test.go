package committable

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "safe.directory=*"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// TestGitAgrees compares with git write-tree.
func TestGitAgrees(t *testing.T) {
	for _, repository := range []bool{true, false} {
		dir := t.TempDir()
		for name, text := range map[string]string{"a.txt": "a\n", "a/b.txt": "b\n", "a.b/c": "", "deep/er/x": "x", "ä ö": "u", ".gitignore": "*.log\nbuild/\n", "x.log": "log", "build/out": "o", "gone": "g", "tool.sh": "#!/bin/sh\n"} {
			path := filepath.Join(dir, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(filepath.Join(dir, "tool.sh"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("a.txt", filepath.Join(dir, "link")); err != nil {
			t.Fatal(err)
		}
		if repository {
			git(t, dir, "init", "-q")
			git(t, dir, "add", "-A")
			git(t, dir, "commit", "-qm", "a")
		}
		if err := os.Remove(filepath.Join(dir, "gone")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "new"), []byte("n"), 0o644); err != nil {
			t.Fatal(err)
		}
		got, err := Of(context.Background(), dir)
		if err != nil {
			t.Fatal(err)
		}
		if !repository {
			git(t, dir, "init", "-q")
		}
		git(t, dir, "add", "-A")
		if want := git(t, dir, "write-tree"); got.ID != want {
			t.Errorf("repository %v: %s, git says %s", repository, got.ID, want)
		}
		if d := cmp.Diff([]string{"build/", "x.log"}, got.Beside); d != "" {
			t.Error(d)
		}
	}
}
