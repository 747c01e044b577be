package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"belay/harness"
	"belay/internal/config"
	"belay/internal/render"
	"belay/internal/smallfile"
)

// hookFiles are the settings files whose hooks run in a workspace, the least specific first: the person's own, and those of
// a project that is trusted.
func (a *app) hookFiles(workspace string) ([]harness.HookFile, error) {
	var files []harness.HookFile
	own := []string{}
	if home, err := os.UserHomeDir(); err == nil {
		own = append(own, filepath.Join(home, ".claude", "settings.json"))
	}
	user, err := a.userDir()
	if err != nil {
		user = ""
	} else {
		own = append(own, filepath.Join(user, "settings.json"))
	}
	for _, path := range own {
		data, err := readSettings(path)
		if err != nil {
			return nil, usagef("read hooks: %w", err)
		}
		if data != nil {
			files = append(files, harness.HookFile{Path: path, Data: data})
		}
	}
	if workspace == "" {
		workspace = "."
	}
	if _, err := os.Stat(workspace); err != nil {
		return files, nil // the harness says what is wrong with it
	}
	project, err := config.ReadProject(workspace)
	if err != nil {
		return nil, usagef("%w", err)
	}
	trusted := config.Trust{Dir: user}.Check(project)
	for _, name := range append([]string{}, append(config.Others, "settings.json", "settings.local.json")...) {
		data, there := project.Files[name]
		path := filepath.Join(project.Workspace, config.Folder, filepath.FromSlash(name))
		switch {
		case !there:
		case trusted.Trusted:
			files = append(files, harness.HookFile{Path: path, Data: data})
		default:
			fmt.Fprintln(a.err, "belay: "+render.Line(fmt.Sprintf("hooks of %s do not run: the project is not trusted (%s); read them, then say `%s trust`", path, trusted.Why, self())))
		}
	}
	return files, nil
}

// maxSettings is the size in bytes of the largest settings file that is read.
const maxSettings = 1 << 20

// readSettings reads one file; nil is none.
func readSettings(path string) ([]byte, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	data, err := smallfile.Read(root, filepath.Base(path), maxSettings)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, err
}
