// Package stream reads what a provider streams: one reader of server-sent events and one assembler of replies and their tool calls, for every dialect.
package stream

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// MaxEvent bounds one event, in bytes. Providers send whole images and whole files in one line.
const MaxEvent = 64 << 20

// ErrTooLong says that one event was larger than MaxEvent.
var ErrTooLong = fmt.Errorf("one event is larger than %d MiB", MaxEvent>>20)

// NotAnEventError is a line that no event stream holds, such as a proxy's plain-text complaint.
type NotAnEventError struct{ Line string }

func (e *NotAnEventError) Error() string {
	return fmt.Sprintf("a line of the stream is no server-sent event: %q", e.Line)
}

// Event is one server-sent event. Data is valid until the next call of Next.
type Event struct {
	Name string // of the "event:" line; dialects go by the type in Data, since compatible servers leave it out
	Data []byte
	Done bool // Data is the sentinel [DONE]
}

// Reader reads server-sent events: LF, CRLF and CR ends, in any mixture and split anywhere; comments; data of
// several lines; a byte order mark; a last event without its blank line. Bare JSON lines, which some servers send
// for errors, count as events.
type Reader struct {
	r       *bufio.Reader
	line    []byte
	data    []byte
	limit   int
	skipLF  bool // the last line ended in CR: an LF is its second half
	started bool
}

// NewReader reads events from r.
func NewReader(r io.Reader) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, 32<<10), limit: MaxEvent}
}

// Next returns the next event that has data, or io.EOF. Any other error is a *NotAnEventError, ErrTooLong, or
// what the underlying reader reported; then the event in hand is lost, as it may be half of one.
func (r *Reader) Next() (Event, error) {
	r.data = r.data[:0]
	name, some := "", false
	for {
		line, err := r.readLine()
		if err != nil && (!errors.Is(err, io.EOF) || len(line) == 0) {
			if errors.Is(err, io.EOF) && some {
				if ev, ok := r.event(name); ok {
					return ev, nil
				}
			}
			return Event{}, err
		}
		if len(line) == 0 {
			if some {
				if ev, ok := r.event(name); ok {
					return ev, nil
				}
			}
			r.data, name, some = r.data[:0], "", false
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "data":
			if some {
				r.data = append(r.data, '\n')
			}
			if len(r.data)+len(value) > r.limit {
				return Event{}, ErrTooLong
			}
			r.data, some = append(r.data, value...), true
		case "event":
			name = string(value)
		case "", "id", "retry": // "" is a comment
		default:
			text := bytes.TrimSpace(line)
			if len(text) == 0 {
				continue
			}
			if text[0] == '{' && !some {
				r.data = append(r.data, text...)
				return Event{Name: name, Data: r.data}, nil
			}
			return Event{}, &NotAnEventError{Line: string(line[:min(len(line), 200)])}
		}
	}
}

// event makes the event of the collected data. Empty data, and comments that a gateway wrapped in data, are none.
func (r *Reader) event(name string) (Event, bool) {
	data := bytes.TrimSpace(r.data)
	if len(data) == 0 || data[0] == ':' {
		return Event{}, false
	}
	return Event{Name: name, Data: data, Done: string(data) == "[DONE]"}, true
}

// readLine returns the next line without its end. At the end of input it returns what is left, and io.EOF.
func (r *Reader) readLine() ([]byte, error) {
	r.line = r.line[:0]
	for {
		if _, err := r.r.Peek(1); err != nil {
			return r.mark(), err
		}
		buf, _ := r.r.Peek(r.r.Buffered())
		if r.skipLF {
			r.skipLF = false
			if buf[0] == '\n' {
				_, _ = r.r.Discard(1)
				continue
			}
		}
		end := bytes.IndexByte(buf, '\n')
		if cr := bytes.IndexByte(buf[:max(end, 0)], '\r'); end >= 0 && cr >= 0 {
			end = cr
		} else if end < 0 {
			end = bytes.IndexByte(buf, '\r')
		}
		n := end
		if end < 0 {
			n = len(buf)
		}
		if len(r.line)+n > r.limit {
			return nil, ErrTooLong
		}
		r.line = append(r.line, buf[:n]...)
		if end < 0 {
			_, _ = r.r.Discard(n)
			continue
		}
		r.skipLF = buf[end] == '\r'
		_, _ = r.r.Discard(end + 1)
		return r.mark(), nil
	}
}

// mark removes the byte order mark from the first line.
func (r *Reader) mark() []byte {
	if !r.started {
		r.started = true
		r.line = bytes.TrimPrefix(r.line, []byte("\xef\xbb\xbf"))
	}
	return r.line
}
