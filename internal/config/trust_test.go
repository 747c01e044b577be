package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func (w world) read() ProjectFiles {
	w.t.Helper()
	p, err := ReadProject(w.project)
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

func TestTrustIsForTheseFilesInThisPlace(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(w world) error
		trusted bool
		why     string
	}{
		{"nothing changed", func(world) error { return nil }, true, "trusted since"},
		{"the configuration changed", func(w world) error {
			return os.WriteFile(filepath.Join(w.project, ".belay", FileName), []byte("mode: autonomous\n"), 0o644)
		}, false, "changed since it was trusted: config.yaml"},
		{"another file changed", func(w world) error {
			return os.WriteFile(filepath.Join(w.project, ".belay", "hooks", "x.sh"), []byte("rm\n"), 0o644)
		}, false, "changed since it was trusted: hooks/x.sh"},
		{"a file came", func(w world) error {
			return os.WriteFile(filepath.Join(w.project, ".belay", "hooks", "y.sh"), nil, 0o644)
		}, false, "changed since it was trusted: hooks/y.sh"},
		{"a file went", func(w world) error { return os.Remove(filepath.Join(w.project, ".belay", "hooks", "x.sh")) }, false, "changed since it was trusted: hooks/x.sh"},
		{"a file was renamed", func(w world) error {
			return os.Rename(filepath.Join(w.project, ".belay", "hooks", "x.sh"), filepath.Join(w.project, ".belay", "hooks", "z.sh"))
		}, false, "changed since it was trusted: hooks/x.sh, hooks/z.sh"},
		{"all files went", func(w world) error { return os.RemoveAll(filepath.Join(w.project, ".belay")) }, false, "changed since it was trusted: config.yaml, hooks/x.sh"},
		{"a file became a link", func(w world) error {
			path := filepath.Join(w.project, ".belay", "hooks", "x.sh")
			return errors.Join(os.Rename(path, filepath.Join(w.project, "x.sh")), os.Symlink("../../x.sh", path))
		}, false, `"hooks/x.sh" in it is a symbolic link`},
		{"the project's other files changed", func(w world) error { return os.WriteFile(filepath.Join(w.project, "main.go"), nil, 0o644) }, true, "trusted since"},
		{"an editor was at work", func(w world) error {
			return errors.Join(os.WriteFile(filepath.Join(w.project, ".belay", ".config.yaml.swp"), []byte("x"), 0o644),
				os.WriteFile(filepath.Join(w.project, ".belay", ".DS_Store"), []byte("x"), 0o644))
		}, true, "trusted since"},
		{"the project moved and a link took its place", func(w world) error {
			return errors.Join(os.Rename(w.project, w.project+"2"), os.Symlink(w.project+"2", w.project))
		}, false, "nobody has said so"},
		{"the list became writable for others", func(w world) error { return os.Chmod(filepath.Join(w.user, TrustFile), 0o666) }, false, "others may write to it (mode 0666)"},
		{"the list is gone", func(w world) error { return os.Remove(filepath.Join(w.user, TrustFile)) }, false, "nobody has said so"},
		{"the list is damaged", func(w world) error { return os.WriteFile(filepath.Join(w.user, TrustFile), []byte("{"), 0o600) }, false, "is damaged"},
		{"the list is of a later version", func(w world) error {
			return os.WriteFile(filepath.Join(w.user, TrustFile), []byte(`{"version": 2, "projects": []}`), 0o600)
		}, false, "its version is 2"},
		{"the list is a link", func(w world) error {
			path := filepath.Join(w.user, TrustFile)
			return errors.Join(os.Rename(path, path+"2"), os.Symlink(path+"2", path))
		}, false, "it is a symbolic link"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			w.write(w.project, ".belay/config.yaml", "mode: plan\n")
			w.write(w.project, ".belay/hooks/x.sh", "true\n")
			w.grant()
			if err := c.change(w); err != nil {
				t.Fatal(err)
			}
			if trusted, why := w.trust().Trusted(w.project); trusted != c.trusted || !strings.Contains(why, c.why) {
				t.Errorf("trusted %v, because %s", trusted, why)
			}
		})
	}
}

func TestTrustList(t *testing.T) {
	w := newWorld(t)
	trust := Trust{Dir: filepath.Join(w.home, "new", "belay")} // does not exist yet
	if all, err := trust.List(); all != nil || err != nil {
		t.Error(all, err)
	}
	if was, err := trust.Revoke(w.project); was || err != nil {
		t.Error(was, err)
	}
	first, err := trust.Grant(w.read(), noon)
	if err != nil {
		t.Fatal(err)
	}
	w.write(w.project, ".belay/config.yaml", "mode: plan\n")
	again, err := trust.Grant(w.read(), noon.Add(time.Hour))
	if err != nil || first.Hash == again.Hash {
		t.Error(err, first, again)
	}
	other := filepath.Join(w.home, "other")
	if err := os.Mkdir(other, 0o755); err != nil {
		t.Fatal(err)
	}
	p, err := ReadProject(other)
	if err != nil {
		t.Fatal(err)
	}
	second, err := trust.Grant(p, noon)
	if err != nil {
		t.Fatal(err)
	}
	all, err := trust.List()
	if d := cmp.Diff([]Record{second, again}, all); d != "" || err != nil {
		t.Error(d, err)
	}
	info, err := os.Stat(filepath.Join(trust.Dir, TrustFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	if err := os.RemoveAll(other); err != nil {
		t.Fatal(err)
	}
	if was, err := trust.Revoke(other); !was || err != nil { // gone, and revoked all the same
		t.Error(was, err)
	}
	if was, err := trust.Revoke(w.project); !was || err != nil {
		t.Error(was, err)
	}
	if all, err := trust.List(); len(all) != 0 || err != nil {
		t.Error(all, err)
	}
	if left, err := filepath.Glob(filepath.Join(trust.Dir, "*.lock")); len(left) != 0 || err != nil {
		t.Error(left, err)
	}
}

func TestTrustIsReachedThroughALink(t *testing.T) {
	w := newWorld(t)
	w.grant()
	link := filepath.Join(w.home, "link")
	if err := os.Symlink(w.project, link); err != nil {
		t.Fatal(err)
	}
	if ok, why := w.trust().Trusted(link); !ok {
		t.Error(why)
	}
	if was, err := w.trust().Revoke(link); !was || err != nil {
		t.Error(was, err)
	}
}

func TestTrustIsRefused(t *testing.T) {
	for _, c := range []struct {
		name, want string
		make       func(w world) (Trust, ProjectFiles)
	}{
		{"a link in the project", "cannot be trusted", func(w world) (Trust, ProjectFiles) {
			w.write(w.project, ".belay/config.yaml", "mode: plan\n")
			if err := os.Symlink("config.yaml", filepath.Join(w.project, ".belay", "x")); err != nil {
				w.t.Fatal(err)
			}
			return w.trust(), w.read()
		}},
		{"too much in the project", "it holds more than 4194304 bytes", func(w world) (Trust, ProjectFiles) {
			w.write(w.project, ".belay/config.yaml", "mode: plan\n")
			w.write(w.project, ".belay/big", strings.Repeat("x", maxProjectBytes))
			return w.trust(), w.read()
		}},
		{"too many files in the project", "it holds more than 1000 files", func(w world) (Trust, ProjectFiles) {
			for i := range maxProjectFiles + 1 {
				w.write(w.project, fmt.Sprintf(".belay/%d", i), "x")
			}
			return w.trust(), w.read()
		}},
		{"the list lies in the project", "it holds your own configuration", func(w world) (Trust, ProjectFiles) {
			return Trust{Dir: filepath.Join(w.project, "conf")}, w.read()
		}},
		{"no place for the list", "set XDG_CONFIG_HOME", func(w world) (Trust, ProjectFiles) { return Trust{}, w.read() }},
		{"a damaged list is kept", "is damaged", func(w world) (Trust, ProjectFiles) {
			w.write(w.user, TrustFile, "{")
			return w.trust(), w.read()
		}},
		{"a list whose hash is made up", "is not that of its files", func(w world) (Trust, ProjectFiles) {
			w.write(w.user, TrustFile, `{"version":1,"projects":[{"workspace":"/x","hash":"00","files":{},"at":"2026-01-02T12:00:00Z"}]}`)
			return w.trust(), w.read()
		}},
		{"another belay was interrupted", "if none is running, remove that file", func(w world) (Trust, ProjectFiles) {
			w.write(w.user, TrustFile+".lock", "x")
			return w.trust(), w.read()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t)
			trust, p := c.make(w)
			before, _ := os.ReadFile(filepath.Join(w.user, TrustFile))
			if _, err := trust.Grant(p, noon); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
			if v := trust.Check(p); v.Trusted {
				t.Error("trusted all the same")
			}
			if after, _ := os.ReadFile(filepath.Join(w.user, TrustFile)); string(after) != string(before) {
				t.Errorf("the list was changed to %s", after)
			}
		})
	}
}

// TestTrustOfManyAtOnce would lose some where two writers do not exclude each other.
func TestTrustOfManyAtOnce(t *testing.T) {
	w := newWorld(t)
	var group sync.WaitGroup
	for i := range 8 {
		dir := filepath.Join(w.home, fmt.Sprint(i))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		group.Go(func() {
			p, err := ReadProject(dir)
			if err == nil {
				_, err = w.trust().Grant(p, noon)
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if all, err := w.trust().List(); len(all) != 8 || err != nil {
		t.Error(all, err)
	}
}

func TestOddProjectStillTightens(t *testing.T) {
	w := newWorld(t)
	w.write(w.project, ".belay/config.yaml", "mode: plan\nverify: [x]\n")
	w.grant()
	if err := os.Symlink("config.yaml", filepath.Join(w.project, ".belay", "x")); err != nil {
		t.Fatal(err)
	}
	got, notices, err := Load(w.sources())
	if err != nil || got.Mode != "plan" || got.Verify != nil || len(notices) != 2 || !strings.Contains(notices[1].Text, "cannot be trusted") {
		t.Error(got, notices, err)
	}
}

func TestInit(t *testing.T) {
	w := newWorld(t)
	verify := []Suggestion{
		{`go test ./... && echo "done" # \x`, "go.mod"},
		{"make test", "Makefile has\nthe target test\nmode: autonomous"},
	}
	written, err := Init(w.project, verify, defaults)
	path := filepath.Join(w.project, ".belay", FileName)
	if d := cmp.Diff([]string{path}, written); d != "" || err != nil {
		t.Fatal(d, err)
	}
	w.grant()
	got, notices, err := Load(w.sources())
	if err != nil || notices != nil {
		t.Fatal(err, notices)
	}
	if d := cmp.Diff(map[string]string{"verify": `["go test ./... && echo \"done\" # \\x"] < project`}, values(got)); d != "" {
		t.Error(d)
	}

	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if written, err := Init(w.project, nil, Settings{}); !errors.Is(err, fs.ErrExist) || written != nil {
		t.Error(written, err)
	}
	if after, err := os.ReadFile(path); string(after) != string(before) || err != nil {
		t.Error("an existing file was changed")
	}
}

// TestEveryCommentOfInitIsGood takes the marks away from all comments that are settings: the file must then be read.
func TestEveryCommentOfInitIsGood(t *testing.T) {
	for _, verify := range [][]Suggestion{nil, {{"make test", "Makefile"}}} {
		w := newWorld(t)
		if _, err := Init(w.project, verify, defaults); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(w.project, ".belay", FileName)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for line := range strings.Lines(string(text)) {
			rest, commented := strings.CutPrefix(line, "# ")
			word, _, isKey := strings.Cut(strings.TrimSpace(rest), ":")
			if commented && isKey && slices.ContainsFunc(Keys(), func(k Key) bool { return slices.Contains(strings.Split(k.Name, "."), word) }) {
				line = rest
			}
			lines = append(lines, line)
		}
		if err := os.WriteFile(path, []byte(strings.Join(lines, "")), 0o644); err != nil {
			t.Fatal(err)
		}
		w.grant()
		got, notices, err := Load(w.sources())
		if err != nil || notices != nil {
			t.Fatalf("%v %v\n%s", err, notices, strings.Join(lines, ""))
		}
		for _, key := range Keys() {
			if key.Name != "key_files" && got.From[key.Name].Layer != Project {
				t.Errorf("init does not show %s", key.Name)
			}
		}
		if d := cmp.Diff(defaults.Bounds, got.Bounds); d != "" {
			t.Error(d)
		}
	}
}

func TestInitIsRefused(t *testing.T) {
	w := newWorld(t)
	if err := os.Symlink(w.user, filepath.Join(w.project, ".belay")); err != nil {
		t.Fatal(err)
	}
	if _, err := Init(w.project, nil, defaults); err == nil || !strings.Contains(err.Error(), "must be a folder") {
		t.Error(err)
	}
	if _, err := Init(filepath.Join(w.home, "none"), nil, defaults); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if found, err := os.ReadDir(w.user); len(found) != 0 || err != nil {
		t.Error("something was written through the link")
	}
}

func FuzzTrustFile(f *testing.F) {
	empty, err := json.Marshal(trustFile{Version: 1, Projects: []Record{{Workspace: "/x", Hash: hashOf(nil), At: noon}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(empty)
	f.Add([]byte(`{"version":1,"projects":[]} {}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := parseTrust(data)
		for _, r := range all {
			if err != nil || r.Hash != hashOf(r.Files) {
				t.Fatalf("%v %v", r, err)
			}
		}
	})
}
