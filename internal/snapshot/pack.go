package snapshot

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
)

// errMissing says that no pack and no loose file holds an object.
var errMissing = errors.New("the object is not in the store")

// objects are those of one folder in git's layout: packs and loose files.
type objects struct {
	dir string // …/objects

	mu    sync.Mutex
	packs map[string]*pack // by path of the index
	read  bool
}

// pack is a pack with its index in memory.
type pack struct {
	path  string // of the .pack
	index []byte
	count int
}

// load reads the indexes that are new, and forgets those that are gone.
func (o *objects) load() error {
	names, err := filepath.Glob(filepath.Join(o.dir, "pack", "pack-*.idx"))
	if err != nil {
		return err
	}
	packs := map[string]*pack{}
	for _, name := range names {
		if p := o.packs[name]; p != nil {
			packs[name] = p
			continue
		}
		p, err := openPack(name)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, errForeign) {
			continue
		}
		if err != nil {
			return err
		}
		packs[name] = p
	}
	o.packs, o.read = packs, true
	return nil
}

var errForeign = errors.New("no pack index of version 2 for SHA-1")

func openPack(index string) (*pack, error) {
	p := &pack{path: strings.TrimSuffix(index, ".idx") + ".pack"}
	if _, err := os.Stat(p.path); err != nil {
		return nil, err
	}
	var err error
	if p.index, err = os.ReadFile(index); err != nil {
		return nil, err
	}
	const head = 8 + 256*4
	if len(p.index) < head+40 || !bytes.HasPrefix(p.index, []byte{0xff, 't', 'O', 'c', 0, 0, 0, 2}) {
		return nil, errForeign
	}
	p.count = int(binary.BigEndian.Uint32(p.index[head-4:]))
	if len(p.index) < head+p.count*28+40 {
		return nil, errForeign
	}
	return p, nil
}

// find is the object's offset in the pack.
func (p *pack) find(id objectID) (int64, bool) {
	fan := func(i int) int { return int(binary.BigEndian.Uint32(p.index[8+4*i:])) }
	low := 0
	if id[0] > 0 {
		low = fan(int(id[0]) - 1)
	}
	high := min(fan(int(id[0])), p.count)
	i := low + sort.Search(max(high-low, 0), func(i int) bool { return bytes.Compare(p.name(low+i), id[:]) >= 0 })
	if i >= high || !bytes.Equal(p.name(i), id[:]) {
		return 0, false
	}
	return p.offset(i), true
}

const idxNames = 8 + 256*4

func (p *pack) name(i int) []byte { return p.index[idxNames+20*i : idxNames+20*i+20] }

func (p *pack) offset(i int) int64 {
	at := idxNames + p.count*24
	v := binary.BigEndian.Uint32(p.index[at+4*i:])
	if v&(1<<31) == 0 {
		return int64(v)
	}
	far := at + 4*p.count + 8*int(v&^(1<<31))
	if far+8 > len(p.index) {
		return -1
	}
	return int64(binary.BigEndian.Uint64(p.index[far:]))
}

func (o *objects) loose(id objectID) string {
	s := id.String()
	return filepath.Join(o.dir, s[:2], s[2:])
}

// where finds the pack that holds an object.
func (o *objects) where(id objectID) (*pack, int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.read && o.load() != nil {
		return nil, 0
	}
	for _, p := range o.packs {
		if at, ok := p.find(id); ok {
			return p, at
		}
	}
	return nil, 0
}

// reload forgets what was read: packs may have been merged.
func (o *objects) reload() {
	o.mu.Lock()
	o.read = false
	o.mu.Unlock()
}

// has says whether the object is there.
func (o *objects) has(id objectID) bool {
	if p, _ := o.where(id); p != nil {
		return true
	}
	_, err := os.Lstat(o.loose(id))
	return err == nil
}

// get reads an object and checks that it is the one that its name says.
func (o *objects) get(id objectID) (kind, []byte, error) {
	k, content, err := o.fetch(id)
	if errors.Is(err, errMissing) || errors.Is(err, os.ErrNotExist) {
		o.reload()
		k, content, err = o.fetch(id)
	}
	if err == nil && hashObject(k, content) != id {
		err = errors.New("its content is not what its name says: the store is damaged")
	}
	if err != nil {
		return 0, nil, fmt.Errorf("object %s: %w", id, err)
	}
	return k, content, nil
}

func (o *objects) fetch(id objectID) (kind, []byte, error) {
	if p, at := o.where(id); p != nil {
		f, err := os.Open(p.path)
		if err != nil {
			return 0, nil, err
		}
		defer f.Close()
		return o.unpack(f, at, 0)
	}
	f, err := os.Open(o.loose(id))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil, errMissing
	}
	if err != nil {
		return 0, nil, err
	}
	defer f.Close()
	z, err := zlib.NewReader(f)
	if err != nil {
		return 0, nil, err
	}
	all, err := io.ReadAll(z)
	if err != nil {
		return 0, nil, err
	}
	head, content, ok := bytes.Cut(all, []byte{0})
	for _, k := range []kind{kindCommit, kindTree, kindBlob, kindTag} {
		if ok && bytes.HasPrefix(head, []byte(k.String()+" ")) {
			return k, content, nil
		}
	}
	return 0, nil, errors.New("no object")
}

// maxDelta bounds how long a chain of deltas may be; git makes none longer than 4095.
const maxDelta = 5000

// unpack reads the object at an offset of a pack.
func (o *objects) unpack(f *os.File, at int64, depth int) (kind, []byte, error) {
	if depth > maxDelta || at < packHeader {
		return 0, nil, errors.New("damaged pack")
	}
	head := make([]byte, 64)
	n, err := f.ReadAt(head, at)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, nil, err
	}
	head = append(head[:n], 0, 0)
	k, used := kind(head[0]>>4&7), 0
	for ; head[used]&0x80 != 0 && used < 10; used++ {
	}
	used++
	inflate := func() ([]byte, error) {
		z, err := zlib.NewReader(io.NewSectionReader(f, at+int64(used), 1<<62))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(z)
	}
	var base []byte
	switch k {
	case kindOffset:
		back := int64(head[used] & 0x7f)
		for used < len(head)-2 && head[used]&0x80 != 0 {
			used++
			back = (back+1)<<7 | int64(head[used]&0x7f)
		}
		used++
		k, base, err = o.unpack(f, at-back, depth+1)
	case kindRef:
		id := objectID(head[used:])
		used += len(id)
		k, base, err = o.fetch(id)
	default:
		content, err := inflate()
		return k, content, err
	}
	if err != nil {
		return 0, nil, err
	}
	delta, err := inflate()
	if err != nil {
		return 0, nil, err
	}
	content, err := applyDelta(base, delta)
	return k, content, err
}

// applyDelta makes an object from the one it is like.
func applyDelta(base, delta []byte) ([]byte, error) {
	bad := errors.New("damaged delta")
	size, n := binary.Uvarint(delta)
	if n <= 0 || size != uint64(len(base)) {
		return nil, bad
	}
	delta = delta[n:]
	want, n := binary.Uvarint(delta)
	if n <= 0 || want > 1<<33 {
		return nil, bad
	}
	delta = delta[n:]
	out := make([]byte, 0, want)
	for len(delta) > 0 {
		op := delta[0]
		delta = delta[1:]
		if op&0x80 == 0 {
			if op == 0 || int(op) > len(delta) {
				return nil, bad
			}
			out, delta = append(out, delta[:op]...), delta[op:]
			continue
		}
		var from, length int
		for i := range 7 {
			if op>>i&1 == 0 {
				continue
			}
			if len(delta) == 0 {
				return nil, bad
			}
			if i < 4 {
				from |= int(delta[0]) << (8 * i)
			} else {
				length |= int(delta[0]) << (8 * (i - 4))
			}
			delta = delta[1:]
		}
		if length == 0 {
			length = 0x10000
		}
		if from+length > len(base) {
			return nil, bad
		}
		out = append(out, base[from:from+length]...)
	}
	if uint64(len(out)) != want {
		return nil, bad
	}
	return out, nil
}
