package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"belay/effect"
	"belay/eval"
	"belay/internal/sandbox"
	"belay/tool"
)

// evalBox runs graders and setups in belay's own sandbox, with what a verifier gets: no network, and no cache that an agent could have
// written.
type evalBox struct{ home string }

func (b evalBox) Run(ctx context.Context, c eval.Command) (eval.Exit, error) {
	box, err := sandbox.New(sandbox.Config{Workspace: c.Root, Home: b.home})
	if err != nil {
		return eval.Exit{}, err
	}
	defer box.Close()
	if level := box.Level(); level.Isolation == sandbox.None {
		return eval.Exit{}, errors.New("graders and setups need a sandbox: " + level.Reason)
	}
	out := &lastBytes{max: 256 << 10}
	exit, err := box.VerifierEnv(effect.Grant{Workspace: effect.ReadWrite}, c.Dir).Exec(ctx, tool.Command{
		Argv: []string{"sh", "-c", c.Line}, Dir: c.Dir, Env: c.Env, Output: out, Timeout: c.Timeout,
	})
	return eval.Exit{Code: exit.Code, Signal: exit.Signal, TimedOut: exit.TimedOut, Output: out.String()}, err
}

// lastBytes keeps the end of what is written.
type lastBytes struct {
	mu   sync.Mutex
	max  int
	kept bytes.Buffer
}

func (l *lastBytes) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept.Write(p)
	if over := l.kept.Len() - l.max; over > l.max {
		l.kept.Next(over)
	}
	return len(p), nil
}

func (l *lastBytes) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.kept.Bytes()
	return strings.ToValidUTF8(string(b[max(0, len(b)-l.max):]), "\uFFFD")
}

// freeMemory is what the kernel says is available, in bytes.
func freeMemory() (int64, bool) {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "MemAvailable:" {
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			return kib << 10, err == nil
		}
	}
	return 0, false
}

// evalSandboxLevel is what graders get, for the record.
func evalSandboxLevel(ctx context.Context) (string, error) {
	level := sandbox.Probe(ctx)
	if level.Isolation == sandbox.None {
		return "", fmt.Errorf("graders need a sandbox, and there is none: %s", level.Reason)
	}
	return string(level.Isolation), nil
}

// untilKill is how much longer than its own bound an agent may take before it is killed.
const untilKill = 30 * time.Second
