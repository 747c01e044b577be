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

// gitRuns finds what in the workspace's repository, and in those of its submodules, makes git run programs on the
// host. The keys are the paths, relative to the workspace; the values change whenever what is there does.
func (s *Sandbox) gitRuns() map[string]string {
	found := map[string]string{}
	look := func(rel string, mode fs.FileMode) {
		path := filepath.Join(s.workspace, rel)
		name := filepath.Base(rel)
		hook := filepath.Base(filepath.Dir(rel)) == "hooks" && mode&0o111 != 0 && !strings.HasSuffix(name, ".sample")
		switch {
		case mode.Type() == fs.ModeSymlink && name != "HEAD":
			target, _ := os.Readlink(path)
			found[rel] = "link to " + target
		case mode.IsDir() || name != "config" && name != "commondir" && !hook:
		case !mode.IsRegular():
			found[rel] = mode.Type().String()
		default:
			content, err := readHere(path)
			if lines := runsPrograms(content); err != nil || name != "config" {
				found[rel] = fmt.Sprintf("%x %v", sha256.Sum256([]byte(content)), err)
			} else if len(lines) > 0 {
				found[rel] = strings.Join(lines, "\n")
			}
		}
	}
	info, err := os.Lstat(filepath.Join(s.workspace, ".git"))
	if err != nil {
		return found
	}
	if !info.IsDir() {
		found[".git"] = info.Mode().Type().String()
		return found
	}
	walk := func(dir string, deep bool) {
		filepath.WalkDir(filepath.Join(s.workspace, dir), func(path string, d fs.DirEntry, err error) error {
			rel, rerr := filepath.Rel(s.workspace, path)
			if d == nil || rerr != nil {
				return nil
			}
			if info, ierr := d.Info(); ierr == nil {
				look(rel, info.Mode())
			}
			if d.IsDir() && !deep && rel != dir {
				return fs.SkipDir
			}
			return nil
		})
	}
	walk(".git", false)
	walk(".git/hooks", false)
	walk(".git/modules", true)
	return found
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
