package harness

import (
	"fmt"
	"os"
	"slices"

	"belay/internal/sandbox"
	"belay/journal"
	"belay/model"
	"belay/policy"
)

// Sandboxes are the values of Config.Sandbox. "" is "on".
var Sandboxes = []string{"on", "full", "best-effort", "off"}

// isolate makes the sandbox that was asked for. Where it cannot be had the run is refused, unless less is good enough.
func (a *agent) isolate(cfg Config, rules *policy.Rules) (*sandbox.Sandbox, error) {
	if cfg.Sandbox != "" && !slices.Contains(Sandboxes, cfg.Sandbox) {
		return nil, &UsageError{fmt.Errorf("there is no sandbox %q: it is on, full, best-effort or off", cfg.Sandbox)}
	}
	reach, err := a.reach(rules, os.Getenv)
	if err != nil {
		return nil, err
	}
	if cfg.Sandbox == "off" && len(cfg.Domains) > 0 {
		return nil, &UsageError{errOffNetwork}
	}
	box, err := sandbox.New(sandbox.Config{Workspace: a.place.Workspace, Home: a.home, Protect: append(slices.Clone(cfg.Protect), protected(rules)...),
		Progress: cfg.Progress, Local: cfg.Local, Network: reach, Off: cfg.Sandbox == "off"})
	if err != nil {
		return nil, fmt.Errorf("prepare the sandbox: %w", err)
	}
	level := box.Level()
	unavailable := func(what string) error {
		return &model.Error{Class: model.Environment, Message: what + ". Run with --sandbox best-effort to have the run read-only, or with --sandbox off to have no sandbox at all"}
	}
	switch {
	case level.Isolation == sandbox.None && cfg.Sandbox != "best-effort":
		return nil, unavailable("there is no sandbox here: " + level.Reason)
	case cfg.Sandbox == "full" && level.Name() != "full":
		return nil, unavailable("the sandbox here is not full but: " + level.Name())
	}
	a.box, a.level = box, level
	return box, nil
}

// losses says, for the journal, what the sandbox of a run lacks.
func (a *agent) losses() []journal.Entry {
	loss := ""
	switch {
	case a.level.Isolation == sandbox.Off:
		loss = "commands run without a sandbox, as --sandbox off says"
	case !a.isolated():
		loss = "this run is read-only: " + a.level.Reason
	default:
		return nil
	}
	return []journal.Entry{{Type: journal.TypeDegraded, Payload: journal.Degraded{Component: "sandbox", Loss: loss}}}
}
