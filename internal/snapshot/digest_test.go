package snapshot

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Each change that a verifier could see changes the digest; undoing it brings the digest back.
func TestDigestFollowsContent(t *testing.T) {
	root := t.TempDir()
	write := func(name, content string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write("a.txt", "one")
	write("sub/b.txt", "two")
	write(".git/HEAD", "ref: refs/heads/main")
	d := New(root)
	digest := func() string {
		t.Helper()
		sum, err := d.Digest(t.Context())
		must(err)
		if again, err := New(root).Digest(t.Context()); err != nil || again != sum {
			t.Fatalf("a fresh digester gives %s (%v), this one %s", again, err, sum)
		}
		return sum
	}
	start := digest()
	path := filepath.Join(root, "a.txt")
	for _, change := range []struct {
		name     string
		do, undo func()
	}{
		{"content of the same length", func() { write("a.txt", "eno") }, func() { write("a.txt", "one") }},
		{"new file", func() { write("c", "") }, func() { must(os.Remove(filepath.Join(root, "c"))) }},
		{"renamed file", func() { must(os.Rename(path, path+"x")) }, func() { must(os.Rename(path+"x", path)) }},
		{"executable bit", func() { must(os.Chmod(path, 0o755)) }, func() { must(os.Chmod(path, 0o644)) }},
		{"empty folder", func() { must(os.Mkdir(path+"d", 0o755)) }, func() { must(os.Remove(path + "d")) }},
		{"link", func() { must(os.Symlink("a.txt", path+"l")) }, func() { must(os.Remove(path + "l")) }},
	} {
		change.do()
		if digest() == start {
			t.Errorf("%s: the digest is the same", change.name)
		}
		change.undo()
		if digest() != start {
			t.Errorf("%s undone: the digest is another than at the start", change.name)
		}
	}
	write(".git/HEAD", "ref: refs/heads/other")
	if digest() != start {
		t.Error("what git keeps about the tree is no part of it")
	}
	write("sub/.git/check.sh", "exit 0")
	if digest() == start {
		t.Error("a folder called .git somewhere inside is part of the tree like any other")
	}
}

// A file that was changed and changed back leaves the digest, but not the stamp.
func TestStampTellsWhatWasUndone(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "a")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	look := func() Tree {
		t.Helper()
		tree, err := New(root).Look(t.Context(), func(path string) bool { return path == "a" })
		if err != nil {
			t.Fatal(err)
		}
		return tree
	}
	write("one")
	before := look()
	old := time.Now().Add(-time.Hour)
	write("two")
	write("one")
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	after := look()
	if before.Digest != after.Digest || before.Stamp == after.Stamp || before.Files["a"] != after.Files["a"] {
		t.Errorf("%+v and %+v", before, after)
	}
	write("three")
	if got := look().Files["a"]; got == "" || got == before.Files["a"] {
		t.Errorf("the changed file's hash is %q", got)
	}
}

// A tree may be deeper than any path may be long.
func TestDeepTree(t *testing.T) {
	root := t.TempDir()
	dir, err := os.OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	for range 3000 { // "a/" each: longer than PATH_MAX
		if err := dir.Mkdir("a", 0o755); err != nil {
			t.Fatal(err)
		}
		sub, err := dir.OpenRoot("a")
		if err != nil {
			t.Fatal(err)
		}
		dir.Close()
		dir = sub
	}
	if err := dir.WriteFile("x", []byte("deep"), 0o644); err != nil {
		t.Fatal(err)
	}
	before, err := New(root).Digest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.WriteFile("x", []byte("deeper"), 0o644); err != nil {
		t.Fatal(err)
	}
	dir.Close()
	if after, err := New(root).Digest(t.Context()); err != nil || after == before {
		t.Errorf("the deepest file's change is not seen: %v", err)
	}
}
