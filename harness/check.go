package harness

import (
	"context"
	"fmt"
	"time"

	"belay/internal/committable"
	"belay/internal/sandbox"
	"belay/internal/snapshot"
	"belay/journal"
	"belay/verify"
)

// Checked is what the verifiers of a workspace say about it as it is.
type Checked struct {
	Workspace string    `json:"workspace"`
	OK        bool      `json:"ok"` // all passed, and there was one
	Tree      string    `json:"tree"`
	GitTree   string    `json:"git_tree,omitempty"`
	At        time.Time `json:"at"`
	Checks    []Check   `json:"checks"`
}

// Check is one verifier's report.
type Check struct {
	verify.Report
	Level      int    `json:"level"`
	LevelName  string `json:"level_name"`
	Named      bool   `json:"named"`
	Flaky      bool   `json:"flaky,omitempty"` // it failed, and passed when it was run once more: that is no pass
	DurationMS int64  `json:"duration_ms"`
}

// VerifyNow runs the verifiers of a workspace as a run would at its end: in a fresh sandbox over a view of the tree that
// is thrown away. Of cfg it takes Workspace, AllowWide, Home, Verify, Verifiers, Checks, Hidden, KeyFiles and Progress.
func VerifyNow(ctx context.Context, cfg Config) (Checked, error) {
	a := &agent{}
	var err error
	if a.home, err = stateDir(cfg.Home); err != nil {
		return Checked{}, &UsageError{err}
	}
	if a.place, err = findWorkspace(cfg.Workspace, a.home, cfg.AllowWide); err != nil {
		return Checked{}, &UsageError{err}
	}
	if a.secrets, err = openSecrets(a.home, journal.NewRunID(), cfg.KeyFiles); err != nil {
		return Checked{}, err
	}
	box, err := sandbox.New(sandbox.Config{Workspace: a.place.Workspace, Home: a.home, Progress: cfg.Progress})
	if err != nil {
		return Checked{}, fmt.Errorf("prepare the sandbox: %w", err)
	}
	defer box.Close()
	a.box, a.level = box, box.Level()
	verifiers, err := a.verifiers(cfg, box)
	if err != nil {
		return Checked{}, &UsageError{err}
	}
	out := Checked{Workspace: a.place.Workspace, OK: len(verifiers) > 0, At: time.Now().UTC().Truncate(time.Second), Checks: []Check{}}
	tree := snapshot.New(a.place.Workspace, a.home)
	if out.Tree, err = tree.Digest(ctx); err != nil {
		return out, err
	}
	if out.GitTree, err = GitTree(ctx, a.place.Workspace, a.home); err != nil {
		return out, err
	}
	for _, v := range verifiers {
		if cfg.Progress != nil {
			cfg.Progress("verifying: " + v.Name())
		}
		report, err := v.Verify(ctx)
		if err != nil {
			return out, fmt.Errorf("verifier %q: %w", v.Name(), err)
		}
		c := Check{Report: report, Level: int(verify.LevelOf(v)), LevelName: verify.LevelOf(v).String(), Named: v.Named()}
		if !report.OK {
			again, err := v.Verify(ctx)
			if err != nil {
				return out, fmt.Errorf("verifier %q: %w", v.Name(), err)
			}
			c.Flaky = again.OK
		}
		if report.OK && report.Tests != nil && report.Tests.Run == 0 {
			c.OK = false
			c.Summary += ": it proves nothing"
		}
		c.DurationMS = report.Duration.Milliseconds()
		out.OK = out.OK && c.OK
		out.Checks = append(out.Checks, c)
	}
	after, err := tree.Digest(ctx)
	if err == nil && after != out.Tree {
		err = fmt.Errorf("the tree changed while it was being verified: what was found is void")
	}
	return out, err
}

// GitTree is the id of the tree that git would commit of a folder, "" where there is no git.
func GitTree(ctx context.Context, workspace, home string) (string, error) {
	tree, err := committable.Of(ctx, workspace, home)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "", nil
	}
	return tree.ID, nil
}
