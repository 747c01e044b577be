package snapshot

import (
	"os"
	"path/filepath"
	"testing"
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
}
