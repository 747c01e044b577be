package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"belay/internal/failpoint"
)

// NewRunID makes a fresh run id: "r_" and a lower-case ULID, which sorts by time.
func NewRunID() string { return "r_" + strings.ToLower(ulid.Make().String()) }

// RunsDir is where the runs of a state directory lie. It holds nothing else.
func RunsDir(home string) string { return filepath.Join(home, "runs") }

// Create starts a run under home with its first entries (session.start and the user's message belong among
// them). The run's directory appears under its name only when they are durable.
func Create(home, runID string, now func() time.Time, entries ...Entry) (*File, []Event, error) {
	f, events, err := createOn(osDisk{}, home, newChain(runID, now), birth{}, entries)
	if err != nil {
		return nil, nil, fmt.Errorf("create run %s: %w", runID, err)
	}
	return f, events, nil
}

// birth is what only some runs begin with.
type birth struct {
	fork *Fork                  // what the chain goes on from
	fill func(dir string) error // puts more into the directory before it appears
}

// createOn makes a run whose chain stands at its start, or at the event that it is forked from.
func createOn(d disk, home string, c *chain, b birth, entries []Entry) (_ *File, _ []Event, err error) {
	runs, staging := RunsDir(home), filepath.Join(home, "staging")
	for _, dir := range []string{runs, staging} {
		if err := makeDir(d, dir); err != nil {
			return nil, nil, err
		}
	}
	born, final := filepath.Join(staging, c.runID), filepath.Join(runs, c.runID)
	if _, err := d.Stat(final); err == nil {
		return nil, nil, fmt.Errorf("there is a run %s already", c.runID)
	}
	if err := d.Mkdir(born); err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil { // it was never acknowledged
			d.RemoveAll(born)
			d.RemoveAll(final)
		}
	}()
	if b.fill != nil {
		if err := b.fill(born); err != nil {
			return nil, nil, err
		}
	}
	p := place{d, born}
	unlock, _, err := p.acquire()
	if err != nil {
		return nil, nil, err
	}
	f, err := p.writable(c, unlock, os.O_CREATE|os.O_EXCL)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	if b.fork != nil {
		f.first = []Entry{{Type: TypeFork, Payload: *b.fork}}
	}
	if err := f.begin(1); err != nil {
		return nil, nil, err
	}
	var events []Event
	if events, err = f.Append(entries...); err != nil {
		return nil, nil, err
	}
	if err := d.SyncDir(born); err != nil {
		return nil, nil, err
	}
	failpoint.Hit("create.before-rename")
	if err := d.Rename(born, final); err != nil {
		return nil, nil, err
	}
	f.dir, f.blobs.dir = final, final
	failpoint.Hit("create.after-rename")
	if err := d.SyncDir(runs); err != nil {
		return nil, nil, err
	}
	return f, events, nil
}

// makeDir makes a directory with its parents, and their names durable. Whoever made the parents that are there may
// not have synced them.
func makeDir(d disk, dir string) error {
	if info, err := d.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(dir)
	if _, err := d.Stat(parent); err != nil && parent != dir {
		if err := makeDir(d, parent); err != nil {
			return err
		}
	} else {
		for up := parent; up != filepath.Dir(up); up = filepath.Dir(up) {
			d.SyncDir(filepath.Dir(up)) // it may belong to others
		}
	}
	if err := d.MkdirAll(dir); err != nil {
		return err
	}
	err := d.SyncDir(parent)
	if err != nil {
		d.Remove(dir) // made anew, it is synced anew
	}
	return err
}

// writable opens the run's file for the process that holds its lock, which is given back where that fails.
func (p place) writable(c *chain, unlock func() error, flag int) (*File, error) {
	file, err := p.disk.OpenFile(filepath.Join(p.dir, journalName), os.O_RDWR|flag)
	if err != nil {
		unlock()
		return nil, err
	}
	return &File{place: p, unlock: unlock, file: file, chain: c, blobs: blobs{place: p, fresh: map[string]bool{}}}, nil
}

// begin makes this process the run's writer number epoch. The event that says so comes before the first others.
func (f *File) begin(epoch int64) error {
	w := self(epoch)
	f.first = append(f.first, Entry{Type: TypeWriterOpen, Payload: w})
	return f.announce(w)
}

// Open opens the run in dir for appending. An unterminated tail is cut. A journal in which other damage is seen is
// refused with a *DamageError and left as it is; damage in a part that need not be read to go on is met when it
// is read. Where another process writes, the error is a *BusyError.
func Open(dir string, now func() time.Time) (*File, error) {
	f, err := openOn(place{osDisk{}, dir}, now)
	if err != nil {
		return nil, fmt.Errorf("open run %s: %w", filepath.Base(dir), err)
	}
	return f, nil
}

func openOn(p place, now func() time.Time) (_ *File, err error) {
	if _, err := p.disk.Stat(filepath.Join(p.dir, journalName)); err != nil {
		return nil, err
	}
	unlock, before, err := p.acquire()
	if err != nil {
		return nil, err
	}
	failpoint.Hit("open.after-lock")
	f, err := p.writable(newChain(p.runID(), now), unlock, 0)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.file.Close()
			f.unlock()
		}
	}()
	if at, ok := p.resume(f.chain); ok {
		f.at, f.indexed = at, at.offset
		for line, err := range p.scan(f.chain, at, -1) {
			if err != nil {
				return nil, err
			}
			f.at = position{line.end, line.number}
		}
	} else {
		for line, err := range p.lines(f.chain, -1) {
			if err != nil {
				return nil, err
			}
			if line.place == p {
				f.at = position{line.end, line.number}
			}
		}
	}
	info, err := f.file.Stat()
	if err == nil && info.Size() > f.at.offset {
		if err = f.file.Truncate(f.at.offset); err != nil {
			err = fmt.Errorf("cut the torn tail: %w", err)
		}
	}
	failpoint.Hit("open.after-cut")
	if err == nil {
		err = f.file.Sync() // what the last writer did not come to: it is built upon from here on
	}
	if err != nil {
		return nil, err
	}
	f.reach = f.at.offset
	f.isDurable()
	return f, f.begin(max(f.chain.epoch, before.Epoch) + 1)
}
