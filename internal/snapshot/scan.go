package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// Modes as git writes them. The permissions stand in them whole, which git reads as its own two. A folder of 0755 is
// written as git's, without any.
const (
	modeType uint32 = 0o170000
	modeFile uint32 = 0o100000
	modeLink uint32 = 0o120000
	modeDir  uint32 = 0o040000
)

// Limits of what is covered, in bytes.
const (
	maxFile       = 64 << 20 // of a file
	maxIgnored    = 1 << 20  // of an ignored file
	maxIgnoredDir = 16 << 20 // of the ignored files in one folder
	smallDir      = 256      // entries in an ignored folder that is covered, and at most maxIgnored in all
	surveyMax     = 20000    // entries that are counted of what is not covered
)

// stat is what a folder says about one of its entries.
type stat struct {
	name               string
	mode               uint32
	size, mtime, ctime int64
	inode              uint64
}

func (s stat) dir() bool { return s.mode&modeType == modeDir }

// entry is a path as it was last seen.
type entry struct {
	stat
	id      objectID
	racy    bool   // written so lately that a later write may not move its times
	why     string // it is not covered; "" is covered
	bytes   int64  // what is not covered below it, at least
	ignored bool
	sub     *node
}

// node is a folder as it was last seen.
type node struct {
	entries []entry // sorted by name
	id      objectID
	rules   *rules
	above   *rules // that held when rules were made
	ignore  stat   // of the .gitignore
	files   int
	bytes   int64
}

// scan is one look at a workspace.
type scan struct {
	ctx     context.Context
	s       *Store
	started time.Time
	slots   chan struct{}
	repos   map[string]string          // path of a repository in the tree -> its own folder
	tracked map[string]map[string]bool // the same -> the names it tracks, once they are asked for

	mu  sync.Mutex
	err error
}

// racyFor is how far the times of a file must lie back for a later write to be sure to move them.
const racyFor = 20 * time.Millisecond

// look reads the workspace and puts what is new into the pack.
func (s *Store) look(ctx context.Context) (*node, error) {
	w := &scan{ctx: ctx, s: s, started: time.Now(), slots: make(chan struct{}, 2*runtime.GOMAXPROCS(0)), repos: map[string]string{}, tracked: map[string]map[string]bool{}}
	root, err := w.folder("", s.top, s.baseRules())
	if err == nil {
		err = w.err
	}
	return root, err
}

// isTracked says whether a repository around a path tracks it, or something in it. Indexes are large, and only read for
// what is ignored.
func (w *scan) isTracked(rel string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for repo, gitDir := range w.repos {
		name, inside := rel, true
		if repo != "" {
			name, inside = strings.CutPrefix(rel, repo+"/")
		}
		if !inside {
			continue
		}
		if w.tracked[repo] == nil {
			w.tracked[repo] = tracked(gitDir)
		}
		if w.tracked[repo][name] {
			return true
		}
	}
	return false
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// folder reads one folder and those below it.
func (w *scan) folder(rel string, old *node, above *rules) (*node, error) {
	if err := w.ctx.Err(); err != nil {
		return nil, err
	}
	stats, err := list(filepath.Join(w.s.root, filepath.FromSlash(rel)))
	if err != nil {
		return nil, err
	}
	slices.SortFunc(stats, func(a, b stat) int { return strings.Compare(a.name, b.name) })
	n := &node{entries: make([]entry, len(stats)), above: above}
	if _, ok := slices.BinarySearchFunc(stats, ".git", func(s stat, name string) int { return strings.Compare(s.name, name) }); ok {
		if gitDir, _ := gitDirs(filepath.Join(w.s.root, filepath.FromSlash(rel))); gitDir != "" {
			w.mu.Lock()
			w.repos[rel] = gitDir
			w.mu.Unlock()
		}
	}
	w.readRules(n, old, rel, stats)
	changed := old == nil || len(old.entries) != len(stats)
	var waiting sync.WaitGroup
	at := 0
	for i, st := range stats {
		var was *entry
		if old != nil {
			for at < len(old.entries) && old.entries[at].name < st.name {
				at++
			}
			if at < len(old.entries) && old.entries[at].name == st.name {
				was = &old.entries[at]
			}
		}
		e := &n.entries[i]
		e.stat = st
		if !st.dir() {
			w.leaf(rel, e, was, n.rules, old)
			continue
		}
		below := func() { w.below(rel, e, was, n.rules, old) }
		select {
		case w.slots <- struct{}{}:
			waiting.Go(func() { defer func() { <-w.slots }(); below() })
		default:
			below()
		}
	}
	waiting.Wait()
	ignored := int64(0)
	for i := range n.entries {
		e := &n.entries[i]
		if e.ignored && e.why == "" && !e.dir() {
			if ignored += e.size; ignored > maxIgnoredDir {
				e.why, e.bytes = "ignored, and the ignored files of this folder are too many", e.size
			}
		}
		if !changed {
			was := &old.entries[i]
			changed = e.name != was.name || e.id != was.id || e.mode != was.mode || (e.why == "") != (was.why == "")
		}
		switch {
		case e.why != "":
		case e.sub != nil:
			n.files, n.bytes = n.files+e.sub.files, n.bytes+e.sub.bytes
		default:
			n.files, n.bytes = n.files+1, n.bytes+e.size
		}
	}
	if !changed {
		n.id = old.id
		return n, nil
	}
	text := encodeTree(n.entries)
	n.id = hashObject(kindTree, text)
	return n, w.s.put(n.id, kindTree, func() ([]byte, error) { return text, nil })
}

// readRules takes the folder's own ignore file, where it has changed.
func (w *scan) readRules(n, old *node, rel string, stats []stat) {
	i, ok := slices.BinarySearchFunc(stats, ".gitignore", func(s stat, name string) int { return strings.Compare(s.name, name) })
	if ok {
		n.ignore = stats[i]
	}
	if old != nil && old.above == n.above && old.ignore == n.ignore && old.rules != nil && w.started.UnixNano()-n.ignore.mtime > int64(racyFor) {
		n.rules = old.rules
		return
	}
	n.rules = n.above
	if ok && n.ignore.mode&modeType == modeFile && n.ignore.size < maxIgnored {
		if text, err := os.ReadFile(filepath.Join(w.s.root, filepath.FromSlash(rel), ".gitignore")); err == nil {
			n.rules = &rules{parent: n.above, base: rel, patterns: parseIgnore(text)}
		}
	}
}

// fail keeps the first fault.
func (w *scan) fail(err error) {
	w.mu.Lock()
	if w.err == nil {
		w.err = err
	}
	w.mu.Unlock()
}

// below reads a folder inside a folder.
func (w *scan) below(rel string, e, was *entry, r *rules, old *node) {
	path := join(rel, e.name)
	if why := w.outside(path, e, was, r, old); why != "" {
		e.why = why
		if was != nil && was.why == why && was.stat == e.stat {
			e.bytes = was.bytes
		} else {
			_, e.bytes = w.survey(path, surveyMax, 1<<62)
		}
		return
	}
	var before *node
	if was != nil {
		before = was.sub
	}
	sub, err := w.folder(path, before, r)
	switch {
	case err == nil:
		e.sub, e.id = sub, sub.id
	case errors.Is(err, fs.ErrPermission):
		e.why = "cannot be read"
	case errors.Is(err, fs.ErrNotExist):
		e.why = "went away while it was read"
	case strings.Contains(err.Error(), "name too long"):
		e.why = "its path is too long"
	default:
		w.fail(err)
	}
}

// outside says why a folder is not entered; "" is that it is.
func (w *scan) outside(path string, e, was *entry, r *rules, old *node) string {
	if strings.EqualFold(e.name, ".git") {
		return "a repository's own data"
	}
	if w.s.skip[path] {
		return "belay's own state"
	}
	if was != nil && old.rules == r {
		e.ignored = was.ignored
	} else {
		e.ignored = r.ignores(path, true) || generated[e.name]
	}
	if !e.ignored || w.isTracked(path) {
		return ""
	}
	if generated[e.name] {
		return "generated"
	}
	if n, bytes := w.survey(path, smallDir+1, maxIgnored+1); n > smallDir || bytes > maxIgnored {
		return "ignored and large"
	}
	return ""
}

// survey counts what lies below a folder, up to a limit.
func (w *scan) survey(path string, entries int, most int64) (n int, bytes int64) {
	_ = filepath.WalkDir(filepath.Join(w.s.root, filepath.FromSlash(path)), func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return fs.SkipDir
		}
		if n++; n > entries || bytes > most {
			return fs.SkipAll
		}
		if info, err := d.Info(); err == nil && info.Mode().IsRegular() {
			bytes += info.Size()
		}
		return nil
	})
	return n, bytes
}

// leaf takes in what is no folder.
func (w *scan) leaf(rel string, e, was *entry, r *rules, old *node) {
	path := join(rel, e.name)
	if was != nil && old.rules == r {
		e.ignored = was.ignored
	} else {
		e.ignored = r.ignores(path, false)
	}
	isLink := e.mode&modeType == modeLink
	switch {
	case strings.EqualFold(e.name, ".git"):
		e.why = "a repository's own data"
	case isLink:
		e.mode = modeLink
	case e.mode&modeType != modeFile:
		e.why = "neither a file nor a folder nor a link"
	case w.s.env == LeaveOut && secretFile(e.name):
		e.why = "a file of secrets, left out by setting"
	case e.size > maxFile:
		e.why = "larger than 64 MiB"
	case e.ignored && e.size >= maxIgnored && !w.isTracked(path):
		e.why = "ignored and large"
	}
	if e.why != "" {
		e.bytes = e.size
		return
	}
	if was != nil && was.why == "" && was.stat == e.stat && !was.racy {
		e.id = was.id
		return
	}
	err := w.content(path, e, isLink)
	switch {
	case errors.Is(err, fs.ErrPermission):
		e.why, e.bytes = "cannot be read", e.size
	case errors.Is(err, fs.ErrNotExist):
		e.why = "went away while it was read"
	case err != nil:
		w.fail(fmt.Errorf("keep %s: %w", path, err))
	}
}

// content reads a file, hashes it and keeps it where it is new.
func (w *scan) content(path string, e *entry, isLink bool) error {
	full := filepath.Join(w.s.root, filepath.FromSlash(path))
	now := time.Now().UnixNano()
	var content []byte
	if isLink {
		target, err := os.Readlink(full)
		if err != nil {
			return err
		}
		content = []byte(target)
	} else {
		var err error
		if content, err = readRegular(full, maxFile); err != nil {
			return err
		}
		// What changed while it was read is read again the next time.
		if info, err := os.Lstat(full); err != nil || info.Size() != e.size || info.ModTime().UnixNano() != e.mtime {
			e.racy = true
		}
		if secretFile(e.name) {
			if content, err = w.s.seal(content); err != nil {
				return err
			}
		}
	}
	e.racy = e.racy || now-max(e.mtime, e.ctime) < int64(racyFor)
	e.id = hashObject(kindBlob, content)
	return w.s.put(e.id, kindBlob, func() ([]byte, error) { return content, nil })
}

// encodeTree writes a tree as git does: sorted as if each folder's name ended with a slash.
func encodeTree(entries []entry) []byte {
	covered := make([]*entry, 0, len(entries))
	for i := range entries {
		if entries[i].why == "" {
			covered = append(covered, &entries[i])
		}
	}
	key := func(e *entry) string {
		if e.sub != nil {
			return e.name + "/"
		}
		return e.name
	}
	slices.SortFunc(covered, func(a, b *entry) int { return strings.Compare(key(a), key(b)) })
	var b bytes.Buffer
	for _, e := range covered {
		fmt.Fprintf(&b, "%o %s\x00", treeMode(e.mode), e.name)
		b.Write(e.id[:])
	}
	return b.Bytes()
}

// treeMode swaps a folder's usual permissions with none at all: so the usual tree is git's to the byte.
func treeMode(mode uint32) uint32 {
	if mode&modeType == modeDir {
		switch mode & 0o7777 {
		case 0o755:
			return modeDir
		case 0:
			return modeDir | 0o755
		}
	}
	return mode
}

// item is an entry of a stored tree.
type item struct {
	name string
	mode uint32
	id   objectID
}

// decodeTree reads a tree.
func decodeTree(text []byte) ([]item, error) {
	var items []item
	for len(text) > 0 {
		head, rest, ok := bytes.Cut(text, []byte{0})
		var it item
		mode, name, spaced := bytes.Cut(head, []byte(" "))
		if _, err := fmt.Sscanf(string(mode), "%o", &it.mode); !ok || !spaced || err != nil || len(rest) < len(it.id) || len(name) == 0 || bytes.ContainsRune(name, '/') || string(name) == "." || string(name) == ".." {
			return nil, errors.New("damaged tree")
		}
		it.name, it.mode, it.id = string(name), treeMode(it.mode), objectID(rest[:len(it.id)])
		items, text = append(items, it), rest[len(it.id):]
	}
	slices.SortFunc(items, func(a, b item) int { return strings.Compare(a.name, b.name) })
	return items, nil
}
