package serve

import (
	"bytes"
	"net/http"
	"unicode/utf8"
)

// write sends the events in pieces that do not care for lines, events or characters, as a network does.
func write(w http.ResponseWriter, frames []frame) {
	var b bytes.Buffer
	for _, f := range frames {
		if f.name != "" {
			b.WriteString("event: " + f.name + "\n")
		}
		b.WriteString("data: ")
		if s, ok := f.data.(string); ok {
			b.WriteString(s)
		} else {
			b.Write(encode(f.data))
		}
		b.WriteString("\n\n")
	}
	control := http.NewResponseController(w)
	if b.Len() == 0 {
		_ = control.Flush() // cut before anything: only the header arrives
		return
	}
	rest := b.Bytes()
	for i := 0; len(rest) > 0; i++ {
		n := within(rest, []int{13, 200, 61, 1024, 4096}[i%5])
		if _, err := w.Write(rest[:n]); err != nil {
			return // the client has gone
		}
		if control.Flush() != nil {
			return
		}
		rest = rest[n:]
	}
}

// within returns about n, moved into the middle of a character where one is near.
func within(b []byte, n int) int {
	if n >= len(b) {
		return len(b)
	}
	for i := n; i < min(len(b), n+40); i++ {
		if b[i] >= utf8.RuneSelf && !utf8.RuneStart(b[i]) {
			return i
		}
	}
	return n
}

// cut splits text into deltas at odd places, but not within a character, since a delta is a JSON string. Pieces
// grow, so that a long text has few.
func split(s string, sizes ...int) []string {
	var out []string
	for i := 0; len(s) > 0; i++ {
		n := min(sizes[i%len(sizes)]*(1+i/len(sizes)), len(s))
		for n < len(s) && !utf8.RuneStart(s[n]) {
			n++
		}
		out = append(out, s[:n])
		s = s[n:]
	}
	return out
}

func splitText(s string) []string { return split(s, 5, 17, 2, 40) }
func splitArgs(s string) []string { return split(s, 1, 7, 3, 29, 2) }
