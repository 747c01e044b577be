// Package journal is contract 1: the append-only log of a run, in which every event is one line that vouches for all lines before it.
package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Version is the schema version that this package writes.
const Version = 1

// Type names what an event says. Readers keep types that they do not know.
type Type string

const (
	TypeWriterOpen   Type = "writer.open"
	TypeFork         Type = "fork"
	TypeSessionStart Type = "session.start"
	TypeSessionEnd   Type = "session.end"
	TypeUserMessage  Type = "user.message"
	TypeModelCall    Type = "model.call"
	TypeModelReply   Type = "model.reply"
	TypeToolRequest  Type = "tool.request"
	TypeToolResult   Type = "tool.result"
	TypeVerify       Type = "verify"
	TypeGuard        Type = "guard"
	TypeDegraded     Type = "degraded"
	TypeResume       Type = "resume"
	TypeHook         Type = "hook"
	TypeQuestion     Type = "question"
	TypeAnswer       Type = "answer"
	TypePermission   Type = "permission"
)

// Event is one line. Its fields stand in the line in this order. Payload values above 16 KiB are stored as
// blobs and read back in place.
type Event struct {
	V       int             `json:"v"`
	RunID   string          `json:"run_id"`
	Seq     int64           `json:"seq"` // dense, from 1; the order of the file is the truth
	TS      Time            `json:"ts"`
	Type    Type            `json:"type"`
	Agent   string          `json:"agent"`
	Session int             `json:"session"`
	Turn    int             `json:"turn"`
	Step    string          `json:"step,omitempty"`
	Payload json.RawMessage `json:"payload"`
	Sum     string          `json:"sum,omitempty"` // see Sum
}

// Decode reads the payload into v, the struct that belongs to the event's type.
func (e Event) Decode(v any) error {
	if err := json.Unmarshal(e.Payload, v); err != nil {
		return fmt.Errorf("event %d (%s): payload: %w", e.Seq, e.Type, err)
	}
	return nil
}

// Entry is an event before the log gives it its number, time and sum.
type Entry struct {
	Type    Type
	Agent   string // "" is "main"
	Session int    // 0 is 1
	Turn    int
	Step    string
	Payload any // the struct that belongs to Type
}

// Time is a moment in UTC with milliseconds, the only precision that a journal keeps.
type Time struct{ time.Time }

const timeLayout = "2006-01-02T15:04:05.000Z"

func (t Time) MarshalJSON() ([]byte, error) {
	return []byte(`"` + t.UTC().Format(timeLayout) + `"`), nil
}

func (t *Time) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	parsed, err := time.Parse(time.RFC3339Nano, s)
	t.Time = parsed.UTC()
	return err
}

// zeroSum stands before the first event.
const zeroSum = "00000000000000000000000000000000"

// sumField is how a line ends: `,"sum":"<32 hex>"}`.
const (
	sumPrefix = `,"sum":"`
	sumSuffix = `"}`
	sumLen    = len(sumPrefix) + 32 + len(sumSuffix)
)

// Sum is the first 16 bytes, in hex, of the SHA-256 over the previous event's sum (32 hex characters; 32
// zeros before the first) followed by the stored bytes of this line before `,"sum":`.
func Sum(prev string, stored []byte) string {
	h := sha256.New()
	h.Write([]byte(prev))
	h.Write(stored)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// seal encodes the event as a line with its newline and sets its Sum.
func seal(prev string, e *Event) ([]byte, error) {
	e.Sum = ""
	stored, err := encode(e)
	if err != nil {
		return nil, fmt.Errorf("encode %s event: %w", e.Type, err)
	}
	stored = stored[:len(stored)-1] // the closing brace comes after the sum
	e.Sum = Sum(prev, stored)
	stored = append(stored, sumPrefix...)
	stored = append(stored, e.Sum...)
	stored = append(stored, sumSuffix...)
	return append(stored, '\n'), nil
}

// unseal checks a line (without its newline) against the sum before it and reads its envelope.
func unseal(prev string, line []byte) (Event, error) {
	if len(line) < sumLen || !bytes.HasPrefix(line[len(line)-sumLen:], []byte(sumPrefix)) || !bytes.HasSuffix(line, []byte(sumSuffix)) {
		return Event{}, errors.New("not a whole event: it does not end with its sum")
	}
	stored := line[:len(line)-sumLen]
	sum := string(line[len(line)-sumLen+len(sumPrefix) : len(line)-len(sumSuffix)])
	if want := Sum(prev, stored); sum != want {
		return Event{}, fmt.Errorf("broken chain: its sum is %s, the bytes give %s", sum, want)
	}
	return readEvent(line)
}

// readEvent reads a line that need not be sound. The event's payload is a part of the line.
func readEvent(line []byte) (Event, error) {
	if e, ok := envelope(line); ok {
		return e, nil
	}
	var e Event
	if err := json.Unmarshal(line, &e); err != nil {
		return Event{}, fmt.Errorf("not JSON: %w", err)
	}
	return e, nil
}

// encode is JSON without HTML escapes and without a newline: the one encoding of everything stored or hashed.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
