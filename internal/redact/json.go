package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"belay/journal"
	"belay/message"
)

// Entry hides the secrets in an event before it is stored, and makes their values durable in the vault. Strings are
// looked at as what they mean, not as JSON writes them, so that no escape hides anything. What has no secret comes
// back as it was.
func (r *Redactor) Entry(e journal.Entry) (journal.Entry, error) {
	payload, err := r.payload(e.Payload)
	if err != nil {
		return e, fmt.Errorf("redact %s event: %w", e.Type, err)
	}
	e.Payload = payload
	return e, nil
}

// Entries is Entry for each.
func (r *Redactor) Entries(entries []journal.Entry) ([]journal.Entry, error) {
	out := make([]journal.Entry, len(entries))
	for i, e := range entries {
		var err error
		if out[i], err = r.Entry(e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (r *Redactor) payload(payload any) (any, error) {
	if reply, ok := payload.(journal.ModelReply); ok {
		return r.reply(reply)
	}
	return r.value(payload, r.member)
}

// reply treats blocks with a provider's own bytes apart: changed in anything but a known secret, the provider would
// refuse them.
func (r *Redactor) reply(reply journal.ModelReply) (any, error) {
	blocks := reply.Blocks
	reply.Blocks = nil
	rest, err := r.value(reply, r.member)
	if err != nil {
		return nil, err
	}
	reply = rest.(journal.ModelReply)
	if blocks != nil {
		reply.Blocks = make([]message.Block, len(blocks))
	}
	for i, b := range blocks {
		exact := func(_, s string) string { return r.exact(s) }
		hide := r.member
		own := b.Opaque
		switch {
		case own == nil:
		case b.Call != nil: // a signature beside a call, which goes out in the call's own words
			b.Opaque = nil
		default:
			hide = exact
		}
		block, err := r.value(b, hide)
		if err != nil {
			return nil, err
		}
		reply.Blocks[i] = block.(message.Block)
		if b.Call != nil && own != nil {
			signature, err := r.value(*own, exact)
			if err != nil {
				return nil, err
			}
			kept := signature.(message.Opaque)
			reply.Blocks[i].Opaque = &kept
		}
	}
	return reply, nil
}

// value hides what is secret in a value and gives back one of the same type.
func (r *Redactor) value(v any, hide func(name, s string) string) (any, error) {
	plain, err := encode(v)
	if err != nil {
		return nil, err
	}
	hidden := mapStrings(plain, hide)
	if bytes.Contains(hidden, []byte(opening)) {
		if err := r.Keep(string(hidden)); err != nil {
			return nil, err
		}
	}
	if bytes.Equal(plain, hidden) {
		return v, nil
	}
	out := reflect.New(reflect.TypeOf(v))
	if err := json.Unmarshal(hidden, out.Interface()); err != nil {
		return nil, err
	}
	return out.Elem().Interface(), nil
}

// member hides what is secret in a string of a JSON document, or all of it where its name says so.
func (r *Redactor) member(name, s string) string {
	if name != "" && secretName(name) && secretish(s, inQuotes) {
		return r.whole(s, "value")
	}
	return r.Text(s)
}

// mapStrings rewrites every string of a valid JSON document, names too, and leaves every other byte. Name is that of
// the member of which the string is the value, "" where it is a name itself or stands in a list.
func mapStrings(doc []byte, f func(name, s string) string) []byte {
	var out bytes.Buffer
	kept, name := 0, ""
	for i := 0; i < len(doc); i++ {
		if doc[i] != '"' {
			switch doc[i] {
			case ',', '[', '{', ']', '}':
				name = ""
			}
			continue
		}
		start, escaped := i, false
		for i++; i < len(doc) && doc[i] != '"'; i++ {
			if doc[i] == '\\' {
				escaped = true
				i++
			}
		}
		if i >= len(doc) {
			break // no JSON: nothing that is stored comes here
		}
		end := i + 1
		s := string(doc[start+1 : end-1])
		if escaped {
			s = unquote(doc[start:end])
		}
		next := end
		for next < len(doc) && (doc[next] == ' ' || doc[next] == '\n' || doc[next] == '\t' || doc[next] == '\r') {
			next++
		}
		isName := next < len(doc) && doc[next] == ':'
		of := name
		if isName {
			of = ""
		}
		hidden := f(of, s)
		name = ""
		if isName {
			name = s
		}
		if hidden == s {
			continue
		}
		b, err := encode(hidden)
		if err != nil {
			panic(err) // a string always encodes
		}
		out.Write(doc[kept:start])
		out.Write(b)
		kept = end
	}
	if kept == 0 {
		return doc
	}
	out.Write(doc[kept:])
	return out.Bytes()
}

// unquote reads a JSON string. Most escapes are line breaks and quotes.
func unquote(quoted []byte) string {
	out := make([]byte, 0, len(quoted))
	for i := 1; i < len(quoted)-1; i++ {
		c := quoted[i]
		if c == '\\' {
			i++
			switch c = quoted[i]; c {
			case 'n':
				c = '\n'
			case 't':
				c = '\t'
			case 'r':
				c = '\r'
			case '"', '\\', '/':
			default:
				var s string
				if json.Unmarshal(quoted, &s) != nil {
					return string(quoted) // no JSON: nothing that is stored comes here
				}
				return s
			}
		}
		out = append(out, c)
	}
	return string(out)
}

// encode is JSON as the journal writes it: compact, without HTML escapes.
func encode(v any) ([]byte, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return []byte(strings.TrimSuffix(b.String(), "\n")), nil
}
