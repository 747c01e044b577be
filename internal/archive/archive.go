// Package archive packs a folder into one compressed file and takes it out again.
package archive

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Ext is how the files' names end.
const Ext = ".tar.zst"

// Pack writes the folder dir, its regular files and folders under its own name, to a new file. The file appears under
// its name only when it is whole and durable.
func Pack(dir, file string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("archive %s: %w", dir, err)
		}
	}()
	if _, err := os.Lstat(file); err == nil {
		return fmt.Errorf("%s is there already", file)
	}
	out, err := os.OpenFile(file+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	compressed, err := zstd.NewWriter(out)
	if err != nil {
		return err
	}
	t := tar.NewWriter(compressed)
	if err := add(t, dir); err != nil {
		return err
	}
	if err := errors.Join(t.Close(), compressed.Close(), out.Sync()); err != nil {
		return err
	}
	if err := os.Rename(out.Name(), file); err != nil {
		return err
	}
	return syncDir(filepath.Dir(file))
}

func add(t *tar.Writer, dir string) error {
	top := filepath.Base(dir)
	return filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() && !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		header, err := tar.FileInfoHeader(info, "")
		if err != nil {
			return err
		}
		header.Name = path.Join(top, filepath.ToSlash(rel))
		header.Uname, header.Gname = "", ""
		if err := t.WriteHeader(header); err != nil || d.IsDir() {
			return err
		}
		in, err := os.Open(name)
		if err != nil {
			return err
		}
		defer in.Close()
		_, err = io.CopyN(t, in, info.Size())
		return err
	})
}

// Unpack takes the folder called top out of a file, to the folder dir, which must not exist. Anything else in the file
// is an error. Nothing is left of a half unpacked folder.
func Unpack(file, top, dir string) (err error) {
	defer func() {
		if err != nil {
			os.RemoveAll(dir)
			err = fmt.Errorf("unpack %s: %w", file, err)
		}
	}()
	in, err := os.Open(file)
	if err != nil {
		return err
	}
	defer in.Close()
	plain, err := zstd.NewReader(in, zstd.WithDecoderMaxMemory(256<<20))
	if err != nil {
		return err
	}
	defer plain.Close()
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	room, err := os.OpenRoot(dir) // no name in the file leads out of it
	if err != nil {
		return err
	}
	defer room.Close()
	found := false
	for t := tar.NewReader(plain); ; found = true {
		header, err := t.Next()
		if errors.Is(err, io.EOF) && !found {
			return errors.New("it is empty")
		}
		if errors.Is(err, io.EOF) {
			return syncTree(dir)
		}
		if err != nil {
			return err
		}
		name, inside := strings.CutPrefix(path.Clean(header.Name), top)
		if name = strings.TrimPrefix(name, "/"); !inside {
			return fmt.Errorf("it holds %q, which is not below %s", header.Name, top)
		}
		switch {
		case name == "" && header.Typeflag == tar.TypeDir:
		case header.Typeflag == tar.TypeDir:
			err = room.Mkdir(filepath.FromSlash(name), 0o700)
		case header.Typeflag == tar.TypeReg:
			err = write(room, filepath.FromSlash(name), t)
		default:
			err = fmt.Errorf("it holds %q, which is no file and no folder", header.Name)
		}
		if err != nil {
			return err
		}
	}
}

func write(room *os.Root, name string, content io.Reader) error {
	out, err := room.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, content)
	if err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// syncTree makes the names of all files below dir durable, and its own.
func syncTree(dir string) error {
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = syncDir(name)
		}
		return err
	})
	if err != nil {
		return err
	}
	return syncDir(filepath.Dir(dir))
}
