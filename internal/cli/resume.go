package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"belay/harness"
	"belay/internal/config"
	"belay/journal"
)

// resumeFlags are what may be said anew when a run goes on.
type resumeFlags struct {
	model   string
	roles   harness.Roles
	onAsk   onAsk
	approve approval
	verify  []string
	other   bool
	fresh   bool
	boundFlags
	policyFlag
	outputFlags
}

func (a *app) resumeCommand() *cobra.Command {
	var f resumeFlags
	var effort string
	cmd := &cobra.Command{
		Use:   `resume RUN ["message"|-|@file]`,
		Short: "Go on with a run that stands still",
		Long: `Go on with a run that was paused, interrupted or escalated, where it stopped and in the workspace it had. What you
do not say is as it was: model, mode, tools, checks and bounds. A message is told to the model first.

Bounds are totals of the whole run, not of what is left of it: a run that was paused at 40 turns goes on with
--max-turns 80, and pauses again at once without. A run that has finished goes on only with a message.`,
		Annotations: ofRun,
		Example: `  belay resume last
  belay resume r_01k5 --max-turns 80 --budget-usd 6
  belay resume last "use the staging database, not production"
  belay resume last --fresh
  belay resume last @answer.md --verify "go test ./..." --json`,
		Args:              between(1, 2, "one run (its id, a unique beginning of it, or `last`) and perhaps a message in quotes"),
		ValidArgsFunction: a.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := f.config(cmd.Flags().Changed)
			if err != nil {
				return err
			}
			if len(args) == 2 {
				if cfg.Task, err = a.task(args[1]); err != nil {
					return err
				}
			}
			runID, dir, err := a.find(args[0])
			if err == nil {
				err = readable(dir)
			}
			if err != nil {
				return err
			}
			// No journal holds which paths are protected and where keys lie: these are as they are now.
			s, _, err := a.settings(summarize(dir).Workspace, config.Settings{})
			if err != nil {
				return err
			}
			cfg.Notify.Line = s.Notify
			cfg.Protect, cfg.KeyFiles, cfg.Effort, cfg.Checks, cfg.Hidden = s.Protect, s.KeyFiles, effort, s.Checks, s.Hidden
			if cfg.Known, err = a.known(); err != nil {
				return err
			}
			if cfg.HookFiles, err = a.hookFiles(summarize(dir).Workspace); err != nil {
				return err
			}
			return a.perform(cmd.Context(), cfg, f.outputFlags, func(ctx context.Context, cfg harness.Config) (harness.Result, error) {
				result, err := a.resume(ctx, runID, cfg)
				return result, damaged(err, runID)
			})
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	f.boundFlags.register(flags, journal.Bounds{})
	flags.StringVar(&f.model, "model", "", "another model from here on")
	flags.StringVar(&effort, "effort", "", "how much the model is to think from here on: "+strings.Join(harness.Efforts, ", "))
	registerRoles(flags, &f.roles)
	registerOnAsk(cmd, &f.onAsk)
	registerApproval(cmd, &f.approve)
	flags.StringArrayVar(&f.verify, "verify", nil, "shell `command` that must pass, instead of those before; may be repeated")
	flags.BoolVar(&f.other, "other-repository", false, "go on although the workspace is not the repository that it was")
	flags.BoolVar(&f.fresh, "fresh", false, "begin an empty context that knows only the repository's map, the state and the handoff")
	f.policyFlag.register(flags, "when the context is made smaller from here on: a `file`, or 200k or 1m")
	f.outputFlags.register(flags)
	a.completeFlags(cmd)
	return cmd
}

func (f *resumeFlags) config(given func(string) bool) (harness.Config, error) {
	cfg := harness.Config{Model: f.model, Roles: f.roles, Verify: f.verify, OtherRepository: f.other}
	if err := f.outputFlags.check(); err != nil {
		return cfg, err
	}
	var err error
	if cfg.Bounds, err = f.bounds(given); err != nil {
		return cfg, err
	}
	cfg.PauseToAsk, cfg.RefuseToAsk = f.onAsk == "pause", f.onAsk == "refuse"
	cfg.ApprovePlan = f.approve == "plan"
	cfg.MoneyMustHold = cfg.Bounds.Money > 0
	cfg.Fresh = f.fresh
	if cfg.ContextPolicy, err = f.policyFlag.read(); err != nil {
		return cfg, err
	}
	return cfg, checkVerify(cfg.Verify)
}
