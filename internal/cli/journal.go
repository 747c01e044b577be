package cli

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"belay/internal/render"
	"belay/journal"
)

func (a *app) journalCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "journal",
		Short:   "Check the journals of runs, and save what is sound of a damaged one",
		Example: "  belay journal verify last\n  belay journal verify --all\n  belay journal repair last",
		Args:    a.noSuchCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.journalVerifyCommand(), a.journalRepairCommand())
	return cmd
}

func (a *app) journalVerifyCommand() *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use:   "verify RUN|--all",
		Short: "Find what is wrong with a journal, line by line",
		Long: `Check that every line of a journal is whole and vouches for all lines before it, that every call has one outcome,
that every blob is there and is what its name says, and that every recorded context can be recomputed. Exit 1 on any
finding.`,
		Example:           "  belay journal verify last\n  belay journal verify --all --json",
		ValidArgsFunction: a.completeRun,
		Args: func(cmd *cobra.Command, args []string) error {
			if !all {
				return oneRun(cmd, args)
			}
			if len(args) > 0 {
				return usagef("give a run or --all, not both")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if all {
				return a.verifyAll(asJSON)
			}
			return a.audit(args[0], asJSON, audit.findings)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "every run")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// verifyAll checks every run. One that cannot even be read is a finding, so that the others are still checked.
func (a *app) verifyAll(asJSON bool) error {
	home, err := a.home()
	if err != nil {
		return err
	}
	ids, err := journal.Runs(home)
	if err != nil {
		return err
	}
	total := audit{OK: true}
	audits := make([]audit, 0, len(ids))
	for _, id := range ids {
		r, err := auditRun(id, filepath.Join(journal.RunsDir(home), id))
		if err != nil {
			r = audit{RunID: id, Findings: []journal.Finding{{Text: err.Error()}}}
		}
		total.OK = total.OK && r.OK
		audits = append(audits, r)
		if !asJSON {
			if err := a.lines(r.findings(a.screen())...); err != nil {
				return err
			}
		}
	}
	switch {
	case asJSON:
		err = a.json(audits)
	case len(ids) == 0:
		err = a.lines("no runs yet in " + journal.RunsDir(home))
	}
	return total.verdict(err)
}

func (r audit) findings(s render.Screen) []string {
	if r.OK {
		return []string{s.Good("sound") + "  " + r.RunID + s.Dim(fmt.Sprintf("  %d events, %d contexts", r.Events, len(r.Contexts)))}
	}
	lines := []string{s.Bad("damaged") + "  " + r.RunID + s.Dim(fmt.Sprintf("  %d sound events", r.Events))}
	for _, f := range r.Findings {
		lines = append(lines, "  "+render.Line(f.String()))
	}
	return lines
}
