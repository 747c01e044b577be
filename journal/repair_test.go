package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// snapshotDir maps the files below dir to their contents.
func snapshotDir(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files[path] = string(mustRead(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// L2: whatever is done to a middle line, repair keeps all events before it as a new run, which can be written, and
// leaves the damaged one as it is.
func TestRepair(t *testing.T) {
	damages := map[string]func(lines [][]byte, n int) [][]byte{
		"flipped": func(l [][]byte, n int) [][]byte {
			l[n] = bytes.Clone(l[n])
			l[n][len(l[n])/2] ^= 1
			return l
		},
		"spliced":    func(l [][]byte, n int) [][]byte { l[n] = l[n][:len(l[n])/2]; return l },
		"doubled":    func(l [][]byte, n int) [][]byte { return slices.Insert(l, n, l[n-1]) },
		"missing":    func(l [][]byte, n int) [][]byte { return slices.Delete(l, n, n+1) },
		"nul-filled": func(l [][]byte, n int) [][]byte { l[n] = append(make([]byte, len(l[n])-1), '\n'); return l },
		"exchanged":  func(l [][]byte, n int) [][]byte { l[n], l[n+1] = l[n+1], l[n]; return l },
	}
	for name, damage := range damages {
		for n := 1; n < 5; n++ {
			home := t.TempDir()
			f, _, err := Create(home, "r_01", clock(), story()...)
			if err != nil {
				t.Fatal(err)
			}
			want := read(t, f.Dir())
			f.Close()
			path := filepath.Join(f.Dir(), journalName)
			lines := slices.Collect(bytes.Lines(mustRead(t, path)))
			if err := os.WriteFile(path, bytes.Join(damage(lines, n), nil), 0o600); err != nil {
				t.Fatal(err)
			}
			before := snapshotDir(t, f.Dir())
			repair, err := PlanRepair(f.Dir())
			if err != nil || repair.Damage == nil || repair.Damage.Line != n+1 || repair.Sound != int64(n) || len(repair.Left) == 0 {
				t.Fatalf("%s line %d: planned %+v, %v", name, n+1, repair, err)
			}
			if err := repair.Write(home, "r_02", clock()); err != nil {
				t.Fatalf("%s line %d: %v", name, n+1, err)
			}
			if !reflect.DeepEqual(before, snapshotDir(t, f.Dir())) {
				t.Errorf("%s line %d: repair changed the damaged run", name, n+1)
			}
			os.RemoveAll(f.Dir()) // the copy needs nothing of it
			fixed, err := Open(filepath.Join(RunsDir(home), "r_02"), clock())
			if err != nil {
				t.Fatalf("%s line %d: %v", name, n+1, err)
			}
			if _, err := fixed.Append(Entry{Type: TypeUserMessage, Payload: UserMessage{Text: "go on"}}); err != nil {
				t.Fatal(err)
			}
			fixed.Close()
			got := read(t, fixed.Dir())
			if diff := cmp.Diff(want[:n], got[:n]); diff != "" {
				t.Errorf("%s line %d:\n%s", name, n+1, diff)
			}
			if got[n].Type != TypeFork || got[len(got)-1].Seq != int64(len(got)) {
				t.Errorf("%s line %d: goes on with %s", name, n+1, got[n].Type)
			}
			if _, findings, err := Check(fixed.Dir()); err != nil || len(findings) > 0 {
				t.Errorf("%s line %d: the repaired run: %v, %v", name, n+1, findings, err)
			}
		}
	}
}

// A run whose blob is gone is repaired up to the event that names it; a sound one, or one with a torn tail, is not.
func TestRepairOfBlobsAndOfNothing(t *testing.T) {
	home := t.TempDir()
	f, _, err := Create(home, "r_01", clock(), story()...)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if r, err := PlanRepair(f.Dir()); err != nil || r.Damage != nil || r.Sound != 7 {
		t.Errorf("a sound run: %+v, %v", r, err)
	} else if r.Write(home, "r_02", nil) == nil {
		t.Error("a sound run was repaired")
	}
	events := read(t, f.Dir())
	stored := slices.Collect(bytes.Lines(mustRead(t, filepath.Join(f.Dir(), journalName))))
	var last struct {
		Payload struct {
			Text Ref `json:"text"`
		} `json:"payload"`
	}
	if err := json.Unmarshal(stored[5], &last); err != nil || last.Payload.Text.Hash == "" {
		t.Fatalf("%v in %.300s", err, stored[5])
	}
	if err := os.Remove(f.blobPath(last.Payload.Text.Hash)); err != nil {
		t.Fatal(err)
	}
	r, err := PlanRepair(f.Dir())
	if err != nil || r.Sound != 5 || r.Damage == nil || r.Damage.Line != 6 || !slices.Equal(r.Unknown, []string{"c1"}) {
		t.Fatalf("planned %+v, %v", r, err)
	}
	if err := r.Write(home, "r_02", clock()); err != nil {
		t.Fatal(err)
	}
	if got := read(t, filepath.Join(RunsDir(home), "r_02")); !reflect.DeepEqual(events[:5], got[:5]) {
		t.Error(cmp.Diff(events[:5], got[:5]))
	}
}

// A fork shares what came before, by reference, and is a run of its own from there on: also a fork of a fork.
func TestFork(t *testing.T) {
	home := t.TempDir()
	f, _, err := Create(home, "r_01", clock(), story()...)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ref, err := f.PutBlob([]byte("shared"))
	if err != nil {
		t.Fatal(err)
	}
	parent := read(t, f.Dir())
	say := func(text string) Entry { return Entry{Type: TypeUserMessage, Payload: UserMessage{Text: text}} }
	for at := int64(0); at <= int64(len(parent)); at++ {
		id, grandID := "r_1"+string(rune('a'+at)), "r_2"+string(rune('a'+at))
		kept := parent
		if at > 0 {
			kept = parent[:at]
		}
		child, events, err := ForkRun(home, "r_01", at, id, clock(), say("another way"))
		if err != nil {
			t.Fatal(err)
		}
		if events[0].Type != TypeFork || events[0].Seq != int64(len(kept)+1) || events[1].Type != TypeWriterOpen {
			t.Fatalf("fork at %d begins with %+v", at, events[0])
		}
		if diff := cmp.Diff(slices.Concat(kept, events), read(t, child.Dir())); diff != "" {
			t.Fatalf("fork at %d:\n%s", at, diff)
		}
		if got, err := child.Blob(ref); err != nil || string(got) != "shared" {
			t.Errorf("a shared blob: %q, %v", got, err)
		}
		child.Close()
		grand, more, err := ForkRun(home, id, 0, grandID, clock(), say("and another"))
		if err != nil {
			t.Fatal(err)
		}
		want := slices.Concat(kept, events, more)
		grand.Close()
		for _, sidecar := range []bool{true, false} {
			if !sidecar {
				os.Remove(filepath.Join(grand.Dir(), indexName))
			}
			if grand, err = Open(grand.Dir(), clock()); err != nil {
				t.Fatal(err)
			}
			if at == 5 { // the shared call is open, and has its outcome here
				if _, err := grand.Append(Entry{Type: TypeToolResult, Payload: ToolResult{CallID: "c1"}}); (err == nil) != sidecar {
					t.Errorf("outcome of a shared call: %v", err)
				}
			}
			grand.Close()
		}
		if got := read(t, grand.Dir()); !reflect.DeepEqual(want, got[:len(want)]) {
			t.Fatal(cmp.Diff(want, got[:len(want)]))
		}
		if _, findings, err := Check(grand.Dir()); err != nil || len(findings) > 0 {
			t.Errorf("fork at %d: %v, %v", at, findings, err)
		}
	}
	if diff := cmp.Diff(parent, read(t, f.Dir())); diff != "" {
		t.Errorf("forking changed the parent:\n%s", diff)
	}
	if _, _, err := ForkRun(home, "r_01", 99, "r_99", nil); err == nil || !strings.Contains(err.Error(), "no event 99") {
		t.Errorf("fork at an event that is not there: %v", err)
	}

	// Damage in the shared part is damage of the fork, and repair makes a copy that needs no parent.
	forks, err := Forks(home, "r_01")
	if err != nil || len(forks) != len(parent)+1 {
		t.Fatalf("forks %v, %v", forks, err)
	}
	if err := Remove(home, "r_01", nil); err == nil || !strings.Contains(err.Error(), "forked from it") {
		t.Errorf("a run with forks was removed: %v", err)
	}
	if err := os.Truncate(filepath.Join(f.Dir(), journalName), 100); err != nil {
		t.Fatal(err)
	}
	var damage *DamageError
	if _, findings, err := Check(filepath.Join(RunsDir(home), "r_2c")); err != nil || len(findings) != 1 {
		t.Errorf("a fork whose parent is damaged: %v, %v", findings, err)
	}
	os.Remove(filepath.Join(RunsDir(home), "r_2c", indexName))
	if _, err := Open(filepath.Join(RunsDir(home), "r_2c"), nil); !errors.As(err, &damage) {
		t.Errorf("opened: %v", err)
	}
}

// A run that somebody writes is not removed; one that nobody writes is, for good.
func TestRemove(t *testing.T) {
	home := t.TempDir()
	f, _, err := Create(home, "r_01", clock(), story()...)
	if err != nil {
		t.Fatal(err)
	}
	if err := Remove(home, "r_01", nil); !errors.Is(err, ErrBusy) {
		t.Errorf("a run that is written was removed: %v", err)
	}
	f.Close()
	if err := Remove(home, "../r_01", nil); err == nil {
		t.Error("a path was taken for a run id")
	}
	if err := Remove(home, "r_01", nil); err != nil {
		t.Fatal(err)
	}
	if files := snapshotDir(t, home); len(files) > 0 {
		t.Errorf("%d files are left", len(files))
	}
}
