package shell

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// maxGitConfig is the largest configuration that is read, in bytes.
const maxGitConfig = 256 << 10

// unfilteredRepository says whether a repository's own configuration names no filter, and whether there is a repository.
// git is its .git: a folder, or a file that names one.
func unfilteredRepository(git string) (clean, found bool) {
	info, err := os.Stat(git)
	if err != nil {
		return os.IsNotExist(err), false
	}
	if !info.IsDir() {
		data, err := os.ReadFile(git)
		dir, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir:")
		if err != nil || !ok {
			return false, true
		}
		if dir = strings.TrimSpace(dir); !filepath.IsAbs(dir) {
			dir = filepath.Join(filepath.Dir(git), dir)
		}
		git = dir
		if common, err := os.ReadFile(filepath.Join(git, "commondir")); err == nil {
			if !unfilteredFile(filepath.Join(git, "config.worktree")) {
				return false, true
			}
			at := strings.TrimSpace(string(common))
			if !filepath.IsAbs(at) {
				at = filepath.Join(git, at)
			}
			git = at
		}
	}
	return unfilteredFile(filepath.Join(git, "config")) && unfilteredFile(filepath.Join(git, "config.worktree")), true
}

// seen keeps what was found in a file, for as long as the file is the same.
var seen sync.Map // path -> seenFile

type seenFile struct {
	size  int64
	at    time.Time
	clean bool
}

func unfilteredFile(name string) bool {
	info, err := os.Stat(name)
	if err != nil {
		return os.IsNotExist(err)
	}
	if !info.Mode().IsRegular() || info.Size() > maxGitConfig {
		return false
	}
	if was, ok := seen.Load(name); ok && was.(seenFile).size == info.Size() && was.(seenFile).at.Equal(info.ModTime()) && time.Since(info.ModTime()) > 2*time.Second {
		return was.(seenFile).clean
	}
	data, err := os.ReadFile(name)
	clean := err == nil
	// git reads no blank and no escape between the bracket and the name.
	lower := bytes.ToLower(data)
	for _, word := range []string{"[filter", "[include"} {
		clean = clean && !bytes.Contains(lower, []byte(word))
	}
	seen.Store(name, seenFile{info.Size(), info.ModTime(), clean})
	return clean
}
