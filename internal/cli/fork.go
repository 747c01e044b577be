package cli

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"belay/internal/redact"
	"belay/journal"
)

// forked is what --json prints.
type forked struct {
	RunID  string `json:"run_id"`
	Parent string `json:"parent"`
	Seq    int64  `json:"seq"` // the parent's last event that is shared
}

func (a *app) forkCommand() *cobra.Command {
	var asJSON bool
	var at int64
	cmd := &cobra.Command{
		Use:   "fork RUN",
		Short: "Make a new run that goes on from any event of another",
		Long: `Make a new run that shares the events of another one up to --at, by reference: nothing is copied, and the other run
stays as it is. The new run has the same workspace, with the files as they are now: a fork takes back words, not deeds.`,
		Example:           "  belay fork last\n  belay fork r_01k5 --at 120\n  belay resume last \"this time, keep the old interface\"",
		Args:              oneRun,
		ValidArgsFunction: a.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("at") && at < 1 {
				return usagef("--at is the number of an event, from 1; `%s show RUN --json` lists them", self())
			}
			parent, dir, err := a.find(args[0])
			if err == nil {
				err = readable(dir)
			}
			if err != nil {
				return err
			}
			home, runID := filepath.Dir(filepath.Dir(dir)), journal.NewRunID()
			if err := redact.Share(home, parent, runID); err != nil {
				return err
			}
			log, events, err := journal.ForkRun(home, parent, at, runID, nil)
			if err != nil {
				return errors.Join(damaged(err, parent), redact.Forget(home, runID))
			}
			if err := log.Close(); err != nil {
				return err
			}
			f := forked{RunID: log.RunID(), Parent: parent, Seq: events[0].Seq - 1}
			if asJSON {
				return a.json(f)
			}
			screen := a.screen()
			return a.lines(screen.Good("forked")+"  "+f.RunID+screen.Dim(fmt.Sprintf("  shares %d events of %s; files are as they are now", f.Seq, parent)),
				screen.Dim("to go on: ")+self()+" resume "+f.RunID)
		},
	}
	cmd.Flags().Int64Var(&at, "at", 0, "number of the last `event` to share (default: the last one there is)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
