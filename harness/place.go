package harness

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"belay/tool"
)

// DefaultHome is where belay keeps its state: $BELAY_HOME, else $XDG_STATE_HOME/belay, else
// ~/.local/state/belay.
func DefaultHome() (string, error) {
	if dir := os.Getenv("BELAY_HOME"); dir != "" {
		return filepath.Abs(dir)
	}
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "belay"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no place for belay's state (set BELAY_HOME): %w", err)
	}
	return filepath.Join(home, ".local", "state", "belay"), nil
}

// stateDir creates the state directory and resolves its symlinks.
func stateDir(dir string) (string, error) {
	if dir == "" {
		var err error
		if dir, err = DefaultHome(); err != nil {
			return "", err
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("belay's state (set BELAY_HOME to another folder): %w", err)
	}
	return resolve(dir)
}

// findWorkspace resolves the folder to work in and refuses those that no task should own.
func findWorkspace(dir, state string, allowWide bool) (tool.Place, error) {
	if dir == "" {
		dir = "."
	}
	path, err := resolve(dir)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = fmt.Errorf("the workspace %s does not exist; name a folder with --workspace", dir)
		}
		return tool.Place{}, err
	}
	if info, err := os.Stat(path); err != nil {
		return tool.Place{}, err
	} else if !info.IsDir() {
		return tool.Place{}, fmt.Errorf("the workspace %s is a file; name the folder that holds it", dir)
	}
	home, _ := os.UserHomeDir()
	if home != "" {
		if resolved, err := resolve(home); err == nil {
			home = resolved
		}
	}
	if within(home, path) && home != "" && !allowWide || path == filepath.VolumeName(path)+string(filepath.Separator) && !allowWide {
		return tool.Place{}, fmt.Errorf("the workspace %s is / or holds the home directory: an agent should not own all of it. Name a project's folder, or say --allow-wide-workspace", path)
	}
	if within(path, state) {
		return tool.Place{}, fmt.Errorf("the workspace %s lies in belay's own state %s, which no agent may touch", path, state)
	}
	return tool.Place{Workspace: path, Dir: path, Home: home}, nil
}

// within says whether path is dir or lies in it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

func resolve(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// headOf is the commit that the workspace's repository is on, "" where it has none that files alone tell.
func headOf(workspace string) string {
	git := filepath.Join(workspace, ".git")
	head, err := os.ReadFile(filepath.Join(git, "HEAD"))
	if err != nil {
		return ""
	}
	ref, symbolic := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: ")
	if !symbolic {
		return ref
	}
	if commit, err := os.ReadFile(filepath.Join(git, filepath.FromSlash(ref))); err == nil {
		return strings.TrimSpace(string(commit))
	}
	packed, _ := os.ReadFile(filepath.Join(git, "packed-refs"))
	for line := range strings.Lines(string(packed)) {
		if commit, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name == ref {
			return commit
		}
	}
	return ""
}
