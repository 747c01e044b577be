// Package tooltest holds the clauses that every tool has to keep, and an environment over a temporary folder to test tools in.
package tooltest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"belay/effect"
	"belay/tool"
)

// Env is a tool.Env over a folder that runs programs directly, without any isolation: for tests only. What the grant
// does not hold is refused as the real one refuses it, as far as files are concerned.
type Env struct {
	Root  string // the workspace, absolute, symlinks resolved
	Home  string
	Grant effect.Grant
	NoRun bool // no program can be started, as where there is no sandbox
}

// NewEnv makes a workspace with these files, by slash-separated path, and grants all of it.
func NewEnv(t testing.TB, files map[string]string) *Env {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	e := &Env{Root: root, Home: filepath.Join(root, "no-home"), Grant: effect.Grant{Workspace: effect.ReadWrite}}
	for name, content := range files {
		e.Put(t, name, content)
	}
	return e
}

// Put writes a file of the workspace, outside of any tool.
func (e *Env) Put(t testing.TB, name, content string) {
	t.Helper()
	path := filepath.Join(e.Root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Get reads a file of the workspace, outside of any tool.
func (e *Env) Get(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(e.Root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (e *Env) Place() tool.Place {
	return tool.Place{Workspace: e.Root, Dir: e.Root, Home: e.Home}
}

func (e *Env) within(path string, write bool) (string, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(e.Root, path)
	}
	real := tool.ResolveLinks(filepath.Clean(path))
	rel, err := filepath.Rel(e.Root, real)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return "", fmt.Errorf("%s is outside the workspace: %w", path, tool.ErrDenied)
	}
	access := e.Grant.Workspace
	if access == effect.NoAccess || access == "" || write && access == effect.ReadOnly {
		return "", fmt.Errorf("%s: the workspace is granted as %q: %w", path, access, tool.ErrDenied)
	}
	return path, nil
}

func (e *Env) ReadFile(path string) ([]byte, error) {
	path, err := e.within(path, false)
	if err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

func (e *Env) Stat(path string) (tool.FileInfo, error) {
	path, err := e.within(path, false)
	if err != nil {
		return tool.FileInfo{}, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return tool.FileInfo{}, err
	}
	return fileInfo(info), nil
}

func fileInfo(info os.FileInfo) tool.FileInfo {
	return tool.FileInfo{Name: info.Name(), Size: info.Size(), Mode: info.Mode(), ModTime: info.ModTime()}
}

func (e *Env) ReadDir(path string) ([]tool.FileInfo, error) {
	path, err := e.within(path, false)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var infos []tool.FileInfo
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil {
			infos = append(infos, fileInfo(info))
		}
	}
	return infos, nil
}

func (e *Env) WriteFile(path string, data []byte) error {
	path, err := e.within(path, true)
	if err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if info, err := os.Stat(path); err == nil {
		mode = info.Mode().Perm()
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	next := path + ".tooltest"
	if err := os.WriteFile(next, data, mode); err != nil {
		return err
	}
	if err := os.Chmod(next, mode); err != nil {
		return err
	}
	return os.Rename(next, path)
}

func (e *Env) Remove(path string) error {
	path, err := e.within(path, true)
	if err != nil {
		return err
	}
	return os.Remove(path)
}

func (e *Env) Exec(ctx context.Context, c tool.Command) (tool.Exit, error) {
	if e.NoRun {
		return tool.Exit{}, fmt.Errorf("starting %s: %w", c.Argv[0], tool.ErrDenied)
	}
	c, closeFilter := c.Filtered()
	defer closeFilter()
	timeout := ctx
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		timeout, cancel = context.WithTimeout(ctx, c.Timeout)
		defer cancel()
	}
	cmd := exec.CommandContext(timeout, c.Argv[0], c.Argv[1:]...)
	cmd.Dir = c.Dir
	if cmd.Dir == "" {
		cmd.Dir = e.Root
	}
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + e.Home, "LANG=C.UTF-8"}, c.Env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Stdin, c.Output, c.Output
	cmd.WaitDelay = time.Second
	ownGroup(cmd)
	start := time.Now()
	err := cmd.Run()
	out := tool.Exit{Duration: time.Since(start), TimedOut: ctx.Err() == nil && timeout.Err() != nil}
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit):
		out.Code = exit.ExitCode()
		if out.Code < 0 {
			out.Code, out.Signal = 137, "killed"
		}
	case ctx.Err() != nil:
		return out, ctx.Err()
	case errors.Is(err, exec.ErrWaitDelay) || out.TimedOut:
		out.Code, out.Signal = 137, "killed"
	default:
		return out, fmt.Errorf("starting %s: %w", c.Argv[0], err)
	}
	return out, nil
}
