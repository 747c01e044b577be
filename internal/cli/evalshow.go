package cli

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"belay/eval"
	"belay/eval/stats"
	"belay/internal/render"
	"belay/loop"
)

// shownControls is what --json prints about a check.
type shownControls struct {
	OK          bool              `json:"ok"`
	Tasks       int               `json:"tasks"`
	Quarantined map[string]string `json:"quarantined"`
	Controls    []eval.Controls   `json:"controls"`
}

func (a *app) showControls(r eval.Results, asJSON bool) error {
	bad := r.Quarantined()
	if asJSON {
		if err := a.json(shownControls{len(bad) == 0, len(r.Start.Tasks), bad, r.Controls}); err != nil {
			return err
		}
	} else {
		rows := [][]string{{"TASK", "CONTROL", "WANT", "GOT", ""}}
		for _, c := range r.Controls {
			word := "ok"
			if !c.OK {
				word = render.Line(c.Summary)
			}
			rows = append(rows, []string{c.Task, render.Line(c.Name), strconv.Itoa(c.Want), strconv.Itoa(c.Score), word})
		}
		if err := a.screen().Table(a.out, rows); err != nil {
			return err
		}
		if err := a.lines("", fmt.Sprintf("%d of %d tasks are sound", len(r.Start.Tasks)-len(bad), len(r.Start.Tasks))); err != nil {
			return err
		}
	}
	if len(bad) > 0 {
		return outcome(loop.ExitFailed)
	}
	return nil
}

// shownTask is one task of a report.
type shownTask struct {
	ID         string         `json:"id"`
	N          int            `json:"n"`
	C          int            `json:"c"`
	NotCounted int            `json:"not_counted"`
	Cost       *float64       `json:"cost_usd"`
	Turns      float64        `json:"turns"`   // mean
	Seconds    float64        `json:"seconds"` // mean, of the agent
	Outcomes   map[string]int `json:"outcomes"`
	Causes     []eval.Cause   `json:"causes,omitempty"` // of its failures, the first of each
	Trials     []eval.Trial   `json:"trials"`
}

// shownResults is what --json prints about a sweep.
type shownResults struct {
	Out      string      `json:"out"`
	Suite    string      `json:"suite"`
	Config   []eval.Fact `json:"config"`
	Complete bool        `json:"complete"`
	countsSummary
	Outcomes    map[string]int    `json:"outcomes"`
	Forbidden   int               `json:"forbidden_actions"`
	Asked       int               `json:"questions"`
	StepP       undefinable       `json:"step_p"`     // share of verifications in the runs that passed
	StepN       undefinable       `json:"step_n"`     // verifications of a trial, mean
	StepWhole   undefinable       `json:"step_whole"` // p^n
	JudgeUSD    float64           `json:"judge_usd"`
	Quarantined map[string]string `json:"quarantined"`
	PerTask     []shownTask       `json:"per_task"`
}

func summarizeResults(out string, r eval.Results) shownResults {
	s := shownResults{Out: out, Outcomes: map[string]int{}, Quarantined: r.Quarantined(), PerTask: []shownTask{}}
	if r.Start != nil {
		s.Suite, s.Config = r.Start.Suite, r.Start.Config
	}
	counts := r.Counts()
	s.countsSummary = summarizeCounts(counts)
	byID := map[string]*shownTask{}
	steps := [2]int{}
	for _, t := range r.Trials {
		one := byID[t.Task]
		if one == nil {
			one = &shownTask{ID: t.Task, Outcomes: map[string]int{}}
			byID[t.Task] = one
		}
		s.Outcomes[string(t.Outcome)]++
		one.Outcomes[string(t.Outcome)]++
		one.Trials = append(one.Trials, t)
		if !t.Outcome.Counts() {
			one.NotCounted++
		}
		one.Turns += float64(t.Turns)
		one.Seconds += float64(t.AgentMS) / 1000
		for _, c := range r.Causes(t) {
			if !slices.ContainsFunc(one.Causes, func(o eval.Cause) bool { return o.Component == c.Component && o.Failure == c.Failure }) {
				one.Causes = append(one.Causes, c)
			}
		}
		s.Forbidden += t.Forbidden
		s.Asked += t.Asked
		s.JudgeUSD += t.JudgeUSD
		steps[0] += t.Steps[0]
		steps[1] += t.Steps[1]
	}
	for _, c := range counts {
		one := byID[c.ID]
		one.N, one.C, one.Cost = c.N, c.C, c.Cost
	}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		one := byID[id]
		one.Turns /= float64(len(one.Trials))
		one.Seconds /= float64(len(one.Trials))
		slices.SortFunc(one.Trials, func(a, b eval.Trial) int { return cmp.Compare(a.Trial, b.Trial) })
		s.PerTask = append(s.PerTask, *one)
	}
	n := math.NaN()
	if len(r.Trials) > 0 {
		n = float64(steps[1]) / float64(len(r.Trials))
	}
	p, whole := stats.Steps(steps[0], steps[1], n)
	s.StepP, s.StepN, s.StepWhole = undefinable(p), undefinable(n), undefinable(whole)
	return s
}

func (a *app) showResults(out string, r eval.Results, asJSON bool) error {
	s := summarizeResults(out, r)
	if asJSON {
		return a.json(s)
	}
	rows := [][]string{{"TASK", "PASS", "RATE", "TURNS", "SECONDS", "COST", "OUTCOMES"}}
	for _, t := range s.PerTask {
		rate, cost := "-", "-"
		if t.N > 0 {
			rate = fmt.Sprintf("%.2f", float64(t.C)/float64(t.N))
		}
		if t.Cost != nil {
			cost = fmt.Sprintf("$%.3f", *t.Cost)
		}
		words := ""
		for _, o := range slices.Sorted(maps.Keys(t.Outcomes)) {
			words += fmt.Sprintf("%s %d  ", o, t.Outcomes[o])
		}
		rows = append(rows, []string{t.ID, fmt.Sprintf("%d/%d", t.C, t.N), rate, fmt.Sprintf("%.1f", t.Turns), fmt.Sprintf("%.1f", t.Seconds), cost, words})
	}
	if err := a.screen().Table(a.out, rows); err != nil {
		return err
	}
	lines := []string{""}
	for k := 1; k <= s.MinTrials; k++ {
		key := strconv.Itoa(k)
		ci := s.CI[key]
		lines = append(lines, fmt.Sprintf("pass^%-3d %.3f  [%.3f, %.3f]   pass@%-3d %.3f", k, s.PassHat[key], ci[0], ci[1], k, s.PassAt[key]))
	}
	if s.MinTrials == 0 {
		lines = append(lines, "no trial counts, so nothing can be said")
	}
	if s.Note != "" {
		lines = append(lines, s.Note)
	}
	if v := float64(s.PerSuccess); !math.IsNaN(v) {
		lines = append(lines, fmt.Sprintf("cost per success $%.4f", v))
	}
	if v := float64(s.Detectable); v > 0 && s.Tasks > 1 {
		lines = append(lines, fmt.Sprintf("with %d tasks and %d trials you can see a difference of %.0f points", s.Tasks, s.Trials, 100*v))
	}
	if v := float64(s.StepP); !math.IsNaN(v) {
		lines = append(lines, fmt.Sprintf("steps: p %.3f, %.1f a trial, p^n %.3f", v, float64(s.StepN), float64(s.StepWhole)))
	}
	if len(s.Flaky) > 0 {
		words := "flaky:"
		for _, id := range s.Flaky {
			words += fmt.Sprintf(" %s (%.2f)", id, float64(s.FlakyRates[id]))
		}
		lines = append(lines, words)
	}
	for _, t := range s.PerTask {
		for _, c := range t.Causes {
			lines = append(lines, a.screen().Dim(render.Cut(render.Line(fmt.Sprintf("cause?  %s  %s × %s: %s", t.ID, c.Component, c.Failure, c.Evidence)), 160)))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(s.Quarantined)) {
		lines = append(lines, "quarantined  "+id+"  "+render.Line(s.Quarantined[id]))
	}
	return a.lines(append(lines, a.screen().Dim("results "+out))...)
}
