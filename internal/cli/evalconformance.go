package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"belay/internal/conformance"
	"belay/internal/render"
	"belay/loop"
)

func (a *app) evalConformanceCommand() *cobra.Command {
	var spec string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "conformance",
		Short: "Check how well a model calls tools, in 20 small probes",
		Long: `Ask a model 20 small questions of which the right call is known: valid JSON, parallel calls, unicode, long arguments,
recovery from an error. Nothing is executed. Exit 4 where a probe fails, 7 where the model cannot be asked.`,
		Example: "  belay eval conformance --model openai:NAME@http://127.0.0.1:11434/v1\n  belay eval conformance --model anthropic:NAME --json",
		Args:    exactly(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if spec == "" {
				return usagef("name the model with --model")
			}
			client, err := a.evalClient(spec)
			if err != nil {
				return err
			}
			ctx, _, stop := interruptible(cmd.Context(), func(line string) { fmt.Fprintln(a.err, "belay: "+line) })
			defer stop()
			n := 0
			all, err := conformance.Run(ctx, client, func(o conformance.Outcome) {
				n++
				if !asJSON && render.IsTerminal(a.err) {
					fmt.Fprintf(a.err, "\r\x1b[K%d/%d %s", n, conformance.Count(), o.Probe)
				}
			})
			if !asJSON && render.IsTerminal(a.err) {
				fmt.Fprint(a.err, "\r\x1b[K")
			}
			if err != nil {
				return err
			}
			return a.showConformance(client.Info().ID(), all, asJSON)
		},
	}
	cmd.Flags().StringVar(&spec, "model", "", "the `model`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	a.completeFlags(cmd)
	return cmd
}

func (a *app) showConformance(id string, all []conformance.Outcome, asJSON bool) error {
	passed, broken := 0, 0
	rows := [][]string{{"PROBE", "", "MS", "ABOUT", "WHY"}}
	for _, o := range all {
		word := "fail"
		switch {
		case o.OK:
			passed, word = passed+1, "pass"
		case o.Error:
			broken, word = broken+1, "not asked"
		}
		rows = append(rows, []string{o.Probe, word, fmt.Sprint(o.MS), o.About, render.Cut(render.Line(o.Why), 120)})
	}
	var err error
	if asJSON {
		err = a.json(struct {
			Model  string                `json:"model"`
			Passed int                   `json:"passed"`
			Probes []conformance.Outcome `json:"probes"`
		}{id, passed, all})
	} else if err = a.screen().Table(a.out, rows); err == nil {
		err = a.lines("", fmt.Sprintf("%s: %d of %d", render.Line(id), passed, len(all)))
	}
	switch {
	case err != nil:
		return err
	case broken == len(all):
		return outcome(loop.ExitEnvironment)
	case passed < len(all):
		return outcome(loop.ExitFailed)
	}
	return nil
}
