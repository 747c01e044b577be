//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// survey knows where in the workspace there is something that could take effect outside of the sandbox: protected
// names, repositories, sockets and pipes. It looks at every directory again, and reads only those that changed.
type survey struct {
	mu   sync.Mutex
	root *folder
	ours map[string]bool // sockets and pipes that commands have made, by path and inode
}

// folder is a directory as it was when it was read.
type folder struct {
	changed time.Time
	settled bool // nothing can have changed since without its time showing it
	dirs    map[string]*folder
	marks   []mark
	git     bool // it holds something called .git
	bare    bool // it is the directory of a repository
}

// mark is an entry worth looking at.
type mark struct {
	name string
	mode fs.FileMode
}

// grain is more than the precision of times of any file system that commands can write fast on.
const grain = 20 * time.Millisecond

// found is what a survey has found, by paths relative to the workspace.
type found struct {
	protected    []string            // exist, and stay as they are
	repositories []string            // the directories of repositories, as .git is
	pointers     []string            // files and links called .git
	special      map[string]specials // sockets, pipes and devices
}

type specials struct{ key string }

// look surveys the workspace.
func (s *Sandbox) look() found {
	v := &s.survey
	v.mu.Lock()
	defer v.mu.Unlock()
	out := found{special: map[string]specials{}}
	v.root = s.visit(v.root, "", true, &out)
	return out
}

// visit looks at the directory rel, which prev was before, and adds what is in it to out.
func (s *Sandbox) visit(prev *folder, rel string, top bool, out *found) *folder {
	dir := filepath.Join(s.workspace, rel)
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || within(s.home, dir) && rel != "" && dir == s.home {
		return nil
	}
	f := prev
	if f == nil || !f.settled || !f.changed.Equal(changed(info)) {
		f = s.readFolder(prev, dir, rel, info)
	}
	isTop := top || f.git
	for _, m := range f.marks {
		path := filepath.Join(rel, m.name)
		switch {
		case m.mode&(fs.ModeSocket|fs.ModeNamedPipe|fs.ModeDevice) != 0:
			if info, err := os.Lstat(filepath.Join(s.workspace, path)); err == nil {
				out.special[path] = specials{identity(path, info)}
			}
		case m.name == ".git":
			if m.mode.IsDir() {
				out.repositories = append(out.repositories, path)
			} else {
				out.pointers = append(out.pointers, path)
			}
			for _, name := range gitNames { // also of what a link leads to
				if p := filepath.Join(path, name); exists(filepath.Join(s.workspace, p)) {
					out.protected = append(out.protected, p)
				}
			}
			for _, p := range s.rules.top {
				if p = filepath.FromSlash(p); strings.HasPrefix(p, path+string(filepath.Separator)) && !slices.Contains(out.protected, p) && exists(filepath.Join(s.workspace, p)) {
					out.protected = append(out.protected, p)
				}
			}
			if m.mode.IsRegular() {
				out.protected = append(out.protected, path)
			}
		case s.rules.matches(filepath.ToSlash(path), isTop):
			out.protected = append(out.protected, path)
		}
	}
	if isTop {
		for _, p := range topPaths(filepath.ToSlash(rel)) {
			if p := filepath.FromSlash(p); exists(filepath.Join(s.workspace, p)) {
				out.protected = append(out.protected, p)
			}
		}
	}
	if f.bare {
		out.repositories = append(out.repositories, rel)
		for _, name := range gitNames {
			if p := filepath.Join(rel, name); exists(filepath.Join(s.workspace, p)) {
				out.protected = append(out.protected, p)
			}
		}
	}
	for name, sub := range f.dirs {
		if now := s.visit(sub, filepath.Join(rel, name), false, out); now != nil {
			f.dirs[name] = now
		} else {
			delete(f.dirs, name)
			f.settled = false // it went while we looked
		}
	}
	return f
}

// readFolder reads a directory. What its subdirectories were is kept.
func (s *Sandbox) readFolder(prev *folder, dir, rel string, info fs.FileInfo) *folder {
	f := &folder{changed: changed(info), dirs: map[string]*folder{}}
	f.settled = time.Since(f.changed) > grain
	entries, err := os.ReadDir(dir)
	f.settled = f.settled && err == nil
	names := map[string]fs.FileMode{}
	for _, entry := range entries {
		name, mode := entry.Name(), entry.Type()
		path := filepath.ToSlash(filepath.Join(rel, name))
		switch {
		case name == ".git":
			f.git = true
			f.marks = append(f.marks, mark{name, mode})
		case slices.Contains(hidden, path):
		case mode&(fs.ModeSocket|fs.ModeNamedPipe|fs.ModeDevice) != 0, isStart(name), slices.Contains(topNames, name), s.rules.matches(path, false):
			f.marks = append(f.marks, mark{name, mode})
		}
		switch name {
		case "HEAD", "objects", "refs", "commondir":
			names[name] = mode
		}
		if mode.IsDir() && name != ".git" && !slices.Contains(hidden, path) {
			f.dirs[name] = nil
			if prev != nil {
				f.dirs[name] = prev.dirs[name]
			}
		}
	}
	has := func(name string) bool { _, ok := names[name]; return ok }
	f.bare = has("HEAD") && (has("objects") && has("refs") || has("commondir"))
	return f
}

// modules are the repositories inside of a repository's directory: of submodules, and of linked worktrees.
func (s *Sandbox) modules(repository string) []string {
	var out []string
	var below func(dir string)
	below = func(dir string) {
		entries, _ := os.ReadDir(filepath.Join(s.workspace, dir))
		var has []string
		for _, entry := range entries {
			has = append(has, entry.Name())
		}
		if slices.Contains(has, "HEAD") && slices.Contains(has, "objects") || slices.Contains(has, "commondir") || slices.Contains(has, "config") {
			out = append(out, dir)
		}
		for _, entry := range entries {
			switch path := filepath.Join(dir, entry.Name()); {
			case entry.Type() == fs.ModeSymlink:
				out = append(out, path)
			case entry.IsDir() && !slices.Contains([]string{"objects", "refs", "logs", "hooks", "info"}, entry.Name()):
				below(path)
			}
		}
	}
	below(filepath.Join(repository, "modules"))
	for _, dir := range []string{"worktrees"} {
		entries, _ := os.ReadDir(filepath.Join(s.workspace, repository, dir))
		for _, entry := range entries {
			out = append(out, filepath.Join(repository, dir, entry.Name()))
		}
	}
	return out
}

// pointer is the repository in the workspace that a file or link called .git names, "" where it names none.
func (s *Sandbox) pointer(rel string) string {
	path := filepath.Join(s.workspace, rel)
	target, err := os.Readlink(path)
	if err != nil {
		content, err := readHere(path)
		if err != nil {
			return ""
		}
		var ok bool
		if target, ok = strings.CutPrefix(strings.TrimSpace(content), "gitdir: "); !ok {
			return ""
		}
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(filepath.Dir(path), target)
	}
	real, err := filepath.EvalSymlinks(target)
	if err != nil || !within(real, s.workspace) || real == s.workspace {
		return ""
	}
	out, err := filepath.Rel(s.workspace, real)
	if err != nil {
		return ""
	}
	return out
}

// identity tells a socket or pipe from another that takes its place.
func identity(path string, info fs.FileInfo) string {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%s %d %d", path, st.Dev, st.Ino)
	}
	return path
}

// made says whether a command has made a socket or pipe. Others are of programs outside, and are hidden: through them
// a command could have those do something.
func (v *survey) made(one specials) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.ours[one.key]
}

// keep remembers which sockets and pipes a command has made.
func (v *survey) keep(before, after found) {
	v.mu.Lock()
	defer v.mu.Unlock()
	ours := map[string]bool{}
	for path, one := range after.special {
		if was, ok := before.special[path]; v.ours[one.key] || !ok || was != one {
			ours[one.key] = true
		}
	}
	v.ours = ours
}
