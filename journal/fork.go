package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ForkRun makes a new run under home that goes on from event number at of another, 0 for its last. What came before
// is shared by reference, not copied: the other run must stay. Neither the other run nor any workspace changes.
func ForkRun(home, parentID string, at int64, runID string, now func() time.Time, entries ...Entry) (*File, []Event, error) {
	fail := func(err error) (*File, []Event, error) {
		return nil, nil, fmt.Errorf("fork run %s: %w", parentID, err)
	}
	p := place{osDisk{}, filepath.Join(RunsDir(home), parentID)}
	c := newChain(parentID, now)
	for _, err := range p.lines(c, -1) {
		if err != nil {
			return fail(err)
		}
		if c.seq == at {
			break
		}
	}
	if c.seq == 0 || at > c.seq {
		return fail(fmt.Errorf("it has no event %d; its last one is %d", max(at, 1), c.seq))
	}
	if err := p.sync(); err != nil {
		return fail(err)
	}
	fork := &Fork{Parent: parentID, Seq: c.seq, Sum: c.sum}
	c.runID, c.epoch = runID, 0
	f, events, err := createOn(p.disk, home, c, birth{fork: fork}, entries)
	if err != nil {
		return fail(err)
	}
	return f, events, nil
}

// sync makes durable what another process may have written without a sync, since this one builds upon it.
func (p place) sync() error {
	file, err := p.disk.OpenFile(filepath.Join(p.dir, journalName), os.O_RDWR)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}

// Forks lists the runs under home that share events of the run by reference: they cannot be read without it.
func Forks(home, runID string) ([]string, error) {
	ids, err := Runs(home)
	if err != nil {
		return nil, err
	}
	var forks []string
	for _, id := range ids {
		p := place{osDisk{}, filepath.Join(RunsDir(home), id)}
		origin, err := p.origin()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("what run %s goes back to: %w", id, err)
		}
		if origin == nil || origin.Parent != runID {
			continue
		}
		if _, err := os.Stat(filepath.Join(p.dir, parentsName, runID)); err != nil { // it has no copy of its own
			forks = append(forks, id)
		}
	}
	return forks, nil
}

// Remove deletes the run in dir for good, once take has taken what it wants of it. It refuses while a process writes
// the run, and where other runs go back to it.
func Remove(home, runID string, take func(dir string) error) error {
	fail := func(err error) error { return fmt.Errorf("remove run %s: %w", runID, err) }
	if runID != filepath.Base(runID) || !strings.HasPrefix(runID, "r_") {
		return fail(fmt.Errorf("%q is no run id", runID))
	}
	forks, err := Forks(home, runID)
	if err != nil {
		return fail(err)
	}
	if len(forks) > 0 {
		return fail(fmt.Errorf("the runs %s were forked from it and cannot be read without it", strings.Join(forks, ", ")))
	}
	p := place{osDisk{}, filepath.Join(RunsDir(home), runID)}
	unlock, _, err := p.acquire()
	if err != nil {
		return fail(err)
	}
	defer unlock()
	if take != nil {
		if err := take(p.dir); err != nil {
			return fail(err)
		}
	}
	// Under another name first: half a run must not stand among the whole ones.
	going := filepath.Join(home, "staging", runID+".gone")
	if err := makeDir(p.disk, filepath.Dir(going)); err != nil {
		return fail(err)
	}
	if err := os.Rename(p.dir, going); err != nil {
		return fail(err)
	}
	if err := errors.Join(syncDir(RunsDir(home)), os.RemoveAll(going)); err != nil {
		return fail(err)
	}
	return nil
}

// Runs lists the run ids under home, newest first.
func Runs(home string) ([]string, error) {
	entries, err := os.ReadDir(RunsDir(home))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	var ids []string
	for _, e := range entries {
		if e.IsDir() && strings.HasPrefix(e.Name(), "r_") {
			ids = append(ids, e.Name())
		}
	}
	slices.Sort(ids)
	slices.Reverse(ids)
	return ids, nil
}
