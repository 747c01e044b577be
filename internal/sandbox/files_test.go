//go:build unix

package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/effect"
	"belay/tool"
)

// fileSandbox is a sandbox for file methods, which need no isolation of the kernel's.
func fileSandbox(t testing.TB, change func(*Config)) *Sandbox {
	s := newSandbox(t, change)
	s.level.Isolation = Namespaces
	return s
}

func TestFiles(t *testing.T) {
	s := fileSandbox(t, nil)
	e := s.Env(write, "")
	if err := e.WriteFile("a/b/c.txt", []byte("one")); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(s.workspace, "a", "b", "c.txt")
	if got, err := e.ReadFile(file); err != nil || string(got) != "one" {
		t.Errorf("%q, %v", got, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode() != 0o644 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := os.Chmod(file, 0o751); err != nil {
		t.Fatal(err)
	}
	if err := s.Env(write, filepath.Join(s.workspace, "a")).WriteFile("b/c.txt", []byte("two")); err != nil {
		t.Fatal(err)
	}
	if info, err := e.Stat("a/b/c.txt"); err != nil || info.Size != 3 || info.Name != "c.txt" || info.Mode != 0o751 {
		t.Errorf("%+v, %v", info, err)
	}
	list, err := e.ReadDir("a/b")
	if err != nil || len(list) != 1 || list[0].Name != "c.txt" {
		t.Errorf("temporary files stayed: %+v, %v", list, err)
	}
	if err := e.Remove("a/b"); err == nil {
		t.Error("a directory with something in it was removed")
	}
	for _, path := range []string{"a/b/c.txt", "a/b"} {
		if err := e.Remove(path); err != nil {
			t.Error(err)
		}
	}
	for _, err := range []error{
		second(e.ReadFile("a/none")), second(e.Stat("a/none")), second(e.ReadDir("none")), e.Remove("none"),
	} {
		if !errors.Is(err, fs.ErrNotExist) || errors.Is(err, tool.ErrDenied) {
			t.Errorf("missing: %v", err)
		}
	}
	if err := e.WriteFile("a", nil); err == nil || errors.Is(err, tool.ErrDenied) {
		t.Errorf("writing a directory: %v", err)
	}
	if _, err := e.ReadFile("a"); err == nil {
		t.Error("reading a directory")
	}
	if info, err := e.Stat("."); err != nil || !info.IsDir() || info.Name != filepath.Base(s.workspace) {
		t.Errorf("%+v, %v", info, err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestGrants(t *testing.T) {
	s := fileSandbox(t, nil)
	put(t, filepath.Join(s.workspace, "a"), "a")
	for _, tc := range []struct {
		access      effect.Access
		read, write bool
	}{{"", false, false}, {effect.NoAccess, false, false}, {effect.ReadOnly, true, false}, {effect.Discard, true, false}, {effect.ReadWrite, true, true}} {
		e := s.Env(effect.Grant{Workspace: tc.access}, "")
		for name, err := range map[string]error{"ReadFile": second(e.ReadFile("a")), "Stat": second(e.Stat("a")), "ReadDir": second(e.ReadDir("."))} {
			if tc.read != (err == nil) || (err != nil && !errors.Is(err, tool.ErrDenied)) {
				t.Errorf("%s with %q: %v", name, tc.access, err)
			}
		}
		for name, err := range map[string]error{"WriteFile": e.WriteFile("b", nil), "Remove": e.Remove("b")} {
			if tc.write != (err == nil) || (err != nil && !errors.Is(err, tool.ErrDenied)) {
				t.Errorf("%s with %q: %v", name, tc.access, err)
			}
		}
	}
}

func TestFilesStayInside(t *testing.T) {
	away := t.TempDir()
	put(t, filepath.Join(away, "secret"), "outside")
	s := fileSandbox(t, func(c *Config) { c.Protect = []string{"golden"} })
	ws := s.workspace
	put(t, filepath.Join(ws, ".belay", "permissions.yaml"), "x")
	put(t, filepath.Join(ws, ".git", "hooks", "sample"), "x")
	put(t, filepath.Join(ws, "golden", "a"), "x")
	put(t, filepath.Join(ws, "real", "file"), "inside")
	put(t, filepath.Join(s.home, "vault"), "x")
	for link, target := range map[string]string{
		"to-file": filepath.Join(away, "secret"), "to-dir": away, "up": "..", "dangling": filepath.Join(away, "new"),
		"to-policy": ".belay", "to-hooks": ".git/hooks", "good": "real", "good-file": "real/file", "loop": "loop", "lost": "real/missing",
	} {
		if err := os.Symlink(target, filepath.Join(ws, link)); err != nil {
			t.Fatal(err)
		}
	}
	e := s.Env(write, "")
	for _, path := range []string{
		"to-file", "to-dir/secret", "to-dir/new", "up/x", filepath.Join(away, "secret"), "../x", "real/../../x", "/etc/passwd", "to-dir/new/deep",
		".belay/permissions.yaml", ".belay", "to-policy/permissions.yaml", filepath.Join(s.home, "vault"), s.home,
	} {
		for name, err := range map[string]error{
			"ReadFile": second(e.ReadFile(path)), "Stat": second(e.Stat(path)), "ReadDir": second(e.ReadDir(path)), "WriteFile": e.WriteFile(path, []byte("x")),
		} {
			if !errors.Is(err, tool.ErrDenied) {
				t.Errorf("%s %s: %v", name, path, err)
			}
		}
	}
	for _, path := range []string{".git/hooks/sample", ".git/hooks/new", "to-hooks/new", ".git/config", "golden/a", "golden/new", "golden", ".vscode/tasks.json", ".", ".belay"} {
		if err := e.WriteFile(path, []byte("x")); !errors.Is(err, tool.ErrDenied) {
			t.Errorf("WriteFile %s: %v", path, err)
		}
		if err := e.Remove(path); !errors.Is(err, tool.ErrDenied) {
			t.Errorf("Remove %s: %v", path, err)
		}
	}
	if err := e.Remove("golden"); !errors.Is(err, tool.ErrDenied) {
		t.Errorf("Remove golden: %v", err)
	}
	// A link inside is followed, one that leads nowhere is replaced, one that is removed is not followed.
	for _, path := range []string{"good-file", "good/file"} {
		if got, err := e.ReadFile(path); err != nil || string(got) != "inside" {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	if err := e.WriteFile("good-file", []byte("changed")); err != nil || get(t, filepath.Join(ws, "real", "file")) != "changed" {
		t.Errorf("through a link: %v", err)
	}
	if err := e.WriteFile("dangling", []byte("x")); err != nil || exists(filepath.Join(away, "new")) {
		t.Errorf("dangling link: %v", err)
	}
	if _, err := e.ReadFile("loop"); err == nil {
		t.Error("a loop of links was read")
	}
	if err := e.Remove("to-file"); err != nil || !exists(filepath.Join(away, "secret")) {
		t.Errorf("removing a link: %v", err)
	}
	if got := get(t, filepath.Join(away, "secret")); got != "outside" {
		t.Errorf("the outside was changed: %q", got)
	}
	list, err := e.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		if f.Name == ".belay" {
			t.Error(".belay is listed")
		}
	}
}

func TestReadableRoots(t *testing.T) {
	base := t.TempDir()
	bin, mod := filepath.Join(base, "sdk", "bin"), filepath.Join(base, "mod")
	put(t, filepath.Join(bin, "compiler"), "#!/bin/sh\n")
	put(t, filepath.Join(base, "sdk", "lib", "source"), "source")
	put(t, filepath.Join(base, "sdk", "credentials.toml"), "token")
	put(t, filepath.Join(mod, "example.com", "dep.go"), "package dep")
	put(t, filepath.Join(mod, "cache", "vcs", "config"), "token")
	s := fileSandbox(t, func(c *Config) {
		c.Environ = []string{"PATH=" + bin + string(os.PathListSeparator) + base, "HOME=" + filepath.Join(base, "home"), "GOMODCACHE=" + mod}
	})
	e := s.Env(write, "")
	for path, want := range map[string]string{filepath.Join(base, "sdk", "lib", "source"): "source", filepath.Join(mod, "example.com", "dep.go"): "package dep"} {
		if got, err := e.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
		if err := e.WriteFile(path, nil); !errors.Is(err, tool.ErrDenied) {
			t.Errorf("%s could be written: %v", path, err)
		}
		if err := e.Remove(path); !errors.Is(err, tool.ErrDenied) {
			t.Errorf("%s could be removed: %v", path, err)
		}
	}
	for _, path := range []string{filepath.Join(base, "sdk", "credentials.toml"), filepath.Join(mod, "cache", "vcs", "config")} {
		if _, err := e.ReadFile(path); !errors.Is(err, tool.ErrDenied) {
			t.Errorf("%s could be read: %v", path, err)
		}
	}
}

func TestSpecialFiles(t *testing.T) {
	s := fileSandbox(t, nil)
	makePipe(t, filepath.Join(s.workspace, "pipe"))
	e := s.Env(write, "")
	if _, err := e.ReadFile("pipe"); err == nil || !strings.Contains(err.Error(), "neither a file nor a directory") {
		t.Errorf("%v", err)
	}
	if err := e.WriteFile("pipe", nil); err == nil {
		t.Error("a pipe was overwritten")
	}
}

func TestNewRefuses(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "file"), "")
	for name, cfg := range map[string]Config{
		"nothing":       {},
		"root":          {Workspace: "/", Home: t.TempDir()},
		"missing":       {Workspace: filepath.Join(dir, "none"), Home: t.TempDir()},
		"file":          {Workspace: filepath.Join(dir, "file"), Home: t.TempDir()},
		"same":          {Workspace: dir, Home: dir},
		"protect above": {Workspace: dir, Home: t.TempDir(), Protect: []string{"../x"}},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestHarmlessFlags(t *testing.T) {
	for in, want := range map[string]string{
		"-buildvcs=false -toolexec=/tmp/x -mod=mod": "-buildvcs=false -mod=mod",
		"-overlay=x --tags=a,b -modfile=y -exec=z":  "--tags=a,b",
		"": "",
	} {
		if diff := cmp.Diff(want, harmlessFlags(in)); diff != "" {
			t.Error(diff)
		}
	}
}

func TestGitIdentity(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	put(t, file, "[core]\n\tname = no\n[user]\n\temail = a@b.example\n\tname = \"A B\"\n[credential]\n\thelper = x\n")
	if name, email := gitIdentity(file); name != "A B" || email != "a@b.example" {
		t.Errorf("%q %q", name, email)
	}
}
func makePipe(t testing.TB, path string) {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o644); err != nil {
		t.Fatal(err)
	}
}
