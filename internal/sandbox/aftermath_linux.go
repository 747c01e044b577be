//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"belay/effect"
)

// watch looks at what cannot be mounted over: protected paths that do not exist or are symbolic links, and repositories
// that are yet to be made. The function that it gives moves those that a command has made or replaced out of the
// workspace, puts links back, and says so.
func (s *Sandbox) watch(access effect.Access, before found) func() ([]string, error) {
	if access != effect.ReadWrite {
		return func() ([]string, error) { return nil, nil }
	}
	known := map[string]bool{}
	for _, rel := range before.protected {
		known[rel] = true
	}
	unseen := !exists(filepath.Join(s.workspace, ".belay"))
	ran := s.gitRuns(before)
	links := s.links(before)
	outside := s.repositoryTraps()
	return func() (taken []string, err error) {
		for _, rel := range slices.Sorted(maps.Keys(links)) {
			path := filepath.Join(s.workspace, rel)
			if now, lerr := os.Readlink(path); lerr == nil && now == links[rel] {
				continue
			}
			if rerr := s.restoreLink(rel, links[rel]); rerr != nil {
				err = errors.Join(err, fmt.Errorf("putting back the link %s, which a command must not change: %w", path, rerr))
				continue
			}
			taken = append(taken, fmt.Sprintf("write %s: it is protected and was put back after the command", path))
		}
		after := s.look()
		take := func(rel, why string) {
			path := filepath.Join(s.workspace, rel)
			if !exists(path) {
				return // with a directory above it
			}
			if qerr := s.quarantine(rel); qerr != nil {
				err = errors.Join(err, fmt.Errorf("taking away %s, which a command must not make: %w", path, qerr))
				return
			}
			taken = append(taken, fmt.Sprintf("write %s: %s and was taken away after the command", path, why))
		}
		if unseen && exists(filepath.Join(s.workspace, ".belay")) {
			take(".belay", "it is protected")
		}
		slices.Sort(after.protected)
		for _, rel := range after.protected {
			// What belongs to a new repository is judged by what it says.
			if !known[rel] && !s.ofRepository(rel, after) {
				take(rel, "it is protected")
			}
		}
		runs := s.gitRuns(after)
		for _, rel := range slices.Sorted(maps.Keys(runs)) {
			if before, ok := ran[rel]; !ok || before != runs[rel] {
				take(rel, "git would run programs outside with it, so that it is not kept")
			}
		}
		for _, path := range s.repositoryTraps() {
			if !slices.Contains(outside, path) {
				err = errors.Join(err, os.RemoveAll(path))
				taken = append(taken, fmt.Sprintf("write %s: it is protected and was removed after the command", path))
			}
		}
		s.survey.keep(before, after)
		return taken, err
	}
}

// ofRepository says whether a path is one of gitNames in a repository, or a file called .git.
func (s *Sandbox) ofRepository(rel string, f found) bool {
	return filepath.Base(rel) == ".git" || slices.Contains(gitNames, filepath.Base(rel)) && slices.Contains(f.repositories, relDir(rel)) ||
		filepath.Base(filepath.Dir(rel)) == ".git" && slices.Contains(f.pointers, filepath.Dir(rel))
}

// relDir is the directory of a path relative to the workspace; "" is the workspace.
func relDir(rel string) string {
	if dir := filepath.Dir(rel); dir != "." {
		return dir
	}
	return ""
}

// links are the symbolic links on the way to protected paths, and where they lead.
func (s *Sandbox) links(f found) map[string]string {
	links, looked := map[string]string{}, map[string]bool{}
	for _, rel := range append(slices.Clone(f.protected), f.pointers...) {
		for ; rel != "." && !looked[rel]; rel = filepath.Dir(rel) {
			looked[rel] = true
			if target, err := os.Readlink(filepath.Join(s.workspace, rel)); err == nil {
				links[rel] = target
			}
		}
	}
	return links
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
