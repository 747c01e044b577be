package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"belay/journal"
)

// find resolves what a person calls a run: its id, a unique beginning of it (with or without "r_"), or "last".
func (a *app) find(name string) (runID, dir string, err error) {
	home, err := a.home()
	if err != nil {
		return "", "", err
	}
	ids, err := journal.Runs(home)
	if err != nil {
		return "", "", err
	}
	runID, err = resolve(name, ids)
	if err != nil {
		return "", "", fmt.Errorf("%w (runs lie in %s)", err, journal.RunsDir(home))
	}
	return runID, filepath.Join(journal.RunsDir(home), runID), nil
}

// resolve picks one of the ids, which come newest first.
func resolve(name string, ids []string) (string, error) {
	prefix := strings.ToLower(strings.TrimSpace(name))
	switch {
	case len(ids) == 0:
		return "", usagef("there are no runs yet; `belay demo` makes one")
	case prefix == "last":
		return ids[0], nil
	case prefix == "" || prefix == "r_" || prefix == "r":
		return "", usagef("name a run: its id, a unique beginning of it, or `last`")
	}
	if !strings.HasPrefix(prefix, "r_") {
		prefix = "r_" + prefix
	}
	var found []string
	for _, id := range ids {
		if id == prefix {
			return id, nil
		}
		if strings.HasPrefix(id, prefix) {
			found = append(found, id)
		}
	}
	switch len(found) {
	case 0:
		return "", usagef("there is no run %q; `belay runs` lists them", name)
	case 1:
		return found[0], nil
	}
	return "", usagef("%q fits %d runs, for example %s and %s; give more of the id", name, len(found), found[0], found[1])
}

// oneRun is the Args of a command that works on one run.
var oneRun = exactly(1, "one run: its id, a unique beginning of it, or `last`")

// readable says early, and in words, that a run's journal cannot be opened.
func readable(dir string) error {
	file, err := os.Open(filepath.Join(dir, "journal.jsonl"))
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the run %s has no journal.jsonl: its folder was emptied or never filled", filepath.Base(dir))
	}
	if err != nil {
		return fmt.Errorf("open run: %w", err)
	}
	return file.Close()
}
