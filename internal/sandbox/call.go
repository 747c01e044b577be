package sandbox

import (
	"context"
	"errors"
	"io"
	"time"

	"belay/effect"
	"belay/tool"
)

// Call is a command with what only a caller of the sandbox itself can ask for.
type Call struct {
	tool.Command
	Errors io.Writer // stderr, apart from Output; nil sends it to Output too
	Limits Limits    // instead of those of the sandbox, where they are not zero
}

// Limits bound what a whole call uses, all its processes together. Zero is the default of a field.
type Limits struct {
	Memory    int64         // bytes of memory, shared memory and /tmp; default three quarters of the machine's
	Processes int           // processes and threads at a time; default 4096
	CPU       time.Duration // processor time; default no limit
	Disk      int64         // bytes written to disks, and to /tmp; default 16 GiB, and never more than half of what is free
	Files     int64         // files and directories made; default 500,000, and never more than half of what is free
	OpenFiles int           // open files of one process; default 65536
}

// merge gives the fields of l, and those of other where they are zero.
func (l Limits) merge(other Limits) Limits {
	if l.Memory == 0 {
		l.Memory = other.Memory
	}
	if l.Processes == 0 {
		l.Processes = other.Processes
	}
	if l.CPU == 0 {
		l.CPU = other.CPU
	}
	if l.Disk == 0 {
		l.Disk = other.Disk
	}
	if l.Files == 0 {
		l.Files = other.Files
	}
	if l.OpenFiles == 0 {
		l.OpenFiles = other.OpenFiles
	}
	return l
}

// Call runs a command with what the grant holds. Errors are as those of tool.Env's Exec.
func (s *Sandbox) Call(ctx context.Context, grant effect.Grant, call Call) (tool.Exit, error) {
	e := s.env(grant, call.Dir, agentCache)
	if s.level.Isolation == Off {
		return e.unbounded(ctx, call)
	}
	return e.call(ctx, call)
}

func (e *env) Exec(ctx context.Context, cmd tool.Command) (tool.Exit, error) {
	cmd, closeFilter := cmd.Filtered()
	run := e.call
	if e.s.level.Isolation == Off {
		run = e.unbounded
	}
	exit, err := run(ctx, Call{Command: cmd})
	return exit, errors.Join(err, closeFilter())
}
