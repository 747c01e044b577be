package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"belay/eval"
	"belay/harness"
	"belay/internal/config"
	"belay/internal/render"
	"belay/loop"
	"belay/policy"
)

// evalFlags say what is measured, and how.
type evalFlags struct {
	agent, model, mode, effort, judge, out string
	tasks                                  []string
	trials, parallel, retries              int
	keepHome, fresh, noControls, json      bool
	boundFlags
}

func (f *evalFlags) register(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringVar(&f.model, "model", "", "the `model` of the agent; rehearsal:oracle, rehearsal:null and rehearsal:cheat are each task's own scripts")
	flags.StringVar(&f.agent, "agent", "belay", "belay, or the shell `command` of another agent, with {prompt} or {prompt_file} and {workspace}")
	flags.IntVar(&f.trials, "trials", 0, "`N` trials of each task (default: as the task says, else 1)")
	flags.IntVar(&f.parallel, "parallel", 1, "`N` trials at once, while there is memory")
	flags.IntVar(&f.retries, "retries", 2, "run a trial again up to `N` times that failed for another reason than the agent")
	flags.StringVar(&f.out, "out", "", "`folder` for the results (default: one in belay's state for this suite and configuration)")
	flags.BoolVar(&f.fresh, "fresh", false, "begin anew instead of going on")
	flags.StringSliceVar(&f.tasks, "task", nil, "only the tasks `A,B`, by id")
	flags.StringVar(&f.mode, "mode", string(policy.Edit), "what may happen without asking: plan, manual, edit or autonomous")
	flags.StringVar(&f.effort, "effort", "", "how much the model is to think: "+strings.Join(harness.Efforts, ", "))
	flags.StringVar(&f.judge, "judge-model", "", "`model` for graders that are models")
	flags.BoolVar(&f.noControls, "no-controls", false, "trust that the tasks were checked")
	flags.BoolVar(&f.keepHome, "keep-home", false, "let another agent use your own home folder instead of an empty one")
	f.boundFlags.register(flags, harness.DefaultBounds)
	flags.BoolVar(&f.json, "json", false, "print one JSON object at the end")
}

func (a *app) evalRunCommand() *cobra.Command {
	var f evalFlags
	cmd := &cobra.Command{
		Use:   "run SUITE",
		Short: "Run the tasks of a folder in trials, and say how reliable the agent was",
		Long: `Run every task below a folder (or one task's file), each in fresh copies of its workspace, and grade what is left when
the agent's processes are dead. First each task's controls run: its solution must score 1, the untouched workspace 0, and what it
names as cheating 0. A task that fails them is quarantined and does not count.

Each finished trial is one line of an append-only log. The same command again goes on with what is missing, after Ctrl-C and
after a kill. Another configuration has another folder.`,
		Example: `  belay eval run suites/starter --model rehearsal:oracle
  belay eval run suites/starter --model anthropic:NAME --trials 8 --parallel 4
  belay eval run suites/starter --agent 'codex exec --full-auto -C {workspace} {prompt}' --trials 4 --keep-home
  belay eval run suites/starter/fix-add/task.yaml --model openai:NAME --json | jq .pass_hat`,
		Args: exactly(1, "one suite: a folder of tasks, or a task's file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.evalRun(cmd.Context(), args[0], f, cmd.Flags().Changed, false)
		},
	}
	f.register(cmd.Flags())
	a.completeEval(cmd)
	return cmd
}

func (a *app) evalCheckCommand() *cobra.Command {
	var f evalFlags
	cmd := &cobra.Command{
		Use:   "check SUITE",
		Short: "Run only the controls of a suite's tasks",
		Long: `Run each task's controls: its solution must score 1, the untouched workspace 0, and what it names as cheating 0. Exit 4 when
a task fails one: such a task measures nothing.`,
		Example: "  belay eval check suites/starter\n  belay eval check suites/starter/fix-add/task.yaml --json",
		Args:    exactly(1, "one suite: a folder of tasks, or a task's file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.evalRun(cmd.Context(), args[0], f, cmd.Flags().Changed, true)
		},
	}
	cmd.Flags().SortFlags = false
	f.agent, f.fresh, f.mode = "belay", true, string(policy.Edit)
	cmd.Flags().StringVar(&f.out, "out", "", "`folder` for the results (default: a temporary one)")
	cmd.Flags().StringSliceVar(&f.tasks, "task", nil, "only the tasks `A,B`, by id")
	cmd.Flags().IntVar(&f.parallel, "parallel", runtime.NumCPU(), "the controls of `N` tasks at once, while there is memory")
	cmd.Flags().StringVar(&f.judge, "judge-model", "", "`model` for graders that are models")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object at the end")
	a.completeEval(cmd)
	return cmd
}

// completeEval offers values for flags.
func (a *app) completeEval(cmd *cobra.Command) {
	a.completeFlags(cmd)
	_ = cmd.RegisterFlagCompletionFunc("out", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	})
	_ = cmd.RegisterFlagCompletionFunc("judge-model", completeModel)
	for _, name := range []string{"trials", "parallel", "retries", "task", "agent"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
}

func (a *app) evalRun(ctx context.Context, path string, f evalFlags, given func(string) bool, check bool) error {
	suite, err := eval.LoadSuite(path)
	if err != nil {
		return usagef("%w", err)
	}
	if suite, err = f.choose(suite); err != nil {
		return err
	}
	cfg, err := a.evalConfig(ctx, suite, f, given)
	if err != nil {
		return err
	}
	cfg.ControlsOnly = check
	if check && f.out == "" {
		if cfg.Out, err = os.MkdirTemp("", "belay-eval-check-"); err != nil {
			return err
		}
		defer os.RemoveAll(cfg.Out)
	}
	say := &evalProgress{w: a.err, live: render.IsTerminal(a.err)}
	ctx, _, stop := interruptible(ctx, func(line string) { say.line(line) })
	defer stop()
	cfg.Progress = say.tell
	err = eval.RunSuite(ctx, cfg)
	say.clear()
	switch {
	case errors.Is(err, context.Canceled):
		if !check {
			fmt.Fprintln(a.err, "What has finished is kept in "+cfg.Out+"; the same command goes on.")
		}
		return err
	case errors.Is(err, eval.ErrOtherConfig):
		return usagef("%w", err)
	case err != nil:
		return err
	}
	lines, err := eval.ReadLog(cfg.Out)
	if err != nil {
		return err
	}
	results := eval.Collect(lines)
	if check {
		return a.showControls(results, f.json)
	}
	if err := a.showResults(cfg.Out, results, f.json); err != nil {
		return err
	}
	if len(results.Counts()) == 0 {
		return outcome(loop.ExitFailed)
	}
	return nil
}

// choose keeps the tasks that were asked for.
func (f evalFlags) choose(suite *eval.Suite) (*eval.Suite, error) {
	if name, own := ownScript(f.model); own && name != "null" {
		var kept []*eval.Task
		for _, t := range suite.Tasks {
			if t.Rehearsal(name) != "" {
				kept = append(kept, t)
			}
		}
		if len(kept) == 0 {
			return nil, usagef("no task of the suite has a %s.yaml", name)
		}
		suite.Tasks = kept
	}
	if len(f.tasks) == 0 {
		return suite, nil
	}
	var kept []*eval.Task
	for _, id := range f.tasks {
		i := slices.IndexFunc(suite.Tasks, func(t *eval.Task) bool { return t.ID == strings.TrimSpace(id) })
		if i < 0 {
			return nil, usagef("the suite has no task %q", id)
		}
		kept = append(kept, suite.Tasks[i])
	}
	suite.Tasks = kept
	suite.Hash += ":" + strings.Join(f.tasks, ",")
	return suite, nil
}

// evalConfig makes a configuration of flags, and writes down all that could change what is measured.
func (a *app) evalConfig(ctx context.Context, suite *eval.Suite, f evalFlags, given func(string) bool) (eval.Config, error) {
	cfg := eval.Config{Suite: suite, Trials: f.trials, Parallel: f.parallel, Retries: f.retries, NoControls: f.noControls, Memory: freeMemory}
	for _, n := range []struct {
		name string
		v    int
	}{{"trials", f.trials}, {"parallel", f.parallel}, {"retries", f.retries}} {
		if n.v < 0 || given(n.name) && n.v == 0 && n.name != "retries" {
			return cfg, usagef("--%s must be above 0", n.name)
		}
	}
	if !slices.Contains(modes, policy.Mode(f.mode)) {
		return cfg, usagef("there is no mode %q: it is plan, manual, edit or autonomous", f.mode)
	}
	bounds, err := f.bounds(given)
	if err != nil {
		return cfg, err
	}
	cfg.Budget = eval.Budget{Turns: bounds.Turns, Tokens: bounds.Tokens, USD: bounds.Money.Dollars(), Wall: wall(bounds)}
	home, err := a.home()
	if err != nil {
		return cfg, err
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return cfg, err
	}
	cfg.Box = evalBox{home: home}
	level, err := evalSandboxLevel(ctx)
	if err != nil {
		return cfg, err
	}
	if cfg.Judge, err = a.evalJudge(f.judge); err != nil {
		return cfg, err
	}
	fact := func(name, value string) {
		if value != "" {
			cfg.Facts = append(cfg.Facts, eval.Fact{Name: name, Value: value})
		}
	}
	fact("agent", f.agent)
	fact("belay", version())
	fact("sandbox", level)
	fact("system", runtime.GOOS+"/"+runtime.GOARCH)
	self, err := os.Executable()
	if err != nil {
		return cfg, fmt.Errorf("find this program: %w", err)
	}
	cfg.Player = belayAgent{self: self, environ: a.environ}
	if f.agent == "belay" {
		if cfg.Runner, err = a.belayRunner(self, f, given, home, fact); err != nil {
			return cfg, err
		}
	} else {
		if f.model != "" {
			return cfg, usagef("--model is for belay's own agent: name the model in the command of --agent")
		}
		if !strings.Contains(f.agent, "{prompt}") && !strings.Contains(f.agent, "{prompt_file}") {
			return cfg, usagef("--agent needs {prompt} or {prompt_file} in its command, for example --agent 'mycli --dir {workspace} {prompt}'")
		}
		cfg.Runner = otherAgent{self: self, line: f.agent, environ: a.environ, keepHome: f.keepHome}
		fact("keep-home", strconv.FormatBool(f.keepHome))
	}
	fact("max-turns", number0(int64(bounds.Turns)))
	fact("max-tokens", number0(bounds.Tokens))
	if bounds.Money > 0 {
		fact("budget-usd", bounds.Money.String())
	}
	if bounds.WallMS > 0 {
		fact("timeout", shortDuration(wall(bounds)))
	}
	if cfg.Judge != nil {
		fact("judge", cfg.Judge.Name())
	}
	cfg.Out, err = f.folder(home, suite, cfg.Facts)
	return cfg, err
}

func number0(n int64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// folder is where results go: what the same suite and configuration had before, unless it is to begin anew.
func (f evalFlags) folder(home string, suite *eval.Suite, facts []eval.Fact) (string, error) {
	if f.out != "" {
		dir, err := filepath.Abs(f.out)
		if err == nil && f.fresh {
			if _, err := os.Stat(filepath.Join(dir, "results.jsonl")); err == nil {
				return "", usagef("%s holds results already; --fresh needs a new folder", f.out)
			}
		}
		return dir, err
	}
	sum := sha256.Sum256([]byte(suite.Hash + eval.HashFacts(facts)))
	base := filepath.Join(home, "evals", suite.Name+"-"+hex.EncodeToString(sum[:5]))
	dir := base
	for n := 2; ; n++ { // the newest one goes on
		next := base + "-" + strconv.Itoa(n)
		if _, err := os.Stat(next); err != nil {
			if _, err := os.Stat(dir); err == nil && f.fresh {
				dir = next
			}
			return dir, nil
		}
		dir = next
	}
}

// belayRunner is this program, with its own settings.
func (a *app) belayRunner(self string, f evalFlags, given func(string) bool, home string, fact func(name, value string)) (eval.Runner, error) {
	sum, err := fileSum(self)
	if err != nil {
		return nil, err
	}
	fact("program", sum)
	b := belayAgent{self: self, model: f.model, environ: a.environ}
	if given("mode") {
		b.flags = append(b.flags, "--mode", f.mode)
	}
	if f.effort != "" {
		b.flags = append(b.flags, "--effort", f.effort)
	}
	if file, ok := strings.CutPrefix(f.model, "rehearsal:"); ok {
		if _, own := ownScript(f.model); !own {
			abs, err := filepath.Abs(file)
			if err == nil {
				_, err = load(abs)
			}
			if err != nil {
				return nil, err
			}
			b.model = "rehearsal:" + abs
			if sum, err = fileSum(abs); err != nil {
				return nil, err
			}
			fact("script", sum)
		}
	}
	// A trial's workspace is nobody's project: only the person's own settings reach it.
	s, _, err := a.settings(filepath.Join(home, "evals", "none"), config.Settings{})
	if err != nil {
		return nil, err
	}
	fact("model", cmp.Or(f.model, s.Model))
	for _, row := range s.Rows() {
		if row.Value != "" && row.Name != "model" {
			value := row.Value
			if row.Name == "mode" && given("mode") {
				value = f.mode
			}
			fact("settings."+row.Name, value)
		}
	}
	fact("effort", f.effort)
	return b, nil
}

func fileSum(file string) (string, error) {
	in, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer in.Close()
	h := sha256.New()
	if _, err := io.Copy(h, in); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// evalProgress shows how far a sweep is: one line that is written over on a terminal, else one line each.
type evalProgress struct {
	w    io.Writer
	live bool
	open bool
}

func (p *evalProgress) clear() {
	if p.open {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.open = false
	}
}

func (p *evalProgress) line(text string) {
	p.clear()
	fmt.Fprintln(p.w, render.Line(text))
}

func (p *evalProgress) tell(s eval.Progress) {
	if c := s.Control; c != nil {
		if !c.OK {
			p.line(fmt.Sprintf("control  %s  %s: %s", c.Task, c.Name, c.Summary))
		} else if p.live {
			p.clear()
			fmt.Fprintf(p.w, "control  %s  %s", render.Line(c.Task), render.Line(c.Name))
			p.open = true
		}
		return
	}
	total := fmt.Sprintf("%d/%d  %d pass", s.Done, s.All, s.Pass)
	if s.NotCounted > 0 {
		total += fmt.Sprintf("  %d not counted", s.NotCounted)
	}
	if s.USD > 0 {
		total += fmt.Sprintf("  $%.2f", s.USD)
	}
	if s.LeftKnown && s.Done < s.All {
		total += "  " + shortDuration(max(s.Left.Round(time.Second), time.Second)) + " left"
	}
	if t := s.Trial; t != nil {
		word := string(t.Outcome)
		if s.Rerun {
			word += ", again"
		}
		if !p.live || t.Outcome != eval.Pass {
			p.line(fmt.Sprintf("%s  %s #%d  %s", total, t.Task, t.Trial, word+reasonOf(*t)))
			return
		}
	}
	p.clear()
	fmt.Fprint(p.w, total)
	p.open = true
}

func reasonOf(t eval.Trial) string {
	if t.Outcome == eval.Pass || t.Reason == "" {
		return ""
	}
	return ": " + render.Cut(render.Line(t.Reason), 160)
}
