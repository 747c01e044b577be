package config

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"

	"belay/internal/smallfile"
)

// Folder is where a project keeps its files for belay.
const Folder = ".belay"

// Others are files outside of Folder that say what is run: other agents' settings may name hooks.
var Others = []string{"../.claude/settings.json", "../.claude/settings.local.json"}

// What a project's folder may hold to be trusted as a whole.
const (
	maxProjectFiles = 1000
	maxProjectBytes = 4 << 20
)

// ProjectFiles are a project's own files for belay, read once: what is trusted is what is used.
type ProjectFiles struct {
	Workspace string            // absolute, symlinks resolved
	Files     map[string][]byte // by path below .belay, with slashes; those of Others begin with ../
	Odd       string            // why these files cannot be trusted, "" where they can
}

// ReadProject reads all files in the .belay of a workspace. One that is no ordinary file, or too large, makes the
// project Odd; only a configuration that cannot be read is an error.
func ReadProject(workspace string) (ProjectFiles, error) {
	p := ProjectFiles{Files: map[string][]byte{}}
	abs, err := filepath.Abs(workspace)
	if err == nil {
		p.Workspace, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return p, fmt.Errorf("find the project: %w", err)
	}
	if info, err := os.Stat(p.Workspace); err != nil || !info.IsDir() {
		return p, nil // it is no project; who works in it says so
	}
	if err := p.readOthers(); err != nil {
		return p, err
	}
	dir := filepath.Join(p.Workspace, Folder)
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err != nil {
		return p, fmt.Errorf("read the project's configuration: %w", err)
	}
	if !info.IsDir() { // a link could lead to files that somebody trusts for another project
		return p, fmt.Errorf("read the project's configuration: %s must be a folder, not a %s; remove it", dir, kindOf(info.Mode()))
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return p, fmt.Errorf("read the project's configuration: %w", err)
	}
	defer root.Close()
	if err := p.readConfig(root, dir); err != nil {
		return p, err
	}
	if odd := p.readAll(root); odd != "" {
		p.Odd = odd
	}
	return p, nil
}

// readOthers reads the files of Others that are there. One that is no ordinary file makes the project Odd.
func (p *ProjectFiles) readOthers() error {
	root, err := os.OpenRoot(p.Workspace)
	if err != nil {
		return fmt.Errorf("find the project: %w", err)
	}
	defer root.Close()
	for _, name := range Others {
		file := path.Join(Folder, name)
		info, err := root.Lstat(filepath.FromSlash(file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var data []byte
		switch {
		case err == nil && !info.Mode().IsRegular():
			err = fmt.Errorf("it is a %s, whose content may change unseen", kindOf(info.Mode()))
		case err == nil:
			data, err = smallfile.Read(root, filepath.FromSlash(file), maxFile)
		}
		if err != nil {
			p.Odd = fmt.Sprintf("its %s cannot be trusted: %v", file, cause(err))
			continue
		}
		p.Files[name] = data
	}
	return nil
}

// readConfig reads the one file that must be readable where it exists.
func (p *ProjectFiles) readConfig(root *os.Root, dir string) error {
	info, err := root.Lstat(FileName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		err = errors.New("it is a symbolic link; put the file itself there")
	}
	var data []byte
	if err == nil {
		data, err = smallfile.Read(root, FileName, maxFile)
	}
	if err != nil {
		return fmt.Errorf("read the project's configuration %s: %w", filepath.Join(dir, FileName), cause(err))
	}
	p.Files[FileName] = data
	return nil
}

// readAll reads the other files and says what stands against trusting them.
func (p *ProjectFiles) readAll(root *os.Root) (odd string) {
	files, size := 0, len(p.Files[FileName])
	err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if files++; files > maxProjectFiles {
				return fmt.Errorf("it holds more than %d files", maxProjectFiles)
			}
			return nil
		}
		if name == FileName || leftover(d.Name()) {
			return nil
		}
		if d.Type() != 0 {
			return fmt.Errorf("%q in it is a %s, whose content may change unseen", name, kindOf(d.Type()))
		}
		if files++; files > maxProjectFiles {
			return fmt.Errorf("it holds more than %d files", maxProjectFiles)
		}
		data, err := smallfile.Read(root, name, int64(maxProjectBytes-size))
		if errors.Is(err, smallfile.ErrTooLarge) {
			return fmt.Errorf("it holds more than %d bytes", maxProjectBytes)
		}
		if err != nil {
			return err
		}
		size += len(data)
		p.Files[name] = data
		return nil
	})
	if err != nil {
		return fmt.Sprintf("its %s cannot be trusted: %v", Folder, err)
	}
	return ""
}

// leftover says that a file is an editor's or a desktop's: belay never reads it.
func leftover(name string) bool {
	if name == ".DS_Store" || name == "Thumbs.db" {
		return true
	}
	for _, pattern := range []string{"*~", ".*.swp"} {
		if ok, _ := path.Match(pattern, name); ok {
			return true
		}
	}
	return false
}

func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeSymlink != 0:
		return "symbolic link"
	case mode.IsDir():
		return "folder"
	case mode.IsRegular():
		return "file"
	case mode&fs.ModeNamedPipe != 0:
		return "pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	}
	return "device"
}

// Sums are the SHA-256 of each file, in hex, by its path below .belay.
func (p ProjectFiles) Sums() map[string]string {
	sums := make(map[string]string, len(p.Files))
	for name, data := range p.Files {
		sum := sha256.Sum256(data)
		sums[name] = hex.EncodeToString(sum[:])
	}
	return sums
}

// Hash is the SHA-256, in hex, over the names and sums of all files.
func (p ProjectFiles) Hash() string { return hashOf(p.Sums()) }

// hashOf hashes lines of "SUM NAME NUL", sorted by name. A name cannot hold a NUL.
func hashOf(sums map[string]string) string {
	var all bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		fmt.Fprintf(&all, "%s %s\x00", sums[name], name)
	}
	sum := sha256.Sum256(all.Bytes())
	return hex.EncodeToString(sum[:])
}
