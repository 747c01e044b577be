// Package verifier holds the verifiers that ship: today a shell command that must exit with zero.
package verifier

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"time"

	"belay/tool"
	"belay/verify"
)

// DefaultTimeout bounds one verification.
const DefaultTimeout = 15 * time.Minute

// Command verifies by running a shell line in a fresh process that the agent cannot reach: exit code zero is OK.
type Command struct {
	Line    string // as a person would type it
	Chosen  bool   // by a person; see verify.Verifier
	Env     tool.Env
	Sandbox string        // the isolation that Env gives
	Timeout time.Duration // 0 is DefaultTimeout
}

func (c *Command) Name() string { return c.Line }

func (c *Command) Named() bool { return c.Chosen }

// Verify runs the command on the tree as it is. A command that cannot start, or runs out of time, is not OK.
func (c *Command) Verify(ctx context.Context) (verify.Report, error) {
	report := verify.Report{Verifier: c.Line, Exit: -1, Sandbox: c.Sandbox}
	log := &logged{hash: sha256.New(), kept: tool.NewCapture(tool.CaptureLimit)}
	timeout := c.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	exit, err := c.Env.Exec(ctx, tool.Command{Argv: []string{"sh", "-c", c.Line}, Output: log, Timeout: timeout})
	if ctx.Err() != nil {
		return report, ctx.Err()
	}
	report.Output, report.LogHash, report.Duration = log.kept.String(), hex.EncodeToString(log.hash.Sum(nil)), exit.Duration
	switch {
	case errors.Is(err, tool.ErrDenied):
		report.Summary = "it cannot be run here: " + err.Error()
	case err != nil:
		return report, err
	case exit.TimedOut:
		report.Exit, report.Summary = exit.Code, fmt.Sprintf("no end after %v", timeout)
	case exit.Code != 0:
		report.Exit, report.Summary = exit.Code, fmt.Sprintf("exit %d", exit.Code)
	default:
		report.OK, report.Exit, report.Summary = true, 0, "exit 0"
	}
	return report, nil
}

// logged hashes all of a command's output and keeps what fits.
type logged struct {
	hash hash.Hash
	kept *tool.Capture
}

func (l *logged) Write(p []byte) (int, error) {
	l.hash.Write(p)
	return l.kept.Write(p)
}
