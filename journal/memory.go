package journal

import (
	"bytes"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"
)

// Memory is a Log that lasts as long as the process: for tests, and for embedders who keep nothing. It holds the
// same bytes that a File would.
type Memory struct {
	mu     sync.Mutex
	chain  *chain
	first  []Entry
	lines  []byte
	blobs  map[string][]byte
	closed bool
}

// NewMemory starts a run in memory. Now may be nil.
func NewMemory(runID string, now func() time.Time) *Memory {
	return &Memory{chain: newChain(runID, now), blobs: map[string][]byte{}, first: []Entry{{Type: TypeWriterOpen, Payload: self(1)}}}
}

// Reopen goes on with a closed log as its next writer.
func (m *Memory) Reopen() (*Memory, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.closed {
		return nil, &BusyError{self(m.chain.epoch)}
	}
	next := NewMemory(m.chain.runID, m.chain.now)
	next.lines, next.blobs = bytes.Clone(m.lines), m.blobs
	for e, err := range readLines(next.chain, next.lines, next.blob) {
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", e.Seq, err)
		}
	}
	next.first = []Entry{{Type: TypeWriterOpen, Payload: self(next.chain.epoch + 1)}}
	return next, nil
}

func (m *Memory) RunID() string { return m.chain.runID }

func (m *Memory) Append(entries ...Entry) ([]Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, fmt.Errorf("journal: %w", ErrClosed)
	}
	lines, events, _, err := m.chain.seal(append(m.first[:len(m.first):len(m.first)], entries...), m.put)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	m.first, m.lines = nil, append(m.lines, lines...)
	return events, nil
}

func (m *Memory) Write(entries ...Entry) ([]Event, error) { return m.Append(entries...) }

func (m *Memory) PutBlob(content []byte) (Ref, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return Ref{}, ErrClosed
	}
	return m.put(content)
}

func (m *Memory) PutBlobFrom(r io.Reader) (Ref, error) {
	content, err := io.ReadAll(r)
	if err != nil {
		return Ref{}, fmt.Errorf("store blob: %w", err)
	}
	return m.PutBlob(content)
}

func (m *Memory) put(content []byte) (Ref, error) {
	ref := Ref{Hash: hashOf(content), Size: int64(len(content))}
	if _, known := m.blobs[ref.Hash]; !known {
		m.blobs[ref.Hash] = bytes.Clone(content)
	}
	return ref, nil
}

func (m *Memory) Blob(ref Ref) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	content, err := m.blob(ref)
	return bytes.Clone(content), err
}

func (m *Memory) OpenBlob(ref Ref) (io.ReadCloser, error) {
	content, err := m.Blob(ref)
	return io.NopCloser(bytes.NewReader(content)), err
}

// Size is what the lines and the blobs take, in bytes.
func (m *Memory) Size() (int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	size := int64(len(m.lines))
	for _, content := range m.blobs {
		size += int64(len(content))
	}
	return size, nil
}

func (m *Memory) blob(ref Ref) ([]byte, error) {
	content, known := m.blobs[ref.Hash]
	if !known {
		return nil, fmt.Errorf("blob %q is not in the log", ref.Hash)
	}
	return content, nil
}

func (m *Memory) Events() iter.Seq2[Event, error] {
	m.mu.Lock()
	defer m.mu.Unlock()
	return readLines(newChain(m.chain.runID, nil), m.lines, m.Blob)
}

func (m *Memory) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	return nil
}

// readLines reads stored lines as a reader of a file does.
func readLines(c *chain, lines []byte, blob func(Ref) ([]byte, error)) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		number := 0
		for line := range bytes.Lines(lines) {
			number++
			e, err := unseal(c.sum, bytes.TrimSuffix(line, []byte("\n")))
			if err == nil {
				err = c.follow(e)
			}
			if err == nil {
				e.Payload, err = unpack(e.Payload, blob)
			}
			if err != nil {
				err = &DamageError{Finding{number, err.Error()}}
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}
