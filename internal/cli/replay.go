package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"belay/internal/projection"
	"belay/internal/render"
	"belay/journal"
	"belay/loop"
)

// audit is what was found about one run.
type audit struct {
	RunID    string               `json:"run_id"`
	OK       bool                 `json:"ok"`
	Events   int                  `json:"events"` // sound ones
	Findings []journal.Finding    `json:"findings"`
	Contexts []projection.Context `json:"contexts"`
}

// auditRun checks the chain of a run, then replays its contexts. Contexts that are not proved are findings too.
func auditRun(runID, dir string) (audit, error) {
	if err := readable(dir); err != nil {
		return audit{}, err
	}
	events, findings, err := journal.Check(dir)
	if err != nil {
		return audit{}, err
	}
	r := audit{RunID: runID, Events: events, Findings: findings}
	r.Contexts, err = projection.Replay(journal.Read(dir))
	if err != nil && len(findings) == 0 { // damage was found before, with its line
		r.Findings = append(r.Findings, journal.Finding{Text: "replay: " + err.Error()})
	}
	for _, c := range r.Contexts {
		if c.Verdict != projection.Proved {
			r.Findings = append(r.Findings, journal.Finding{Line: int(c.Seq), Text: fmt.Sprintf("turn %d: context %s: %s", c.Turn, c.Verdict, c.Detail)})
		}
	}
	r.OK = len(r.Findings) == 0
	if r.Findings == nil {
		r.Findings = []journal.Finding{}
	}
	if r.Contexts == nil {
		r.Contexts = []projection.Context{}
	}
	return r, nil
}

func (a *app) replayCommand() *cobra.Command {
	var asJSON, verify bool
	var policy policyFlag
	cmd := &cobra.Command{
		Use:   "replay --verify RUN",
		Short: "Recompute what the model was sent at every turn, and compare",
		Long: `Recompute, from the journal alone, the context that the model was sent at every turn, and compare it with what was
recorded when it was sent. Every turn is proved, failed, or needs another version of belay. The journal's chain is
checked first. Exit 1 where anything is not proved.`,
		Example:           "  belay replay --verify last\n  belay replay --verify r_01k5 --json\n  belay replay last --context-policy 1m",
		Args:              oneRun,
		ValidArgsFunction: a.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			if policy.file != "" {
				if verify {
					return usagef("--verify and --context-policy are two commands: choose one")
				}
				return a.showWhatIf(args[0], policy, asJSON)
			}
			if !verify {
				return usagef("--verify or --context-policy says what to replay a run for: %s replay --verify %s", self(), render.Line(args[0]))
			}
			return a.audit(args[0], asJSON, audit.replayed)
		},
	}
	cmd.Flags().BoolVar(&verify, "verify", false, "recompute every context and compare")
	policy.register(cmd.Flags(), "say for each turn what this policy would change in tokens and cost: a `file`, or 200k or 1m")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// audit checks a run and prints what was found, as tell says it or as JSON.
func (a *app) audit(run string, asJSON bool, tell func(audit, render.Screen) []string) error {
	runID, dir, err := a.find(run)
	if err != nil {
		return err
	}
	r, err := auditRun(runID, dir)
	if err != nil {
		return err
	}
	if asJSON {
		err = a.json(r)
	} else {
		err = a.lines(tell(r, a.screen())...)
	}
	return r.verdict(err)
}

func (r audit) verdict(err error) error {
	if err == nil && !r.OK {
		return outcome(loop.ExitFault)
	}
	return err
}

func (r audit) replayed(s render.Screen) []string {
	var lines []string
	proved := 0
	for _, c := range r.Contexts {
		word := s.Bad(string(c.Verdict))
		if c.Verdict == projection.Proved {
			proved++
			word = s.Good(string(c.Verdict))
		}
		line := fmt.Sprintf("turn %d  %s", c.Turn, word) + s.Dim("  "+shortHash(c.CtxHash))
		if c.Detail != "" {
			line += "  " + render.Line(c.Detail)
		}
		lines = append(lines, line)
	}
	for _, f := range r.Findings {
		lines = append(lines, s.Bad("! ")+render.Line(f.String()))
	}
	last := fmt.Sprintf("%s: %d of %d contexts proved", r.RunID, proved, len(r.Contexts))
	if len(r.Contexts) == 0 && r.OK {
		last = r.RunID + ": no model was called, so there is nothing to prove"
	}
	return append(lines, s.Bold(last))
}

func shortHash(h string) string {
	h = render.Line(h)
	return h[:min(12, len(h))]
}
