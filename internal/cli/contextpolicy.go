package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"belay/harness"
	"belay/internal/projection"
	"belay/internal/render"
	"belay/internal/smallfile"
	"belay/internal/yaml"
	"belay/journal"
	"belay/message"
)

// maxPolicyFile is the largest context policy in bytes.
const maxPolicyFile = 64 << 10

// policyFlag names a file with a context policy.
type policyFlag struct{ file string }

func (f *policyFlag) register(flags *pflag.FlagSet, usage string) {
	flags.StringVar(&f.file, "context-policy", "", usage)
}

// read is the policy as JSON, nil where none was named: the name of a preset (200k, 1m), or a file in YAML or JSON.
func (f *policyFlag) read() ([]byte, error) {
	if f.file == "" {
		return nil, nil
	}
	for _, p := range projection.Presets {
		if p.Name == f.file {
			return fmt.Appendf(nil, `{"preset":%q}`, p.Name), nil
		}
	}
	root, err := os.OpenRoot(filepath.Dir(f.file))
	if err != nil {
		return nil, usagef("--context-policy: %w", err)
	}
	defer root.Close()
	data, err := smallfile.Read(root, filepath.Base(f.file), maxPolicyFile)
	if err != nil {
		return nil, usagef("--context-policy %s: %w", f.file, err)
	}
	node, err := yaml.Parse(f.file, "context policy", data)
	if err != nil {
		return nil, usagef("%w", err)
	}
	policy, err := node.JSON("context policy")
	if err != nil {
		return nil, usagef("%w", err)
	}
	if _, err := harness.ParseContextPolicy(policy, 0); err != nil {
		return nil, usagef("%s: %w", f.file, err)
	}
	return policy, nil
}

// policyFor is what the named policy says for the model of a run.
func (f *policyFlag) policyFor(dir string) (projection.Policy, error) {
	data, err := f.read()
	if err != nil {
		return projection.Policy{}, err
	}
	var window int64
	for e, err := range journal.Read(dir) {
		if err != nil {
			return projection.Policy{}, err
		}
		if e.Type == journal.TypeSessionStart {
			var start journal.SessionStart
			if err := e.Decode(&start); err != nil {
				return projection.Policy{}, err
			}
			window = start.Model.ContextWindow
		}
	}
	return harness.ParseContextPolicy(data, window)
}

// whatIf is what --json prints about a run under another policy.
type whatIf struct {
	RunID  string            `json:"run_id"`
	Policy projection.Policy `json:"policy"`
	Turns  []projection.Turn `json:"turns"`
	Total  struct {
		Tokens    int64        `json:"tokens"`
		WouldBe   int64        `json:"would_be_tokens"`
		Cost      message.Cost `json:"cost_usd"`
		WouldCost message.Cost `json:"would_cost_usd"`
	} `json:"total"`
}

// showWhatIf says for each turn what another policy would have changed in tokens and cost.
func (a *app) showWhatIf(run string, f policyFlag, asJSON bool) error {
	runID, dir, err := a.find(run)
	if err == nil {
		err = readable(dir)
	}
	if err != nil {
		return err
	}
	policy, err := f.policyFor(dir)
	if err != nil {
		return err
	}
	turns, err := projection.WhatIf(journal.Read(dir), policy)
	if err != nil {
		return damaged(err, runID)
	}
	w := whatIf{RunID: runID, Policy: policy, Turns: turns}
	if w.Turns == nil {
		w.Turns = []projection.Turn{}
	}
	for _, t := range turns {
		w.Total.Tokens, w.Total.WouldBe = w.Total.Tokens+t.Tokens, w.Total.WouldBe+t.WouldBe
		w.Total.Cost, w.Total.WouldCost = w.Total.Cost+t.Cost, w.Total.WouldCost+t.WouldCost
	}
	if asJSON {
		return a.json(w)
	}
	screen := a.screen()
	var lines []string
	for _, t := range turns {
		line := fmt.Sprintf("turn %d  %s tokens, would be %s (%+d)  input %s, would be %s", t.Turn, render.Count(t.Tokens), render.Count(t.WouldBe), t.WouldBe-t.Tokens, t.Cost, t.WouldCost)
		if t.Broke != "" {
			line += screen.Dim("  was: " + t.Broke)
		}
		if t.WouldBreak != "" {
			line += screen.Dim("  would be: " + t.WouldBreak)
		}
		if t.Over {
			line += "  " + screen.Alarm("too large: the run would have stopped here")
		}
		lines = append(lines, line)
	}
	lines = append(lines, screen.Bold(fmt.Sprintf("all: %s tokens, would be %s (%+d) · input %s, would be %s", render.Count(w.Total.Tokens), render.Count(w.Total.WouldBe), w.Total.WouldBe-w.Total.Tokens, w.Total.Cost, w.Total.WouldCost)),
		screen.Dim("estimates; answers and results are as they were"))
	return a.lines(lines...)
}

// showOther shows the request that another policy would have sent at a turn.
func (a *app) showOther(runID, dir string, turn int, f policyFlag, asJSON bool) error {
	policy, err := f.policyFor(dir)
	if err != nil {
		return err
	}
	turns, err := projection.WhatIf(journal.Read(dir), policy)
	if err != nil {
		return damaged(err, runID)
	}
	var found *projection.Turn
	for i := range turns {
		if turn == 0 || turns[i].Turn == turn {
			found = &turns[i]
		}
	}
	if found == nil {
		if len(turns) == 0 {
			return usagef("run %s asked no model", runID)
		}
		return usagef("run %s: no such turn: the run has turns 1 to %d, and no %d", runID, turns[len(turns)-1].Turn, turn)
	}
	canonical, err := projection.Canonical(found.Request())
	if err != nil {
		return err
	}
	if asJSON {
		b, err := compact(struct {
			RunID string `json:"run_id"`
			*projection.Turn
			Request any `json:"request"`
		}{runID, found, jsonRaw(canonical)})
		if err != nil {
			return err
		}
		_, err = a.out.Write(b)
		return err
	}
	screen := a.screen()
	lines := []string{
		screen.Bold(fmt.Sprintf("turn %d", found.Turn)) + screen.Dim(fmt.Sprintf("  of %s · under the policy %s · %d messages · %s bytes", runID, render.Line(policy.Name), len(found.Request().Messages), render.Count(int64(len(canonical))))),
		fmt.Sprintf("%s tokens were sent, about; this would be %s", render.Count(found.Tokens), render.Count(found.WouldBe)), "",
	}
	return a.lines(append(lines, render.Request(screen, found.Request())...)...)
}
