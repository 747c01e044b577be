package journal_test

import (
	"os"
	"path/filepath"
	"testing"

	"belay/journal"
	"belay/journal/journaltest"
)

func TestFile(t *testing.T) { journaltest.Run(t, fileStore(nil)) }

// Without its sidecars a run is opened as well: they can be deleted at any time.
func TestFileWithoutSidecars(t *testing.T) {
	journaltest.Run(t, fileStore(func(t *testing.T, dir string) {
		for _, name := range []string{"index.json", "writer.json"} {
			if err := os.Remove(filepath.Join(dir, name)); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
		}
	}))
}

// Sidecars that are torn or hold nonsense are as good as none.
func TestFileWithBadSidecars(t *testing.T) {
	journaltest.Run(t, fileStore(func(t *testing.T, dir string) {
		for name, text := range map[string]string{"index.json": `{"v":1,"size":7}` + "\n", "writer.json": "{"} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}))
}

func fileStore(between func(t *testing.T, dir string)) journaltest.Store {
	return journaltest.Store{
		Create: func(t *testing.T, entries ...journal.Entry) (journal.Log, []journal.Event) {
			f, events, err := journal.Create(t.TempDir(), journal.NewRunID(), nil, entries...)
			if err != nil {
				t.Fatal(err)
			}
			return f, events
		},
		Reopen: func(t *testing.T, closed journal.Log) (journal.Log, error) {
			f := closed.(*journal.File)
			if between != nil {
				between(t, f.Dir())
			}
			again, err := journal.Open(f.Dir(), nil)
			if err != nil {
				return nil, err
			}
			return again, nil
		},
	}
}

func TestMemory(t *testing.T) {
	journaltest.Run(t, journaltest.Store{
		Create: func(t *testing.T, entries ...journal.Entry) (journal.Log, []journal.Event) {
			m := journal.NewMemory(journal.NewRunID(), nil)
			events, err := m.Append(entries...)
			if err != nil {
				t.Fatal(err)
			}
			return m, events
		},
		Reopen: func(t *testing.T, closed journal.Log) (journal.Log, error) {
			m, err := closed.(*journal.Memory).Reopen()
			if err != nil {
				return nil, err
			}
			return m, nil
		},
	})
}
