package snapshot

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"belay/checkpoint"
)

// Swept says what a collection did, or would do.
type Swept struct {
	Workspace   string `json:"workspace"`
	Checkpoints int    `json:"checkpoints"` // removed
	Kept        int    `json:"kept"`
	Bytes       int64  `json:"bytes"` // freed
}

// ErrInUse says that a run uses the store.
var ErrInUse = errors.New("a run uses this workspace's checkpoints: try again when it has ended")

// Collect removes the checkpoints that are older than a moment, and the objects that only they needed.
func (s *Store) Collect(before time.Time, dry bool) (Swept, error) {
	out := Swept{Workspace: s.root}
	unlock, ok, err := s.Lock("store", false)
	if err != nil {
		return out, err
	}
	if !ok {
		return out, ErrInUse
	}
	defer unlock()
	all, err := s.List()
	if err != nil {
		return out, err
	}
	live, dead := map[objectID]bool{}, []checkpoint.Manifest{}
	for _, m := range all {
		if m.Time.Before(before) {
			dead = append(dead, m)
			continue
		}
		out.Kept++
		id, err := parseID(m.Tree)
		if err == nil {
			err = s.mark(id, live)
		}
		if err != nil {
			return out, err
		}
	}
	out.Checkpoints = len(dead)
	if len(dead) == 0 {
		return out, nil
	}
	size := diskUse(s.dir)
	if dry {
		kept := int64(0)
		for id := range live {
			if p, at := s.own.where(id); p != nil {
				_, content, err := s.own.get(id)
				if err != nil {
					return out, err
				}
				raw, err := packEntry(kindBlob, content)
				if err != nil {
					return out, err
				}
				_, kept = at, kept+int64(len(raw))
			}
		}
		out.Bytes = max(size-kept, 0)
		return out, nil
	}
	for _, m := range dead {
		for _, path := range []string{filepath.Join(s.dir, "checkpoints", m.ID+".json"), filepath.Join(s.dir, "refs", "belay", m.ID)} {
			if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				return out, err
			}
		}
	}
	if err := s.repack(live); err != nil {
		return out, err
	}
	os.Remove(s.cachePath())
	s.mu.Lock()
	s.top = nil // it names objects that are gone
	s.mu.Unlock()
	out.Bytes = max(size-diskUse(s.dir), 0)
	return out, nil
}

// mark notes everything that a tree needs.
func (s *Store) mark(tree objectID, live map[objectID]bool) error {
	if live[tree] {
		return nil
	}
	live[tree] = true
	items, err := s.items(tree)
	if err != nil {
		return err
	}
	for _, it := range items {
		if it.mode&modeType != modeDir {
			live[it.id] = true
		} else if err := s.mark(it.id, live); err != nil {
			return err
		}
	}
	return nil
}

// repack writes one pack of what is live, and removes the others when it is durable.
func (s *Store) repack(live map[objectID]bool) error {
	w := &packWriter{dir: filepath.Join(s.own.dir, "pack")}
	defer func() { w.drop() }()
	old, err := filepath.Glob(filepath.Join(w.dir, "pack-*.*"))
	if err != nil {
		return err
	}
	for id := range live {
		k, content, err := s.own.get(id)
		if err == nil {
			err = w.add(id, k, content)
		}
		if err != nil {
			return err
		}
	}
	fresh, err := w.finish()
	if err != nil {
		return err
	}
	for _, path := range old {
		if fresh == "" || !strings.HasPrefix(path, strings.TrimSuffix(fresh, "pack")) {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	loose, err := filepath.Glob(filepath.Join(s.own.dir, "[0-9a-f][0-9a-f]", "*"))
	for _, path := range loose {
		err = errors.Join(err, os.Remove(path))
	}
	s.own.reload()
	return err
}

// Use is what the store takes on the disk. Borrowed is the part that is the user's own files under another name.
type Use struct {
	Workspace   string `json:"workspace"`
	Dir         string `json:"dir"`
	Checkpoints int    `json:"checkpoints"`
	Bytes       int64  `json:"bytes"`
	Borrowed    int64  `json:"borrowed"`
}

// Use measures the store.
func (s *Store) Use() (Use, error) {
	all, err := s.List()
	u := Use{Workspace: s.root, Dir: s.dir, Checkpoints: len(all)}
	_ = filepath.WalkDir(s.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			if links(info) > 1 {
				u.Borrowed += info.Size()
			} else {
				u.Bytes += info.Size()
			}
		}
		return nil
	})
	return u, err
}

func diskUse(dir string) (total int64) {
	_ = filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if info, err := d.Info(); err == nil && links(info) == 1 {
				total += info.Size()
			}
		}
		return nil
	})
	return total
}

// Workspaces lists the workspaces that have a store below home.
func Workspaces(home string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(Dir(home), "*", "workspace"))
	var all []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return all, err
		}
		all = append(all, strings.TrimSuffix(string(text), "\n"))
	}
	return all, err
}
