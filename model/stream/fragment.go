package stream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Fragment is a piece of a string as it came in one JSON value. Servers cut text where they like, also inside a
// character: the pieces of a rune (raw bytes, or one half of a surrogate pair) are kept until they are joined,
// where encoding/json would put a replacement character for each. null is the empty fragment.
type Fragment []byte

// UnmarshalJSON takes a string or null.
func (f *Fragment) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*f = nil
		return nil
	}
	if len(b) < 2 || b[0] != '"' {
		return fmt.Errorf("want a string, not %.40s", b)
	}
	b = b[1 : len(b)-1]
	out := make([]byte, 0, len(b))
	for len(b) > 0 {
		i := bytes.IndexByte(b, '\\')
		if i < 0 {
			out = append(out, b...)
			break
		}
		out = append(out, b[:i]...)
		b = b[i+1:]
		if len(b) == 0 {
			return fmt.Errorf("a string ends in a backslash")
		}
		c := b[0]
		b = b[1:]
		switch c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			if len(b) < 4 {
				return fmt.Errorf("a string ends within an escape")
			}
			u, err := strconv.ParseUint(string(b[:4]), 16, 16)
			if err != nil {
				return fmt.Errorf("a string holds the escape \\u%s", b[:4])
			}
			b = b[4:]
			if u >= 0xD800 && u < 0xE000 { // half a pair: three bytes that no valid UTF-8 has, see Join
				out = append(out, 0xE0|byte(u>>12), 0x80|byte(u>>6)&0xBF, 0x80|byte(u)&0xBF)
			} else {
				out = utf8.AppendRune(out, rune(u))
			}
		default:
			out = append(out, c)
		}
	}
	*f = out
	return nil
}

// Join makes valid UTF-8 of fragments laid end to end: halves of surrogate pairs are united, what stays invalid
// becomes U+FFFD.
func Join(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var s strings.Builder
	for i := 0; i < len(b); {
		if hi, ok := surrogate(b[i:]); ok && hi < 0xDC00 {
			if lo, ok := surrogate(b[i+3:]); ok && lo >= 0xDC00 {
				s.WriteRune((hi-0xD800)<<10 + (lo - 0xDC00) + 0x10000)
				i += 6
				continue
			}
		}
		if _, ok := surrogate(b[i:]); ok {
			s.WriteRune(utf8.RuneError)
			i += 3
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		s.WriteRune(r)
		i += n
	}
	return s.String()
}

// surrogate decodes the three bytes that UnmarshalJSON writes for half a pair.
func surrogate(b []byte) (rune, bool) {
	if len(b) < 3 || b[0] != 0xED || b[1] < 0xA0 || b[1] > 0xBF || b[2] < 0x80 || b[2] > 0xBF {
		return 0, false
	}
	return 0xD000 | rune(b[1]&0x3F)<<6 | rune(b[2]&0x3F), true
}

// shown returns the longest prefix of b that can be shown: b without a last character that is not whole yet.
func shown(b []byte) int {
	for i := 1; i <= min(len(b), utf8.UTFMax-1); i++ {
		c := b[len(b)-i]
		if utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) || (c == 0xED && i == 3 && b[len(b)-2] >= 0xA0 && b[len(b)-2] < 0xB0) {
				return len(b) - i
			}
			break
		}
	}
	return len(b)
}

// quote is s as a JSON string, without HTML escapes.
func quote(s string) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always can be
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
