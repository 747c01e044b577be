package eval

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// setupTimeout bounds one line of a task's setup.
const setupTimeout = 10 * time.Minute

// prepare makes the tree that a task's trials begin with, at dir, which is new.
func prepare(ctx context.Context, t *Task, box Box, dir string) error {
	root := filepath.Dir(dir)
	switch w := t.Workspace; {
	case w.Dir != "":
		if err := copyTree(w.Dir, dir, nil); err != nil {
			return fmt.Errorf("copy the workspace: %w", err)
		}
	case w.Git != "":
		if err := fetchCommit(ctx, w.Git, w.Commit, dir); err != nil {
			return err
		}
	default:
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	replace, _ := t.places(dir, root)
	for _, line := range t.Setup {
		if replace != nil {
			line = replace.Replace(line)
		}
		exit, err := box.Run(ctx, Command{Root: dir, Dir: dir, Line: line, Timeout: setupTimeout})
		if err != nil {
			return fmt.Errorf("setup: %w", err)
		}
		if exit.TimedOut || exit.Code != 0 {
			return fmt.Errorf("setup `%s` failed (exit %d; it has no network): %s", line, exit.Code, cut(tail(exit.Output, 600), 300))
		}
	}
	if t.Workspace.Repository {
		return commitAll(ctx, dir)
	}
	return nil
}

// fetchCommit makes a repository that holds one commit and nothing that came after it, nor where it came from.
func fetchCommit(ctx context.Context, from, commit, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, args := range [][]string{
		{"init", "-q"},
		{"-c", "protocol.ext.allow=never", "fetch", "-q", "--depth", "1", "--no-tags", "--", from, commit},
		{"checkout", "-q", "-B", "main", "FETCH_HEAD"},
	} {
		if err := git(ctx, dir, args...); err != nil {
			return fmt.Errorf("fetch %s of %s: %w", commit, from, err)
		}
	}
	return errors.Join(os.Remove(filepath.Join(dir, ".git", "FETCH_HEAD")))
}

// commitAll makes a folder a repository with one commit, which is the same wherever and whenever it is made.
func commitAll(ctx context.Context, dir string) error {
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"commit", "-q", "--no-verify", "--allow-empty", "-m", "Start"}} {
		if err := git(ctx, dir, args...); err != nil {
			return fmt.Errorf("make the workspace a repository: %w", err)
		}
	}
	return nil
}

func git(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0", "-c", "commit.gpgsign=false"}, args...)...)
	cmd.Dir = dir
	const date = "2026-01-01T00:00:00Z"
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "GIT_AUTHOR_NAME=eval", "GIT_AUTHOR_EMAIL=eval@localhost", "GIT_COMMITTER_NAME=eval", "GIT_COMMITTER_EMAIL=eval@localhost",
		"GIT_AUTHOR_DATE="+date, "GIT_COMMITTER_DATE="+date, "GIT_TERMINAL_PROMPT=0", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("git %s: %w: %s", args[0], err, cut(string(out), 300))
	}
	return nil
}
