package journal

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"belay/internal/failpoint"
)

// File is a Log in a directory: journal.jsonl, blobs/<aa>/<sha256>, lock, and sidecars.
type File struct {
	place
	queueMu sync.Mutex
	queue   []*batch // waiting for whoever writes next

	mu     sync.Mutex // held by the one who writes
	unlock func() error
	file   handle
	blobs  blobs
	chain  *chain
	at     position // the end of the last line
	first  []Entry  // how a writer begins, until it is written
	closed error    // why the log takes no more events, for good

	synced    int64  // the file's size when it was last known to be durable
	syncedSum string // of the line that ends there
	unsynced  []byte // the lines after that, to be written again where a sync fails
	reach     int64  // the highest offset that this process may have written to
	broken    error  // what failed last: the file must be mended before anything is added
	indexed   int64  // size of the file when the index was last written
	indexSize int64
}

// unsyncedMax is how many bytes may wait for the next Append.
const unsyncedMax = 1 << 20

// batch is what one caller adds: all of it or nothing.
type batch struct {
	entries []Entry
	durable bool
	done    bool
	events  []Event
	err     error
	undo    func()
}

func (f *File) RunID() string { return f.runID() }

// Dir is the run's directory.
func (f *File) Dir() string { return f.dir }

func (f *File) Append(entries ...Entry) ([]Event, error) { return f.add(entries, true) }

func (f *File) Write(entries ...Entry) ([]Event, error) { return f.add(entries, false) }

// add queues the entries. Whoever gets to write takes all that wait with it, under one sync.
func (f *File) add(entries []Entry, durable bool) ([]Event, error) {
	b := &batch{entries: entries, durable: durable}
	f.queueMu.Lock()
	f.queue = append(f.queue, b)
	f.queueMu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if !b.done {
		f.queueMu.Lock()
		group := f.queue
		f.queue = nil
		f.queueMu.Unlock()
		f.commit(group)
	}
	if b.err != nil {
		return nil, fmt.Errorf("journal: %w", b.err)
	}
	return b.events, nil
}

// commit writes a group of batches with one sync. A batch that breaks a rule fails alone; what the disk refuses
// fails them all, and leaves nothing of them.
func (f *File) commit(group []*batch) {
	err := f.closed
	if err == nil {
		err = f.mend()
	}
	first := f.first
	var lines []byte
	durable, count := false, 0
	for _, b := range group {
		b.done = true
		if b.err = err; err != nil {
			continue
		}
		entries := b.entries
		if len(f.first) > 0 {
			entries = slices.Concat(f.first, entries)
		}
		var more []byte
		if more, b.events, b.undo, b.err = f.chain.seal(entries, f.blobs.put); b.err != nil {
			continue
		}
		f.first = nil
		lines = append(lines, more...)
		count += len(b.events)
		durable = durable || b.durable
	}
	if err = f.write(lines, durable || len(f.unsynced)+len(lines) > unsyncedMax); err == nil {
		f.at.lines += count
		f.keepIndex()
		return
	}
	for i := len(group) - 1; i >= 0; i-- {
		if b := group[i]; b.err == nil {
			b.undo()
			b.err, b.events = err, nil
		}
	}
	f.first = first
	if f.closed == nil && f.broken != nil {
		f.mend() // at once, so that no reader meets a torn end; else the next who appends tries again
	}
}

// write puts the lines at the end of the file: all of them or none.
func (f *File) write(lines []byte, durable bool) error {
	if f.closed != nil || len(lines) == 0 && (!durable || len(f.unsynced) == 0) {
		return nil
	}
	if err := f.blobs.sync(); err != nil {
		return err
	}
	if err := f.fence(f.at.offset); err != nil {
		return err
	}
	end := f.at.offset + int64(len(lines))
	failpoint.Hit("append.before-write")
	f.reach = max(f.reach, end)
	if _, err := f.file.WriteAt(lines, f.at.offset); err != nil {
		f.broken = err
		return err
	}
	failpoint.Hit("append.after-write")
	if !durable {
		f.unsynced = append(f.unsynced, lines...)
		f.at.offset = end
		return nil
	}
	if err := f.file.Sync(); err != nil {
		f.broken = err
		return fmt.Errorf("sync: %w", err)
	}
	failpoint.Hit("append.after-sync")
	f.at.offset = end
	f.isDurable()
	return nil
}

// isDurable notes that the disk holds every line.
func (f *File) isDurable() {
	f.synced, f.syncedSum, f.unsynced = f.at.offset, f.chain.sum, f.unsynced[:0]
}

// fence refuses to write where the file is larger than this process has made it, or smaller.
func (f *File) fence(size int64) error {
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	if info.Size() != size {
		f.closed = fmt.Errorf("%w: the file has %d bytes and should have %d", ErrFenced, info.Size(), size)
	}
	return f.closed
}

// mend makes the file end with the last line again. After a failed write or sync nobody knows what the disk holds
// behind the last sync: the file is opened anew, checked and cut there, and the lines since then are written again.
func (f *File) mend() error {
	if f.broken == nil {
		return nil
	}
	fail := func(err error) error {
		return fmt.Errorf("the journal could not be written (%w) and cannot be mended yet: %w", f.broken, err)
	}
	file, err := f.disk.OpenFile(filepath.Join(f.dir, journalName), os.O_RDWR)
	if err != nil {
		return fail(err)
	}
	info, err := file.Stat()
	switch {
	case err != nil:
	case info.Size() < f.synced || info.Size() > f.reach || f.synced > 0 && !f.endsWith(f.synced, f.syncedSum):
		f.closed = fmt.Errorf("%w: it does not end as it did before the disk failed (%w)", ErrFenced, f.broken)
		err = f.closed
	default:
		if err = file.Truncate(f.synced); err == nil && len(f.unsynced) > 0 {
			_, err = file.WriteAt(f.unsynced, f.synced)
		}
		if err == nil {
			err = file.Sync()
		}
	}
	if err != nil {
		file.Close()
		return fail(err)
	}
	f.file.Close()
	f.file, f.broken, f.reach = file, nil, f.at.offset
	f.isDurable()
	return nil
}

// keepIndex writes the index anew when the file has grown much. An index that cannot be written is none.
func (f *File) keepIndex() {
	if grown := f.at.offset - f.indexed; grown > indexEvery && grown > 4*f.indexSize {
		f.writeIndex()
	}
}

func (f *File) writeIndex() {
	failpoint.Hit("append.before-index")
	text, err := f.chain.index(f.at)
	if err == nil && replace(f.disk, filepath.Join(f.dir, indexName), text) == nil {
		f.indexed, f.indexSize = f.at.offset, int64(len(text))
	}
}

func (f *File) Events() iter.Seq2[Event, error] {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.read(f.at.offset)
}

// Close makes everything durable and lets the next writer in.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return nil
	}
	err := f.closed
	if err == nil {
		err = f.mend()
	}
	if err == nil && len(f.unsynced) > 0 {
		err = f.file.Sync()
	}
	if err == nil {
		f.writeIndex()
		f.disk.Remove(filepath.Join(f.dir, writerName))
	}
	err = errors.Join(err, f.file.Close(), f.unlock())
	f.file, f.closed = nil, ErrClosed
	return err
}

func (f *File) PutBlob(content []byte) (Ref, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed != nil {
		return Ref{}, f.closed
	}
	return f.blobs.put(content)
}

func (f *File) PutBlobFrom(r io.Reader) (Ref, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed != nil {
		return Ref{}, f.closed
	}
	return f.blobs.putFrom(r)
}

func (f *File) Blob(ref Ref) ([]byte, error) {
	p, err := f.findBlob(ref)
	if err != nil {
		return nil, err
	}
	return p.readBlob(ref)
}

func (f *File) OpenBlob(ref Ref) (io.ReadCloser, error) {
	p, err := f.findBlob(ref)
	if err != nil {
		return nil, err
	}
	return p.openBlob(ref)
}

// Size is what the run's own lines and blobs take, in bytes.
func (f *File) Size() (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	blobs, err := f.blobs.total()
	return f.at.offset + blobs, err
}

// findBlob finds the run that holds a blob: this one, or one that it was forked from.
func (f *File) findBlob(ref Ref) (place, error) {
	if err := checkHash(ref.Hash); err != nil {
		return place{}, err
	}
	p := f.place
	for range maxForks {
		_, err := p.disk.Stat(p.blobPath(ref.Hash))
		if !errors.Is(err, fs.ErrNotExist) {
			return p, err
		}
		origin, err := p.origin()
		if err != nil || origin == nil {
			break
		}
		if p, err = p.parent(origin.Parent); err != nil {
			return p, err
		}
	}
	return f.place, nil // whose error says what is missing
}
