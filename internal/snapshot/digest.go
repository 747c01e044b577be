// Package snapshot says what a tree of files holds: its digest, which is the same wherever the same files are.
package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Digester computes the digest of one tree, again and again; it reads only the files that changed since.
type Digester struct {
	root string
	skip map[string]bool // absolute directories that are no part of the tree

	mu   sync.Mutex
	seen map[string]known
}

// known is a file's content as it was last read.
type known struct {
	stamp stamp
	hash  [32]byte
}

// Tree is what a tree held at one moment.
type Tree struct {
	Digest string            // SHA-256 in hex over every file's path, kind, mode and content, in the order of the paths
	Stamp  string            // the same over sizes, times and inodes: another one where a file was changed and changed back
	Files  map[string]string // path with slashes -> SHA-256 in hex, of the regular files that were asked for
}

// New makes a Digester of the tree at root, an absolute path. The repository's own .git is no part of it,
// nor are the absolute paths in skip.
func New(root string, skip ...string) *Digester {
	d := &Digester{root: root, skip: map[string]bool{filepath.Join(root, ".git"): true}, seen: map[string]known{}}
	for _, path := range skip {
		d.skip[path] = true
	}
	return d
}

// Look reads the tree. Where want is given, Files holds those for which it is true. A file that cannot be
// read counts by its size and time; that is weaker, and no agent could read it either.
func (d *Digester) Look(ctx context.Context, want func(path string) bool) (Tree, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := &walk{ctx: ctx, d: d, content: sha256.New(), stamps: sha256.New(), fresh: make(map[string]known, len(d.seen)),
		started: time.Now(), want: want, files: map[string]string{}}
	root, err := os.OpenRoot(d.root)
	if err == nil {
		err = w.dir(root, ".")
	}
	if err != nil {
		return Tree{}, fmt.Errorf("digest of %s: %w", d.root, err)
	}
	d.seen = w.fresh
	return Tree{Digest: hex.EncodeToString(w.content.Sum(nil)), Stamp: hex.EncodeToString(w.stamps.Sum(nil)), Files: w.files}, nil
}

// Digest is Look without the files.
func (d *Digester) Digest(ctx context.Context) (string, error) {
	t, err := d.Look(ctx, nil)
	return t.Digest, err
}

// walk is one look at the tree.
type walk struct {
	ctx             context.Context
	d               *Digester
	content, stamps hash.Hash
	fresh           map[string]known
	started         time.Time
	want            func(string) bool
	files           map[string]string
}

// dir takes in a directory and closes it. It goes down by handles, not by paths: an agent can nest
// directories deeper than any path may be long.
func (w *walk) dir(dir *os.Root, rel string) error {
	defer dir.Close()
	self, err := dir.Open(".")
	if err != nil {
		return err
	}
	names, err := self.Readdirnames(-1)
	self.Close()
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		path := name
		if rel != "." {
			path = rel + "/" + name
		}
		info, err := dir.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it went away while we looked
		}
		if err != nil {
			return err
		}
		if err := w.entry(dir, name, path, info); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) entry(dir *os.Root, name, path string, info fs.FileInfo) error {
	mark := stampOf(info)
	switch mode := info.Mode(); {
	case (mode.IsDir() || path == ".git") && w.d.skip[filepath.Join(w.d.root, filepath.FromSlash(path))]:
		return nil
	case mode.IsDir():
		w.line(path, "dir", "", stamp{}) // its times change with what is in it, which is taken in below
		sub, err := dir.OpenRoot(name)
		if errors.Is(err, fs.ErrPermission) {
			w.line(path, "unreadable", "", mark)
			return nil
		}
		if err != nil {
			return err
		}
		return w.dir(sub, path)
	case mode&fs.ModeSymlink != 0:
		target, err := dir.Readlink(name)
		if err != nil {
			return err
		}
		w.line(path, "link", target, mark)
	case !mode.IsRegular():
		w.line(path, "special", mode.Type().String(), mark)
	default:
		return w.file(dir, name, path, info, mark)
	}
	return nil
}

func (w *walk) file(dir *os.Root, name, path string, info fs.FileInfo, mark stamp) error {
	// Whether it can run, and as whom, is all of the mode that the same tree has everywhere.
	kind := "file"
	if info.Mode()&0o111 != 0 {
		kind = "exec"
	}
	if special := info.Mode() & (fs.ModeSetuid | fs.ModeSetgid); special != 0 {
		kind += special.String()
	}
	content, ok := w.d.seen[path]
	if !ok || content.stamp != mark {
		sum, err := hashFile(w.ctx, dir, name)
		switch {
		case errors.Is(err, fs.ErrPermission):
			w.line(path, "unreadable", fmt.Sprint(info.Size(), info.ModTime().UnixNano()), mark)
			return nil
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		}
		content = known{mark, sum}
	}
	if settled(info, w.started) {
		w.fresh[path] = content
	}
	sum := hex.EncodeToString(content.hash[:])
	if w.want != nil && w.want(path) {
		w.files[path] = sum
	}
	w.line(path, kind, sum, mark)
	return nil
}

// settled says whether a later write to the file is sure to change its times: those move in steps of a few
// milliseconds, so what was written just now is read again the next time.
func settled(info fs.FileInfo, now time.Time) bool {
	return now.Sub(info.ModTime()) > 50*time.Millisecond
}

// line adds one entry. Lengths stand before the variable parts, so that no two trees give the same bytes.
func (w *walk) line(path, kind, content string, mark stamp) {
	fmt.Fprintf(w.content, "%s %d %s %d %s\n", kind, len(path), path, len(content), content)
	fmt.Fprintf(w.stamps, "%s %d %s ", kind, len(path), path)
	_ = binary.Write(w.stamps, binary.LittleEndian, mark) // a hash takes everything
}

// hashFile reads a file; a large one takes long, so it looks at the context on its way.
func hashFile(ctx context.Context, dir *os.Root, name string) (sum [32]byte, err error) {
	f, err := dir.Open(name)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	h := sha256.New()
	for {
		if err := ctx.Err(); err != nil {
			return sum, err
		}
		switch _, err := io.CopyN(h, f, 4<<20); {
		case errors.Is(err, io.EOF):
			return [32]byte(h.Sum(nil)), nil
		case err != nil:
			return sum, err
		}
	}
}
