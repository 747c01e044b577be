package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"belay/checkpoint"
	"belay/internal/failpoint"
)

// Diff lists what differs from one tree to another, sorted by path. Folders that came or went are listed with what is
// in them.
func (s *Store) Diff(from, to string) ([]checkpoint.Change, error) {
	a, err := parseID(from)
	if err != nil {
		return nil, err
	}
	b, err := parseID(to)
	if err != nil {
		return nil, err
	}
	var changes []checkpoint.Change
	err = s.diff("", &item{mode: modeDir | 0o755, id: a}, &item{mode: modeDir | 0o755, id: b}, &changes)
	slices.SortFunc(changes, func(a, b checkpoint.Change) int { return strings.Compare(a.Path, b.Path) })
	return changes, err
}

func (s *Store) diff(rel string, a, b *item, to *[]checkpoint.Change) error {
	if a != nil && b != nil && *a == *b {
		return nil
	}
	isDir := func(it *item) bool { return it != nil && it.mode&modeType == modeDir }
	if rel != "" && (a == nil || b == nil || a.mode != b.mode || !isDir(a)) {
		c := checkpoint.Change{Path: rel, Kind: checkpoint.Modified}
		if a != nil {
			c.Was, c.WasMode = a.id.String(), a.mode
		} else {
			c.Kind = checkpoint.Added
		}
		if b != nil {
			c.Now, c.NowMode = b.id.String(), b.mode
		} else {
			c.Kind = checkpoint.Deleted
		}
		*to = append(*to, c)
	}
	var left, right []item
	var err error
	if isDir(a) {
		if left, err = s.items(a.id); err != nil {
			return err
		}
	}
	if isDir(b) {
		if right, err = s.items(b.id); err != nil {
			return err
		}
	}
	for len(left) > 0 || len(right) > 0 {
		var x, y *item
		switch {
		case len(right) == 0 || len(left) > 0 && left[0].name < right[0].name:
			x, left = &left[0], left[1:]
		case len(left) == 0 || right[0].name < left[0].name:
			y, right = &right[0], right[1:]
		default:
			x, y, left, right = &left[0], &right[0], left[1:], right[1:]
		}
		name := ""
		if x != nil {
			name = x.name
		} else {
			name = y.name
		}
		if err := s.diff(join(rel, name), x, y, to); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) items(id objectID) ([]item, error) {
	_, text, err := s.own.get(id)
	if err != nil {
		return nil, err
	}
	return decodeTree(text)
}

// state is what lies at a path: git's mode and the object id of the content, without a folder's; 0 is nothing.
type state struct {
	mode uint32
	id   string
}

func (a state) same(b state) bool {
	return a.mode == b.mode && (a.id == b.id || a.mode&modeType == modeDir)
}

// stateOf looks at a path. A link among its parents makes it nothing: what lies behind is somewhere else.
func (s *Store) stateOf(root *os.Root, rel string) (state, error) {
	for dir := path.Dir(rel); dir != "."; dir = path.Dir(dir) {
		if info, err := root.Lstat(filepath.FromSlash(dir)); err != nil || !info.IsDir() {
			return state{}, nil
		}
	}
	name := filepath.FromSlash(rel)
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, nil
	}
	if err != nil {
		return state{}, err
	}
	perm := uint32(info.Mode().Perm())
	for bit, flag := range map[fs.FileMode]uint32{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if info.Mode()&bit != 0 {
			perm |= flag
		}
	}
	switch m := info.Mode(); {
	case m.IsDir():
		return state{mode: modeDir | perm}, nil
	case m&fs.ModeSymlink != 0:
		target, err := root.Readlink(name)
		return state{modeLink, hashObject(kindBlob, []byte(target)).String()}, err
	case m.IsRegular():
		content, err := readRegular(filepath.Join(s.root, name), 1<<40)
		if err == nil && secretFile(path.Base(rel)) {
			content, err = s.seal(content)
		}
		if errors.Is(err, fs.ErrPermission) {
			return state{mode: modeFile | perm, id: "?"}, nil
		}
		return state{modeFile | perm, hashObject(kindBlob, content).String()}, err
	}
	return state{mode: 1, id: "?"}, nil
}

// Conflicts lists the changes whose path is neither as before nor as after them: restoring would destroy what nothing
// holds.
func (s *Store) Conflicts(changes []checkpoint.Change) ([]string, error) {
	root, err := os.OpenRoot(s.root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	going := map[string]bool{}
	for _, c := range changes {
		going[c.Path] = true
	}
	var found []string
	for _, c := range changes {
		is, err := s.stateOf(root, c.Path)
		if err != nil {
			return nil, err
		}
		was, now := state{c.WasMode, c.Was}, state{c.NowMode, c.Now}
		if is.same(was) || is.same(now) || is.mode == 0 {
			if is.mode&modeType != modeDir || now.mode == 0 || now.mode&modeType == modeDir {
				continue
			}
			// A file is to stand where a folder is: what lies in it must be going too.
			stays := ""
			_ = fs.WalkDir(root.FS(), c.Path, func(p string, d fs.DirEntry, err error) error {
				if err == nil && !going[p] {
					stays = p
				}
				return err
			})
			if stays == "" {
				continue
			}
		}
		found = append(found, c.Path)
	}
	return found, nil
}

// Plan is what a restore changes: what to does not cover is not deleted.
func (s *Store) Plan(from, to checkpoint.Manifest) ([]checkpoint.Change, error) {
	changes, err := s.Diff(from.Tree, to.Tree)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(changes, func(c checkpoint.Change) bool {
		return c.Kind == checkpoint.Deleted && slices.ContainsFunc(to.Uncovered, func(u checkpoint.Uncovered) bool {
			return c.Path == u.Path || strings.HasPrefix(c.Path, u.Path+"/")
		})
	}), nil
}

// Restore makes the workspace, which is as in from, as in to.
func (s *Store) Restore(ctx context.Context, from, to checkpoint.Manifest, force bool) ([]string, error) {
	changes, err := s.Plan(from, to)
	if err != nil {
		return nil, fmt.Errorf("restore %s: %w", to.ID, err)
	}
	conflicts, err := s.Conflicts(changes)
	if err != nil {
		return nil, fmt.Errorf("restore %s: %w", to.ID, err)
	}
	if len(conflicts) > 0 && !force {
		return nil, fmt.Errorf("restore %s: %s: %w", to.ID, some(conflicts), checkpoint.ErrConflict)
	}
	done, err := s.apply(ctx, changes)
	if err != nil {
		return done, fmt.Errorf("restore %s: %w", to.ID, err)
	}
	return done, nil
}

func some(paths []string) string {
	if len(paths) > 5 {
		return strings.Join(paths[:5], ", ") + fmt.Sprintf(" and %d more", len(paths)-5)
	}
	return strings.Join(paths, ", ")
}

// apply makes every path as after its change: deletions first, the deepest first; then folders; then files; then the
// permissions of folders. A path that is so already is left alone.
func (s *Store) apply(ctx context.Context, changes []checkpoint.Change) (done []string, err error) {
	root, err := os.OpenRoot(s.root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	isDir := func(mode uint32) bool { return mode&modeType == modeDir }
	for i := len(changes) - 1; i >= 0; i-- {
		c := changes[i]
		if c.WasMode == 0 || c.NowMode != 0 && c.NowMode&modeType == c.WasMode&modeType {
			continue
		}
		name := filepath.FromSlash(c.Path)
		info, err := root.Lstat(name)
		if err != nil || info.IsDir() != isDir(c.WasMode) {
			continue // it is gone, or something else is there already
		}
		if err := root.Remove(name); err != nil {
			if isDir(c.WasMode) && c.NowMode == 0 {
				continue // it holds what is not covered
			}
			return done, err
		}
		done = append(done, c.Path)
		failpoint.Hit("restore.after-path")
	}
	for _, c := range changes {
		if err := ctx.Err(); err != nil {
			return done, err
		}
		if c.NowMode == 0 {
			continue
		}
		is, err := s.stateOf(root, c.Path)
		if err != nil {
			return done, err
		}
		if is.same(state{c.NowMode, c.Now}) {
			continue
		}
		if err := s.place(root, c); err != nil {
			return done, fmt.Errorf("%s: %w", c.Path, err)
		}
		if !slices.Contains(done, c.Path) {
			done = append(done, c.Path)
		}
		failpoint.Hit("restore.after-path")
	}
	for i := len(changes) - 1; i >= 0; i-- {
		if c := changes[i]; isDir(c.NowMode) {
			if err := root.Chmod(filepath.FromSlash(c.Path), fileMode(c.NowMode)); err != nil {
				return done, err
			}
		}
	}
	slices.Sort(done)
	if len(done) > 0 {
		err = settle(s.root)
	}
	return done, err
}

// fileMode is git's mode as Go writes permissions.
func fileMode(mode uint32) fs.FileMode {
	m := fs.FileMode(mode & 0o777)
	for bit, flag := range map[fs.FileMode]uint32{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if mode&flag != 0 {
			m |= bit
		}
	}
	return m
}

// place puts a file, a link or a folder where it belongs, as what was there before it belonged to.
func (s *Store) place(root *os.Root, c checkpoint.Change) error {
	name := filepath.FromSlash(c.Path)
	dir := filepath.Dir(name)
	if err := root.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	uid, gid := -1, -1
	for _, p := range []string{name, dir} {
		if info, err := root.Lstat(p); err == nil {
			uid, gid = owner(info)
			break
		}
	}
	own := func(name string) {
		if os.Geteuid() == 0 && uid >= 0 {
			_ = root.Lchown(name, uid, gid) // a file system without owners has none to keep
		}
	}
	if c.NowMode&modeType == modeDir {
		err := root.Mkdir(name, 0o700)
		if errors.Is(err, fs.ErrExist) {
			return nil // its permissions come last
		}
		own(name)
		return err
	}
	content, err := s.Read(c.Now)
	if err != nil {
		return err
	}
	temp := filepath.Join(dir, ".belay-restore-"+c.Now[:12])
	root.Remove(temp)
	if c.NowMode&modeType == modeLink {
		err = root.Symlink(string(content), temp)
	} else {
		var f *os.File
		if f, err = root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			_, err = bytes.NewReader(content).WriteTo(f)
			err = errors.Join(err, f.Close())
		}
	}
	if err == nil {
		own(temp)
		if c.NowMode&modeType == modeFile {
			err = root.Chmod(temp, fileMode(c.NowMode))
		}
	}
	if err == nil {
		err = root.Rename(temp, name)
	}
	if err != nil {
		root.Remove(temp)
	}
	return err
}
