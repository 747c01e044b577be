package tools

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// captureEnd is how many bytes of each end of an output are kept in memory: 1 MiB.
const captureEnd = 1 << 20

// capture keeps the first and the last bytes of a stream of any length in bounded memory.
type capture struct {
	mu    sync.Mutex
	end   int
	head  []byte
	tail  []byte // a ring once it is full
	next  int    // where the ring goes on
	total int64
}

func newCapture(end int) *capture { return &capture{end: end} }

func (c *capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := len(p)
	c.total += int64(n)
	if room := c.end - len(c.head); room > 0 {
		take := min(room, len(p))
		c.head = append(c.head, p[:take]...)
		p = p[take:]
	}
	if len(p) > c.end {
		p = p[len(p)-c.end:]
	}
	if room := c.end - len(c.tail); room > 0 {
		take := min(room, len(p))
		c.tail = append(c.tail, p[:take]...)
		p = p[take:]
	}
	for len(p) > 0 {
		k := copy(c.tail[c.next:], p)
		c.next = (c.next + k) % c.end
		p = p[k:]
	}
	return n, nil
}

// text is the stream as a person at a terminal would see it, with a marker for what was not kept.
func (c *capture) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	missing := c.total - int64(len(c.head)+len(c.tail))
	tail := string(c.tail[c.next:]) + string(c.tail[:c.next])
	if missing <= 0 {
		return visible(string(c.head) + tail)
	}
	return visible(string(c.head)) + fmt.Sprintf("\n[… %d bytes of %d not kept: only the first and last %d are]\n", missing, c.total, c.end) + visible(tail)
}

var (
	// escapes are terminal sequences: CSI, OSC and the like, and two-character ones.
	escapes = regexp.MustCompile("\x1b(\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(\x07|\x1b\\\\)|[PX^_][^\x1b]*\x1b\\\\|[ -/]*[0-~])")
)

// visible takes terminal sequences out, keeps the last state of a line that was rewritten in place, and shows bytes
// that are no text as escapes.
func visible(s string) string {
	s = escapes.ReplaceAllString(s, "")
	if strings.IndexByte(s, '\r') >= 0 {
		s = strings.ReplaceAll(s, "\r\n", "\n")
		lines := strings.Split(s, "\n")
		for i, line := range lines {
			line = strings.TrimRight(line, "\r")
			if cut := strings.LastIndexByte(line, '\r'); cut >= 0 {
				line = line[cut+1:]
			}
			lines[i] = line
		}
		s = strings.Join(lines, "\n")
	}
	return escapeBytes(s)
}

// escapeBytes shows invalid UTF-8 and control characters as \xNN; newlines and tabs stay.
func escapeBytes(s string) string {
	plain := true
	for i := 0; i < len(s); i++ {
		if b := s[i]; b < ' ' && b != '\n' && b != '\t' || b >= 0x7f {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1, r < ' ' && r != '\n' && r != '\t', r == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		default:
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String()
}
