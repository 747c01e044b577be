package eval

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Suite is a folder of tasks, or a single one.
type Suite struct {
	Name  string
	Dir   string // absolute
	Tasks []*Task
	Hash  string // SHA-256, hex, over the tasks' ids and hashes
}

// LoadSuite reads a task's file, or a folder: every task.yaml below it. It reads all tasks before it
// says what is wrong with them.
func LoadSuite(path string) (*Suite, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(abs)
	if err != nil {
		return nil, fmt.Errorf("the suite: %w", err)
	}
	s := &Suite{Name: filepath.Base(abs), Dir: abs}
	files := []string{path}
	if !info.IsDir() {
		s.Dir, s.Name = filepath.Dir(abs), strings.TrimSuffix(filepath.Base(abs), filepath.Ext(abs))
		if s.Name == "task" {
			s.Name = filepath.Base(s.Dir)
		}
	} else if files, err = taskFiles(path); err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there is no task in %s: a task is a folder with a task.yaml", path)
	}
	var wrong []error
	first := map[string]string{}
	for _, file := range files {
		t, err := Load(file)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		if other := first[t.ID]; other != "" {
			wrong = append(wrong, fmt.Errorf("%s: the id %s is also that of %s: each task needs its own", file, t.ID, other))
		}
		first[t.ID] = file
		s.Tasks = append(s.Tasks, t)
	}
	if err := errors.Join(wrong...); err != nil {
		return nil, err
	}
	slices.SortFunc(s.Tasks, func(a, b *Task) int { return cmp.Compare(a.ID, b.ID) })
	h := sha256.New()
	for _, t := range s.Tasks {
		fmt.Fprintln(h, t.ID, t.Hash)
	}
	s.Hash = hex.EncodeToString(h.Sum(nil))
	return s, nil
}

func taskFiles(dir string) (files []string, err error) {
	own := filepath.Join(dir, "task.yaml")
	if _, err := os.Stat(own); err == nil {
		return []string{own}, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("the suite: %w", err)
	}
	for _, e := range entries {
		name := filepath.Join(dir, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."):
		case e.IsDir():
			below, err := taskFiles(name)
			if err != nil {
				return nil, err
			}
			files = append(files, below...)
		}
	}
	return files, nil
}

// hash reads everything in the task's folder.
func (t *Task) hash(data []byte) (string, error) {
	h := sha256.New()
	h.Write(data)
	err := filepath.WalkDir(t.Dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(t.Dir, path)
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(h, "link %q %q\n", filepath.ToSlash(rel), to)
		case d.Type().IsRegular():
			info, err := d.Info()
			if err != nil {
				return err
			}
			fmt.Fprintf(h, "file %q %v\n", filepath.ToSlash(rel), info.Mode()&0o111 != 0)
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			defer f.Close()
			if _, err := io.Copy(h, f); err != nil {
				return err
			}
		}
		return nil
	})
	return hex.EncodeToString(h.Sum(nil)), err
}
