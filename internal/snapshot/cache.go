package snapshot

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// The cache is what was last seen of the workspace: disposable, and checked by a hash, since a torn one would keep
// changes from being seen.
const cacheMagic = "belay.seen.1\n"

func (s *Store) cachePath() string { return filepath.Join(s.dir, "seen") }

// writeCache replaces the cache. One that cannot be written is none.
func (s *Store) writeCache() {
	if s.top == nil {
		return
	}
	var b bytes.Buffer
	b.WriteString(cacheMagic)
	encodeNode(&b, s.top)
	sum := sha256.Sum256(b.Bytes())
	b.Write(sum[:])
	temp := s.cachePath() + ".new"
	if os.WriteFile(temp, b.Bytes(), 0o600) == nil && os.Rename(temp, s.cachePath()) == nil {
		s.cached = 0
	}
}

func encodeNode(b *bytes.Buffer, n *node) {
	num := func(v int64) { b.Write(binary.AppendVarint(nil, v)) }
	text := func(s string) { num(int64(len(s))); b.WriteString(s) }
	b.Write(n.id[:])
	num(int64(len(n.entries)))
	for i := range n.entries {
		e := &n.entries[i]
		text(e.name)
		num(int64(e.mode))
		num(e.size)
		num(e.mtime)
		num(e.ctime - e.mtime)
		num(int64(e.inode))
		flags := int64(0)
		if e.racy {
			flags |= 1
		}
		if e.sub != nil {
			flags |= 2
		}
		num(flags)
		text(e.why)
		num(e.bytes)
		switch {
		case e.sub != nil:
			encodeNode(b, e.sub)
		case e.why == "":
			b.Write(e.id[:])
		}
	}
}

// readCache reads the cache; nil where there is none that is whole.
func (s *Store) readCache() *node {
	text, err := os.ReadFile(s.cachePath())
	if err != nil || len(text) < len(cacheMagic)+32 || !strings.HasPrefix(string(text[:len(cacheMagic)]), cacheMagic) {
		return nil
	}
	body := text[:len(text)-32]
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:], text[len(body):]) {
		return nil
	}
	n, err := decodeNode(bufio.NewReader(bytes.NewReader(body[len(cacheMagic):])))
	if err != nil || !s.own.has(n.id) {
		return nil
	}
	return n
}

func decodeNode(r *bufio.Reader) (*node, error) {
	var failed error
	num := func() int64 {
		v, err := binary.ReadVarint(r)
		failed = errors.Join(failed, err)
		return v
	}
	read := func(b []byte) {
		for n := 0; n < len(b) && failed == nil; {
			m, err := r.Read(b[n:])
			n += m
			failed = errors.Join(failed, err)
		}
	}
	text := func() string {
		n := num()
		if n < 0 || n > 1<<20 {
			failed = errors.New("damaged cache")
			return ""
		}
		b := make([]byte, n)
		read(b)
		return string(b)
	}
	n := &node{}
	read(n.id[:])
	count := num()
	for range count {
		var e entry
		e.name, e.mode, e.size, e.mtime = text(), uint32(num()), num(), num()
		e.ctime, e.inode = e.mtime+num(), uint64(num())
		flags := num()
		e.racy, e.why, e.bytes = flags&1 != 0, text(), num()
		switch {
		case failed != nil:
			return nil, failed
		case flags&2 != 0:
			sub, err := decodeNode(r)
			if err != nil {
				return nil, err
			}
			e.sub, e.id = sub, sub.id
		case e.why == "":
			read(e.id[:])
		}
		n.entries = append(n.entries, e)
	}
	return n, failed
}
