package tool

import (
	"fmt"
	"strings"
	"sync"
)

// CaptureLimit is how many bytes of a program's output are kept: as many from its start as from its end.
const CaptureLimit = 2 << 20

// Capture keeps the start and the end of what is written to it, in bounded memory.
type Capture struct {
	mu    sync.Mutex
	limit int
	head  []byte
	tail  []byte // a ring once it is full
	next  int    // where the ring's oldest byte is
	total int64
}

// NewCapture makes a Capture that keeps limit bytes.
func NewCapture(limit int) *Capture { return &Capture{limit: limit} }

func (c *Capture) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n, half := len(p), c.limit/2
	c.total += int64(n)
	if room := half - len(c.head); room > 0 {
		take := min(room, len(p))
		c.head = append(c.head, p[:take]...)
		p = p[take:]
	}
	if len(p) > half {
		p = p[len(p)-half:]
	}
	if room := half - len(c.tail); room > 0 {
		take := min(room, len(p))
		c.tail = append(c.tail, p[:take]...)
		p = p[take:]
	}
	for len(p) > 0 {
		copied := copy(c.tail[c.next:], p)
		c.next = (c.next + copied) % half
		p = p[copied:]
	}
	return n, nil
}

// dropMark begins the line that says what was not kept. A cut never leaves that line out.
const dropMark = "[… of the output, "

// Dropped says that a text is what a Capture kept of a longer output.
func Dropped(text string) bool { return strings.Contains(text, "\n"+dropMark) }

// Total is how many bytes were written.
func (c *Capture) Total() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// String is what was kept, with a line in the middle that says how much was not.
func (c *Capture) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	missing := c.total - int64(len(c.head)+len(c.tail))
	tail := string(c.tail[c.next:]) + string(c.tail[:c.next])
	if missing == 0 {
		return string(c.head) + tail
	}
	return fmt.Sprintf("%s\n%s%d bytes were not kept …]\n%s", c.head, dropMark, missing, tail)
}
