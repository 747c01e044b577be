package snapshot

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"belay/checkpoint"
)

// Save keeps single files as they are now, durably, and returns each as a change that brings it back. Paths are
// relative, with slashes. A folder cannot be saved so.
func (s *Store) Save(paths []string) ([]checkpoint.Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	root, err := os.OpenRoot(s.root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	s.pack = &packWriter{dir: filepath.Join(s.own.dir, "pack")}
	defer func() { s.pack.drop() }()
	var saved []checkpoint.Change
	for _, rel := range paths {
		st, err := s.stateOf(root, rel)
		c := checkpoint.Change{Path: rel, Kind: checkpoint.Modified, Now: st.id, NowMode: st.mode}
		if err == nil && (st.mode&modeType == modeDir || st.id == "?") {
			err = fmt.Errorf("it is neither a readable file nor a link")
		}
		if err == nil && st.mode != 0 {
			e := entry{stat: stat{name: filepath.Base(rel), mode: st.mode}}
			err = (&scan{ctx: context.Background(), s: s}).content(rel, &e, st.mode == modeLink)
			c.Now = e.id.String()
		}
		if err != nil {
			return nil, fmt.Errorf("save %s: %w", rel, err)
		}
		saved = append(saved, c)
	}
	path, err := s.pack.finish()
	if path != "" {
		s.own.reload()
	}
	return saved, err
}

// PutBack makes files as Save found them.
func (s *Store) PutBack(ctx context.Context, saved []checkpoint.Change) error {
	root, err := os.OpenRoot(s.root)
	if err != nil {
		return err
	}
	for i, c := range saved {
		is, err := s.stateOf(root, c.Path)
		if err != nil {
			return err
		}
		saved[i].Was, saved[i].WasMode = is.id, is.mode
	}
	root.Close()
	_, err = s.apply(ctx, saved)
	return err
}

// Apply finishes or undoes an interrupted restore.
func (s *Store) Apply(ctx context.Context, from, to checkpoint.Manifest) ([]string, error) {
	changes, err := s.Plan(from, to)
	if err != nil {
		return nil, err
	}
	return s.apply(ctx, changes)
}
