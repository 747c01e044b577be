package journal

import (
	"errors"
	"fmt"
	"iter"
	"time"
)

// Log is an append-only log of one run. Its only writer is this process.
type Log interface {
	RunID() string
	// Append stores the entries in order and returns when they are durable, blobs first, with one sync for
	// all. On an error nothing of the batch is in the log.
	Append(entries ...Entry) ([]Event, error)
	// Write is Append without the sync: the entries are in order, and durable with the next Append. For
	// events on which no act depends.
	Write(entries ...Entry) ([]Event, error)
	// PutBlob stores content apart and returns its reference; durable with the next Append.
	PutBlob(content []byte) (Ref, error)
	Blob(ref Ref) ([]byte, error)
	// Events reads the log from its start, with blobs in place.
	Events() iter.Seq2[Event, error]
	Close() error
}

// Errors that a caller branches on.
var (
	ErrSettled = errors.New("this call already has its outcome") // a second tool.result for a call id
	ErrClosed  = errors.New("the journal is closed")
)

// chain numbers, times and seals entries, and keeps the rules that hold over events. Every store has one.
type chain struct {
	runID string
	seq   int64
	sum   string
	now   func() time.Time
	open  map[string]bool // call id -> whether its outcome is still missing
}

func newChain(runID string, now func() time.Time) *chain {
	if now == nil {
		now = time.Now
	}
	return &chain{runID: runID, sum: zeroSum, now: now, open: map[string]bool{}}
}

// seal makes the batch's lines and events and returns a function that makes them the chain's new end. The
// chain is unchanged until that is called.
func (c *chain) seal(entries []Entry, put func([]byte) (Ref, error)) (lines []byte, events []Event, commit func(), err error) {
	seq, sum := c.seq, c.sum
	var requested, settled []string
	for _, entry := range entries {
		stored, whole, err := pack(entry.Payload, put)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("%s event: %w", entry.Type, err)
		}
		switch p := entry.Payload.(type) {
		case ToolRequest:
			requested = append(requested, p.CallID)
		case ToolResult:
			settled = append(settled, p.CallID)
		}
		seq++
		e := Event{V: Version, RunID: c.runID, Seq: seq, TS: Time{c.now().UTC().Truncate(time.Millisecond)}, Type: entry.Type,
			Agent: entry.Agent, Session: entry.Session, Turn: entry.Turn, Step: entry.Step, Payload: stored}
		if e.Agent == "" {
			e.Agent = "main"
		}
		if e.Session == 0 {
			e.Session = 1
		}
		line, err := seal(sum, &e)
		if err != nil {
			return nil, nil, nil, err
		}
		sum = e.Sum
		e.Payload = whole
		lines = append(lines, line...)
		events = append(events, e)
	}
	if err := c.check(requested, settled); err != nil {
		return nil, nil, nil, err
	}
	return lines, events, func() {
		c.seq, c.sum = seq, sum
		for _, id := range requested {
			c.open[id] = true
		}
		for _, id := range settled {
			c.open[id] = false
		}
	}, nil
}

// check enforces that call ids are unique and that each call has at most one outcome.
func (c *chain) check(requested, settled []string) error {
	fresh := map[string]bool{}
	for _, id := range requested {
		if _, known := c.open[id]; known || fresh[id] {
			return fmt.Errorf("call %q was requested before: call ids are unique in a run", id)
		}
		fresh[id] = true
	}
	for _, id := range settled {
		switch open, known := c.open[id]; {
		case fresh[id]:
			delete(fresh, id)
		case !known:
			return fmt.Errorf("call %q has an outcome but was never requested", id)
		case !open:
			return fmt.Errorf("call %q: %w", id, ErrSettled)
		}
	}
	return nil
}

// follow takes an event that is already stored as the chain's new end.
func (c *chain) follow(e Event) error {
	if e.RunID != c.runID {
		return fmt.Errorf("it belongs to run %s, not to %s", e.RunID, c.runID)
	}
	if e.Seq != c.seq+1 {
		return fmt.Errorf("gap: it is number %d and follows number %d", e.Seq, c.seq)
	}
	var call struct {
		CallID string `json:"call_id"`
	}
	var requested, settled []string
	if e.Type == TypeToolRequest || e.Type == TypeToolResult {
		if err := e.Decode(&call); err != nil {
			return err
		}
		if e.Type == TypeToolRequest {
			requested = []string{call.CallID}
		} else {
			settled = []string{call.CallID}
		}
	}
	if err := c.check(requested, settled); err != nil {
		return err
	}
	c.seq, c.sum = e.Seq, e.Sum
	for _, id := range requested {
		c.open[id] = true
	}
	for _, id := range settled {
		c.open[id] = false
	}
	return nil
}
