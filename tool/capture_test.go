package tool

import (
	"bytes"
	"strings"
	"testing"
)

// However the output is chopped, the start and the end stay and the rest is counted.
func TestCaptureKeepsBothEnds(t *testing.T) {
	var whole bytes.Buffer
	for i := range 1000 {
		whole.WriteByte(byte('a' + i%26))
	}
	for _, size := range []int{0, 1, 5, 10, 11, 15, 20, 21, 37, 1000} {
		for _, chunk := range []int{1, 3, 7, 10, 999} {
			c := NewCapture(20)
			text := whole.Bytes()[:size]
			for rest := text; len(rest) > 0; {
				n := min(chunk, len(rest))
				c.Write(rest[:n])
				rest = rest[n:]
			}
			got := c.String()
			if size <= 20 {
				if got != string(text) {
					t.Errorf("%d bytes in pieces of %d: got %q", size, chunk, got)
				}
				continue
			}
			if !strings.HasPrefix(got, string(text[:10])) || !strings.HasSuffix(got, string(text[size-10:])) || c.Total() != int64(size) {
				t.Errorf("%d bytes in pieces of %d: got %q", size, chunk, got)
			}
		}
	}
}
