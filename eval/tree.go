package eval

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// maxTree bounds what is copied for a trial, in bytes.
const maxTree = 8 << 30

// copyTree copies files, folders and links; links are never followed, and sockets, pipes and devices are left out. Keep, where it is not
// nil, chooses files by their path in from, with slashes.
func copyTree(from, to string, keep func(string) bool) error {
	left := int64(maxTree)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	return filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			if d != nil && d.IsDir() && errors.Is(err, fs.ErrPermission) { // a folder that its maker closed
				if os.Chmod(name, 0o755) == nil {
					return copyTree(name, filepath.Join(to, mustRel(from, name)), prefixed(keep, filepath.ToSlash(mustRel(from, name))))
				}
			}
			return err
		}
		rel := mustRel(from, name)
		target := filepath.Join(to, rel)
		if rel == "." {
			return nil
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		chosen := keep == nil || keep(filepath.ToSlash(rel))
		switch {
		case d.IsDir():
			if keep != nil {
				return nil
			}
			return os.MkdirAll(target, info.Mode().Perm()|0o700)
		case !chosen:
			return nil
		case d.Type()&fs.ModeSymlink != 0:
			link, err := os.Readlink(name)
			if err != nil {
				return err
			}
			if keep != nil {
				if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
					return err
				}
			}
			return os.Symlink(link, target)
		case d.Type().IsRegular():
			if left -= info.Size(); left < 0 {
				return fmt.Errorf("the tree is larger than %d GiB", maxTree>>30)
			}
			if keep != nil {
				if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
					return err
				}
			}
			return copyFile(name, target, info)
		}
		return nil
	})
}

func prefixed(keep func(string) bool, prefix string) func(string) bool {
	if keep == nil {
		return nil
	}
	return func(rel string) bool { return keep(prefix + "/" + rel) }
}

func mustRel(base, name string) string {
	rel, err := filepath.Rel(base, name)
	if err != nil {
		panic(err) // both come from one walk
	}
	return rel
}

func copyFile(from, to string, info fs.FileInfo) error {
	in, err := os.Open(from)
	if errors.Is(err, fs.ErrPermission) && os.Chmod(from, 0o644) == nil {
		in, err = os.Open(from)
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm()|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}

// removeAll removes a tree whatever its modes are.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if errors.Is(err, fs.ErrPermission) {
		_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			if d != nil && d.IsDir() {
				_ = os.Chmod(name, 0o755)
			}
			return nil
		})
		err = os.RemoveAll(dir)
	}
	return err
}

// layIn copies a file or a folder's contents to a place below root. Whatever was planted in its way is removed: no link is followed.
func layIn(root string, l Laid, cwd string, names *replacer) error {
	info, err := os.Stat(l.From)
	if err != nil {
		return err
	}
	base := path.Join(filepath.ToSlash(cwd), filepath.ToSlash(l.To))
	if !info.IsDir() {
		return layFile(root, l.From, base, info, names)
	}
	if err := clearWay(root, base); err != nil {
		return err
	}
	return filepath.WalkDir(l.From, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := path.Join(base, filepath.ToSlash(mustRel(l.From, name)))
		if d.IsDir() {
			return clearWay(root, rel)
		}
		info, err := os.Stat(name) // a task's own links are followed
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		return layFile(root, name, rel, info, names)
	})
}

// clearWay makes every part of rel a real folder.
func clearWay(root, rel string) error {
	at := root
	for part := range strings.SplitSeq(path.Clean(rel), "/") {
		at = filepath.Join(at, part)
		info, err := os.Lstat(at)
		if err == nil && info.IsDir() {
			if info.Mode().Perm()&0o700 != 0o700 {
				if err := os.Chmod(at, 0o755); err != nil {
					return err
				}
			}
			continue
		}
		if err == nil {
			if err := os.Remove(at); err != nil {
				return err
			}
		}
		if err := os.Mkdir(at, 0o755); err != nil {
			return err
		}
	}
	return nil
}

func layFile(root, from, rel string, info fs.FileInfo, names *replacer) error {
	if !filepath.IsLocal(filepath.FromSlash(rel)) {
		return fmt.Errorf("%s does not lie in the workspace", rel)
	}
	if dir := path.Dir(rel); dir != "." {
		if err := clearWay(root, dir); err != nil {
			return err
		}
	}
	to := filepath.Join(root, filepath.FromSlash(rel))
	if err := removeAll(to); err != nil {
		return err
	}
	if info.Size() > 4<<20 {
		return copyFile(from, to, info)
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	mode := info.Mode().Perm() | 0o600
	if bytes.HasPrefix(data, []byte("#!")) { // a script, whatever the way it came here made of its mode
		mode |= 0o111
	}
	if names != nil && utf8.Valid(data) && !bytes.ContainsRune(data, 0) {
		data = []byte(names.Replace(string(data)))
	}
	return os.WriteFile(to, data, mode)
}

// fileState is what a tree holds: path with slashes -> a digest of mode and content.
type fileState map[string]string

// readState reads a tree without following links. What is above 64 MiB is told by size and time alone.
func readState(root string) (fileState, error) {
	state := fileState{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if errors.Is(err, fs.ErrPermission) {
				state[filepath.ToSlash(mustRel(root, name))] = "unreadable"
				return nil
			}
			return err
		}
		rel := filepath.ToSlash(mustRel(root, name))
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			to, _ := os.Readlink(name)
			state[rel] = "-> " + to
		case !d.Type().IsRegular():
			state[rel] = d.Type().String()
		case info.Size() > 64<<20:
			state[rel] = fmt.Sprint(info.Size(), info.ModTime().UnixNano())
		default:
			data, err := os.ReadFile(name)
			if err != nil {
				state[rel] = "unreadable"
				return nil
			}
			state[rel] = fmt.Sprintf("%o %x", info.Mode().Perm()&0o111, sha256.Sum256(data))
		}
		return nil
	})
	return state, err
}

// changed lists the paths that are another in now than before, and those that are gone.
func (before fileState) changed(now fileState) (written, deleted []string) {
	for name, digest := range now {
		if before[name] != digest {
			written = append(written, name)
		}
	}
	for name := range before {
		if _, there := now[name]; !there {
			deleted = append(deleted, name)
		}
	}
	return written, deleted
}

// matchGlob says whether a path fits a pattern in which ** stands for any folders, and * for anything within one name. A folder's name fits
// all that lies below it.
func matchGlob(pattern, name string) bool {
	return globParts(strings.Split(strings.TrimSuffix(strings.TrimPrefix(pattern, "./"), "/"), "/"), strings.Split(name, "/"))
}

func globParts(pattern, name []string) bool {
	switch {
	case len(pattern) == 0:
		return true // all below a folder that fits
	case pattern[0] == "**":
		for i := 0; i <= len(name); i++ {
			if globParts(pattern[1:], name[i:]) {
				return len(pattern) > 1 || len(name) > 0
			}
		}
		return false
	case len(name) == 0:
		return false
	}
	ok, err := path.Match(pattern[0], name[0])
	return err == nil && ok && globParts(pattern[1:], name[1:])
}
