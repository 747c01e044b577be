package sandbox

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"belay/effect"
	"belay/tool"
)

// env is a tool.Env for one grant. It holds no open files: the workspace may be replaced between two calls.
type env struct {
	s     *Sandbox
	grant effect.Grant
	dir   string
	cache cacheKind
	// prepare changes the copy of the workspace that a command then gets; nil needs no copy.
	prepare func(root string) error
}

func (e *env) Place() tool.Place {
	return tool.Place{Workspace: e.s.workspace, Dir: e.dir, Home: e.s.userHome}
}

// denied says that the grant does not hold what was asked.
func denied(op, path, why string) error {
	return fmt.Errorf("%s %s: %s: %w", op, path, why, tool.ErrDenied)
}

// place is a path without symbolic links under one of the roots that may be read.
type place struct {
	root string // absolute
	rel  string // relative to root, "." is the root itself
	ws   bool   // root is the workspace
}

// locate resolves path and says under which root it lies. Only the name that is left over where nothing
// exists yet stays unresolved. With keep the last name itself is not followed.
func (e *env) locate(op, path string, keep bool) (place, error) {
	if path == "" || strings.ContainsRune(path, 0) {
		return place{}, fmt.Errorf("%s %q: not a path", op, path)
	}
	if e.grant.Workspace == "" || e.grant.Workspace == effect.NoAccess {
		return place{}, denied(op, path, "no file access was granted")
	}
	abs := path
	if !filepath.IsAbs(abs) {
		abs = filepath.Join(e.dir, abs)
	}
	abs = filepath.Clean(abs)
	last := ""
	if keep && filepath.Dir(abs) != abs {
		abs, last = filepath.Split(abs)
		abs = filepath.Clean(abs)
	}
	real, err := resolve(abs)
	if err != nil {
		return place{}, fmt.Errorf("%s %s: %w", op, path, bare(err))
	}
	real = filepath.Join(real, last)
	if within(real, e.s.workspace) {
		rel, err := filepath.Rel(e.s.workspace, real)
		if err != nil {
			return place{}, fmt.Errorf("%s %s: %w", op, path, err)
		}
		if p, ok := covered(rel, hidden); ok {
			return place{}, denied(op, path, p+" belongs to the harness and is not visible")
		}
		if within(real, e.s.home) {
			return place{}, denied(op, path, "the state of belay is not visible")
		}
		return place{root: e.s.workspace, rel: rel, ws: true}, nil
	}
	for _, root := range e.s.host.readable {
		if within(real, root) && !slices.ContainsFunc(e.s.host.masked, func(m string) bool { return within(real, m) }) {
			rel, err := filepath.Rel(root, real)
			if err != nil {
				return place{}, fmt.Errorf("%s %s: %w", op, path, err)
			}
			return place{root: root, rel: rel}, nil
		}
	}
	return place{}, denied(op, path, "outside the workspace "+e.s.workspace)
}

// resolve follows every symbolic link in path. Names at its end that do not exist are kept as they are.
func resolve(path string) (string, error) {
	rest := ""
	for {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		dir, base := filepath.Split(path)
		dir = filepath.Clean(dir)
		if !errors.Is(err, fs.ErrNotExist) || dir == path {
			return "", err
		}
		path, rest = dir, filepath.Join(base, rest)
	}
}

// bare takes the path out of an error, for one that says it already.
func bare(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

// errMoved says that something else changed the tree at the same time.
var errMoved = errors.New("the path changed while it was opened, or holds a symbolic link; try again")

// enter opens the directory that holds p, name by name, and refuses whatever has become a symbolic link since
// it was resolved. With create, missing directories are made.
func (e *env) enter(p place, create bool) (dir *os.Root, base string, err error) {
	dir, err = os.OpenRoot(p.root)
	if err != nil {
		return nil, "", err
	}
	names := strings.Split(p.rel, string(filepath.Separator))
	for _, name := range names[:len(names)-1] {
		next, err := e.step(dir, name, create)
		dir.Close()
		if err != nil {
			return nil, "", err
		}
		dir = next
	}
	return dir, names[len(names)-1], nil
}

func (e *env) step(dir *os.Root, name string, create bool) (*os.Root, error) {
	info, err := dir.Lstat(name)
	made := false
	if create && errors.Is(err, fs.ErrNotExist) {
		err := dir.Mkdir(name, 0o755)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		made = err == nil
		info, err = dir.Lstat(name)
		if err != nil {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	}
	if info.Mode().Type() == fs.ModeSymlink {
		return nil, errMoved
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory", name)
	}
	next, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	now, err := next.Stat(".")
	if err == nil && !os.SameFile(info, now) {
		err = errMoved
	}
	if err == nil && made && e.giving() {
		err = next.Lchown(".", e.s.uid, e.s.gid)
	}
	if err != nil {
		next.Close()
		return nil, err
	}
	return next, nil
}

// giving says whether what is new must be made the workspace's owner's. That is always done through an open
// file: its name may stand for something else by then.
func (e *env) giving() bool { return os.Geteuid() == 0 && e.s.uid >= 0 }

// open opens a file, or a directory, and never waits: a pipe or a device is refused.
func (e *env) open(p place) (*os.File, fs.FileInfo, error) {
	dir, base, err := e.enter(p, false)
	if err != nil {
		return nil, nil, err
	}
	defer dir.Close()
	before, err := dir.Lstat(base)
	if err != nil {
		return nil, nil, err
	}
	switch {
	case before.Mode().Type() == fs.ModeSymlink:
		if base != "." {
			return nil, nil, errMoved
		}
	case !before.IsDir() && !before.Mode().IsRegular():
		return nil, nil, fmt.Errorf("neither a file nor a directory: %s", before.Mode().Type())
	}
	f, err := dir.OpenFile(base, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !os.SameFile(before, info) {
		err = errMoved
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

func (e *env) ReadFile(path string) ([]byte, error) {
	p, err := e.locate("read", path, false)
	if err != nil {
		return nil, err
	}
	f, info, err := e.open(p)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, bare(err))
	}
	defer f.Close()
	if info.IsDir() {
		return nil, fmt.Errorf("read %s: is a directory", path)
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, bare(err))
	}
	return data, nil
}

func (e *env) Stat(path string) (tool.FileInfo, error) {
	p, err := e.locate("stat", path, false)
	if err != nil {
		return tool.FileInfo{}, err
	}
	dir, base, err := e.enter(p, false)
	if err != nil {
		return tool.FileInfo{}, fmt.Errorf("stat %s: %w", path, bare(err))
	}
	defer dir.Close()
	info, err := dir.Lstat(base)
	if err != nil {
		return tool.FileInfo{}, fmt.Errorf("stat %s: %w", path, bare(err))
	}
	out := fileInfo(info)
	if p.rel == "." {
		out.Name = filepath.Base(p.root)
	}
	return out, nil
}

// ReadDir lists a directory in the order of names. A symbolic link is listed as one, not followed.
func (e *env) ReadDir(path string) ([]tool.FileInfo, error) {
	p, err := e.locate("list", path, false)
	if err != nil {
		return nil, err
	}
	f, info, err := e.open(p)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", path, bare(err))
	}
	defer f.Close()
	if !info.IsDir() {
		return nil, fmt.Errorf("list %s: is not a directory", path)
	}
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", path, bare(err))
	}
	out := make([]tool.FileInfo, 0, len(entries))
	for _, entry := range entries {
		full := filepath.Join(p.root, p.rel, entry.Name())
		if p.ws && (slices.Contains(hidden, filepath.Join(p.rel, entry.Name())) || full == e.s.home) {
			continue
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", path, bare(err))
		}
		out = append(out, fileInfo(info))
	}
	slices.SortFunc(out, func(a, b tool.FileInfo) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// writable locates path for a change.
func (e *env) writable(op, path string, keep bool) (place, error) {
	p, err := e.locate(op, path, keep)
	if err != nil {
		return place{}, err
	}
	switch {
	case e.s.level.Isolation == None:
		return place{}, denied(op, path, "this run is read-only, as there is no sandbox: "+e.s.level.Reason)
	case !p.ws:
		return place{}, denied(op, path, "outside the workspace "+e.s.workspace)
	case e.grant.Workspace != effect.ReadWrite:
		return place{}, denied(op, path, "writing was not granted, only "+string(e.grant.Workspace))
	case p.rel == ".":
		return place{}, denied(op, path, "this is the workspace itself")
	}
	if held, ok := e.s.guards(p.rel); ok {
		return place{}, denied(op, path, held+" is protected")
	}
	return p, nil
}

// gitTrap says why a file would complete a repository in which git runs programs. Git takes any directory that looks
// like a repository's for one.
func (s *Sandbox) gitTrap(rel string, data []byte) string {
	dir, base := filepath.Split(filepath.Join(s.workspace, rel))
	config := string(data)
	switch base {
	case "config", "config.worktree":
		if !exists(filepath.Join(dir, "HEAD")) {
			return ""
		}
	case "HEAD", "commondir":
		content, err := os.ReadFile(filepath.Join(dir, "config"))
		if err != nil {
			return ""
		}
		config = string(content)
	default:
		return ""
	}
	if lines := runsPrograms(config); len(lines) > 0 {
		return "git would take this directory for a repository, and run programs as `" + lines[0] + "` says"
	}
	return ""
}

func (e *env) WriteFile(path string, data []byte) error {
	p, err := e.writable("write", path, false)
	if err != nil {
		return err
	}
	if why := e.s.gitTrap(p.rel, data); why != "" {
		return denied("write", path, why)
	}
	if err := e.write(p, data); err != nil {
		return fmt.Errorf("write %s: %w", path, bare(err))
	}
	return nil
}

func (e *env) write(p place, data []byte) error {
	dir, base, err := e.enter(p, true)
	if err != nil {
		return err
	}
	defer dir.Close()
	old, err := dir.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		old = nil
	case err != nil:
		return err
	case old.IsDir():
		return errors.New("is a directory")
	case old.Mode().Type() == fs.ModeSymlink:
		old = nil // leads nowhere, or appeared just now: it is replaced, never followed
	case !old.Mode().IsRegular():
		return fmt.Errorf("not a regular file: %s", old.Mode().Type())
	}
	temp := ".belay-" + rand.Text()
	f, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	err = e.fill(f, old, data)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = dir.Rename(temp, base)
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(dir.Remove(temp)))
	}
	return syncDir(dir)
}

func (e *env) fill(f *os.File, old fs.FileInfo, data []byte) error {
	if _, err := f.Write(data); err != nil {
		return err
	}
	if old == nil {
		if e.giving() {
			if err := f.Chown(e.s.uid, e.s.gid); err != nil {
				return err
			}
		}
		return f.Sync()
	}
	if uid, gid := ownerOf(old); os.Geteuid() == 0 && uid >= 0 {
		if err := f.Chown(uid, gid); err != nil {
			return err
		}
	}
	// As with any write, the right to run as the owner does not outlive a change of the content.
	if err := f.Chmod(old.Mode() &^ (fs.ModeSetuid | fs.ModeSetgid)); err != nil {
		return err
	}
	return f.Sync()
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Remove removes a file, a symbolic link (not what it points to) or an empty directory.
func (e *env) Remove(path string) error {
	p, err := e.writable("remove", path, true)
	if err != nil {
		return err
	}
	for _, held := range e.s.rules.top {
		if held := filepath.FromSlash(held); within(held, p.rel) {
			if _, err := os.Lstat(filepath.Join(e.s.workspace, held)); err == nil {
				return denied("remove", path, "it holds "+held+", which is protected")
			}
		}
	}
	dir, base, err := e.enter(p, false)
	if err != nil {
		return fmt.Errorf("remove %s: %w", path, bare(err))
	}
	defer dir.Close()
	if err := dir.Remove(base); err != nil {
		return fmt.Errorf("remove %s: %w", path, bare(err))
	}
	return nil
}

func fileInfo(info fs.FileInfo) tool.FileInfo {
	return tool.FileInfo{Name: info.Name(), Size: info.Size(), Mode: info.Mode(), ModTime: info.ModTime()}
}
