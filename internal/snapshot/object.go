package snapshot

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"belay/internal/failpoint"
)

// objectID is git's name of an object: SHA-1 over its kind, length and content.
type objectID [sha1.Size]byte

func (id objectID) String() string { return hex.EncodeToString(id[:]) }

func parseID(s string) (id objectID, err error) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != len(id) {
		return id, fmt.Errorf("%q is no object id", s)
	}
	return objectID(b), nil
}

// kind is an object's type, as a pack writes it.
type kind byte

const (
	kindCommit kind = 1
	kindTree   kind = 2
	kindBlob   kind = 3
	kindTag    kind = 4
	kindOffset kind = 6 // a delta against an object at a distance
	kindRef    kind = 7 // a delta against an object by name
)

func (k kind) String() string {
	return map[kind]string{kindCommit: "commit", kindTree: "tree", kindBlob: "blob", kindTag: "tag"}[k]
}

func hashObject(k kind, content []byte) objectID {
	h := sha1.New()
	h.Write([]byte(k.String() + " " + strconv.Itoa(len(content)) + "\x00"))
	h.Write(content)
	return objectID(h.Sum(nil))
}

// packWriter collects new objects in a file that becomes a pack.
type packWriter struct {
	dir string // of packs

	mu      sync.Mutex
	file    *os.File
	out     *bufio.Writer
	size    int64
	objects []packed
	known   map[objectID]bool
}

// packed is where an object lies in its pack.
type packed struct {
	id     objectID
	offset int64
	crc    uint32
}

const packHeader = 12

var deflaters = sync.Pool{New: func() any {
	w, err := zlib.NewWriterLevel(io.Discard, zlib.BestSpeed)
	if err != nil {
		panic(err) // the level is a valid one
	}
	return w
}}

// entry is an object as a pack holds it: kind and length, seven bits at a time, then the compressed content.
func packEntry(k kind, content []byte) ([]byte, error) {
	var b bytes.Buffer
	n := uint64(len(content))
	first := byte(k)<<4 | byte(n&15)
	for n >>= 4; n > 0; n >>= 7 {
		b.WriteByte(first | 0x80)
		first = byte(n & 0x7f)
	}
	b.WriteByte(first)
	z := deflaters.Get().(*zlib.Writer)
	defer deflaters.Put(z)
	z.Reset(&b)
	_, err := z.Write(content)
	err = errors.Join(err, z.Close())
	return b.Bytes(), err
}

// add takes an object, once.
func (w *packWriter) add(id objectID, k kind, content []byte) error {
	w.mu.Lock()
	if w.known[id] {
		w.mu.Unlock()
		return nil
	}
	if w.known == nil {
		w.known = map[objectID]bool{}
	}
	w.known[id] = true
	w.mu.Unlock()
	raw, err := packEntry(k, content) // beside others
	if err != nil {
		return err
	}
	return w.addRaw(id, raw)
}

func (w *packWriter) addRaw(id objectID, raw []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		file, err := os.CreateTemp(w.dir, "tmp_pack_")
		if err != nil {
			return err
		}
		w.file, w.out, w.size = file, bufio.NewWriterSize(file, 256<<10), packHeader
		if _, err := w.out.Write(make([]byte, packHeader)); err != nil {
			return err
		}
	}
	w.objects = append(w.objects, packed{id, w.size, crc32.ChecksumIEEE(raw)})
	w.size += int64(len(raw))
	_, err := w.out.Write(raw)
	return err
}

// drop throws away what was collected.
func (w *packWriter) drop() {
	if w.file != nil {
		w.file.Close()
		os.Remove(w.file.Name())
	}
}

// finish makes a pack and its index durable, in this order. It returns the pack's path, "" where nothing was added.
func (w *packWriter) finish() (path string, err error) {
	if w.file == nil {
		return "", nil
	}
	defer w.drop()
	if err := w.out.Flush(); err != nil {
		return "", err
	}
	header := make([]byte, packHeader)
	copy(header, "PACK")
	binary.BigEndian.PutUint32(header[4:], 2)
	binary.BigEndian.PutUint32(header[8:], uint32(len(w.objects)))
	if _, err := w.file.WriteAt(header, 0); err != nil {
		return "", err
	}
	h := sha1.New()
	if _, err := io.Copy(h, io.NewSectionReader(w.file, 0, w.size)); err != nil {
		return "", err
	}
	sum := h.Sum(nil)
	if _, err := w.file.WriteAt(sum, w.size); err != nil {
		return "", err
	}
	if err := errors.Join(w.file.Chmod(0o400), w.file.Sync()); err != nil {
		return "", err
	}
	path = filepath.Join(w.dir, "pack-"+hex.EncodeToString(sum)+".pack")
	if err := writeDurably(path[:len(path)-len("pack")]+"idx", packIndex(w.objects, sum), 0o400); err != nil {
		return "", err
	}
	failpoint.Hit("checkpoint.before-pack")
	if err := os.Rename(w.file.Name(), path); err != nil { // a reader looks for packs, and finds none without its index
		return "", err
	}
	failpoint.Hit("checkpoint.after-pack")
	return path, syncDir(w.dir)
}

// packIndex is an index of version 2.
func packIndex(objects []packed, packSum []byte) []byte {
	slices.SortFunc(objects, func(a, b packed) int { return bytes.Compare(a.id[:], b.id[:]) })
	out := []byte{0xff, 't', 'O', 'c', 0, 0, 0, 2}
	n := 0
	for first := range 256 {
		for n < len(objects) && int(objects[n].id[0]) <= first {
			n++
		}
		out = binary.BigEndian.AppendUint32(out, uint32(n))
	}
	for _, o := range objects {
		out = append(out, o.id[:]...)
	}
	for _, o := range objects {
		out = binary.BigEndian.AppendUint32(out, o.crc)
	}
	var far []byte
	for _, o := range objects {
		if o.offset < 1<<31 {
			out = binary.BigEndian.AppendUint32(out, uint32(o.offset))
			continue
		}
		out = binary.BigEndian.AppendUint32(out, 1<<31|uint32(len(far)/8))
		far = binary.BigEndian.AppendUint64(far, uint64(o.offset))
	}
	out = append(append(out, far...), packSum...)
	sum := sha1.Sum(out)
	return append(out, sum[:]...)
}

// writeDurably replaces a file, synced with its name.
func writeDurably(path string, content []byte, mode os.FileMode) error {
	f, err := os.CreateTemp(filepath.Dir(path), "tmp_")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(content)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}
