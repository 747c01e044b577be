package snapshot

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"belay/checkpoint"
)

// sh runs lines in dir, as a person would.
func sh(t *testing.T, dir, lines string) string {
	t.Helper()
	cmd := exec.Command("sh", "-ec", lines)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", lines, err, out)
	}
	return string(out)
}

func open(t *testing.T, root string) *Store {
	t.Helper()
	s, err := Open(Config{Home: t.TempDir(), Workspace: root})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func take(t *testing.T, s *Store) checkpoint.Manifest {
	t.Helper()
	m, err := s.Take(context.Background(), checkpoint.Note{Reason: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// manifest describes a tree: every path with its mode, content or target.
const manifest = `find . -path ./.git -prune -o -printf '%p %y %m %l\n' | sort; find . -path ./.git -prune -o -type f -exec sha256sum {} + | sort`

// What was kept comes back, whatever kind of tree it is; git reads the store; and the user's repository is untouched.
func TestTrees(t *testing.T) {
	for _, c := range []struct{ name, make, change string }{
		{"no repository", "echo a >a; mkdir d; echo b >d/b", "rm a; echo c >d/c; echo x >>d/b"},
		{"modes and links", "echo a >a; chmod 600 a; ln -s a l; ln -s nowhere m; mkdir e; mkdir p; chmod 700 p; echo s >p/s; chmod 755 p/s", "chmod 644 a; rm l; ln -s b l; rmdir e; chmod 755 p; rm m; echo m >m"},
		{"file and folder change places", "mkdir d; echo a >d/a; echo f >f", "rm -r d; echo d >d; rm f; mkdir f; echo x >f/x"},
		{"names", "echo 1 >'a\nb'; echo 2 >-rf; echo 3 >'ä b'; mkdir 'x y'; echo 4 >'x y/z'; printf 5 >\"$(printf '\\377')\"", "rm -- -rf; echo 9 >'x y/z'"},
		{"unborn head", "git init -q; echo a >a", "echo b >a; echo n >n"},
		{"packed repository", "git init -q; for i in 1 2 3 4 5 6; do seq $i 400 >f$i; done; git add .; git commit -qm a; git repack -adq", "echo x >>f1; rm f2; git mv f3 g3"},
		{"autocrlf", "git init -q; git config core.autocrlf true; printf 'a\\r\\nb\\r\\n' >a; git add . 2>/dev/null; git commit -qm a", "printf 'a\\nb\\n' >a"},
		{"filter", "git init -q; git config filter.x.clean 'tr a-z A-Z'; git config filter.x.smudge 'tr A-Z a-z'; echo '* filter=x' >.gitattributes; echo lower >a; git add .; git commit -qm a", "echo other >a"},
		{"nested repository", "git init -q; git init -q sub; echo a >sub/a; cd sub; git add .; git commit -qm a", "echo b >sub/a; echo n >sub/n"},
		{"worktree", "git init -q ../main; cd ../main; git commit -q --allow-empty -m a; git worktree add -q ../ws/w; cd ../ws/w; echo a >a; git add a", "echo b >w/a"},
		{"ignored", "git init -q; printf '*.log\\nbuild/\\n!keep.log\\n' >.gitignore; echo a >x.log; mkdir build; echo o >build/o", "rm x.log; echo b >build/o"},
		{"secret", "echo TOKEN=abcdefgh >.env", "echo other >.env"},
		{"lfs pointer and sparse checkout", "git init -q; mkdir a b; echo 1 >a/1; printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:00\\nsize 1\\n' >b/p; git add .; git commit -qm a; git sparse-checkout set a", "echo 2 >a/1; mkdir -p b; echo x >b/x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "ws")
			if err := os.Mkdir(root, 0o755); err != nil {
				t.Fatal(err)
			}
			sh(t, root, c.make)
			s := open(t, root)
			before := sh(t, root, manifest)
			repo := func() string {
				if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
					return ""
				}
				return sh(t, root, "sha256sum .git/index 2>/dev/null || true; git for-each-ref; git fsck 2>&1; GIT_OPTIONAL_LOCKS=0 git status --porcelain; git stash list")
			}
			first := repo()
			a := take(t, s)
			if now := repo(); now != first {
				t.Errorf("the user's repository changed:\n%s\n%s", first, now)
			}
			sh(t, root, c.change)
			changed := sh(t, root, manifest)
			b := take(t, s)
			fresh, err := Open(Config{Home: filepath.Dir(filepath.Dir(s.dir)), Workspace: root}) // a cold process sees the same
			if err != nil {
				t.Fatal(err)
			}
			if again := take(t, fresh); again.Tree != b.Tree {
				t.Errorf("a cold process sees another tree")
			}
			index := repo()
			if _, err := s.Restore(t.Context(), b, a, false); err != nil {
				t.Fatal(err)
			}
			if got := sh(t, root, manifest); got != before {
				t.Errorf("restored:\n%s\nbefore:\n%s", got, before)
			}
			if _, err := s.Restore(t.Context(), a, b, false); err != nil {
				t.Fatal(err)
			}
			if got := sh(t, root, manifest); got != changed {
				t.Errorf("undone:\n%s\nwas:\n%s", got, changed)
			}
			if now := repo(); now != index {
				t.Errorf("a restore changed the user's repository:\n%s\n%s", index, now)
			}
			sh(t, s.dir, "git --git-dir=. fsck --full 2>&1; git --git-dir=. ls-tree -r "+a.Tree)
			if dir, err := os.Stat(s.dir); err != nil || dir.Mode().Perm() != 0o700 {
				t.Errorf("the store's folder: %v, %v", dir.Mode(), err)
			}
		})
	}
}

// What is not covered is named, with its size and the reason, and a restore leaves it alone.
func TestUncovered(t *testing.T) {
	root := t.TempDir()
	sh(t, root, "git init -q; printf 'out/\\n*.bin\\n' >.gitignore; mkdir out node_modules; head -c 2000000 /dev/zero >out/o; head -c 1500000 /dev/zero >a.bin; head -c 100 /dev/zero >b.bin; mkfifo pipe; echo x >node_modules/x; echo a >a")
	s := open(t, root)
	m := take(t, s)
	want := map[string]string{".git": "a repository's own data", "out": "ignored and large", "a.bin": "ignored and large", "pipe": "neither a file nor a folder nor a link", "node_modules": "generated"}
	for _, u := range m.Uncovered {
		if want[u.Path] != u.Why || u.Bytes == 0 && u.Path != "pipe" {
			t.Errorf("%+v", u)
		}
		delete(want, u.Path)
	}
	if len(want) > 0 {
		t.Errorf("not named: %v", want)
	}
	for path, covered := range map[string]bool{"a": true, "b.bin": true, "new": true, "a.bin": false, "out": false, "out/o": false, "": false} {
		if got := s.Covered(filepath.Join(root, path)); got != covered {
			t.Errorf("%q is covered: %v", path, got)
		}
	}
	sh(t, root, "echo 1 >out/o; echo b >a; rm b.bin")
	b := take(t, s)
	if _, err := s.Restore(t.Context(), b, m, false); err != nil {
		t.Fatal(err)
	}
	if got := sh(t, root, "cat out/o a; wc -c <b.bin"); got != "1\na\n100\n" {
		t.Error(got)
	}
}

// A restore destroys nothing that no checkpoint holds, and writes through no link.
func TestConflict(t *testing.T) {
	root := t.TempDir()
	sh(t, root, "mkdir d; echo a >d/a; echo keep >k")
	s := open(t, root)
	a := take(t, s)
	sh(t, root, "echo b >d/a")
	b := take(t, s)
	sh(t, root, "echo mine >d/a; touch -d @1000 k")
	if _, err := s.Restore(t.Context(), b, a, false); !errors.Is(err, checkpoint.ErrConflict) {
		t.Fatal(err)
	}
	if got := sh(t, root, "cat d/a"); got != "mine\n" {
		t.Fatal(got)
	}
	if _, err := s.Restore(t.Context(), b, a, true); err != nil {
		t.Fatal(err)
	}
	if got := sh(t, root, "cat d/a; stat -c %Y k"); got != "a\n1000\n" {
		t.Fatal(got)
	}
	elsewhere := t.TempDir()
	sh(t, root, "rm -r d; ln -s "+elsewhere+" d")
	c := take(t, s)
	sh(t, root, "rm d; mkdir d; echo b >d/a")
	d := take(t, s)
	sh(t, root, "rm -r d; ln -s "+elsewhere+" d")
	if _, err := s.Restore(t.Context(), c, d, false); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
		t.Errorf("written through a link: %v %v", left, err)
	}
}

// The content of a file of secrets is nowhere in the store, or not kept at all.
func TestSecretFiles(t *testing.T) {
	root, home := t.TempDir(), t.TempDir()
	sh(t, root, "echo TOKEN=geheim-12345 >.env; echo a >a")
	s, err := Open(Config{Home: home, Workspace: root})
	if err != nil {
		t.Fatal(err)
	}
	m := take(t, s)
	items, err := s.items(s.top.id)
	if err != nil || len(items) != 2 {
		t.Fatal(items, err)
	}
	if _, stored, err := s.own.get(items[0].id); err != nil || !bytes.HasPrefix(stored, []byte(sealed)) || bytes.Contains(stored, []byte("geheim")) {
		t.Errorf("%q, %v", stored, err)
	}
	if plain, err := s.Read(items[0].id.String()); err != nil || !strings.Contains(string(plain), "geheim") {
		t.Errorf("%q, %v", plain, err)
	}
	s.env = LeaveOut
	s.top, s.loaded = nil, true
	if n := take(t, s); len(n.Uncovered) != 1 || n.Tree == m.Tree {
		t.Errorf("%+v", n.Uncovered)
	}
}

// The user's own gc takes nothing from a checkpoint; ours takes only what is old.
func TestCollect(t *testing.T) {
	root := t.TempDir()
	sh(t, root, "git init -q; for i in 1 2 3; do seq $i 9999 >f$i; done; git add .; git commit -qm a")
	s := open(t, root)
	a := take(t, s)
	if u, err := s.Use(); err != nil || u.Borrowed == 0 || u.Checkpoints != 1 {
		t.Errorf("%+v, %v", u, err)
	}
	sh(t, root, "git rm -qf f1 f2 f3; git commit -qm b; git reflog expire --expire=all --all; git update-ref -d HEAD; git gc -q --prune=now")
	b := take(t, s)
	if _, err := s.Restore(t.Context(), b, a, false); err != nil {
		t.Fatal(err)
	}
	if n := take(t, s); n.Tree != a.Tree {
		t.Error("not all came back")
	}
	if out, err := s.Collect(b.Time, true); err != nil || out.Checkpoints != 1 || out.Kept != 2 {
		t.Errorf("%+v, %v", out, err)
	}
	sh(t, root, "rm f1 f2 f3; echo x >x")
	c := take(t, s)
	if out, err := s.Collect(time.Now().Add(-time.Hour), false); err != nil || out.Checkpoints != 0 || out.Kept != 4 {
		t.Errorf("%+v, %v", out, err)
	}
	time.Sleep(2 * time.Millisecond)
	if out, err := s.Collect(time.Now(), false); err != nil || out.Checkpoints != 4 {
		t.Errorf("%+v, %v", out, err)
	}
	if _, err := s.Get(c.ID); !errors.Is(err, checkpoint.ErrUnknown) {
		t.Error(err)
	}
	d := take(t, s)
	sh(t, root, "rm x")
	e := take(t, s)
	if _, err := s.Restore(t.Context(), e, d, false); err != nil {
		t.Fatal(err)
	}
	if got := sh(t, root, "cat x"); got != "x\n" {
		t.Error(got)
	}
}
