package tool

import (
	"os"
	"path/filepath"
	"strings"
)

// Abs makes a path that a model wrote absolute and clean: relative paths start at Dir, "~" is the person's home.
// It does not look at the disk.
func (p Place) Abs(path string) string {
	if p.Home != "" && (path == "~" || strings.HasPrefix(path, "~/")) {
		return filepath.Join(p.Home, path[1:])
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.Dir, path)
	}
	return filepath.Clean(path)
}

// Resolve is Abs with the symbolic links of the existing part resolved, so that the policy judges the file that
// would really be touched. It looks at names only, never at contents. What happens between this look and the
// action is the sandbox's business.
func (p Place) Resolve(path string) string { return ResolveLinks(p.Abs(path)) }

// ResolveLinks resolves the symbolic links in the part of an absolute path that exists. A link that leads
// nowhere resolves to where it points, since writing through it would create that.
func ResolveLinks(path string) string { return resolveLinks(path, 16) }

func resolveLinks(path string, depth int) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if depth > 0 {
		if target, err := os.Readlink(path); err == nil {
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(path), target)
			}
			return resolveLinks(filepath.Clean(target), depth-1)
		}
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path
	}
	return filepath.Join(resolveLinks(parent, depth), filepath.Base(path))
}

// Rel shortens a path inside the workspace for people and models; any other path stays as it is.
func (p Place) Rel(path string) string {
	if rel, err := filepath.Rel(p.Workspace, path); err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return rel
	}
	return path
}
