// Package verifier holds the verifiers that ship: today a shell command that must exit with zero.
package verifier

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"strings"
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
	Kind    verify.Level  // 0 is verify.Deterministic
	// MustCount refuses a pass of which nobody can tell how many tests it executed.
	MustCount bool
	// Over gives an Env of the tree with other files over it; nil cannot.
	Over func(verify.Over) tool.Env
}

func (c *Command) Name() string { return c.Line }

func (c *Command) Level() verify.Level { return cmp.Or(c.Kind, verify.Deterministic) }

// runners are the commands that are known to print what they executed.
var runners = pattern(`\b(go test|pytest|unittest|jest|vitest|node (\S+ )*--test|cargo (\S+ )*test|mocha|ctest|tap)\b`)

func (c *Command) Counts() bool { return c.MustCount || runners().MatchString(c.Line) }

func (c *Command) Named() bool { return c.Chosen }

// Verify runs the command on the tree as it is. A command that cannot start, or runs out of time, is not OK.
func (c *Command) Verify(ctx context.Context) (verify.Report, error) { return c.run(ctx, c.Env) }

// VerifyOver is Verify with other files over the tree.
func (c *Command) VerifyOver(ctx context.Context, over verify.Over) (verify.Report, error) {
	if c.Over == nil {
		return verify.Report{}, errors.ErrUnsupported
	}
	return c.run(ctx, c.Over(over))
}

// environment lets go test say what it executes, keeps Python from using compiled files that the tree brings, and
// colours away.
var environment = []string{"GOFLAGS=-v", "PYTHONPYCACHEPREFIX=/tmp/pycache", "PYTHONDONTWRITEBYTECODE=1", "CARGO_TARGET_DIR=/tmp/target", "NO_COLOR=1", "FORCE_COLOR=0"}

func (c *Command) run(ctx context.Context, env tool.Env) (verify.Report, error) {
	report := verify.Report{Verifier: c.Name(), Exit: -1, Sandbox: c.Sandbox}
	log := &logged{hash: sha256.New(), kept: tool.NewCapture(tool.CaptureLimit)}
	timeout := c.Timeout
	if timeout == 0 {
		timeout = DefaultTimeout
	}
	exit, err := env.Exec(ctx, tool.Command{Argv: []string{"sh", "-c", c.Line}, Env: c.environ(), Output: log, Timeout: timeout})
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
	c.count(&report)
	return report, nil
}

func (c *Command) environ() []string {
	if strings.Contains(c.Line, "go test") {
		return environment
	}
	return environment[1:]
}

// count adds what the output says of tests.
func (c *Command) count(report *verify.Report) {
	r := Read(report.Output)
	report.Runner, report.Tests = r.Runner, r.Tests
	if !report.OK {
		report.Failure = r.Failure
	}
	switch t := r.Tests; {
	case t != nil && r.Runner == "go test" && strings.Contains(c.Line, "go test") && !strings.Contains(report.Output, "\n--- ") && !strings.HasPrefix(report.Output, "--- "):
		report.Tests = &verify.Tests{} // with -v each test is named: none was executed
		fallthrough
	case t != nil:
		report.Summary += fmt.Sprintf(" · %d executed", report.Tests.Run)
		if report.Tests.Failed > 0 {
			report.Summary += fmt.Sprintf(" · %d failed", report.Tests.Failed)
		}
		if report.Tests.Skipped > 0 {
			report.Summary += fmt.Sprintf(" · %d skipped", report.Tests.Skipped)
		}
	case c.MustCount && report.OK:
		report.OK, report.Summary = false, "exit 0, but its output does not say that any test was executed (go test, pytest, unittest, jest, vitest, node --test, cargo test, JUnit XML and TAP are understood)"
	case c.Counts() && report.OK: // the runner's usual last words are missing
		report.Tests = &verify.Tests{}
		report.Summary += " · none executed"
	}
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
