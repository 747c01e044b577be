//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"belay/effect"
)

// watch looks which protected paths do not exist and which are symbolic links: neither can be mounted over. The
// function that it gives moves those that a command has made or replaced out of the workspace, puts links
// back, and says so.
func (s *Sandbox) watch(access effect.Access) func() ([]string, error) {
	if access != effect.ReadWrite {
		return func() ([]string, error) { return nil, nil }
	}
	var absent []string
	for _, rel := range append(append([]string{}, unborn...), s.cfg.Protect...) {
		if _, err := os.Lstat(filepath.Join(s.workspace, rel)); errors.Is(err, fs.ErrNotExist) {
			absent = append(absent, rel)
		}
	}
	ran := s.gitRuns()
	links := map[string]string{}
	for _, rel := range append(s.readOnlyPaths(), ".git") {
		if target, err := os.Readlink(filepath.Join(s.workspace, rel)); err == nil {
			links[rel] = target
		}
	}
	return func() (taken []string, err error) {
		for rel, target := range links {
			path := filepath.Join(s.workspace, rel)
			if now, lerr := os.Readlink(path); lerr == nil && now == target {
				continue
			}
			if rerr := s.restoreLink(rel, target); rerr != nil {
				err = errors.Join(err, fmt.Errorf("putting back the link %s, which a command must not change: %w", path, rerr))
				continue
			}
			taken = append(taken, fmt.Sprintf("write %s: it is protected and was put back after the command", path))
		}
		for _, rel := range absent {
			path := filepath.Join(s.workspace, rel)
			if _, lerr := os.Lstat(path); lerr != nil {
				continue
			}
			if qerr := s.quarantine(rel); qerr != nil {
				err = errors.Join(err, fmt.Errorf("taking away %s, which a command must not make: %w", path, qerr))
				continue
			}
			taken = append(taken, fmt.Sprintf("write %s: it is protected and was taken away after the command", path))
		}
		runs := s.gitRuns()
		for _, rel := range slices.Sorted(maps.Keys(runs)) {
			if before, ok := ran[rel]; ok && before == runs[rel] {
				continue
			}
			path := filepath.Join(s.workspace, rel)
			if qerr := s.quarantine(rel); qerr != nil {
				err = errors.Join(err, fmt.Errorf("taking away %s, with which git runs programs outside: %w", path, qerr))
				continue
			}
			taken = append(taken, fmt.Sprintf("write %s: git would run programs outside with it, so that it was taken away after the command", path))
		}
		return taken, err
	}
}

func (s *Sandbox) restoreLink(rel, target string) error {
	if exists(filepath.Join(s.workspace, rel)) {
		if err := s.quarantine(rel); err != nil {
			return err
		}
	}
	root, err := os.OpenRoot(s.workspace)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.Symlink(target, rel); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		return root.Lchown(rel, s.uid, s.gid)
	}
	return nil
}

func (s *Sandbox) quarantine(rel string) error {
	dir := filepath.Join(s.home, "quarantine")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	place, err := os.MkdirTemp(dir, filepath.Base(s.workspace)+"-")
	if err != nil {
		return err
	}
	// The process tree is gone, so nothing changes the path on the way; still no link is followed out.
	root, err := os.OpenRoot(s.workspace)
	if err != nil {
		return err
	}
	defer root.Close()
	parent, err := root.OpenRoot(filepath.Dir(rel))
	if err != nil {
		return err
	}
	defer parent.Close()
	base := filepath.Base(rel)
	info, err := parent.Stat(".")
	if err != nil {
		return err
	}
	outside, err := os.Stat(filepath.Join(s.workspace, filepath.Dir(rel)))
	if err == nil && os.SameFile(info, outside) && os.Rename(filepath.Join(s.workspace, rel), filepath.Join(place, base)) == nil {
		return nil
	}
	return errors.Join(parent.RemoveAll(base), os.Remove(place))
}
