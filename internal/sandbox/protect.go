package sandbox

import (
	"path/filepath"
	"slices"
)

// hidden are workspace paths that neither commands nor file tools get to see: what decides about them.
var hidden = []string{".belay"}

// protected are workspace paths that stay as they are in every view: a change would make something outside run
// it later, or would let the agent rewrite what it is told.
var protected = []string{
	".git/hooks", ".git/config", ".git/info", ".git/commondir", ".git/config.worktree",
	".claude", ".cursor", ".vscode", ".idea", ".envrc", ".mcp.json",
}

// unborn are protected paths that are taken away when a command makes them: they do not exist in an ordinary
// repository, so that nothing can be mounted over them beforehand.
var unborn = []string{".belay", ".git/commondir", ".git/config.worktree", ".envrc", ".mcp.json", ".claude", ".cursor", ".vscode", ".idea"}

// readOnlyPaths are the protected paths of this sandbox, relative and with the system's separators.
func (s *Sandbox) readOnlyPaths() []string {
	var paths []string
	for _, p := range slices.Concat(protected, s.cfg.Protect) {
		paths = append(paths, filepath.FromSlash(filepath.Clean(p)))
	}
	return paths
}

// covered says which of paths holds rel, or is it.
func covered(rel string, paths []string) (string, bool) {
	for _, p := range paths {
		if within(rel, filepath.FromSlash(p)) {
			return p, true
		}
	}
	return "", false
}
