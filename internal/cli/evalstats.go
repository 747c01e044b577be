package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/spf13/cobra"

	"belay/eval/stats"
)

func (a *app) evalCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "eval",
		Short:   "Measure how reliable an agent is",
		Example: "  belay eval check suites/starter\n  belay eval run suites/starter --model rehearsal:oracle\n  belay eval stats counts.json",
		Args:    a.noSuchCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.evalRunCommand(), a.evalCheckCommand(), a.evalReportCommand(), a.evalCompareCommand(), a.evalClassifyCommand(), a.evalCalibrateCommand(), a.evalImportCommand(), a.evalConformanceCommand(), a.evalFromRunCommand(), a.evalStatsCommand())
	return cmd
}

func (a *app) evalStatsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "stats FILE|-",
		Short: "Print pass^k, pass@k and their uncertainty from the counts of trials",
		Long: `Print pass^k, pass@k, their standard errors and 95 % intervals from the counts of trials, as JSON. FILE holds
{"tasks":[{"id":"a","n":8,"c":5,"cost":1.2}]}: n trials that count, c of them passed, and what all n cost in USD, which may be
left out. "-" reads standard input.

pass^k is the chance that all of k trials pass, pass@k that at least one does. k goes up to the smallest n: what fewer than k
trials cannot tell is not told. A suite's value is the mean over tasks; errors are those of tasks, since trials of one task
belong together.`,
		Example: "  belay eval stats counts.json\n  belay eval stats - < counts.json | jq .pass_hat",
		Args:    exactly(1, "a file of counts, or -"),
		RunE: func(_ *cobra.Command, args []string) error {
			tasks, err := a.readCounts(args[0])
			if err != nil {
				return err
			}
			return a.json(summarizeCounts(tasks))
		},
	}
}

// counts is the file of belay eval stats.
type counts struct {
	Tasks []struct {
		ID   string   `json:"id"`
		N    *int     `json:"n"`
		C    *int     `json:"c"`
		Cost *float64 `json:"cost"`
	} `json:"tasks"`
}

// maxCounts is the size in bytes of the largest file of counts.
const maxCounts = 256 << 20

func (a *app) readCounts(file string) ([]stats.Task, error) {
	in, err := a.input(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, maxCounts+1))
	switch {
	case err != nil:
		return nil, usagef("read %s: %w", file, err)
	case len(data) > maxCounts:
		return nil, usagef("%s is larger than %d MiB", file, maxCounts>>20)
	}
	var c counts
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&c); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, usagef("%s:%d: %w", file, 1+bytes.Count(data[:min(syntax.Offset, int64(len(data)))], []byte("\n")), err)
		}
		return nil, usagef("%s: %w", file, err)
	}
	if len(c.Tasks) == 0 {
		return nil, usagef(`%s holds no tasks; it is {"tasks":[{"id":"a","n":8,"c":5}]}`, file)
	}
	var tasks []stats.Task
	known := map[string]bool{}
	for i, t := range c.Tasks {
		bad := func(format string, args ...any) error {
			return usagef("%s: task %d (%s): %s", file, i+1, strconv.Quote(t.ID), fmt.Sprintf(format, args...))
		}
		switch {
		case t.ID != "" && known[t.ID]:
			return nil, bad("the id is there twice: the trials of a task belong together")
		case t.N == nil || t.C == nil:
			return nil, bad("it needs n, the trials that count, and c, those that passed")
		case *t.N < 1:
			return nil, bad("n is %d: a task without a trial tells nothing; leave it out", *t.N)
		case *t.C < 0 || *t.C > *t.N:
			return nil, bad("c is %d of n %d: it must be from 0 to n", *t.C, *t.N)
		case t.Cost != nil && *t.Cost < 0:
			return nil, bad("the cost is below 0")
		}
		known[t.ID] = true
		tasks = append(tasks, stats.Task{ID: t.ID, N: *t.N, C: *t.C, Cost: t.Cost})
	}
	return tasks, nil
}

// undefinable is a float that may be undefined, which is null in JSON.
type undefinable float64

func (n undefinable) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// countsSummary is what the counts tell; the keys of the maps are k.
type countsSummary struct {
	Tasks      int                       `json:"tasks"`
	Trials     int                       `json:"trials"`
	MinTrials  int                       `json:"min_trials"` // of a task: the largest k
	MaxTrials  int                       `json:"max_trials"`
	PassHat    map[string]undefinable    `json:"pass_hat"`
	PassAt     map[string]undefinable    `json:"pass_at"`
	SEHat      map[string]undefinable    `json:"se_pass_hat"`
	SEAt       map[string]undefinable    `json:"se_pass_at"`
	CI         map[string][2]undefinable `json:"ci"` // 95 % of pass^k
	CIAt       map[string][2]undefinable `json:"ci_pass_at"`
	Flaky      []string                  `json:"flaky"`            // ids
	FlakyRates map[string]undefinable    `json:"flaky_pass_rates"` // by id
	Detectable undefinable               `json:"detectable_difference"`
	PerSuccess undefinable               `json:"cost_per_success"`
	Note       string                    `json:"note,omitempty"`
}

func summarizeCounts(tasks []stats.Task) countsSummary {
	s := countsSummary{Tasks: len(tasks), MinTrials: stats.MinTrials(tasks), Flaky: []string{}, FlakyRates: map[string]undefinable{},
		PassHat: map[string]undefinable{}, PassAt: map[string]undefinable{}, SEHat: map[string]undefinable{}, SEAt: map[string]undefinable{}, CI: map[string][2]undefinable{}, CIAt: map[string][2]undefinable{},
		Detectable: undefinable(stats.Detectable(tasks)), PerSuccess: undefinable(stats.CostPerSuccess(tasks))}
	for _, t := range tasks {
		s.Trials += t.N
		s.MaxTrials = max(s.MaxTrials, t.N)
	}
	for k := 1; k <= s.MinTrials; k++ {
		key, hat, at := strconv.Itoa(k), stats.Hat(tasks, k), stats.At(tasks, k)
		s.PassHat[key], s.SEHat[key], s.CI[key] = undefinable(hat.Value), undefinable(hat.SE), [2]undefinable{undefinable(hat.Low), undefinable(hat.High)}
		s.PassAt[key], s.SEAt[key], s.CIAt[key] = undefinable(at.Value), undefinable(at.SE), [2]undefinable{undefinable(at.Low), undefinable(at.High)}
	}
	for _, t := range stats.Flaky(tasks) {
		s.Flaky = append(s.Flaky, t.ID)
		s.FlakyRates[t.ID] = undefinable(t.Rate())
	}
	if s.MaxTrials > s.MinTrials {
		s.Note = fmt.Sprintf("tasks have %d to %d trials: each counts with all of its own, and k ends at %d", s.MinTrials, s.MaxTrials, s.MinTrials)
	}
	return s
}
