//go:build amd64 || arm64

package sandbox

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// maxConfig is how long a git configuration is at most.
const maxConfig = 1 << 20

// gitRuns finds what in the workspace's repositories, those of its submodules and linked worktrees, and what only looks
// like a repository makes git run programs on the host. The keys are the paths, relative to the workspace; the values
// change whenever what is there does.
func (s *Sandbox) gitRuns(f found) map[string]string {
	out := map[string]string{}
	look := func(rel string, mode fs.FileMode) {
		path := filepath.Join(s.workspace, rel)
		name := filepath.Base(rel)
		hook := filepath.Base(filepath.Dir(rel)) == "hooks" && mode&0o111 != 0 && !strings.HasSuffix(name, ".sample")
		setting := name == "config" || name == "config.worktree"
		switch {
		case mode.Type() == fs.ModeSymlink && name != "HEAD":
			target, _ := os.Readlink(path)
			out[rel] = "link to " + target
		case mode.IsDir() || !setting && name != "commondir" && !hook:
		case !mode.IsRegular():
			out[rel] = mode.Type().String()
		default:
			content, err := readHere(path)
			if name == "commondir" && err == nil && filepath.Base(filepath.Dir(filepath.Dir(path))) == "worktrees" && strings.TrimSpace(content) == "../.." {
				return // of a linked worktree: it leads to the repository that holds it
			}
			if lines := runsPrograms(content); err != nil || !setting {
				out[rel] = fmt.Sprintf("%x %v", sha256.Sum256([]byte(content)), err)
			} else if len(lines) > 0 {
				out[rel] = strings.Join(lines, "\n")
			}
		}
	}
	flat := func(dir string) {
		entries, _ := os.ReadDir(filepath.Join(s.workspace, dir))
		for _, entry := range entries {
			if info, err := entry.Info(); err == nil {
				look(filepath.Join(dir, entry.Name()), info.Mode())
			}
		}
	}
	seen := map[string]bool{}
	var repository func(rel string, bare bool)
	repository = func(rel string, bare bool) {
		if seen[rel] {
			return
		}
		seen[rel] = true
		if info, err := os.Lstat(filepath.Join(s.workspace, rel)); err == nil && info.Mode().Type() == fs.ModeSymlink {
			look(rel, info.Mode())
			return
		}
		if bare { // among other files, links may be anything
			for _, name := range gitNames {
				if info, err := os.Lstat(filepath.Join(s.workspace, rel, name)); err == nil {
					look(filepath.Join(rel, name), info.Mode())
				}
			}
		} else {
			flat(rel)
		}
		flat(filepath.Join(rel, "hooks"))
		for _, module := range s.modules(rel) {
			repository(module, false)
		}
	}
	for _, rel := range f.repositories {
		repository(rel, filepath.Base(rel) != ".git")
	}
	for _, rel := range f.pointers {
		target := s.pointer(rel)
		if target != "" {
			repository(target, true)
		}
		info, err := os.Lstat(filepath.Join(s.workspace, rel))
		if err != nil || info.Mode().IsRegular() && rel != ".git" && target != "" {
			continue
		}
		content, _ := readHere(filepath.Join(s.workspace, rel))
		link, _ := os.Readlink(filepath.Join(s.workspace, rel))
		out[rel] = info.Mode().Type().String() + content + link
	}
	return out
}

// readHere reads a regular file that nobody may have replaced by a link or a pipe.
func readHere(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err == nil && len(content) > maxConfig {
		err = fmt.Errorf("longer than %d bytes", maxConfig)
	}
	return string(content), err
}
