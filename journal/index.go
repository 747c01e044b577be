package journal

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// index is a sidecar that lets a long run be opened for writing without reading all of it: what the chain knew
// after some line. It is never needed: where it is missing, torn or of another file, the whole file is read.
type index struct {
	V     int      `json:"v"`
	RunID string   `json:"run_id"`
	Seq   int64    `json:"seq"`
	Sum   string   `json:"chain"` // sum of that event
	Size  int64    `json:"size"`  // of the file after that event's line
	Lines int      `json:"lines"`
	Epoch int64    `json:"epoch"`
	Open  []string `json:"open"`  // calls without an outcome
	Known []byte   `json:"known"` // all calls: a callHash after the other
}

// indexEvery is how many bytes a journal grows before its index is written anew, at least; it also grows by several
// times the index's own size.
const indexEvery = 1 << 20

func (c *chain) index(at position) ([]byte, error) {
	x := index{V: Version, RunID: c.runID, Seq: c.seq, Sum: c.sum, Size: at.offset, Lines: at.lines, Epoch: c.epoch,
		Open: slices.Sorted(maps.Keys(c.open)), Known: make([]byte, 0, len(c.known)*len(callHash{}))}
	for hash := range c.known {
		x.Known = append(x.Known, hash[:]...)
	}
	text, err := encode(x)
	if err != nil {
		return nil, err
	}
	return append(append(text, '\n'), hashOf(text)...), nil
}

// resume moves a chain that stands at its start to where an index says, if there is a sound one.
func (p place) resume(c *chain) (at position, ok bool) {
	stored, err := readAll(p.disk, filepath.Join(p.dir, indexName))
	if err != nil {
		return at, false
	}
	text, sum, found := bytes.Cut(stored, []byte("\n"))
	var x index
	if !found || string(sum) != hashOf(text) || json.Unmarshal(text, &x) != nil {
		return at, false
	}
	if x.V != Version || x.RunID != p.runID() || len(x.Known)%len(callHash{}) != 0 || !p.endsWith(x.Size, x.Sum) {
		return at, false
	}
	c.runID, c.seq, c.sum, c.epoch = x.RunID, x.Seq, x.Sum, x.Epoch
	for _, id := range x.Open {
		c.open[id] = true
	}
	for hash := range slices.Chunk(x.Known, len(callHash{})) {
		c.known[callHash(hash)] = true
	}
	return position{x.Size, x.Lines}, true
}

// endsWith says whether the first size bytes of the file end with an event's line that has that sum.
func (p place) endsWith(size int64, sum string) bool {
	want := []byte(sumPrefix + sum + sumSuffix + "\n")
	if size < int64(len(want)) {
		return false
	}
	file, err := p.disk.OpenFile(filepath.Join(p.dir, journalName), os.O_RDONLY)
	if err != nil {
		return false
	}
	defer file.Close()
	got := make([]byte, len(want))
	_, err = file.ReadAt(got, size-int64(len(want)))
	return err == nil && bytes.Equal(got, want)
}
