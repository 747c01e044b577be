// Package checkpointtest is the suite that every checkpoint.Store passes.
package checkpointtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"belay/checkpoint"
)

// Run checks a store. Open gives one, empty, of the workspace at root.
func Run(t *testing.T, open func(t *testing.T, root string) checkpoint.Store) {
	write := func(t *testing.T, root, name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	text := func(root, name string) string {
		b, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
	take := func(t *testing.T, s checkpoint.Store, n checkpoint.Note) checkpoint.Manifest {
		t.Helper()
		m, err := s.Take(context.Background(), n)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	t.Run("what was taken can be found", func(t *testing.T) {
		root := t.TempDir()
		s := open(t, root)
		write(t, root, "a", "1")
		note := checkpoint.Note{Run: "r_1", Step: "s1", Reason: "why", PlanHash: "p", Seq: 7, Turn: 2, Green: true, Effects: []string{"k"}}
		first := take(t, s, note)
		write(t, root, "a", "2")
		second := take(t, s, checkpoint.Note{})
		if first.ID == second.ID || first.Tree == second.Tree || first.Run != "r_1" || first.Seq != 7 || first.Turn != 2 || !first.Green || first.Covered != (checkpoint.Total{Files: 1, Bytes: 1}) || first.Workspace != root {
			t.Errorf("%+v\n%+v", first, second)
		}
		got, err := s.Get(first.ID)
		if err != nil || got.Tree != first.Tree || got.Reason != "why" || got.PlanHash != "p" || len(got.Effects) != 1 {
			t.Errorf("%+v, %v", got, err)
		}
		if all, err := s.List(); err != nil || len(all) != 2 || all[0].ID != first.ID {
			t.Errorf("%v, %v", all, err)
		}
		for _, id := range []string{"c_ffffffffffffffff", "", "../x", "c_"} {
			if _, err := s.Get(id); !errors.Is(err, checkpoint.ErrUnknown) {
				t.Errorf("%q: %v", id, err)
			}
		}
	})
	t.Run("an unchanged tree has the same name", func(t *testing.T) {
		root := t.TempDir()
		s := open(t, root)
		write(t, root, "d/a", "1")
		if a, b := take(t, s, checkpoint.Note{}), take(t, s, checkpoint.Note{}); a.Tree != b.Tree || a.ID == b.ID {
			t.Errorf("%+v\n%+v", a, b)
		}
	})
	t.Run("differences", func(t *testing.T) {
		root := t.TempDir()
		s := open(t, root)
		write(t, root, "gone", "1")
		write(t, root, "d/changed", "1")
		a := take(t, s, checkpoint.Note{})
		if err := os.Remove(filepath.Join(root, "gone")); err != nil {
			t.Fatal(err)
		}
		write(t, root, "d/changed", "2")
		write(t, root, "new", "3")
		b := take(t, s, checkpoint.Note{})
		changes, err := s.Diff(a.Tree, b.Tree)
		want := []checkpoint.Change{{Path: "d/changed", Kind: checkpoint.Modified}, {Path: "gone", Kind: checkpoint.Deleted}, {Path: "new", Kind: checkpoint.Added}}
		if err != nil || len(changes) != len(want) {
			t.Fatalf("%v, %v", changes, err)
		}
		for i, c := range changes {
			if c.Path != want[i].Path || c.Kind != want[i].Kind {
				t.Errorf("%+v, not %+v", c, want[i])
			}
		}
		if content, err := s.Read(changes[2].Now); err != nil || string(content) != "3" {
			t.Errorf("%q, %v", content, err)
		}
		if none, err := s.Diff(b.Tree, b.Tree); err != nil || len(none) > 0 {
			t.Errorf("%v, %v", none, err)
		}
	})
	t.Run("restored, and back again", func(t *testing.T) {
		root := t.TempDir()
		s := open(t, root)
		write(t, root, "a", "1")
		write(t, root, "same", "s")
		a := take(t, s, checkpoint.Note{})
		write(t, root, "a", "2")
		write(t, root, "d/new", "n")
		b := take(t, s, checkpoint.Note{})
		before, err := os.Stat(filepath.Join(root, "same"))
		if err != nil {
			t.Fatal(err)
		}
		done, err := s.Restore(t.Context(), b, a, false)
		if err != nil || len(done) != 3 || text(root, "a") != "1" {
			t.Errorf("%v, %v, %q", done, err, text(root, "a"))
		}
		if _, err := os.Stat(filepath.Join(root, "d")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the new folder is still there: %v", err)
		}
		if again, err := s.Restore(t.Context(), b, a, false); err != nil || len(again) > 0 {
			t.Errorf("restored twice: %v, %v", again, err)
		}
		if _, err := s.Restore(t.Context(), a, b, false); err != nil || text(root, "d/new") != "n" {
			t.Errorf("%v, %q", err, text(root, "d/new"))
		}
		if after, err := os.Stat(filepath.Join(root, "same")); err != nil || !after.ModTime().Equal(before.ModTime()) {
			t.Errorf("a file that does not differ was touched: %v", err)
		}
	})
	t.Run("what is in no checkpoint is not destroyed", func(t *testing.T) {
		root := t.TempDir()
		s := open(t, root)
		write(t, root, "a", "1")
		write(t, root, "b", "1")
		a := take(t, s, checkpoint.Note{})
		write(t, root, "a", "2")
		write(t, root, "b", "2")
		b := take(t, s, checkpoint.Note{})
		write(t, root, "b", "mine")
		if _, err := s.Restore(t.Context(), b, a, false); !errors.Is(err, checkpoint.ErrConflict) || text(root, "a") != "2" || text(root, "b") != "mine" {
			t.Errorf("%v: %q, %q", err, text(root, "a"), text(root, "b"))
		}
		if _, err := s.Restore(t.Context(), b, a, true); err != nil || text(root, "b") != "1" {
			t.Errorf("%v, %q", err, text(root, "b"))
		}
	})
}
