package journal

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"belay/internal/failpoint"
)

func (p place) blobPath(hash string) string { return filepath.Join(p.dir, blobsName, hash[:2], hash) }

func checkHash(hash string) error {
	if len(hash) != 64 || strings.Trim(hash, "0123456789abcdef") != "" {
		return fmt.Errorf("blob %q: not a SHA-256 in hex", hash)
	}
	return nil
}

// readBlob reads and checks a blob.
func (p place) readBlob(ref Ref) ([]byte, error) {
	in, err := p.openBlob(ref)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	var content bytes.Buffer
	if 0 < ref.Size && ref.Size < 64<<20 {
		content.Grow(int(ref.Size) + bytes.MinRead) // only a hint: the size is what somebody wrote
	}
	if _, err := content.ReadFrom(in); err != nil {
		return nil, err
	}
	return content.Bytes(), nil
}

// checkBlob reads a blob to its end and throws it away.
func (p place) checkBlob(ref Ref) error {
	in, err := p.openBlob(ref)
	if err != nil {
		return err
	}
	defer in.Close()
	size, err := io.Copy(io.Discard, in)
	if err == nil && size != ref.Size {
		err = fmt.Errorf("blob %s has %d bytes, the line says %d", ref.Hash, size, ref.Size)
	}
	return err
}

func (p place) openBlob(ref Ref) (io.ReadCloser, error) {
	if err := checkHash(ref.Hash); err != nil {
		return nil, err
	}
	file, err := p.disk.OpenFile(p.blobPath(ref.Hash), os.O_RDONLY)
	if err != nil {
		return nil, fmt.Errorf("blob: %w", err)
	}
	return &checkedBlob{file, sha256.New(), ref.Hash}, nil
}

// checkedBlob fails at its end where the content is not what its name says.
type checkedBlob struct {
	file handle
	hash hash.Hash
	want string
}

func (b *checkedBlob) Read(buf []byte) (int, error) {
	n, err := b.file.Read(buf)
	b.hash.Write(buf[:n])
	if errors.Is(err, io.EOF) {
		if got := hex.EncodeToString(b.hash.Sum(nil)); got != b.want {
			return n, fmt.Errorf("blob %s: its content has the hash %s", b.want, got)
		}
	}
	return n, err
}

func (b *checkedBlob) Close() error { return b.file.Close() }

// blobs puts blobs into a run's directory. Their content is durable at once, their names with sync.
type blobs struct {
	place
	count int             // of temporary files
	fresh map[string]bool // paths whose directories the next sync makes durable
	again bool            // a sync failed: see touch
	size  int64           // of all blobs in bytes, once sized
	sized bool
}

// total is how many bytes all blobs of the run take. The first time it looks at every one; from then on it counts.
func (b *blobs) total() (int64, error) {
	if b.sized {
		return b.size, nil
	}
	var size int64
	err := filepath.WalkDir(filepath.Join(b.dir, blobsName), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, fmt.Errorf("size of the blobs: %w", err)
	}
	b.size, b.sized = size, true
	return size, nil
}

func (b *blobs) put(content []byte) (Ref, error) {
	ref := Ref{Hash: hashOf(content), Size: int64(len(content))}
	if b.has(ref) {
		return ref, nil
	}
	return b.putFrom(bytes.NewReader(content))
}

// has says whether a blob is there and sound. A name that an earlier process left may not be durable yet.
func (b *blobs) has(ref Ref) bool {
	path := b.blobPath(ref.Hash)
	if _, err := b.disk.Stat(path); err != nil || b.checkBlob(ref) != nil {
		return false
	}
	b.fresh[path] = true
	return true
}

func (b *blobs) putFrom(r io.Reader) (Ref, error) {
	fail := func(err error) (Ref, error) { return Ref{}, fmt.Errorf("store blob: %w", err) }
	top := filepath.Join(b.dir, blobsName)
	if err := b.disk.MkdirAll(top); err != nil {
		return fail(err)
	}
	b.count++
	tmp := filepath.Join(top, fmt.Sprintf(".new-%d-%d", os.Getpid(), b.count))
	file, err := b.disk.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return fail(err)
	}
	digest := sha256.New()
	size, err := io.Copy(io.MultiWriter(file, digest), r)
	if err == nil {
		err = file.Sync()
	}
	err = errors.Join(err, file.Close())
	ref := Ref{Hash: hex.EncodeToString(digest.Sum(nil)), Size: size}
	path := b.blobPath(ref.Hash)
	if err == nil {
		err = b.disk.MkdirAll(filepath.Dir(path))
	}
	failpoint.Hit("blob.before-rename")
	if err == nil {
		err = b.disk.Rename(tmp, path)
	}
	failpoint.Hit("blob.after-rename")
	if err != nil {
		b.disk.Remove(tmp)
		return fail(err)
	}
	b.fresh[path] = true
	b.size += size // one that was there already is counted twice until the next look: never too little
	return ref, nil
}

// sync makes the names of new blobs durable before a line names them.
func (b *blobs) sync() (err error) {
	if len(b.fresh) == 0 {
		return nil
	}
	defer func() { b.again = err != nil }()
	dirs := map[string]bool{b.dir: true, filepath.Join(b.dir, blobsName): true}
	for path := range b.fresh {
		dirs[filepath.Dir(path)] = true
	}
	for dir := range dirs {
		if b.again {
			if err := touch(b.disk, dir); err != nil {
				return err
			}
		}
		if err := b.disk.SyncDir(dir); err != nil {
			return err
		}
	}
	failpoint.Hit("blob.after-sync")
	clear(b.fresh)
	return nil
}

// touch changes a directory. After a failed sync the system holds what it could not write for clean, and the next
// sync would succeed without writing it.
func touch(d disk, dir string) error {
	path := filepath.Join(dir, ".touch")
	file, err := d.OpenFile(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), d.Remove(path))
}
