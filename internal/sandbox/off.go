package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"belay/tool"
)

// unbounded runs a command without any sandbox, as a person has asked for. Its process group ends with it.
func (e *env) unbounded(ctx context.Context, cmd Call) (tool.Exit, error) {
	if len(cmd.Argv) == 0 || cmd.Argv[0] == "" {
		return tool.Exit{}, errors.New("exec: no program was named")
	}
	name := cmd.Argv[0]
	dir := cmd.Dir
	if dir == "" {
		dir = e.dir
	}
	if real, err := resolve(filepath.Clean(dir)); err == nil {
		dir = real
	}
	if !within(dir, e.s.workspace) {
		return tool.Exit{}, denied("exec", name, dir+" is outside the workspace "+e.s.workspace)
	}
	limited := ctx
	if cmd.Timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeoutCause(ctx, cmd.Timeout, errTimeout)
		defer cancel()
	}
	c := exec.Command(name, cmd.Argv[1:]...)
	c.Dir, c.Stdin, c.Stdout, c.Stderr = dir, cmd.Stdin, cmd.Output, cmd.Errors
	if c.Stderr == nil {
		c.Stderr = cmd.Output
	}
	c.Env = append(slices.Clone(e.s.cfg.Environ), cmd.Env...)
	c.WaitDelay = time.Second // what has left the group may hold the output open
	own(c)
	began := time.Now()
	if err := c.Start(); err != nil {
		return tool.Exit{}, fmt.Errorf("exec %s: %w", name, err)
	}
	stop := context.AfterFunc(limited, func() { end(c) })
	werr := c.Wait()
	stop()
	end(c)
	exit := tool.Exit{Code: c.ProcessState.ExitCode(), Duration: time.Since(began), TimedOut: context.Cause(limited) == errTimeout}
	if ws, ok := c.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		exit.Code, exit.Signal = 128+int(ws.Signal()), ws.Signal().String()
	}
	var ended *exec.ExitError
	switch {
	case exit.TimedOut:
		return exit, nil
	case ctx.Err() != nil:
		return exit, ctx.Err()
	case werr != nil && !errors.As(werr, &ended) && !errors.Is(werr, exec.ErrWaitDelay):
		return exit, fmt.Errorf("exec %s: %w", name, werr)
	}
	return exit, nil
}

var errTimeout = errors.New("the command's time is over")
