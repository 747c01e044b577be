package journal

import (
	"bytes"
	"encoding/json"
	"time"
)

// envelope reads a line that stands exactly as this package writes one, several times faster than a JSON decoder. Of
// any other line it reports false: it may be as good.
func envelope(line []byte) (e Event, ok bool) {
	r := reader{rest: line}
	e.V = int(r.number(`{"v":`))
	e.RunID = r.text(`,"run_id":`)
	e.Seq = r.number(`,"seq":`)
	e.TS = r.time(`,"ts":`)
	e.Type = Type(r.text(`,"type":`))
	e.Agent = r.text(`,"agent":`)
	e.Session = int(r.number(`,"session":`))
	e.Turn = int(r.number(`,"turn":`))
	if bytes.HasPrefix(r.rest, []byte(`,"step":`)) {
		e.Step = r.text(`,"step":`)
	}
	r.skip(`,"payload":`)
	if r.failed || len(r.rest) < sumLen+2 {
		return Event{}, false
	}
	end := len(r.rest) - sumLen
	e.Payload = json.RawMessage(r.rest[:end:end])
	r.rest = r.rest[end:]
	e.Sum = r.text(sumPrefix[:len(sumPrefix)-1])
	if r.failed || string(r.rest) != "}" || objectEnd(e.Payload) != len(e.Payload) {
		return Event{}, false
	}
	return e, true
}

// objectEnd is the length of the JSON object that b begins with, 0 where there is none. It looks at braces and strings
// only: that they hold JSON is for those to find who decode them, and for Check.
func objectEnd(b []byte) int {
	if len(b) == 0 || b[0] != '{' {
		return 0
	}
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"':
			for i++; i < len(b) && b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
		}
	}
	return 0
}

// reader takes fields off the front of a line. Once something is not as expected it has failed for good.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) skip(name string) {
	rest, ok := bytes.CutPrefix(r.rest, []byte(name))
	r.rest, r.failed = rest, r.failed || !ok
}

// number takes a whole number without a sign.
func (r *reader) number(name string) int64 {
	r.skip(name)
	n, digits := int64(0), 0
	for digits < len(r.rest) && digits < 18 && '0' <= r.rest[digits] && r.rest[digits] <= '9' {
		n = 10*n + int64(r.rest[digits]-'0')
		digits++
	}
	if digits == 0 || digits > 1 && r.rest[0] == '0' {
		r.failed = true
	}
	r.rest = r.rest[digits:]
	return n
}

// text takes a string that needs no unescaping.
func (r *reader) text(name string) string {
	r.skip(name)
	if r.failed || len(r.rest) == 0 || r.rest[0] != '"' {
		r.failed = true
		return ""
	}
	for i, b := range r.rest[1:] {
		switch {
		case b == '"':
			s := r.rest[1 : 1+i]
			r.rest = r.rest[2+i:]
			if string(s) == "main" { // nearly always; not a new string each time
				return "main"
			}
			return string(s)
		case b < ' ' || b == '\\' || b >= 0x7f:
			r.failed = true
			return ""
		}
	}
	r.failed = true
	return ""
}

// time takes a moment as MarshalJSON writes it.
func (r *reader) time(name string) Time {
	r.skip(name)
	const shape = `"0000-00-00T00:00:00.000Z"`
	if r.failed || len(r.rest) < len(shape) {
		r.failed = true
		return Time{}
	}
	var fields [7]int
	field := 0
	for i := range len(shape) {
		switch b := r.rest[i]; {
		case shape[i] == '0' && '0' <= b && b <= '9':
			fields[field] = 10*fields[field] + int(b-'0')
		case shape[i] != b:
			r.failed = true
			return Time{}
		case i > 0 && shape[i] != '"' && shape[i] != 'Z':
			field++
		}
	}
	r.rest = r.rest[len(shape):]
	t := time.Date(fields[0], time.Month(fields[1]), fields[2], fields[3], fields[4], fields[5], fields[6]*1e6, time.UTC)
	if t.Year() != fields[0] || int(t.Month()) != fields[1] || t.Day() != fields[2] || t.Hour() != fields[3] || t.Minute() != fields[4] || t.Second() != fields[5] {
		r.failed = true // a 30th of February
	}
	return Time{t}
}
