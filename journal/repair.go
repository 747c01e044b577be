package journal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Repair says what can be saved of a damaged run: everything before the first damage, and nothing behind it, since
// the chain vouches for nothing there.
type Repair struct {
	RunID   string   `json:"run_id"`
	Sound   int64    `json:"sound_events"`
	Damage  *Finding `json:"damage"`           // nil: there is nothing to repair
	In      string   `json:"in"`               // the run whose file is damaged: this one, or one that it was forked from
	Left    []string `json:"left"`             // the lines from the damage on, in a few words each
	Unknown []string `json:"unknown_outcomes"` // calls whose outcome stands behind the damage, if anywhere

	at  int64
	sum string
}

// leftMax is how many of the lines behind the damage are spelled out.
const leftMax = 20

// PlanRepair looks for damage and changes nothing. An unterminated tail is no damage: opening the run cuts it.
func PlanRepair(dir string) (Repair, error) {
	p := place{osDisk{}, dir}
	r := Repair{RunID: p.runID(), Left: []string{}, Unknown: []string{}}
	c := newChain(p.runID(), nil)
	at, end := p, position{}
	err := p.soundLines(c, func(line storedLine) error {
		at, end, r.at, r.sum = line.place, position{line.end, line.number}, c.seq, c.sum
		return nil
	})
	var damage *DamageError
	if err != nil && !errors.As(err, &damage) {
		return r, fmt.Errorf("repair run %s: %w", r.RunID, err)
	}
	r.Sound = r.at
	if damage == nil {
		return r, nil
	}
	r.Damage = &damage.Finding
	if damage.Finding.Line != end.lines+1 { // the next file begins with it
		at, end = p, position{}
	}
	r.In = at.runID()
	c = newChain(p.runID(), nil) // the damaged line may have been taken
	for _, err := range p.lines(c, -1) {
		if err != nil || c.seq == r.at {
			break
		}
	}
	r.Unknown = append(r.Unknown, slices.Sorted(maps.Keys(c.open))...)
	if r.Left, err = at.describe(end.offset, end.lines); err != nil {
		return r, fmt.Errorf("repair run %s: %w", r.RunID, err)
	}
	return r, nil
}

// soundLines walks a run up to the first line or blob that is damaged.
func (p place) soundLines(c *chain, each func(storedLine) error) error {
	for line, err := range p.lines(c, -1) {
		if err != nil {
			return err
		}
		wrong, err := line.blobs()
		if err = errors.Join(append(wrong, err)...); err != nil {
			return line.place.damage(line.number, err)
		}
		if err := each(line); err != nil {
			return err
		}
	}
	return nil
}

// describe says in a few words what each line from an offset on seems to be.
func (p place) describe(offset int64, number int) ([]string, error) {
	file, err := p.disk.OpenFile(filepath.Join(p.dir, journalName), os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	in := bufio.NewReader(io.NewSectionReader(file, offset, 1<<62))
	left, more := []string{}, 0
	for {
		line, err := readLine(in)
		if len(line) == 0 && err != nil {
			if !errors.Is(err, io.EOF) {
				left = append(left, err.Error())
			}
			break
		}
		number++
		if len(left) == leftMax {
			more++
			continue
		}
		what := fmt.Sprintf("line %d: %d bytes that are no event", number, len(line))
		if e, err := readEvent(bytes.TrimSuffix(line, []byte("\n"))); err == nil && e.Type != "" {
			what = fmt.Sprintf("line %d: looks like event %d, %s, turn %d", number, e.Seq, e.Type, e.Turn)
		}
		left = append(left, what)
	}
	if more > 0 {
		left = append(left, fmt.Sprintf("and %d more lines", more))
	}
	return left, nil
}

// Write makes a new run under home that holds a copy of what is sound, and goes on from there. The damaged run
// stays as it is, to the byte.
func (r Repair) Write(home, runID string, now func() time.Time) error {
	fail := func(err error) error { return fmt.Errorf("repair run %s: %w", r.RunID, err) }
	if r.Damage == nil {
		return fail(errors.New("nothing in it is damaged"))
	}
	if r.at == 0 {
		return fail(errors.New("its first event is damaged, so nothing in it is sound"))
	}
	p := place{osDisk{}, filepath.Join(RunsDir(home), r.RunID)}
	c := newChain(r.RunID, now)
	fork := &Fork{Parent: r.RunID, Seq: r.at, Sum: r.sum}
	fill := func(dir string) error { return p.copySound(filepath.Join(dir, parentsName), r.at) }
	// The chain is brought to where the copy ends by reading what the copy is made of.
	err := p.soundLines(c, func(storedLine) error {
		if c.seq == r.at {
			return errEnough
		}
		return nil
	})
	if !errors.Is(err, errEnough) {
		return fail(fmt.Errorf("it changed meanwhile: %w", err))
	}
	c.runID, c.epoch = runID, 0
	f, _, err := createOn(p.disk, home, c, birth{fork: fork, fill: fill}, nil)
	if err != nil {
		return fail(err)
	}
	if err := f.Close(); err != nil {
		return fail(err)
	}
	for _, err := range Read(f.Dir()) { // what was saved is worth a look
		if err != nil {
			return fail(fmt.Errorf("the copy %s cannot be read: %w", runID, err))
		}
	}
	return nil
}

var errEnough = errors.New("enough")

// copySound copies the run's events up to number last, and their blobs, into directories below dir: one for each
// run that holds some of them.
func (p place) copySound(dir string, last int64) error {
	files := map[string]handle{}
	defer func() {
		for _, file := range files {
			file.Close()
		}
	}()
	c := newChain(p.runID(), nil)
	err := p.soundLines(c, func(line storedLine) error {
		to := place{p.disk, filepath.Join(dir, line.place.runID())}
		file := files[to.dir]
		if file == nil {
			err := makeDir(p.disk, to.dir)
			if err == nil {
				file, err = p.disk.OpenFile(filepath.Join(to.dir, journalName), os.O_RDWR|os.O_CREATE|os.O_EXCL)
			}
			if err != nil {
				return err
			}
			files[to.dir] = file
		}
		if _, err := file.Write(line.stored); err != nil {
			return err
		}
		if err := line.copyBlobs(to); err != nil {
			return err
		}
		if c.seq == last {
			return errEnough
		}
		return nil
	})
	if !errors.Is(err, errEnough) {
		return errors.Join(errors.New("it changed meanwhile"), err)
	}
	for at, file := range files {
		if err := errors.Join(file.Sync(), p.disk.SyncDir(at)); err != nil {
			return err
		}
	}
	return nil
}

// copyBlobs copies the blobs that a line names.
func (l storedLine) copyBlobs(to place) error {
	found, err := refs(l.event.Payload)
	if err != nil {
		return err
	}
	store := blobs{place: to, fresh: map[string]bool{}}
	for _, ref := range found {
		in, err := l.place.openBlob(ref)
		if err != nil {
			return err
		}
		_, err = store.putFrom(in)
		if err = errors.Join(err, in.Close()); err != nil {
			return err
		}
	}
	return store.sync()
}
