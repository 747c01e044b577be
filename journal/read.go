package journal

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Finding is something wrong with a stored run.
type Finding struct {
	Line int    `json:"line"` // of journal.jsonl, from 1; 0 concerns the whole run
	Text string `json:"text"`
}

func (f Finding) String() string {
	if f.Line == 0 {
		return f.Text
	}
	return fmt.Sprintf("line %d: %s", f.Line, f.Text)
}

// DamageError says that a journal cannot be trusted from a line on.
type DamageError struct{ Finding Finding }

func (e *DamageError) Error() string { return "damaged journal: " + e.Finding.String() }

// Read reads the run in dir, with blobs in place, while nobody or somebody else writes it. It stops with a
// *DamageError at the first line that the chain does not vouch for; an unterminated last line is the end.
func Read(dir string) iter.Seq2[Event, error] { return readRun(dir, -1) }

func readRun(dir string, size int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for line, err := range scan(dir, size) {
			if err != nil {
				yield(Event{}, err)
				return
			}
			e := line.event
			e.Payload, err = unpack(e.Payload, func(r Ref) ([]byte, error) { return readBlob(dir, r) })
			if err != nil {
				yield(Event{}, &DamageError{Finding{line.number, err.Error()}})
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// storedLine is one event as it lies in the file.
type storedLine struct {
	number int
	event  Event // its payload may name blobs
	end    int64 // offset after its newline
}

// scan walks the lines of a journal and checks the chain. A size of 0 or more bounds what is read.
func scan(dir string, size int64) iter.Seq2[storedLine, error] {
	return func(yield func(storedLine, error) bool) {
		file, err := os.Open(filepath.Join(dir, journalName))
		if err != nil {
			yield(storedLine{}, fmt.Errorf("open journal: %w", err))
			return
		}
		defer file.Close()
		var r io.Reader = file
		if size >= 0 {
			r = io.LimitReader(file, size)
		}
		in := bufio.NewReaderSize(r, 64<<10)
		c := newChain(filepath.Base(dir), nil)
		var end int64
		for number := 1; ; number++ {
			line, err := in.ReadBytes('\n')
			if errors.Is(err, io.EOF) {
				return // what is left is an unterminated tail: never acknowledged
			}
			if err != nil {
				yield(storedLine{}, fmt.Errorf("read journal: %w", err))
				return
			}
			end += int64(len(line))
			e, err := unseal(c.sum, bytes.TrimSuffix(line, []byte("\n")))
			if err == nil {
				err = c.follow(e)
			}
			if err != nil {
				yield(storedLine{}, &DamageError{Finding{number, err.Error()}})
				return
			}
			if !yield(storedLine{number, e, end}, nil) {
				return
			}
		}
	}
}

// Open opens the run in dir for appending. An unterminated tail is cut; a journal with any other damage is
// refused with a *DamageError.
func Open(dir string, now func() time.Time) (*File, error) {
	if _, err := os.Stat(filepath.Join(dir, journalName)); err != nil {
		return nil, fmt.Errorf("open run: %w", err)
	}
	f, err := openFile(dir, filepath.Base(dir), now)
	if err != nil {
		return nil, fmt.Errorf("open run %s: %w", filepath.Base(dir), err)
	}
	var epoch int64
	for line, err := range scan(dir, -1) {
		if err == nil {
			err = f.chain.follow(line.event)
		}
		if err == nil && line.event.Type == TypeWriterOpen {
			var w WriterOpen
			err = line.event.Decode(&w)
			epoch = w.Epoch
		}
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("open run %s: %w", f.RunID(), err)
		}
		f.size = line.end
	}
	if err := f.file.Truncate(f.size); err != nil {
		f.Close()
		return nil, fmt.Errorf("open run %s: cut the torn tail: %w", f.RunID(), err)
	}
	host, _ := os.Hostname()
	if _, err := f.Append(Entry{Type: TypeWriterOpen, Payload: WriterOpen{Host: host, PID: os.Getpid(), Epoch: epoch + 1}}); err != nil {
		f.Close()
		return nil, fmt.Errorf("open run %s: %w", f.RunID(), err)
	}
	return f, nil
}

// Check checks everything about the run in dir that needs no knowledge of what events mean: the chain, the
// numbering, the outcomes, and that each blob is there and is what its name says. It returns the number of
// sound events and what is wrong, nothing if all is well.
func Check(dir string) (events int, findings []Finding, err error) {
	for line, err := range scan(dir, -1) {
		var damage *DamageError
		if errors.As(err, &damage) {
			return events, append(findings, damage.Finding), nil
		}
		if err != nil {
			return events, findings, err
		}
		events++
		found, err := refs(line.event.Payload)
		if err != nil {
			findings = append(findings, Finding{line.number, err.Error()})
		}
		for _, ref := range found {
			if content, err := readBlob(dir, ref); err != nil {
				findings = append(findings, Finding{line.number, err.Error()})
			} else if int64(len(content)) != ref.Size {
				findings = append(findings, Finding{line.number, fmt.Sprintf("blob %s has %d bytes, the line says %d", ref.Hash, len(content), ref.Size)})
			}
		}
	}
	if torn, err := tornTail(dir); err != nil {
		return events, findings, err
	} else if torn > 0 {
		findings = append(findings, Finding{events + 1, fmt.Sprintf("unterminated: the last %d bytes were never acknowledged; opening the run cuts them", torn)})
	}
	if events == 0 && len(findings) == 0 {
		findings = append(findings, Finding{0, "the journal is empty"})
	}
	return events, findings, nil
}

// tornTail counts the bytes after the last newline.
func tornTail(dir string) (int64, error) {
	file, err := os.Open(filepath.Join(dir, journalName))
	if err != nil {
		return 0, err
	}
	defer file.Close()
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return 0, err
	}
	buf := make([]byte, 64<<10)
	for end := size; end > 0; {
		start := max(0, end-int64(len(buf)))
		chunk := buf[:end-start]
		if _, err := file.ReadAt(chunk, start); err != nil {
			return 0, err
		}
		if i := bytes.LastIndexByte(chunk, '\n'); i >= 0 {
			return size - (start + int64(i) + 1), nil
		}
		end = start
	}
	return size, nil
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
