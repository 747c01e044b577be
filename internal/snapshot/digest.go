// Package snapshot says what a tree of files holds: its digest, which is the same wherever the same files are.
package snapshot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
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

// New makes a Digester of the tree at root, an absolute path. Directories named .git are no part of it, nor
// are the absolute paths in skip.
func New(root string, skip ...string) *Digester {
	d := &Digester{root: root, skip: map[string]bool{}, seen: map[string]known{}}
	for _, path := range skip {
		d.skip[path] = true
	}
	return d
}

// Digest is the SHA-256, in hex, over every file's path, kind, executable bit and content, in the order of
// the paths. A file that cannot be read counts by its size and time; that is weaker, and no agent could read
// it either.
func (d *Digester) Digest(ctx context.Context) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	total, fresh := sha256.New(), make(map[string]known, len(d.seen))
	started := time.Now()
	err := filepath.WalkDir(d.root, func(path string, entry fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) && path != d.root {
				return nil // it went away while we looked
			}
			if errors.Is(err, fs.ErrPermission) && path != d.root {
				return line(total, d.root, path, "unreadable", "")
			}
			return err
		}
		if entry.IsDir() {
			if entry.Name() == ".git" || d.skip[path] {
				return fs.SkipDir
			}
			return line(total, d.root, path, "dir", "")
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) || err == nil && entry.Name() == ".git" {
			return nil
		}
		if err != nil {
			return err
		}
		return d.file(total, path, info, fresh, started)
	})
	if err != nil {
		return "", fmt.Errorf("digest of %s: %w", d.root, err)
	}
	d.seen = fresh
	return hex.EncodeToString(total.Sum(nil)), nil
}

func (d *Digester) file(total hash.Hash, path string, info fs.FileInfo, fresh map[string]known, started time.Time) error {
	switch mode := info.Mode(); {
	case mode&fs.ModeSymlink != 0:
		target, err := os.Readlink(path)
		if err != nil {
			return err
		}
		return line(total, d.root, path, "link", target)
	case !mode.IsRegular():
		return line(total, d.root, path, "special", mode.Type().String())
	}
	kind := "file"
	if info.Mode()&0o111 != 0 {
		kind = "exec"
	}
	mark := stampOf(info)
	content, ok := d.seen[path]
	if !ok || content.stamp != mark {
		sum, err := hashFile(path)
		if errors.Is(err, fs.ErrPermission) {
			return line(total, d.root, path, "unreadable", fmt.Sprint(info.Size(), info.ModTime().UnixNano()))
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		content = known{mark, sum}
	}
	if settled(info, started) {
		fresh[path] = content
	}
	return line(total, d.root, path, kind, hex.EncodeToString(content.hash[:]))
}

// settled says whether a later write to the file is sure to change its times: those move in steps of a few
// milliseconds, so what was written just now is read again the next time.
func settled(info fs.FileInfo, now time.Time) bool {
	return now.Sub(info.ModTime()) > 50*time.Millisecond
}

// line adds one entry. Lengths stand before the variable parts, so that no two trees give the same bytes.
func line(total hash.Hash, root, path, kind, content string) error {
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return err
	}
	rel = filepath.ToSlash(rel)
	_, err = fmt.Fprintf(total, "%s %d %s %d %s\n", kind, len(rel), rel, len(content), content)
	return err
}

func hashFile(path string) (sum [32]byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return sum, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return sum, err
	}
	return [32]byte(h.Sum(nil)), nil
}
