//go:build amd64 || arm64

package sandbox

import (
	"os"
	"path/filepath"

	"belay/effect"
	"belay/internal/sandbox/helper"
)

// repositorySteps let git work where the workspace's repository lies elsewhere: it is a linked worktree, or .git is a
// link. What is the workspace's own there can be written, so that commits work, and nothing that makes git run programs.
func (s *Sandbox) repositorySteps(access effect.Access) []helper.Step {
	if access != effect.ReadWrite || s.host.repository == "" {
		return nil
	}
	var steps []helper.Step
	common := s.host.repository
	for _, name := range s.host.repositoryParts {
		path := filepath.Join(common, name)
		if exists(path) {
			steps = append(steps, helper.Step{Code: helper.Bind, A: path, B: path})
		}
	}
	for _, path := range s.repositoryHeld() {
		if exists(path) {
			steps = append(steps, helper.Step{Code: helper.Pin, Flags: helper.ReadOnly, A: path})
		}
	}
	return steps
}

// repositoryHeld are the paths of a repository that lies elsewhere that stay as they are.
func (s *Sandbox) repositoryHeld() (paths []string) {
	for _, part := range s.host.repositoryParts {
		dir := filepath.Join(s.host.repository, part)
		switch {
		case part == ".":
			for _, name := range append([]string{"modules", "worktrees"}, gitNames...) {
				paths = append(paths, filepath.Join(dir, name))
			}
		case filepath.Base(filepath.Dir(part)) == "worktrees" || filepath.Dir(part) == "worktrees":
			for _, name := range append([]string{"gitdir"}, gitNames...) {
				paths = append(paths, filepath.Join(dir, name))
			}
		}
	}
	return paths
}

// repositoryTraps are those of the held paths that exist: one that is new was made by a command.
func (s *Sandbox) repositoryTraps() (paths []string) {
	for _, path := range s.repositoryHeld() {
		if _, err := os.Lstat(path); err == nil {
			paths = append(paths, path)
		}
	}
	return paths
}
