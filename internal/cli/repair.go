package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"belay/internal/redact"
	"belay/internal/render"
	"belay/journal"
)

// repaired is what --json prints.
type repaired struct {
	journal.Repair
	NewRun string `json:"new_run,omitempty"` // that holds what is sound
}

func (a *app) journalRepairCommand() *cobra.Command {
	var asJSON, write bool
	cmd := &cobra.Command{
		Use:   "repair RUN",
		Short: "Save what is sound of a damaged run",
		Long: `Show what is damaged in a run, what is sound and what stands behind the damage. Nothing is changed. With --write, the
events before the damage and their blobs are copied into a new run, which goes on from there; the damaged run stays as
it is, to the byte. What the workspace holds is not touched.`,
		Example:           "  belay journal repair last\n  belay journal repair r_01k5 --write",
		Args:              oneRun,
		ValidArgsFunction: a.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			runID, dir, err := a.find(args[0])
			if err == nil {
				err = readable(dir)
			}
			if err != nil {
				return err
			}
			plan, err := journal.PlanRepair(dir)
			if err != nil {
				return err
			}
			r := repaired{Repair: plan}
			if write && plan.Damage != nil {
				home := filepath.Dir(filepath.Dir(dir))
				r.NewRun = journal.NewRunID()
				if err := redact.Share(home, runID, r.NewRun); err != nil {
					return err
				}
				if err := plan.Write(home, r.NewRun, nil); err != nil {
					return errors.Join(err, redact.Forget(home, r.NewRun))
				}
			}
			if asJSON {
				return a.json(r)
			}
			return a.lines(r.lines(a.screen(), runID)...)
		},
	}
	cmd.Flags().BoolVar(&write, "write", false, "copy what is sound into a new run")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (r repaired) lines(s render.Screen, runID string) []string {
	if r.Damage == nil {
		return []string{s.Good("sound") + "  " + runID + s.Dim(fmt.Sprintf("  %d events; there is nothing to repair", r.Sound))}
	}
	at := ""
	if r.In != runID {
		at = " of " + r.In + ", which it was forked from,"
	}
	lines := []string{
		s.Bad("damaged") + "  " + runID + ": " + strings.TrimSuffix(strings.Replace(render.Line(r.Damage.String()), ":", at+":", 1), ","),
		fmt.Sprintf("  sound: %d events before it", r.Sound),
		"  from there on, nothing vouches for:",
	}
	for _, left := range r.Left {
		lines = append(lines, "    "+render.Line(left))
	}
	if len(r.Unknown) > 0 {
		lines = append(lines, fmt.Sprintf("  %d calls before the damage have no outcome there: to a run that goes on they are interrupted, outcome unknown", len(r.Unknown)))
	}
	switch {
	case r.NewRun != "":
		lines = append(lines, s.Good("saved")+"  the sound events are now the run "+r.NewRun+"; the damaged one is as it was",
			s.Dim("to go on: ")+self()+" resume "+r.NewRun)
	case r.Sound > 0:
		lines = append(lines, s.Dim("nothing was changed; to copy what is sound into a new run: ")+self()+" journal repair "+runID+" --write")
	}
	return lines
}
