package cli

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"belay/harness"
	"belay/internal/features"
	"belay/internal/render"
	"belay/loop"
	"belay/message"
)

func (a *app) loopCommand() *cobra.Command {
	var f runFlags
	var from string
	var sessions, tries int
	var usd float64
	var total time.Duration
	cmd := &cobra.Command{
		Use:   `loop [FEATURES]`,
		Short: "Work through a list of features, a session with an empty context for each",
		Long: `Work through a list of features (features.json or .yaml: id, title, verify, priority, status, notes), one after the other: the lowest priority
number first. Each session begins with an empty context, the progress so far and the last commits, works on one feature within its own bounds, and
is proved by the feature's verify command. What is proved is committed on a branch of the loop, with the run in a trailer; everything else is taken
back, but for files that somebody else changed meanwhile. A feature that fails twice is set aside and reported. The list's bootstrap command
must pass before each session.

State, progress.md, commits and branches are the harness's: no session changes them. The same command goes on after a bound, Ctrl-C or a crash.

--from makes the list first, from one big task.

Ends with 0 when all features are done and proved, 4 when some were set aside, 5 at a bound, 7 when the environment is broken.`,
		Annotations: ofRun,
		Example: `  belay loop
  belay loop features.yaml --max-sessions 10 --total-usd 20
  belay loop --from "port the parser to the new grammar" --model anthropic:NAME
  belay loop features.json --json | jq '.sessions[] | {feature, exit, commit}'`,
		Args: between(0, 1, "at most one file of features"),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := a.configure(&f, cmd.Flags().Changed)
			if err != nil {
				return err
			}
			given := cmd.Flags().Changed
			switch {
			case given("max-sessions") && sessions < 1:
				return usagef("--max-sessions must be above 0")
			case given("total-usd") && !(usd > 0 && usd <= 1e9):
				return usagef("--total-usd must be above 0 and at most a billion")
			case given("total-time") && total < time.Second:
				return usagef("--total-time must be 1s or more")
			case tries < 1 || tries > 100:
				return usagef("--tries must be from 1 to 100")
			case given("from") && from == "":
				return usagef("--from needs the task")
			}
			out := harness.Outer{Config: cfg, From: from != "", Sessions: sessions, Money: message.USD(usd), Time: total, Tries: tries}
			out.Version, out.Rules = version(), a.rules
			if out.Features, err = a.featuresFile(cfg.Workspace, args, from != ""); err != nil {
				return err
			}
			if from != "" {
				if out.Task, err = a.task(from); err != nil {
					return err
				}
			}
			ctx, _, stop := interruptible(cmd.Context(), func(text string) { fmt.Fprintln(a.err, text) })
			defer stop()
			if !f.json {
				out.Say = func(line string) {
					_ = a.lines(a.screen().Dim(time.Now().Format("15:04:05")) + "  " + render.Line(line))
				}
			}
			result, err := harness.RunOuter(ctx, out)
			if err != nil {
				return err
			}
			if f.json {
				return ended(harness.Result{Outcome: outcomeOf(result)}, a.json(result))
			}
			return ended(harness.Result{Outcome: outcomeOf(result)}, a.lines(a.outerLines(result)...))
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&from, "from", "", "make the list first from one big `task`, - or @file")
	flags.IntVar(&sessions, "max-sessions", 0, "stop after `N` sessions in all")
	flags.Float64Var(&usd, "total-usd", 0, "stop after `X` US dollars in all")
	flags.DurationVar(&total, "total-time", 0, "stop after a `duration` of work in all")
	flags.IntVar(&tries, "tries", 2, "set a feature aside after it failed `N` times")
	flags.StringVar(&f.cfg.Model, "model", "", "the `model` of the sessions")
	flags.StringVar(&f.cfg.Effort, "effort", "", "how much the model is to think")
	registerRoles(flags, &f.cfg.Roles)
	f.register(flags)
	a.completeFlags(cmd)
	return cmd
}

// featuresFile is the list to work through, relative to the workspace.
func (a *app) featuresFile(workspace string, args []string, making bool) (string, error) {
	if workspace == "" {
		workspace = "."
	}
	if len(args) == 1 {
		name := args[0]
		if filepath.IsAbs(name) {
			root, err := filepath.Abs(workspace)
			if err != nil {
				return "", err
			}
			if name, err = filepath.Rel(root, name); err != nil {
				return "", usagef("%w", err)
			}
		}
		if !filepath.IsLocal(name) {
			return "", usagef("%s lies outside of the workspace: its state is committed with the work", args[0])
		}
		return name, nil
	}
	for _, name := range []string{"features.json", "features.yaml", "features.yml"} {
		if data, err := readSettings(filepath.Join(workspace, name)); err == nil && data != nil {
			return name, nil
		}
	}
	if making {
		return "features.yaml", nil
	}
	return "", usagef("there is no features.json or features.yaml here; write one, or let it be made: %s loop --from \"the task\"", self())
}

func (a *app) outerLines(r harness.OuterResult) []string {
	s := a.screen()
	marks := map[features.Status]string{features.Done: s.Good("✓"), features.Aside: s.Bad("✗"), features.Open: s.Dim("○")}
	lines := []string{""}
	for _, f := range r.Features {
		lines = append(lines, "  "+marks[f.Status]+" "+render.Line(f.ID)+"  "+render.Line(f.Title))
	}
	word := s.Alarm(render.Line(r.Reason))
	if r.Exit == 0 {
		word = s.Good(render.Line(r.Reason))
	}
	return append(lines, "", word, s.Dim(fmt.Sprintf("%d sessions · %s · branch %s · exit %d", len(r.Steps), r.Cost, r.Branch, r.Exit)),
		s.Dim("run "+r.RunID+" · "+self()+" show "+r.RunID))
}

func outcomeOf(r harness.OuterResult) loop.Outcome {
	return loop.Outcome{Exit: r.Exit, Reason: r.Reason}
}
