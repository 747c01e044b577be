//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"belay/effect"
	"belay/internal/sandbox/helper"
)

// cacheSteps shows the build caches of one kind, and gives them back with release.
//
// Under Go's build cache lies the host's, read-only, in an overlay: commands profit from it and cannot poison
// it. The kernel allows an upper layer to one overlay at a time, so a lock says who has it; commands that run
// beside its holder, and those that may change nothing, read the same two layers and keep what they compile to
// themselves.
func (s *Sandbox) cacheSteps(kind string, access effect.Access) (steps []helper.Step, release func(), err error) {
	release = func() {}
	dir := s.cacheDir(kind)
	tree, upper, work := filepath.Join(dir, "tree"), filepath.Join(dir, "go", "upper"), filepath.Join(dir, "go", "work")
	if build := filepath.Join(tree, "go-build"); !exists(build) {
		if err := s.own(tree, build); err != nil {
			return nil, release, fmt.Errorf("making the build cache: %w", err)
		}
	}
	inside := insideHome + "/.cache"
	steps = []helper.Step{{Code: helper.Bind, A: tree, B: inside}}
	if !s.layered() {
		return steps, release, nil
	}
	over := helper.Step{Code: helper.Overlay, A: s.host.goCache, B: inside + "/go-build"}
	beside := over
	beside.A = upper + "\x00" + s.host.goCache
	if !s.locks(access) && !exists(work) && s.ownsHostCache() {
		return append(steps, over), release, nil // nothing was ever kept
	}
	if err := s.makeLayer(upper, work); err != nil {
		return nil, release, fmt.Errorf("making the build cache: %w", err)
	}
	if !s.locks(access) {
		return append(steps, beside), release, nil
	}
	over.C = upper + "\x00" + work
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, release, fmt.Errorf("locking the build cache: %w", err)
	}
	if unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return append(steps, beside), func() { lock.Close() }, nil
	}
	inner := filepath.Join(work, "work")
	if err := tidy(inner); err != nil {
		lock.Close()
		return nil, release, fmt.Errorf("cleaning the build cache: %w", err)
	}
	return append(steps, over), func() {
		tidy(inner) // so that a person can remove the cache; the next command looks again
		lock.Close()
	}, nil
}

// layered says whether the build cache lies over the host's.
func (s *Sandbox) layered() bool {
	return s.level.Overlay && !s.cfg.PrivateCache && s.host.goCache != ""
}

// ownsHostCache says whether the directories of the host's cache are, inside, the command's own.
func (s *Sandbox) ownsHostCache() bool {
	uid, _, _ := s.insideIDs()
	info, err := os.Stat(filepath.Join(s.host.goCache, "00"))
	if err != nil {
		return false
	}
	owner, _ := ownerOf(info)
	return owner == uid
}

// locks says whether a command with this access keeps what it compiles in a layered cache.
func (s *Sandbox) locks(access effect.Access) bool {
	return s.layered() && (access == effect.ReadWrite || access == effect.Discard)
}

// tidy removes the mark by which a volatile overlay forbids to mount its layers again, in case the machine
// went down in between: a torn file in this cache does no harm, Go checks what it reads. The kernel makes
// these directories without any permission.
func tidy(inner string) error {
	mark := filepath.Join(inner, "incompat")
	for _, d := range []string{inner, mark, filepath.Join(mark, "volatile")} {
		if err := os.Chmod(d, 0o700); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			return err
		}
	}
	return os.RemoveAll(mark)
}

// makeLayer makes the layer over the host's cache where it is missing: also the 256 directories that Go makes,
// which would else be the host's in the overlay, and no command's to write in when another user owns the
// workspace.
func (s *Sandbox) makeLayer(upper, work string) error {
	if exists(work) {
		return nil
	}
	dirs := []string{upper}
	for i := range 256 {
		dirs = append(dirs, filepath.Join(upper, fmt.Sprintf("%02x", i)))
	}
	if err := s.own(dirs...); err != nil {
		return err
	}
	return os.MkdirAll(work, 0o755) // last: it says that the others are there
}

// own makes directories that are the command's own.
func (s *Sandbox) own(dirs ...string) error {
	uid, gid, _ := s.insideIDs()
	for _, d := range dirs {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
		if s.level.ids == allIDs {
			if err := os.Chown(d, uid, gid); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyTree copies files, directories and symbolic links, with modes and, where possible, owners. What is none
// of these is left out.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		dst := filepath.Join(to, rel)
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			err = os.MkdirAll(dst, info.Mode().Perm()|0o700)
		case d.Type() == fs.ModeSymlink:
			var target string
			if target, err = os.Readlink(path); err == nil {
				err = os.Symlink(target, dst)
			}
		case d.Type().IsRegular():
			var data []byte
			if data, err = os.ReadFile(path); err == nil {
				err = os.WriteFile(dst, data, info.Mode().Perm())
			}
		default:
			return nil
		}
		if uid, gid := ownerOf(info); err == nil && os.Geteuid() == 0 {
			err = os.Lchown(dst, uid, gid)
		}
		return err
	})
}
