package permissions

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"belay/internal/smallfile"
)

// managedDir holds the machine's own policy file, which nobody but its owner can write.
const managedDir = "/etc/belay"

// maxFile bounds a policy file in bytes.
const maxFile = 1 << 20

// Sources says where policy files are.
type Sources struct {
	Managed   string // the machine's file; "" takes /etc/belay/permissions.yaml
	UserDir   string // of the user's file; "" is none
	Workspace string // the project
	Project   []byte // the project's file as it was read with the rest of its .belay; nil is none
	Trusted   bool   // the user trusts the project
}

// Load reads the machine's, the user's and the project's file. A mistake in one is an error.
func Load(src Sources) (layers []Layer, err error) {
	if src.Managed == "" {
		src.Managed = filepath.Join(managedDir, FileName)
	}
	paths := []string{src.Managed}
	if src.UserDir != "" {
		paths = append(paths, filepath.Join(src.UserDir, FileName))
	}
	for _, path := range paths {
		data, err := read(path)
		if err != nil {
			return nil, err
		}
		if data == nil {
			continue
		}
		f, err := Parse(path, filepath.Dir(path), data)
		if err != nil {
			return nil, err
		}
		layers = append(layers, Layer{f, true})
	}
	if src.Project != nil {
		f, err := Parse(filepath.Join(src.Workspace, ".belay", FileName), src.Workspace, src.Project)
		if err != nil {
			return nil, err
		}
		layers = append(layers, Layer{f, src.Trusted})
	}
	return layers, nil
}

// ReadFile reads one policy file that a person names.
func ReadFile(path, base string) (File, error) {
	data, err := read(path)
	if err == nil && data == nil {
		err = fmt.Errorf("read the policy: there is no file %s", path)
	}
	if err != nil {
		return File{}, err
	}
	return Parse(path, base, data)
}

// read reads a small file; nil is none.
func read(path string) ([]byte, error) {
	var data []byte
	root, err := os.OpenRoot(filepath.Dir(path))
	if err == nil {
		defer root.Close()
		data, err = smallfile.Read(root, filepath.Base(path), maxFile)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read the policy: %w", err)
	}
	if data == nil {
		data = []byte{}
	}
	return data, nil
}
