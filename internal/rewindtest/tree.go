package main

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// picture is a tree, read by other means than the store's: path -> what it is.
type picture map[string]thing

type thing struct {
	mode    fs.FileMode
	content [32]byte
	target  string
	mtime   int64
}

// take reads a tree, without what git keeps.
func take(root string) (picture, error) {
	p := picture{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil || rel == "." {
			return err
		}
		if d.Name() == ".git" {
			return filepath.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		t := thing{mode: info.Mode(), mtime: info.ModTime().UnixNano()}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			t.mode = fs.ModeSymlink
			t.target, err = os.Readlink(path)
		case info.Mode().IsRegular():
			var b []byte
			b, err = os.ReadFile(path)
			t.content = sha256.Sum256(b)
		}
		p[rel] = t
		return err
	})
	return p, err
}

func (a thing) same(b thing) bool {
	return a.mode == b.mode && a.content == b.content && a.target == b.target
}

// differs names a path that is not the same.
func (p picture) differs(q picture) string {
	for _, path := range slices.Sorted(maps.Keys(p)) {
		is, ok := q[path]
		if !ok {
			return fmt.Sprintf("%q is missing", path)
		}
		if !p[path].same(is) {
			return fmt.Sprintf("%q is %v, and should be %v", path, is, p[path])
		}
	}
	for _, path := range slices.Sorted(maps.Keys(q)) {
		if _, ok := p[path]; !ok {
			return fmt.Sprintf("%q should not be there", path)
		}
	}
	return ""
}

// touched names a file that was to stay as it was, and has another time.
func (p picture) touched(to, now picture) string {
	for path, was := range p {
		if !was.mode.IsDir() && was.same(to[path]) && now[path].mtime != was.mtime {
			return path
		}
	}
	return ""
}

// change does one thing to the tree, as a tool, a shell or a person would.
func (w *world) change() error {
	now, err := take(w.ws)
	if err != nil {
		return err
	}
	var files, dirs []string
	dirs = append(dirs, ".")
	for _, path := range slices.Sorted(maps.Keys(now)) {
		switch t := now[path]; {
		case t.mode.IsDir():
			dirs = append(dirs, path)
		default:
			files = append(files, path)
		}
	}
	pick := func(from []string) string { return filepath.Join(w.ws, from[w.rng.IntN(len(from))]) }
	name := func() string {
		w.names++
		odd := []string{"f%d", "f %d", "-f%d", "ü%d.go", "a\n%d", ".f%d", "x%d.log"}
		return filepath.Join(pick(dirs), fmt.Sprintf(odd[w.rng.IntN(len(odd))], w.names))
	}
	text := []byte(strings.Repeat(fmt.Sprintln(w.rng.Uint64()), w.rng.IntN(200)))
	switch w.rng.IntN(14) {
	case 0, 1, 2:
		return os.WriteFile(name(), text, []fs.FileMode{0o644, 0o755, 0o600, 0o400}[w.rng.IntN(4)])
	case 3:
		return os.Mkdir(name(), []fs.FileMode{0o755, 0o700}[w.rng.IntN(2)])
	case 4:
		return os.Symlink([]string{"nowhere", "..", "f1"}[w.rng.IntN(3)], name())
	}
	if len(files) == 0 {
		return nil
	}
	file := pick(files)
	rel, _ := filepath.Rel(w.ws, file)
	regular := now[rel].mode.IsRegular()
	switch w.rng.IntN(9) {
	case 0: // in place, of the same length
		if f, err := os.OpenFile(file, os.O_WRONLY, 0); err == nil && regular {
			defer f.Close()
			_, err = f.WriteAt([]byte{byte('a' + w.rng.IntN(26))}, 0)
			return err
		}
	case 1:
		if f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0); err == nil && regular {
			defer f.Close()
			_, err = f.Write(text)
			return err
		}
	case 2:
		return os.Remove(file)
	case 3:
		return os.Rename(file, name())
	case 4:
		if regular {
			return os.Chmod(file, []fs.FileMode{0o644, 0o755, 0o600}[w.rng.IntN(3)])
		}
	case 5: // a whole folder goes, and perhaps a file comes in its place
		if dir := pick(dirs); dir != filepath.Clean(w.ws) && w.rng.IntN(4) == 0 {
			if err := os.RemoveAll(dir); err != nil || w.rng.IntN(2) == 0 {
				return err
			}
			return os.WriteFile(dir, text, 0o644)
		}
	case 6: // a file becomes a folder
		if err := os.Remove(file); err != nil {
			return err
		}
		if err := os.Mkdir(file, 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(file, "in"), text, 0o644)
	case 7:
		if w.git {
			if err := w.gitRun("add", "-A"); err != nil {
				return err
			}
			return w.gitRun("commit", "-qm", "x")
		}
	case 8:
		if w.git {
			if w.rng.IntN(3) == 0 {
				return w.gitRun("gc", "-q", "--prune=now")
			}
			if now[".gitignore"].mode.IsRegular() { // a thing without a mode is not there, and counts as regular
				return os.WriteFile(filepath.Join(w.ws, ".gitignore"), []byte("*.log\n"), 0o644)
			}
		}
	}
	return nil
}
