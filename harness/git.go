package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// git runs git in a workspace for the harness itself. Nothing of the repository's own is started by it: no hook, no monitor,
// no editor, no pager and no prompt. It returns what git prints, without the last newline.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	safe := []string{"-c", "core.hooksPath=" + os.DevNull, "-c", "core.fsmonitor=false", "-c", "core.pager=cat", "-c", "commit.gpgSign=false", "-c", "gc.auto=0", "-C", dir}
	cmd := exec.CommandContext(ctx, "git", append(safe, args...)...)
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true", "GIT_OPTIONAL_LOCKS=0", "GIT_ASKPASS=true", "GIT_NO_LAZY_FETCH=1", "GIT_DIR=", "GIT_WORK_TREE=")
	cmd.Env = withoutEmpty(cmd.Env)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if said := strings.TrimSpace(errs.String()); said != "" {
			err = errors.New(said)
		}
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return strings.TrimRight(out.String(), "\n"), nil
}

// withoutEmpty takes away what is set to nothing: git does not like an empty GIT_DIR.
func withoutEmpty(env []string) []string {
	var kept []string
	drop := map[string]bool{}
	for _, v := range env {
		if name, value, _ := strings.Cut(v, "="); value == "" && strings.HasPrefix(name, "GIT_") {
			drop[name] = true
		}
	}
	for _, v := range env {
		if name, _, _ := strings.Cut(v, "="); !drop[name] {
			kept = append(kept, v)
		}
	}
	return kept
}
