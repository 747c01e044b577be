package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"
)

// Log is an append-only log of one run. Its only writer is this process.
type Log interface {
	RunID() string
	// Append stores the entries in order and returns when they are durable, blobs first, with one sync for
	// all, and one sync for all who append at the same time. On an error nothing of the batch is in the log,
	// and the same batch may be tried again: a disk that was full may have space. The first Append or Write
	// after opening stores a writer.open before the entries, and returns it too.
	Append(entries ...Entry) ([]Event, error)
	// Write is Append without the sync: the entries are in order, and durable with the next Append. For
	// events on which no act depends.
	Write(entries ...Entry) ([]Event, error)
	// PutBlob stores content apart and returns its reference; durable with the next Append.
	PutBlob(content []byte) (Ref, error)
	Blob(ref Ref) ([]byte, error)
	// Events reads the log from its start, with blobs in place.
	Events() iter.Seq2[Event, error]
	// Size is what the run takes, in bytes: its lines and its blobs, without those that it shares with the run
	// it was forked from.
	Size() (int64, error)
	Close() error
}

// BlobStreamer is a Log that takes and gives blobs of any size in bounded memory.
type BlobStreamer interface {
	// PutBlobFrom is PutBlob for what r gives.
	PutBlobFrom(r io.Reader) (Ref, error)
	// OpenBlob reads a blob. Its last read fails where the content is not what its name says.
	OpenBlob(ref Ref) (io.ReadCloser, error)
}

// Errors that a caller branches on.
var (
	ErrSettled = errors.New("this call already has its outcome") // a second tool.result for a call id
	ErrClosed  = errors.New("the journal is closed")
)

// maxLine is the length in bytes above which no line is written, and none is read.
const maxLine = 16 << 20

// chain numbers, times and seals entries, and keeps the rules that hold over events. Every store has one.
type chain struct {
	runID string
	seq   int64
	sum   string
	epoch int64 // of the last writer
	now   func() time.Time
	open  map[string]bool   // calls without an outcome
	known map[callHash]bool // all calls
}

// callHash stands for a call's id in a set of all of them: the first bytes of its SHA-256. At a million calls the
// chance that two ids share one is about 10^-8, and then the second is refused.
type callHash [8]byte

func hashCall(id string) callHash {
	sum := sha256.Sum256([]byte(id))
	return callHash(sum[:8])
}

func newChain(runID string, now func() time.Time) *chain {
	if now == nil {
		now = time.Now
	}
	return &chain{runID: runID, sum: zeroSum, now: now, open: map[string]bool{}, known: map[callHash]bool{}}
}

// seal makes the batch's lines and events and makes them the chain's new end. Undo takes that back. On an error
// the chain is as it was.
func (c *chain) seal(entries []Entry, put func([]byte) (Ref, error)) (lines []byte, events []Event, undo func(), err error) {
	before := *c
	var undone []func()
	undo = func() {
		for i := len(undone) - 1; i >= 0; i-- {
			undone[i]()
		}
		c.seq, c.sum, c.epoch = before.seq, before.sum, before.epoch
	}
	for _, entry := range entries {
		stored, whole, err := pack(entry.Payload, put)
		if err != nil {
			undo()
			return nil, nil, nil, fmt.Errorf("%s event: %w", entry.Type, err)
		}
		e := Event{V: Version, RunID: c.runID, Seq: c.seq + 1, TS: Time{c.now().UTC().Truncate(time.Millisecond)}, Type: entry.Type,
			Agent: entry.Agent, Session: entry.Session, Turn: entry.Turn, Step: entry.Step, Payload: stored}
		if e.Agent == "" {
			e.Agent = "main"
		}
		if e.Session == 0 {
			e.Session = 1
		}
		line, err := seal(c.sum, &e)
		if err == nil && len(line) > maxLine {
			err = fmt.Errorf("%s event: its line of %d bytes is longer than any line may be", e.Type, len(line))
		}
		if err != nil {
			undo()
			return nil, nil, nil, err
		}
		taken, err := c.take(e) // as a reader will
		if err != nil {
			undo()
			return nil, nil, nil, err
		}
		e.Payload = whole
		undone = append(undone, taken)
		lines = append(lines, line...)
		events = append(events, e)
	}
	return lines, events, undo, nil
}

// take makes a sealed event the chain's new end. It enforces that call ids are unique and that each call has
// at most one outcome.
func (c *chain) take(e Event) (undo func(), err error) {
	undo = func() {}
	switch e.Type {
	case TypeToolRequest, TypeToolResult:
		id, err := callOf(e)
		if err != nil {
			return nil, err
		}
		hash := hashCall(id)
		switch {
		case e.Type == TypeToolRequest && c.known[hash]:
			return nil, fmt.Errorf("call %q was requested before: call ids are unique in a run", id)
		case e.Type == TypeToolRequest:
			c.known[hash], c.open[id] = true, true
			undo = func() { delete(c.known, hash); delete(c.open, id) }
		case !c.known[hash]:
			return nil, fmt.Errorf("call %q has an outcome but was never requested", id)
		case !c.open[id]:
			return nil, fmt.Errorf("call %q: %w", id, ErrSettled)
		default:
			delete(c.open, id)
			undo = func() { c.open[id] = true }
		}
	case TypeWriterOpen:
		var w WriterOpen
		if err := e.Decode(&w); err != nil {
			return nil, err
		}
		c.epoch = w.Epoch
	}
	c.seq, c.sum = e.Seq, e.Sum
	return undo, nil
}

// follow takes an event that is already stored as the chain's new end.
func (c *chain) follow(e Event) error {
	if e.RunID != c.runID {
		return fmt.Errorf("it belongs to run %s, not to %s", e.RunID, c.runID)
	}
	if e.Seq != c.seq+1 {
		return fmt.Errorf("gap: it is number %d and follows number %d", e.Seq, c.seq)
	}
	_, err := c.take(e)
	return err
}

// callOf reads the call id of a request or a result, which is the first field where this package wrote it.
func callOf(e Event) (string, error) {
	const first = `{"call_id":"`
	if rest, ok := bytes.CutPrefix(e.Payload, []byte(first)); ok {
		if end := bytes.IndexAny(rest, `"\`); end >= 0 && rest[end] == '"' {
			return string(rest[:end]), nil
		}
	}
	var call struct {
		CallID json.RawMessage `json:"call_id"`
	}
	if err := e.Decode(&call); err != nil {
		return "", err
	}
	var id string
	if err := json.Unmarshal(call.CallID, &id); err != nil {
		return "", fmt.Errorf("event %d (%s): call_id: %w", e.Seq, e.Type, err)
	}
	return id, nil
}
