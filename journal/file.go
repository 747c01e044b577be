package journal

import (
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/oklog/ulid/v2"
)

// Names inside a run's directory.
const (
	journalName = "journal.jsonl"
	blobsName   = "blobs"
	lockName    = "lock"
)

// NewRunID makes a fresh run id: "r_" and a lower-case ULID, which sorts by time.
func NewRunID() string { return "r_" + strings.ToLower(ulid.Make().String()) }

// RunsDir is where the runs of a state directory lie. It holds nothing else.
func RunsDir(home string) string { return filepath.Join(home, "runs") }

// File is a Log in a directory: journal.jsonl, blobs/<aa>/<sha256>, lock.
type File struct {
	dir   string
	lock  *flock.Flock
	mu    sync.Mutex
	file  *os.File
	size  int64
	chain *chain
	fresh map[string]bool // directories of blobs that the next Append syncs
	err   error           // why the log takes no more events
}

// Create starts a run under home with its first entries (session.start and the user's message belong among
// them). The run's directory appears under its name only when they are durable.
func Create(home, runID string, now func() time.Time, entries ...Entry) (*File, []Event, error) {
	fail := func(err error) (*File, []Event, error) {
		return nil, nil, fmt.Errorf("create run %s: %w", runID, err)
	}
	runs, staging := RunsDir(home), filepath.Join(home, "staging")
	for _, dir := range []string{runs, staging} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fail(err)
		}
	}
	born := filepath.Join(staging, runID)
	if err := os.Mkdir(born, 0o700); err != nil {
		return fail(err)
	}
	f, err := openFile(born, runID, now)
	if err != nil {
		return fail(err)
	}
	host, _ := os.Hostname()
	entries = append([]Entry{{Type: TypeWriterOpen, Payload: WriterOpen{Host: host, PID: os.Getpid(), Epoch: 1}}}, entries...)
	events, err := f.Append(entries...)
	if err == nil {
		err = syncDir(born)
	}
	if err == nil {
		f.dir = filepath.Join(runs, runID)
		err = os.Rename(born, f.dir)
	}
	if err == nil {
		err = syncDir(runs)
	}
	if err != nil {
		f.Close()
		os.RemoveAll(born)
		return fail(err)
	}
	return f, events, nil
}

// ErrBusy says that a run has a writer already.
var ErrBusy = errors.New("another process writes this run; `belay show` can read it meanwhile")

// openFile opens or creates the journal in dir for this process alone. The chain stands at its start.
func openFile(dir, runID string, now func() time.Time) (*File, error) {
	lock := flock.New(filepath.Join(dir, lockName), flock.SetPermissions(0o600))
	switch ok, err := lock.TryLock(); {
	case err != nil:
		return nil, fmt.Errorf("lock: %w", err)
	case !ok:
		return nil, ErrBusy
	}
	file, err := os.OpenFile(filepath.Join(dir, journalName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		lock.Unlock()
		return nil, err
	}
	return &File{dir: dir, lock: lock, file: file, chain: newChain(runID, now), fresh: map[string]bool{}}, nil
}

func (f *File) RunID() string { return f.chain.runID }

// Dir is the run's directory.
func (f *File) Dir() string { return f.dir }

func (f *File) Append(entries ...Entry) ([]Event, error) { return f.add(entries, true) }

func (f *File) Write(entries ...Entry) ([]Event, error) { return f.add(entries, false) }

func (f *File) add(entries []Entry, durable bool) ([]Event, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	lines, events, commit, err := f.chain.seal(entries, f.putBlob)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	if err := f.write(lines, durable); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	f.size += int64(len(lines))
	commit()
	return events, nil
}

// write puts the lines at the end of the file: all of them or none.
func (f *File) write(lines []byte, durable bool) error {
	if err := f.syncBlobs(); err != nil {
		return err
	}
	_, err := f.file.WriteAt(lines, f.size)
	if err == nil && durable {
		if err = f.file.Sync(); err != nil {
			// After a failed sync nobody knows what the disk holds: writing on could hide a hole.
			f.err = fmt.Errorf("the journal could not be synced and takes no more events: %w", err)
			return f.err
		}
	}
	if err != nil {
		if cut := f.file.Truncate(f.size); cut != nil {
			f.err = fmt.Errorf("the journal has a torn end and takes no more events: %w", errors.Join(err, cut))
			return f.err
		}
	}
	return err
}

func (f *File) Events() iter.Seq2[Event, error] {
	f.mu.Lock()
	defer f.mu.Unlock()
	return readRun(f.dir, f.size)
}

func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.file == nil {
		return nil
	}
	err := errors.Join(f.file.Sync(), f.file.Close(), f.lock.Close())
	f.file, f.err = nil, ErrClosed
	return err
}

func (f *File) PutBlob(content []byte) (Ref, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.putBlob(content)
}

func (f *File) putBlob(content []byte) (Ref, error) {
	ref := Ref{Hash: hashOf(content), Size: int64(len(content))}
	path := blobPath(f.dir, ref.Hash)
	if info, err := os.Stat(path); err == nil && info.Size() == ref.Size {
		return ref, nil
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Ref{}, fmt.Errorf("store blob: %w", err)
	}
	if err := writeSynced(path, content); err != nil {
		return Ref{}, fmt.Errorf("store blob: %w", err)
	}
	f.fresh[dir] = true
	return ref, nil
}

// syncBlobs makes the names of new blobs durable before a line names them.
func (f *File) syncBlobs() error {
	if len(f.fresh) == 0 {
		return nil
	}
	for dir := range f.fresh {
		if err := syncDir(dir); err != nil {
			return err
		}
	}
	f.fresh = map[string]bool{}
	if err := syncDir(filepath.Join(f.dir, blobsName)); err != nil {
		return err
	}
	return syncDir(f.dir)
}

func (f *File) Blob(ref Ref) ([]byte, error) { return readBlob(f.dir, ref) }

func blobPath(dir, hash string) string { return filepath.Join(dir, blobsName, hash[:2], hash) }

// readBlob reads and checks a blob.
func readBlob(dir string, ref Ref) ([]byte, error) {
	if len(ref.Hash) != 64 || strings.ContainsAny(ref.Hash, `/\.`) {
		return nil, fmt.Errorf("blob %q: not a SHA-256 in hex", ref.Hash)
	}
	content, err := os.ReadFile(blobPath(dir, ref.Hash))
	if err != nil {
		return nil, fmt.Errorf("blob: %w", err)
	}
	if got := hashOf(content); got != ref.Hash {
		return nil, fmt.Errorf("blob %s: its content has the hash %s", ref.Hash, got)
	}
	return content, nil
}

// writeSynced writes a whole file under a temporary name and renames it when its content is durable.
func writeSynced(path string, content []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(content)
	if err == nil {
		err = tmp.Sync()
	}
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
	return err
}
