// Package committable computes the id of the tree that git would commit of a folder, and lists what lies beside that tree.
package committable

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Tree is what git would commit after `git add -A`, and what it would leave out.
type Tree struct {
	ID     string   // as `git write-tree` says it
	Files  []string // in it, with slashes, sorted
	Beside []string // ignored by git: files, and whole folders with a slash at their end, sorted
}

// ErrNoGit says that there is no git program, which alone knows what a repository ignores.
var ErrNoGit = errors.New("there is no git program")

// Of looks at the folder, which may be a repository, a part of one or neither. Folders in skip (absolute) are no part
// of anything. Nothing is written, and none of the repository's own settings start a program: git only lists names,
// and contents are read and hashed here, as they are, without filters.
func Of(ctx context.Context, root string, skip ...string) (Tree, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return Tree{}, ErrNoGit
	}
	l := lister{ctx: ctx, git: git, root: root}
	if _, err := l.run("rev-parse", "--git-dir"); err != nil {
		if _, inside := os.Lstat(filepath.Join(root, ".git")); inside == nil {
			return Tree{}, err
		}
		empty, err := os.MkdirTemp("", "belay-git-")
		if err != nil {
			return Tree{}, err
		}
		defer os.RemoveAll(empty)
		if _, err := l.run("init", "-q", "--bare", "--template=", empty); err != nil {
			return Tree{}, err
		}
		l.other = empty
	}
	sum := sha1.New
	if format, err := l.run("rev-parse", "--show-object-format"); err == nil && strings.TrimSpace(string(format)) == "sha256" {
		sum = sha256.New
	}
	listed, err := l.run("ls-files", "-z", "--cached", "--others", "--exclude-standard")
	if err != nil {
		return Tree{}, err
	}
	ignored, err := l.run("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
	if err != nil {
		return Tree{}, err
	}
	skipped := func(path string) bool {
		abs := filepath.Join(root, filepath.FromSlash(path))
		return slices.ContainsFunc(skip, func(s string) bool { return abs == s || strings.HasPrefix(abs, s+string(filepath.Separator)) })
	}
	t := Tree{}
	top := &folder{}
	dir, err := os.OpenRoot(root)
	if err != nil {
		return Tree{}, err
	}
	defer dir.Close()
	names := split(listed)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if skipped(name) {
			continue
		}
		if strings.HasSuffix(name, "/") { // a repository of its own
			t.Beside = append(t.Beside, name)
			continue
		}
		e, err := read(dir, name, sum)
		if errors.Is(err, fs.ErrNotExist) {
			continue // tracked and deleted
		}
		if errors.Is(err, errOther) {
			t.Beside = append(t.Beside, name)
			continue
		}
		if err != nil {
			return Tree{}, fmt.Errorf("read %s: %w", name, err)
		}
		t.Files = append(t.Files, name)
		top.put(strings.Split(name, "/"), e)
	}
	for _, name := range split(ignored) {
		if !skipped(strings.TrimSuffix(name, "/")) {
			t.Beside = append(t.Beside, name)
		}
	}
	slices.Sort(t.Beside)
	t.Beside = slices.Compact(t.Beside)
	t.ID = hex.EncodeToString(top.id(sum))
	return t, nil
}

func split(list []byte) []string {
	var all []string
	for part := range bytes.SplitSeq(list, []byte{0}) {
		if len(part) > 0 {
			all = append(all, string(part))
		}
	}
	return all
}

// lister runs git where it only lists.
type lister struct {
	ctx       context.Context
	git, root string
	other     string // a repository elsewhere, for a folder that has none
}

func (l lister) run(args ...string) ([]byte, error) {
	base := []string{"-C", l.root, "-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + os.DevNull, "-c", "core.quotePath=false"}
	if l.other != "" {
		base = append(base, "--git-dir="+l.other, "--work-tree="+l.root)
	}
	cmd := exec.CommandContext(l.ctx, l.git, append(base, args...)...)
	cmd.Env = append(os.Environ(), "GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		// The person named this folder; that another user owns it is no reason not to list it.
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*")
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(said.String()))
	}
	return out.Bytes(), nil
}

// entry is one line of a git tree.
type entry struct {
	mode string
	id   []byte
}

var errOther = errors.New("neither file nor link")

func read(dir *os.Root, name string, sum func() hash.Hash) (entry, error) {
	path := filepath.FromSlash(name)
	info, err := dir.Lstat(path)
	if err != nil {
		return entry{}, err
	}
	switch {
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := dir.Readlink(path)
		if err != nil {
			return entry{}, err
		}
		return entry{"120000", object("blob", []byte(filepath.ToSlash(target)), sum)}, nil
	case !info.Mode().IsRegular():
		return entry{}, errOther
	}
	mode := "100644"
	if info.Mode()&0o100 != 0 {
		mode = "100755"
	}
	f, err := dir.Open(path)
	if err != nil {
		return entry{}, err
	}
	defer f.Close()
	h := sum()
	fmt.Fprintf(h, "blob %d\x00", info.Size())
	if n, err := io.Copy(h, f); err != nil || n != info.Size() {
		return entry{}, errors.Join(err, fmt.Errorf("it changes while it is read"))
	}
	return entry{mode, h.Sum(nil)}, nil
}

func object(kind string, content []byte, sum func() hash.Hash) []byte {
	h := sum()
	fmt.Fprintf(h, "%s %d\x00", kind, len(content))
	h.Write(content)
	return h.Sum(nil)
}

// folder is a tree that grows.
type folder struct {
	files   map[string]entry
	folders map[string]*folder
}

func (f *folder) put(path []string, e entry) {
	if len(path) == 1 {
		if f.files == nil {
			f.files = map[string]entry{}
		}
		f.files[path[0]] = e
		return
	}
	if f.folders == nil {
		f.folders = map[string]*folder{}
	}
	sub := f.folders[path[0]]
	if sub == nil {
		sub = &folder{}
		f.folders[path[0]] = sub
	}
	sub.put(path[1:], e)
}

// id is the hash of the tree object. Git sorts folders as if their names ended with a slash.
func (f *folder) id(sum func() hash.Hash) []byte {
	type item struct {
		key, name string
		entry
	}
	var items []item
	for name, e := range f.files {
		items = append(items, item{name, name, e})
	}
	for name, sub := range f.folders {
		items = append(items, item{name + "/", name, entry{"40000", sub.id(sum)}})
	}
	slices.SortFunc(items, func(a, b item) int { return strings.Compare(a.key, b.key) })
	var content bytes.Buffer
	for _, i := range items {
		fmt.Fprintf(&content, "%s %s\x00", i.mode, i.name)
		content.Write(i.id)
	}
	return object("tree", content.Bytes(), sum)
}

// Changed lists the files that differ from the last commit, new ones too.
func Changed(ctx context.Context, root string) ([]string, error) {
	git, err := exec.LookPath("git")
	if err != nil {
		return nil, ErrNoGit
	}
	l := lister{ctx: ctx, git: git, root: root}
	differ, err := l.run("diff", "--name-only", "--no-ext-diff", "--no-textconv", "--relative", "-z", "HEAD")
	if err != nil {
		return nil, err
	}
	others, err := l.run("ls-files", "-z", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	all := append(split(differ), split(others)...)
	slices.Sort(all)
	return slices.Compact(all), nil
}
