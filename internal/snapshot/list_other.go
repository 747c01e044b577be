//go:build !linux

package snapshot

import (
	"io/fs"
	"os"
)

// list reads a folder, with what each entry is.
func list(dir string) ([]stat, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	all := make([]stat, 0, len(entries))
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			continue // it went away
		}
		s := stampOf(info)
		all = append(all, stat{name: e.Name(), mode: modeOf(info.Mode()), size: s.Size, mtime: s.Mtime})
	}
	return all, nil
}

func modeOf(m fs.FileMode) uint32 {
	perm := uint32(m.Perm())
	switch {
	case m.IsDir():
		return modeDir | perm
	case m&fs.ModeSymlink != 0:
		return modeLink
	case m.IsRegular():
		return modeFile | perm
	}
	return perm
}

// settle has nothing better than what the system does by itself.
func settle(string) error { return nil }
