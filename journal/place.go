package journal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
)

// Names inside a run's directory.
const (
	journalName = "journal.jsonl"
	blobsName   = "blobs"
	lockName    = "lock"
	writerName  = "writer.json" // a sidecar: who writes
	indexName   = "index.json"  // a sidecar: see index
	parentsName = "parents"     // runs that only this one needs: see Repair
)

// place is a run's directory on a disk.
type place struct {
	disk disk
	dir  string
}

func (p place) runID() string { return filepath.Base(p.dir) }

// storedLine is one event as it lies in a file.
type storedLine struct {
	place  place  // whose file: a fork's first events lie in its parent's
	number int    // of the line, from 1
	event  Event  // its payload may name blobs
	stored []byte // with its newline
	end    int64  // offset after that
}

// maxForks bounds how many runs a run goes back to.
const maxForks = 100

// lines walks all events of a run from its very start and checks the chain c, which stands there. A size of 0 or
// more bounds what is read of the run's own file.
func (p place) lines(c *chain, size int64) iter.Seq2[storedLine, error] {
	return func(yield func(storedLine, error) bool) {
		if !p.prefix(c, 0, yield) {
			return
		}
		c.runID = p.runID()
		for line, err := range p.scan(c, position{}, size) {
			if !yield(line, err) || err != nil {
				return
			}
		}
	}
}

// prefix walks what a run shares with those that it was forked from. It reports false where reading is over.
func (p place) prefix(c *chain, depth int, yield func(storedLine, error) bool) bool {
	origin, err := p.origin()
	if err != nil {
		yield(storedLine{}, err)
		return false
	}
	if origin == nil {
		return true
	}
	broken := func(text string) bool {
		yield(storedLine{}, &DamageError{Finding{1, text}})
		return false
	}
	if depth == maxForks {
		return broken("it is the fork of a fork of a fork, and so on without an end")
	}
	parent, err := p.parent(origin.Parent)
	if err != nil {
		return broken(err.Error())
	}
	if !parent.prefix(c, depth+1, yield) {
		return false
	}
	c.runID = parent.runID()
	if c.seq < origin.Seq {
		for line, err := range parent.scan(c, position{}, -1) {
			if !yield(line, err) || err != nil {
				return false
			}
			if c.seq == origin.Seq {
				break
			}
		}
	}
	if c.seq != origin.Seq || c.sum != origin.Sum {
		return broken(fmt.Sprintf("it goes on from event %d of run %s, and that run has no such event", origin.Seq, origin.Parent))
	}
	return true
}

// origin reads where the run was forked from; nil is nowhere.
func (p place) origin() (*Fork, error) {
	file, err := p.disk.OpenFile(filepath.Join(p.dir, journalName), os.O_RDONLY)
	if err != nil {
		return nil, fmt.Errorf("open journal: %w", err)
	}
	defer file.Close()
	line, err := readLine(bufio.NewReaderSize(file, 4<<10))
	if err != nil || !bytes.Contains(line[:min(len(line), 200)], []byte(`"type":"fork"`)) {
		return nil, nil // whatever is wrong with the line is found when the chain is checked
	}
	e, err := readEvent(bytes.TrimSuffix(line, []byte("\n")))
	if err != nil || e.Type != TypeFork {
		return nil, nil
	}
	var fork Fork
	if err := e.Decode(&fork); err != nil {
		return nil, &DamageError{Finding{1, err.Error()}}
	}
	return &fork, nil
}

// parent finds a run that this one goes back to.
func (p place) parent(runID string) (place, error) {
	if !strings.HasPrefix(runID, "r_") || strings.ContainsAny(runID, `/\.`) {
		return place{}, fmt.Errorf("%q is no run id", runID)
	}
	for _, dir := range []string{filepath.Join(p.dir, parentsName, runID), filepath.Join(filepath.Dir(p.dir), runID)} {
		if _, err := p.disk.Stat(filepath.Join(dir, journalName)); err == nil {
			return place{p.disk, dir}, nil
		} else if !errors.Is(err, fs.ErrNotExist) {
			return place{}, fmt.Errorf("the run %s that it was forked from: %w", runID, err)
		}
	}
	return place{}, fmt.Errorf("the run %s that it was forked from is not there any more", runID)
}

// position is a place in a run's own file, after a line.
type position struct {
	offset int64
	lines  int
}

// scan walks the lines of the run's own file from a position that the chain has reached.
func (p place) scan(c *chain, from position, size int64) iter.Seq2[storedLine, error] {
	return func(yield func(storedLine, error) bool) {
		file, err := p.disk.OpenFile(filepath.Join(p.dir, journalName), os.O_RDONLY)
		if err != nil {
			yield(storedLine{}, fmt.Errorf("open journal: %w", err))
			return
		}
		defer file.Close()
		if size < 0 {
			size = 1<<63 - 1
		}
		in := bufio.NewReaderSize(io.NewSectionReader(file, from.offset, size-from.offset), 64<<10)
		end := from.offset
		for number := from.lines + 1; ; number++ {
			line, err := readLine(in)
			if errors.Is(err, io.EOF) {
				return // what is left is an unterminated tail: never acknowledged
			}
			if err != nil && !errors.Is(err, errLongLine) {
				yield(storedLine{}, fmt.Errorf("read journal: %w", err))
				return
			}
			end += int64(len(line))
			var e Event
			if err == nil {
				e, err = unseal(c.sum, bytes.TrimSuffix(line, []byte("\n")))
			}
			if err == nil {
				err = c.follow(e)
			}
			if err != nil {
				yield(storedLine{}, p.damage(number, err))
				return
			}
			if !yield(storedLine{p, number, e, line, end}, nil) {
				return
			}
		}
	}
}

// damage says what is wrong with a line.
func (p place) damage(line int, err error) error {
	return &DamageError{Finding{line, err.Error()}}
}

var errLongLine = fmt.Errorf("no line may be longer than %d bytes", maxLine)

// readLine reads a line with its newline, in bounded memory.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		piece, err := in.ReadSlice('\n')
		line = append(line, piece...)
		switch {
		case err == nil:
			return line, nil
		case len(line) > maxLine:
			return nil, errLongLine
		case !errors.Is(err, bufio.ErrBufferFull):
			return line, err
		}
	}
}
