package journal

import (
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// memDisk is a file system in memory that knows what was synced. Every operation can be made to fail, and a clone
// of it can be taken as a power loss would leave it: what was synced, and any part of what was not.
type memDisk struct {
	mu    *sync.Mutex
	root  *node
	locks map[string]bool
	count int
	// before is asked before each operation; an error is its outcome. Short asks for half of a write first.
	before func(n int, op, path string) (short bool, err error)
}

// node is a file or a directory.
type node struct {
	dir bool

	data, synced []byte
	writes       []change // since the last sync

	names, syncedNames map[string]*node
	moves              []*move // since the last sync
	stale              []*move // whose sync failed
}

// change is a write, or a cut where data is nil.
type change struct {
	at   int64
	data []byte
}

// move changes names: in one directory, or in two at once.
type move struct {
	apply func(*node, map[string]*node)
	done  bool
}

func newMemDisk() *memDisk {
	return &memDisk{mu: &sync.Mutex{}, root: newDir(), locks: map[string]bool{}}
}

func newDir() *node {
	return &node{dir: true, names: map[string]*node{}, syncedNames: map[string]*node{}}
}

// op begins an operation.
func (d *memDisk) op(name, path string) (short bool, err error) {
	d.count++
	if d.before == nil {
		return false, nil
	}
	short, err = d.before(d.count, name, path)
	if err != nil {
		err = &fs.PathError{Op: name, Path: path, Err: err}
	}
	return short, err
}

func (d *memDisk) find(path string) (*node, error) {
	at := d.root
	for _, name := range strings.Split(strings.Trim(path, "/"), "/") {
		if name == "" {
			continue
		}
		next, ok := at.names[name]
		if !at.dir || !ok {
			return nil, &fs.PathError{Op: "find", Path: path, Err: fs.ErrNotExist}
		}
		at = next
	}
	return at, nil
}

// change applies a move to the directories it concerns.
func (m *move) in(dirs ...*node) {
	for _, dir := range slices.Compact(dirs) {
		m.apply(dir, dir.names)
		dir.moves, dir.stale = append(append(dir.moves, dir.stale...), m), nil
	}
}

func (d *memDisk) add(path string, n *node) error {
	dir, err := d.find(filepath.Dir(path))
	if err != nil {
		return err
	}
	base := filepath.Base(path)
	(&move{apply: func(_ *node, names map[string]*node) { names[base] = n }}).in(dir)
	return nil
}

func (d *memDisk) Mkdir(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.op("mkdir", path); err != nil {
		return err
	}
	if _, err := d.find(path); err == nil {
		return &fs.PathError{Op: "mkdir", Path: path, Err: fs.ErrExist}
	}
	return d.add(path, newDir())
}

func (d *memDisk) MkdirAll(path string) error {
	if _, err := d.Stat(path); err == nil {
		return nil
	}
	if parent := filepath.Dir(path); parent != path {
		if err := d.MkdirAll(parent); err != nil {
			return err
		}
	}
	return d.Mkdir(path)
}

func (d *memDisk) OpenFile(path string, flag int) (handle, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.op("open", path); err != nil {
		return nil, err
	}
	n, err := d.find(path)
	switch {
	case err != nil && flag&os.O_CREATE == 0:
		return nil, err
	case err != nil:
		n = &node{}
		if err := d.add(path, n); err != nil {
			return nil, err
		}
	case flag&os.O_EXCL != 0:
		return nil, fs.ErrExist
	case flag&os.O_TRUNC != 0:
		n.change(change{at: 0})
	}
	return &memHandle{disk: d, node: n, path: path}, nil
}

func (d *memDisk) Stat(path string) (fs.FileInfo, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.find(path)
	if err != nil {
		return nil, err
	}
	return memInfo{filepath.Base(path), int64(len(n.data)), n.dir}, nil
}

func (d *memDisk) Rename(from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.op("rename", to); err != nil {
		return err
	}
	n, err := d.find(from)
	if err != nil {
		return err
	}
	a, err := d.find(filepath.Dir(from))
	if err != nil {
		return err
	}
	b, err := d.find(filepath.Dir(to))
	if err != nil {
		return err
	}
	(&move{apply: func(dir *node, names map[string]*node) {
		if dir == a {
			delete(names, filepath.Base(from))
		}
		if dir == b {
			names[filepath.Base(to)] = n
		}
	}}).in(a, b)
	return nil
}

func (d *memDisk) Remove(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.op("remove", path); err != nil {
		return err
	}
	if _, err := d.find(path); err != nil {
		return err
	}
	dir, err := d.find(filepath.Dir(path))
	if err != nil {
		return err
	}
	(&move{apply: func(_ *node, names map[string]*node) { delete(names, filepath.Base(path)) }}).in(dir)
	return nil
}

func (d *memDisk) RemoveAll(path string) error {
	if _, err := d.Stat(path); err != nil {
		return nil
	}
	return d.Remove(path)
}

func (d *memDisk) SyncDir(path string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := d.find(path)
	if err != nil {
		return err
	}
	if _, err := d.op("syncdir", path); err != nil {
		// The system holds it for clean, and the disk does not have it: the next sync succeeds and writes nothing,
		// unless something in the directory changes, which writes its names again.
		n.stale, n.moves = append(n.stale, n.moves...), nil
		return err
	}
	for _, m := range n.moves {
		m.done = true
		m.apply(n, n.syncedNames)
	}
	n.moves = nil
	return nil
}

func (d *memDisk) Lock(path string) (func() error, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := d.op("lock", path); err != nil {
		return nil, false, err
	}
	if d.locks[path] {
		return nil, false, nil
	}
	d.locks[path] = true
	return func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.locks, path)
		return nil
	}, true, nil
}

func (n *node) change(c change) {
	n.data = c.apply(n.data)
	n.writes = append(n.writes, c)
}

func (c change) apply(data []byte) []byte {
	if c.data == nil {
		if c.at < int64(len(data)) {
			return slices.Clone(data[:c.at])
		}
		return append(slices.Clone(data), make([]byte, c.at-int64(len(data)))...)
	}
	if gap := c.at + int64(len(c.data)) - int64(len(data)); gap > 0 {
		data = append(slices.Clone(data), make([]byte, gap)...)
	} else {
		data = slices.Clone(data)
	}
	copy(data[c.at:], c.data)
	return data
}

type memHandle struct {
	disk *memDisk
	node *node
	path string
	at   int64
}

func (h *memHandle) ReadAt(p []byte, at int64) (int, error) {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if at >= int64(len(h.node.data)) {
		return 0, io.EOF
	}
	n := copy(p, h.node.data[at:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (h *memHandle) Read(p []byte) (int, error) {
	n, err := h.ReadAt(p, h.at)
	h.at += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

func (h *memHandle) WriteAt(p []byte, at int64) (int, error) {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	short, err := h.disk.op("write", h.path)
	if err != nil {
		if short && len(p) > 1 {
			h.node.change(change{at, slices.Clone(p[:len(p)/2])})
			return len(p) / 2, err
		}
		return 0, err
	}
	h.node.change(change{at, append([]byte{}, p...)})
	return len(p), nil
}

func (h *memHandle) Write(p []byte) (int, error) {
	n, err := h.WriteAt(p, h.at)
	h.at += int64(n)
	return n, err
}

func (h *memHandle) Truncate(size int64) error {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if _, err := h.disk.op("truncate", h.path); err != nil {
		return err
	}
	h.node.change(change{at: size})
	return nil
}

// Sync, where it fails, loses what was written: the system drops the pages that it could not write, and holds what
// the disk has for clean. The next sync succeeds and says nothing.
func (h *memHandle) Sync() error {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if _, err := h.disk.op("sync", h.path); err != nil {
		h.node.data, h.node.writes = slices.Clone(h.node.synced), nil
		return err
	}
	h.node.synced, h.node.writes = slices.Clone(h.node.data), nil
	return nil
}

func (h *memHandle) Stat() (fs.FileInfo, error) {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	return memInfo{h.path, int64(len(h.node.data)), false}, nil
}

func (h *memHandle) Close() error { return nil }

type memInfo struct {
	name string
	size int64
	dir  bool
}

func (i memInfo) Name() string       { return i.name }
func (i memInfo) Size() int64        { return i.size }
func (i memInfo) Mode() fs.FileMode  { return 0o600 }
func (i memInfo) ModTime() time.Time { return time.Time{} }
func (i memInfo) IsDir() bool        { return i.dir }
func (i memInfo) Sys() any           { return nil }

// crash is the disk as a power loss at this moment could leave it.
func (d *memDisk) crash(rng *rand.Rand) *memDisk {
	after := newMemDisk()
	kept := map[*move]bool{}
	seen := map[*node]*node{}
	after.root = d.root.crash(rng, kept, seen)
	return after
}

func (n *node) crash(rng *rand.Rand, kept map[*move]bool, seen map[*node]*node) *node {
	if c := seen[n]; c != nil {
		return c
	}
	c := &node{dir: n.dir}
	seen[n] = c
	if !n.dir {
		data := slices.Clone(n.synced)
		for _, w := range n.writes {
			switch part := rng.IntN(4); {
			case part == 0: // lost
			case part == 1 && len(w.data) > 0: // torn
				data = change{w.at, w.data[:rng.IntN(len(w.data)+1)]}.apply(data)
			default:
				data = w.apply(data)
			}
		}
		c.data, c.synced = data, slices.Clone(data)
		return c
	}
	names := maps.Clone(n.syncedNames)
	for _, m := range n.moves {
		if _, decided := kept[m]; !decided {
			kept[m] = m.done || rng.IntN(2) == 0
		}
		if kept[m] {
			m.apply(n, names)
		}
	}
	c.names = map[string]*node{}
	for name, child := range names {
		c.names[name] = child.crash(rng, kept, seen)
	}
	c.syncedNames = maps.Clone(c.names)
	return c
}

// faults are what can go wrong with one operation.
var faults = map[string]func(op string) (short bool, err error){
	"EIO":         func(string) (bool, error) { return false, syscall.EIO },
	"ENOSPC":      func(string) (bool, error) { return false, syscall.ENOSPC },
	"short write": func(string) (bool, error) { return true, syscall.ENOSPC },
}
