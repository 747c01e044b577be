package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"belay/eval"
	"belay/eval/stats"
	"belay/internal/render"
	"belay/loop"
)

// evalResults reads what a person calls results: a folder, the name of one in belay's state, or "last".
func (a *app) evalResults(name string) (string, eval.Results, error) {
	home, err := a.home()
	if err != nil {
		return "", eval.Results{}, err
	}
	dir := name
	if name == "last" {
		entries, _ := filepath.Glob(filepath.Join(home, "evals", "*", "results.jsonl"))
		slices.SortFunc(entries, func(x, y string) int { return cmp.Compare(modified(y), modified(x)) })
		if len(entries) == 0 {
			return "", eval.Results{}, usagef("there are no results yet; `belay eval run` makes some")
		}
		dir = filepath.Dir(entries[0])
	} else if _, err := os.Stat(dir); err != nil {
		if _, err := os.Stat(filepath.Join(home, "evals", name)); err == nil {
			dir = filepath.Join(home, "evals", name)
		}
	}
	lines, err := eval.ReadLog(dir)
	if err != nil {
		return "", eval.Results{}, usagef("%w", err)
	}
	return dir, eval.Collect(lines), nil
}

func modified(file string) int64 {
	info, err := os.Stat(file)
	if err != nil {
		return 0
	}
	return info.ModTime().UnixNano()
}

func (a *app) evalReportCommand() *cobra.Command {
	var asJSON bool
	var page string
	cmd := &cobra.Command{
		Use:     "report RESULTS|last",
		Short:   "Show the results of a suite",
		Long:    "Show the results in a folder that `belay eval run` has made: as tables, as JSON, or as one HTML file with plots that needs nothing beside it.",
		Example: "  belay eval report last\n  belay eval report ./results --html report.html\n  belay eval report last --json | jq .pass_hat",
		Args:    exactly(1, "a folder of results, or last"),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, r, err := a.evalResults(args[0])
			if err != nil {
				return err
			}
			if page == "" {
				return a.showResults(dir, r, asJSON)
			}
			file, err := filepath.Abs(page)
			if err != nil {
				return err
			}
			abs, err := filepath.Abs(dir)
			if err != nil {
				return err
			}
			if rel, err := filepath.Rel(filepath.Dir(file), abs); err == nil {
				for i, t := range r.Trials { // the page may lie elsewhere
					if t.Journal != "" {
						r.Trials[i].Journal = filepath.ToSlash(filepath.Join(rel, t.Journal))
					}
				}
			}
			var b bytes.Buffer
			if err := eval.WriteHTML(&b, r); err != nil {
				return err
			}
			if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
				return usagef("%w", err)
			}
			if asJSON {
				return a.showResults(dir, r, true)
			}
			return a.lines("wrote " + page)
		},
	}
	cmd.Flags().StringVar(&page, "html", "", "write one HTML `file`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// shownComparison is what --json prints about two runs.
type shownComparison struct {
	Verdict     stats.Verdict  `json:"verdict"`
	Tasks       int            `json:"tasks"`
	Difference  undefinable    `json:"difference"` // of pass rates, B minus A
	SE          undefinable    `json:"se"`
	CI          [2]undefinable `json:"ci"`
	SolvedOnlyA int            `json:"solved_only_a"`
	SolvedOnlyB int            `json:"solved_only_b"`
	P           float64        `json:"mcnemar_p"`
	Permuted    float64        `json:"permutation_p"`
	Cost        undefinable    `json:"cost_difference_usd"` // of a trial
	CostCI      [2]undefinable `json:"cost_ci"`
	Detectable  undefinable    `json:"detectable_difference"`
	Changes     []string       `json:"changes"`
	Warnings    []string       `json:"warnings"`
	PerTask     []comparedTask `json:"per_task"`
}

type comparedTask struct {
	ID      string        `json:"id"`
	A       [2]int        `json:"a"` // passed, of
	B       [2]int        `json:"b"`
	P       float64       `json:"p"` // exact (Fisher)
	Verdict stats.Verdict `json:"verdict"`
}

func (a *app) evalCompareCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "compare A B",
		Short: "Say whether B is better than A, worse, or not distinguishable",
		Long: `Compare two folders of results, task by task: the difference in pass rates with a paired bootstrap over tasks, an exact McNemar
test on what is solved, the difference in cost, and what was changed between the two.`,
		Example: "  belay eval compare before after\n  belay eval compare before last --json | jq -r .verdict",
		Args:    exactly(2, "two folders of results"),
		RunE: func(_ *cobra.Command, args []string) error {
			_, first, err := a.evalResults(args[0])
			if err != nil {
				return err
			}
			_, second, err := a.evalResults(args[1])
			if err != nil {
				return err
			}
			return a.showComparison(compareResults(first, second), asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func compareResults(first, second eval.Results) shownComparison {
	before, after := first.Counts(), second.Counts()
	c := stats.Compare(before, after)
	s := shownComparison{Verdict: c.Verdict, Tasks: c.Tasks, Difference: undefinable(c.Difference.Value), SE: undefinable(c.Difference.SE),
		CI: [2]undefinable{undefinable(c.Difference.Low), undefinable(c.Difference.High)}, SolvedOnlyA: c.SolvedOnlyA, SolvedOnlyB: c.SolvedOnlyB, P: c.P, Permuted: c.Permuted,
		Cost: undefinable(c.Cost.Value), CostCI: [2]undefinable{undefinable(c.Cost.Low), undefinable(c.Cost.High)}, Detectable: undefinable(stats.Detectable(before)),
		Changes: []string{}, Warnings: []string{}, PerTask: []comparedTask{}}
	if first.Start != nil && second.Start != nil {
		s.Changes = append(s.Changes, eval.Changes(first.Start.Config, second.Start.Config)...)
		if first.Start.SuiteHash != second.Start.SuiteHash {
			s.Warnings = append(s.Warnings, "the suites are not the same: only tasks with the same id are compared")
		}
	}
	if len(s.Changes) > 1 {
		s.Warnings = append(s.Warnings, fmt.Sprintf("%d things were changed between the two: which of them made the difference cannot be told", len(s.Changes)))
	}
	if c.Tasks < len(before) || c.Tasks < len(after) {
		s.Warnings = append(s.Warnings, fmt.Sprintf("%d tasks are in both; %d and %d have trials that count", c.Tasks, len(before), len(after)))
	}
	byID := map[string]stats.Task{}
	for _, t := range before {
		byID[t.ID] = t
	}
	for _, t := range after {
		old, both := byID[t.ID]
		if !both {
			continue
		}
		one := comparedTask{ID: t.ID, A: [2]int{old.C, old.N}, B: [2]int{t.C, t.N}, P: stats.Fisher(old.C, old.N, t.C, t.N), Verdict: stats.NotDistinguishable}
		if one.P < 0.05 {
			if one.Verdict = stats.Better; t.Rate() < old.Rate() {
				one.Verdict = stats.Worse
			}
		}
		s.PerTask = append(s.PerTask, one)
	}
	return s
}

func (a *app) showComparison(s shownComparison, asJSON bool) error {
	if asJSON {
		return a.json(s)
	}
	rows := [][]string{{"TASK", "A", "B", "P", "B IS"}}
	for _, t := range s.PerTask {
		rows = append(rows, []string{t.ID, fmt.Sprintf("%d/%d", t.A[0], t.A[1]), fmt.Sprintf("%d/%d", t.B[0], t.B[1]), fmt.Sprintf("%.3f", t.P), string(t.Verdict)})
	}
	if err := a.screen().Table(a.out, rows); err != nil {
		return err
	}
	lines := []string{"", "B is " + a.screen().Bold(string(s.Verdict)) + fmt.Sprintf(": pass rate %+.3f [%+.3f, %+.3f] over %d tasks (permutation p %.4f)", float64(s.Difference), float64(s.CI[0]), float64(s.CI[1]), s.Tasks, s.Permuted),
		fmt.Sprintf("solved only by A %d, only by B %d (McNemar p %.4f)", s.SolvedOnlyA, s.SolvedOnlyB, s.P)}
	if v := float64(s.Cost); v == v {
		lines = append(lines, fmt.Sprintf("cost of a trial %+.4f USD [%+.4f, %+.4f]", v, float64(s.CostCI[0]), float64(s.CostCI[1])))
	}
	if v := float64(s.Detectable); v > 0 {
		lines = append(lines, fmt.Sprintf("this design sees differences of %.0f points", 100*v))
	}
	for _, c := range s.Changes {
		lines = append(lines, "changed  "+render.Line(c))
	}
	for _, w := range s.Warnings {
		lines = append(lines, a.screen().Alarm("warning")+"  "+render.Line(w))
	}
	return a.lines(lines...)
}

func (a *app) evalClassifyCommand() *cobra.Command {
	var cause eval.Cause
	cmd := &cobra.Command{
		Use:     "classify RESULTS TASK TRIAL",
		Short:   "Say why a trial failed, instead of what events suggest",
		Long:    "Say why a trial failed. It is added to the results; the last word counts, and nothing is overwritten.",
		Example: `  belay eval classify last fix-add 3 --component tool --failure no-progress --note "Edit does not say which line"`,
		Args:    exactly(3, "results, a task and the number of a trial"),
		RunE: func(_ *cobra.Command, args []string) error {
			number, err := strconv.Atoi(args[2])
			if err != nil {
				return usagef("%q is no number of a trial", args[2])
			}
			if err := cause.Check(); err != nil {
				return usagef("%w", err)
			}
			dir, _, err := a.evalResults(args[0])
			if err != nil {
				return err
			}
			cause.By = "person"
			if err := eval.AddCause(dir, args[1], number, cause); err != nil {
				return usagef("%w", err)
			}
			return a.lines(fmt.Sprintf("%s #%d: %s × %s", args[1], number, cause.Component, cause.Failure))
		},
	}
	cmd.Flags().StringVar(&cause.Component, "component", "", "which `part` failed")
	cmd.Flags().StringVar(&cause.Failure, "failure", "", "in which `way`")
	cmd.Flags().StringVar(&cause.Evidence, "note", "", "`text` that says what shows it")
	_ = cmd.RegisterFlagCompletionFunc("component", cobra.FixedCompletions(eval.Components, cobra.ShellCompDirectiveNoFileComp))
	_ = cmd.RegisterFlagCompletionFunc("failure", cobra.FixedCompletions(eval.Failures, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) evalCalibrateCommand() *cobra.Command {
	var judge string
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "calibrate SUITE",
		Short:   "Hold the model that grades against people's labels",
		Long:    "Ask the judge about every labelled piece of work of the suite's model graders, and print how far it agrees. Exit 4 where it agrees less than a grader demands.",
		Example: "  belay eval calibrate ./suite --judge-model anthropic:NAME",
		Args:    exactly(1, "one suite"),
		RunE: func(cmd *cobra.Command, args []string) error {
			suite, err := eval.LoadSuite(args[0])
			if err != nil {
				return usagef("%w", err)
			}
			if judge == "" {
				return usagef("name the judge with --judge-model")
			}
			j, err := a.evalJudge(judge)
			if err != nil {
				return err
			}
			return a.calibrate(cmd.Context(), suite, j, asJSON)
		},
	}
	cmd.Flags().StringVar(&judge, "judge-model", "", "the `model` that grades")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	_ = cmd.RegisterFlagCompletionFunc("judge-model", completeModel)
	return cmd
}

func (a *app) calibrate(ctx context.Context, suite *eval.Suite, judge eval.Judge, asJSON bool) error {
	all := []eval.Calibration{}
	ok := true
	rows := [][]string{{"RUBRIC", "LABELS", "AGREEMENT", "95 %", "KAPPA", "TPR", "TNR", ""}}
	seen := map[string]bool{}
	for _, t := range suite.Tasks {
		for _, g := range t.Graders {
			if g.Type != "model" || seen[g.Rubric+"\x00"+g.Calibration] {
				continue
			}
			seen[g.Rubric+"\x00"+g.Calibration] = true
			c, err := eval.Calibrate(ctx, judge, g.Rubric, g.Calibration, g.MinAgreement)
			if err != nil {
				return err
			}
			word := "may be believed"
			if !c.OK {
				ok, word = false, "refused: "+c.Why
			}
			rows = append(rows, []string{t.ID + ": " + c.Rubric, strconv.Itoa(c.Labels), fmt.Sprintf("%.2f", c.Agreement), fmt.Sprintf("[%.2f, %.2f]", c.Low, c.High), fmt.Sprintf("%.2f", c.Kappa),
				fmt.Sprintf("%.2f", c.TPR), fmt.Sprintf("%.2f", c.TNR), word})
			all = append(all, c)
		}
	}
	if len(all) == 0 {
		return usagef("the suite has no model grader")
	}
	var err error
	if asJSON {
		err = a.json(all)
	} else {
		err = a.screen().Table(a.out, rows)
	}
	if err == nil && !ok {
		return outcome(loop.ExitFailed)
	}
	return err
}
