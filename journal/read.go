package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
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
func Read(dir string) iter.Seq2[Event, error] { return place{osDisk{}, dir}.read(-1) }

// read reads the whole run, and of its own file at most size bytes where that is not negative.
func (p place) read(size int64) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for line, err := range p.lines(newChain(p.runID(), nil), size) {
			if err != nil {
				yield(Event{}, err)
				return
			}
			e, err := line.whole()
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// whole is the line's event with its blobs in place.
func (l storedLine) whole() (Event, error) {
	e := l.event
	var err error
	if e.Payload, err = unpack(e.Payload, l.place.readBlob); err != nil {
		return Event{}, l.place.damage(l.number, err)
	}
	return e, nil
}

// Check checks everything about the run in dir that needs no knowledge of what events mean: the chain, the
// numbering, the outcomes, and that each blob is there and is what its name says. It returns the number of
// sound events and what is wrong, nothing if all is well.
func Check(dir string) (events int, findings []Finding, err error) {
	p := place{osDisk{}, dir}
	var end storedLine
	for line, err := range p.lines(newChain(p.runID(), nil), -1) {
		var damage *DamageError
		if errors.As(err, &damage) {
			return events, append(findings, damage.Finding), nil
		}
		if err != nil {
			return events, findings, err
		}
		events++
		found, err := line.blobs()
		for _, err := range append(found, err) {
			if err != nil {
				findings = append(findings, Finding{line.number, err.Error()})
			}
		}
		if line.place == p {
			end = line
		}
	}
	file, err := os.Stat(filepath.Join(dir, journalName))
	if err != nil {
		return events, findings, fmt.Errorf("check journal: %w", err)
	}
	if torn := file.Size() - end.end; torn > 0 {
		findings = append(findings, Finding{end.number + 1, fmt.Sprintf("unterminated: the last %d bytes were never acknowledged; opening the run cuts them", torn)})
	}
	if events == 0 && len(findings) == 0 {
		findings = append(findings, Finding{0, "the journal is empty"})
	}
	return events, findings, nil
}

// blobs says what is wrong with each of the blobs that the line names.
func (l storedLine) blobs() (wrong []error, err error) {
	if !json.Valid(l.event.Payload) {
		return nil, errors.New("its payload is no JSON, though its sum is right: this package did not write it")
	}
	found, err := refs(l.event.Payload)
	for _, ref := range found {
		wrong = append(wrong, l.place.checkBlob(ref))
	}
	return wrong, err
}
