package smallfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := func(target, name string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	write("full", "12345678")
	write("over", "123456789")
	write("outside", "secret")
	if err := os.Mkdir(filepath.Join(dir, "in"), 0o700); err != nil {
		t.Fatal(err)
	}
	write("in/file", "inside")
	link("file", "in/good")
	link("../outside", "in/escape")
	link("loop", "in/loop")
	link("nowhere", "in/dangling")
	huge, err := os.Create(filepath.Join(dir, "huge"))
	if err != nil {
		t.Fatal(err)
	}
	if err := huge.Truncate(5 << 30); err != nil { // sparse
		t.Fatal(err)
	}
	huge.Close()

	for _, c := range []struct {
		root, name, want string
		head             string
		cause            error // of Read
		fails            bool
	}{
		{root: ".", name: "full", want: "12345678", head: "12345678"},
		{root: ".", name: "over", head: "12345678", cause: ErrTooLarge},
		{root: ".", name: "huge", head: "\x00\x00\x00\x00\x00\x00\x00\x00", cause: ErrTooLarge},
		{root: ".", name: "in", cause: ErrNotRegular},
		{root: ".", name: "none", cause: fs.ErrNotExist},
		{root: "in", name: "good", want: "inside", head: "inside"},
		{root: "in", name: "escape", fails: true},
		{root: "in", name: "loop", fails: true},
		{root: "in", name: "dangling", cause: fs.ErrNotExist},
	} {
		t.Run(c.name, func(t *testing.T) {
			root, err := os.OpenRoot(filepath.Join(dir, c.root))
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			got, err := Read(root, c.name, 8)
			if (err != nil) != (c.fails || c.cause != nil) || c.cause != nil && !errors.Is(err, c.cause) {
				t.Errorf("Read: %v, want %v", err, c.cause)
			}
			if string(got) != c.want {
				t.Errorf("Read: %q", got)
			}
			if head, _ := Head(root, c.name, 8); string(head) != c.head {
				t.Errorf("Head: %q", head)
			}
			if Is(root, c.name) != (c.head != "") {
				t.Error("Is disagrees")
			}
		})
	}
}
