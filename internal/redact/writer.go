package redact

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

const (
	// holdLine is how much of an unfinished line waits for its end.
	holdLine = 256 << 10
	// holdTail is how much of it stays back when it is longer: no token that has no blank in it is as long.
	holdTail = 32 << 10
	// block is how much is looked at at once.
	block = 64 << 10
)

// writer hides secrets in a stream, wherever the writes are cut: it passes on whole lines, and a private key as a
// whole.
type writer struct {
	r *Redactor

	mu   sync.Mutex
	w    io.Writer
	buf  []byte
	full int // size of buf at which it is looked at; 0 is block
}

func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buf = append(w.buf, p...)
	if len(w.buf) < max(w.full, block) {
		return len(p), nil
	}
	err := w.pass(w.safe())
	w.full = len(w.buf) + block // what waits now is not looked at again for each byte that comes
	return len(p), err
}

// flush passes on what is left. Nothing more is written after it.
func (w *writer) flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pass(len(w.buf))
}

// safe is how much of the buffer can be looked at without what comes next.
func (w *writer) safe() int {
	n := bytes.LastIndexByte(w.buf, '\n') + 1
	if n == 0 && len(w.buf) > holdLine {
		n = len(w.buf) - holdTail
		if blank := bytes.LastIndexAny(w.buf[:n], " \t\r,;"); blank > n-holdTail {
			n = blank + 1
		}
	}
	// A key without its end waits for it, as long as a key may be.
	if begin := bytes.LastIndex(w.buf[:n], []byte("-----BEGIN ")); begin >= 0 && n-begin < holdLine && !bytes.Contains(w.buf[begin:n], []byte("-----END")) {
		line, _, _ := strings.Cut(string(w.buf[begin:min(n, begin+100)]), "\n")
		if strings.Contains(line, "PRIVATE KEY") {
			n = begin
		}
	}
	return n
}

func (w *writer) pass(n int) error {
	if n == 0 {
		return nil
	}
	_, err := io.WriteString(w.w, w.r.Hide(string(w.buf[:n])))
	w.buf = append(w.buf[:0], w.buf[n:]...)
	return err
}
