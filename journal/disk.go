package journal

import (
	"io"
	"io/fs"
	"os"

	"github.com/gofrs/flock"
)

// disk is what the file store asks of a file system: a seam at which tests make single operations fail, and lose
// what was never synced.
type disk interface {
	Mkdir(dir string) error
	MkdirAll(dir string) error
	OpenFile(path string, flag int) (handle, error)
	Stat(path string) (fs.FileInfo, error)
	Rename(from, to string) error
	Remove(path string) error
	RemoveAll(dir string) error
	SyncDir(dir string) error // makes the entries of a directory durable
	// Lock takes a lock that dies with the process. It reports false where another process holds it.
	Lock(path string) (unlock func() error, ok bool, err error)
}

// handle is an open file.
type handle interface {
	io.Reader
	io.ReaderAt
	io.Writer
	io.WriterAt
	io.Closer
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
	Sync() error
}

// osDisk is the real one. Everything it makes belongs to the person alone.
type osDisk struct{}

func (osDisk) Mkdir(dir string) error                { return os.Mkdir(dir, 0o700) }
func (osDisk) MkdirAll(dir string) error             { return os.MkdirAll(dir, 0o700) }
func (osDisk) Stat(path string) (fs.FileInfo, error) { return os.Stat(path) }
func (osDisk) Rename(from, to string) error          { return os.Rename(from, to) }
func (osDisk) Remove(path string) error              { return os.Remove(path) }
func (osDisk) RemoveAll(dir string) error            { return os.RemoveAll(dir) }
func (osDisk) SyncDir(dir string) error              { return syncDir(dir) }

func (osDisk) OpenFile(path string, flag int) (handle, error) {
	file, err := os.OpenFile(path, flag, 0o600)
	if err != nil {
		return nil, err // not a nil *os.File in an interface
	}
	return file, nil
}

func (osDisk) Lock(path string) (func() error, bool, error) {
	lock := flock.New(path, flock.SetPermissions(0o600))
	ok, err := lock.TryLock()
	if err != nil || !ok {
		lock.Close()
		return nil, false, err
	}
	return lock.Close, true, nil
}

// readAll reads a small file whole.
func readAll(d disk, path string) ([]byte, error) {
	file, err := d.OpenFile(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(file)
}

// replace writes a sidecar under a temporary name and renames it. It is not synced: what it says can be found out
// again.
func replace(d disk, path string, content []byte) error {
	tmp := path + ".new"
	file, err := d.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = d.Rename(tmp, path)
	}
	if err != nil {
		d.Remove(tmp)
	}
	return err
}
