// Package smallfile reads files that a stranger may have prepared: regular and bounded ones only, never outside their folder, and without ever waiting for one.
package smallfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

var (
	// ErrNotRegular is the error for a folder, a pipe, a socket or a device with the file's name.
	ErrNotRegular = errors.New("not a regular file")
	// ErrTooLarge is the error for a file with more bytes than the caller wants.
	ErrTooLarge = errors.New("too large")
)

// Read returns the content of name below root, which may have at most limit bytes. Symbolic links are followed as long
// as they stay below root. The error is an *fs.PathError, whose cause may be ErrNotRegular or ErrTooLarge.
func Read(root *os.Root, name string, limit int64) ([]byte, error) {
	f, err := open(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat() // of what was opened, not of what has its name now
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, tooLarge(name, limit)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1)) // the size may be a lie: /proc, or a file that grows
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, tooLarge(name, limit)
	}
	return data, nil
}

// Head returns the first limit bytes of name, or all of it where it is shorter, and otherwise is Read.
func Head(root *os.Root, name string, limit int64) ([]byte, error) {
	f, err := open(root, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

// Is says whether name is a regular file below root, without opening it.
func Is(root *os.Root, name string) bool {
	info, err := root.Stat(name)
	return err == nil && info.Mode().IsRegular()
}

// open opens a regular file. It looks before it opens, since opening alone can do something to a device, and
// again after, since the name may have changed hands.
func open(root *os.Root, name string) (*os.File, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, notRegular(name)
	}
	f, err := root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() {
		err = notRegular(name)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

func notRegular(name string) error {
	return &fs.PathError{Op: "read", Path: name, Err: ErrNotRegular}
}

func tooLarge(name string, limit int64) error {
	return &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("%w: at most %d bytes are read", ErrTooLarge, limit)}
}
