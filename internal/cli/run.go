package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"belay/harness"
	"belay/policy"
)

var modes = []policy.Mode{policy.Plan, policy.Manual, policy.Edit, policy.Autonomous}

// runFlags are the flags of a command that starts a run.
type runFlags struct {
	cfg     harness.Config
	mode    string
	tools   []string
	onAsk   onAsk
	approve approval
	fixes   int
	boundFlags
	policyFlag
	outputFlags
}

func (f *runFlags) register(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.cfg.Verify, "verify", nil, "shell `command` that must pass before the task counts as done; may be repeated")
	flags.IntVar(&f.fixes, "fix-attempts", 2, "end with 4 when the work still fails verification after `N` repairs")
	flags.StringVar(&f.cfg.Workspace, "workspace", "", "`folder` to work in (default: the current one)")
	flags.BoolVar(&f.cfg.AllowWide, "allow-wide-workspace", false, "let the workspace be / or your home folder")
	flags.StringVar(&f.mode, "mode", string(policy.Edit), "what may happen without asking: plan, manual, edit or autonomous")
	flags.StringSliceVar(&f.tools, "tools", nil, "the only tools that the model gets, as `A,B`; those that end a run are always there")
	registerIsolation(flags, &f.cfg)
	registerSharing(flags, &f.cfg)
	f.boundFlags.register(flags, harness.DefaultBounds)
	f.policyFlag.register(flags, "when the context is made smaller: a `file`, or 200k or 1m (default: as fits the model)")
	f.outputFlags.register(flags)
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   `run "task"|-|@file`,
		Short: "Work on one task until it is proved, given up or out of bounds",
		Long: `Work on one task in the current folder until it is proved, given up or out of bounds. "-" reads the task from
standard input, "@file" from a file.

What is asked for comes from flags, else from BELAY_… variables and settings files; see belay config show. A bound that
is reached pauses the run; its last line is the command that goes on.`,
		Annotations: ofRun,
		Example: `  belay run "make the tests pass"
  belay run @task.md --model anthropic:NAME --verify "go test ./..." --verify "go vet ./..."
  belay run "what does this package do?" --model openai:NAME@http://127.0.0.1:11434/v1 --tools Read,Grep,Glob
  git diff | belay run - --mode plan --json
  belay run @task.md --model rehearsal:script.yaml --max-turns 10 --stream-json | jq -r .type`,
		Args: exactly(1, `one task in quotes (or - or @file)`),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := a.configure(&f, cmd.Flags().Changed)
			if err != nil {
				return err
			}
			if cfg.Task, err = a.task(args[0]); err != nil {
				return err
			}
			return a.perform(cmd.Context(), cfg, f.outputFlags, a.run)
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVar(&f.cfg.Model, "model", "", "the `model`: anthropic:NAME, openai:NAME, gemini:NAME, openai:NAME@URL or rehearsal:FILE (default: a local server, if one answers)")
	cmd.Flags().StringVar(&f.cfg.Effort, "effort", "", "how much the model is to think: "+strings.Join(harness.Efforts, ", ")+" (default: as the model likes)")
	f.register(cmd.Flags())
	a.completeFlags(cmd)
	registerRoles(cmd.Flags(), &f.cfg.Roles)
	registerOnAsk(cmd, &f.onAsk)
	registerApproval(cmd, &f.approve)
	_ = cmd.RegisterFlagCompletionFunc("effort", cobra.FixedCompletions(harness.Efforts, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// registerRoles adds the flags that name the models of the other parts.
func registerRoles(flags *pflag.FlagSet, r *harness.Roles) {
	flags.StringArrayVar(&r.Fallback, "fallback", nil, "`model` that stands in where the one before it cannot be reached; may be repeated")
	flags.StringVar(&r.Light, "light-model", "", "`model` for summaries and explanations (default: the model itself)")
	flags.StringVar(&r.Judge, "judge-model", "", "`model` for judgements (default: the model itself)")
}

// config is what the flags alone ask for: what was not given stays zero. It refuses what cannot be meant.
func (f *runFlags) config(given func(string) bool) (harness.Config, error) {
	cfg := f.cfg
	if given("mode") {
		cfg.Mode = policy.Mode(strings.ToLower(f.mode))
		if !slices.Contains(modes, cfg.Mode) {
			return cfg, usagef("there is no mode %q: it is plan, manual, edit or autonomous", f.mode)
		}
	}
	if err := f.outputFlags.check(); err != nil {
		return cfg, err
	}
	var err error
	if cfg.Bounds, err = f.bounds(given); err != nil {
		return cfg, err
	}
	cfg.PauseToAsk = f.onAsk == "pause"
	cfg.ApprovePlan = f.approve == "plan"
	if given("fix-attempts") {
		if f.fixes < 0 || f.fixes > 100 {
			return cfg, usagef("--fix-attempts must be from 0 to 100")
		}
		cfg.Refusals = f.fixes + 1
	}
	cfg.MoneyMustHold = cfg.Bounds.Money > 0
	if cfg.ContextPolicy, err = f.policyFlag.read(); err != nil {
		return cfg, err
	}
	for _, name := range f.tools {
		if name = strings.TrimSpace(name); name != "" {
			cfg.Only = append(cfg.Only, name)
		}
	}
	if given("tools") && len(cfg.Only) == 0 {
		return cfg, usagef("--tools names no tool. For example: --tools Read,Grep,Glob")
	}
	return cfg, checkVerify(cfg.Verify)
}

func checkVerify(commands []string) error {
	for _, command := range commands {
		if strings.TrimSpace(command) == "" {
			return usagef("--verify needs a command: an empty one would prove nothing")
		}
	}
	return nil
}
