package harness

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"belay/internal/hook"
	"belay/journal"
	"belay/loop"
	"belay/policy"
)

// HookFile is a settings file that may name hooks: commands of the person's own that run at fixed moments.
type HookFile = hook.Source

// Hook is a hook in Go. Like those in files it can tighten what happens, and widen nothing.
type Hook func(context.Context, loop.HookInput) loop.HookOutcome

// hookModes are belay's modes in the words of the protocol.
var hookModes = map[policy.Mode]string{policy.Plan: "plan", policy.Manual: "default", policy.Edit: "acceptEdits", policy.Autonomous: "auto"}

// hooks puts the hooks of files and those in Go together; nil where there are none.
func (a *agent) hooks(cfg Config, runID string, situation policy.Situation) (func(context.Context, loop.HookInput) loop.HookOutcome, error) {
	handlers, notices, err := hook.Load(cfg.HookFiles...)
	if err != nil {
		return nil, &UsageError{err}
	}
	if cfg.Progress != nil {
		for _, n := range notices {
			cfg.Progress(n)
		}
	}
	if len(handlers) == 0 && len(cfg.Hooks) == 0 {
		return nil, nil
	}
	files := func(action *policy.Action) *hook.Hooks {
		return hook.New(hook.Config{Handlers: handlers, Dir: a.place.Workspace, RunID: runID, Mode: hookModes[a.mode], Environ: os.Environ(),
			Journal: filepath.Join(journal.RunsDir(a.home), runID, "journal.jsonl"),
			Applies: func(rule, _ string, _ json.RawMessage) bool {
				r, err := policy.ParseRule("ask", rule, "a hook", a.place.Workspace)
				return err != nil || action == nil || r.About(*action, situation) // what cannot be read is not passed over
			}})
	}
	return func(ctx context.Context, in loop.HookInput) loop.HookOutcome {
		out := files(in.Action).Run(ctx, hook.Moment{Event: hook.Event(in.Moment), Subject: in.Subject, Tool: in.Tool, Args: in.Args, Input: in.More})
		joined := loop.HookOutcome{Deny: out.Deny, Ask: out.Ask, Reason: a.secrets.Text(out.Reason), Failed: out.Failed, Args: out.Args, Halt: out.Halt, HaltWhy: a.secrets.Text(out.HaltWhy), Ran: out.Ran}
		for _, text := range out.Context {
			joined.Context = append(joined.Context, a.secrets.Text(text))
		}
		for i := range joined.Ran {
			joined.Ran[i].Rewrote = out.Args != nil && in.Moment == loop.BeforeCall
		}
		if cfg.Progress != nil {
			for _, text := range out.Messages {
				cfg.Progress("hook: " + a.secrets.Text(text))
			}
		}
		for _, own := range cfg.Hooks {
			joined = tighter(joined, own(ctx, in))
		}
		return joined
	}, nil
}

// tighter joins what two hooks say: deny before ask before nothing.
func tighter(a, b loop.HookOutcome) loop.HookOutcome {
	switch {
	case b.Deny && !a.Deny:
		a.Deny, a.Reason, a.Failed = true, b.Reason, b.Failed
	case b.Ask && !a.Deny && !a.Ask:
		a.Ask, a.Reason = true, b.Reason
	}
	if b.Args != nil {
		a.Args = b.Args
	}
	if b.Halt && !a.Halt {
		a.Halt, a.HaltWhy = true, b.HaltWhy
	}
	a.Context, a.Ran = append(a.Context, b.Context...), append(a.Ran, b.Ran...)
	return a
}
