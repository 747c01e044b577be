//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"belay/effect"
	"belay/internal/sandbox/helper"
)

// insideCache is where commands find their caches.
const insideCache = insideHome + "/.cache"

// cacheSteps shows the build caches of one kind, and gives them back with release.
//
// Under Go's build cache lie the host's and the standard library that belay has compiled, read-only, in an overlay:
// commands profit from them and cannot poison them. The kernel allows an upper layer to one overlay at a time, so a
// lock says who has the agent's; commands that run beside its holder, and those that may change nothing, read the
// same layers and keep what they compile to themselves. Verifiers have no upper layer that lasts, and see none of an
// agent's: code that they run could write there what a later verification then takes for compiled.
func (s *Sandbox) cacheSteps(kind cacheKind, access effect.Access) (steps []helper.Step, release func(), err error) {
	release = func() {}
	if kind != agentCache {
		steps, err = s.fleetingCache(kind)
		return steps, release, err
	}
	dir := s.cacheDir(kind)
	tree, upper, work := filepath.Join(dir, "tree"), filepath.Join(dir, "go", "upper"), filepath.Join(dir, "go", "work")
	if build := filepath.Join(tree, "go-build"); !exists(build) {
		if err := s.own(tree, build); err != nil {
			return nil, release, fmt.Errorf("making the build cache: %w", err)
		}
	}
	steps = []helper.Step{{Code: helper.Bind, A: tree, B: insideCache}}
	lower := strings.Join(s.compiled(), "\x00")
	if !s.level.Overlay || lower == "" {
		return steps, release, nil
	}
	over := helper.Step{Code: helper.Overlay, A: lower, B: insideCache + "/go-build"}
	beside := over
	beside.A = upper + "\x00" + lower
	if !s.locks(access) && !exists(work) && s.ownsCompiled() {
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

// fleetingCache shows caches that end with the command; the standard library's build cache is kept by who asked for it.
func (s *Sandbox) fleetingCache(kind cacheKind) ([]helper.Step, error) {
	steps := []helper.Step{{Code: helper.Tmpfs, A: insideCache, B: fmt.Sprintf("nr_inodes=500000,size=%d%s", s.cfg.TmpBytes, s.owned())}}
	if !s.level.Overlay {
		return steps, nil
	}
	if kind == verifyCache {
		steps = append(steps, s.verifierModuleSteps()...)
	}
	over := helper.Step{Code: helper.Overlay, B: insideCache + "/go-build"}
	if kind == stdCache {
		over.C = filepath.Join(s.std.building, "cache") + "\x00" + filepath.Join(s.std.building, "work")
	}
	empty := s.cacheDir(kind)
	if err := s.makeLayer(filepath.Join(empty, "empty"), filepath.Join(empty, "made")); err != nil {
		return nil, fmt.Errorf("making the build cache: %w", err)
	}
	// Go looks once a day for what it no longer needs. It need not do so in a cache that ends in a moment.
	trimmed := filepath.Join(empty, "empty", "trim.txt")
	if info, err := os.Stat(trimmed); err != nil || time.Since(info.ModTime()) > 6*time.Hour {
		if err := replaceFile(trimmed, fmt.Append(nil, time.Now().Unix())); err != nil {
			return nil, fmt.Errorf("making the build cache: %w", err)
		}
	}
	over.A = strings.Join(append([]string{filepath.Join(empty, "empty")}, s.compiled()...), "\x00")
	return append(steps, over), nil
}

// compiled are the layers that no command can write: the newest of the standard library first, the host's last.
func (s *Sandbox) compiled() []string {
	layers := s.std.layers()
	if s.host.goCache != "" && !s.cfg.PrivateCache {
		layers = append(layers, s.host.goCache)
	}
	return layers
}

// ownsCompiled says whether the directories of the compiled layers are, inside, the command's own.
func (s *Sandbox) ownsCompiled() bool {
	uid, _, _ := s.insideIDs()
	if len(s.std.layers()) > 0 && uid != os.Geteuid() {
		return false
	}
	info, err := os.Stat(filepath.Join(s.host.goCache, "00"))
	if err != nil {
		return false
	}
	owner, _ := ownerOf(info)
	return owner == uid
}

// locks says whether a command of the agent with this access keeps what it compiles in a layered cache.
func (s *Sandbox) locks(access effect.Access) bool {
	return s.level.Overlay && len(s.compiled()) > 0 && (access == effect.ReadWrite || access == effect.Discard)
}

// replaceFile writes a file that everyone may read, at once.
func replaceFile(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
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

// makeLayer makes a layer over the compiled ones where it is missing: also the 256 directories that Go makes,
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
