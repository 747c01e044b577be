package cli

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"belay/internal/redact"
	"belay/internal/render"
	"belay/journal"
)

// ledgerLine is one external effect, and what became of it.
type ledgerLine struct {
	journal.External
	Seq         int64                 `json:"seq"`
	Outcome     string                `json:"outcome"` // status of its call; "" is not known
	Compensated []journal.Compensated `json:"compensated,omitempty"`
}

// ledger reads a run's external effects.
func ledger(dir string) (lines []ledgerLine, workspace string, err error) {
	lines = []ledgerLine{}
	for e, err := range journal.Read(dir) {
		if err != nil {
			return nil, "", err
		}
		switch e.Type {
		case journal.TypeSessionStart:
			var p journal.SessionStart
			err = e.Decode(&p)
			workspace = p.Workspace
		case journal.TypeExternal:
			line := ledgerLine{Seq: e.Seq}
			err = e.Decode(&line.External)
			lines = append(lines, line)
		case journal.TypeToolResult:
			var p journal.ToolResult
			err = e.Decode(&p)
			for i := range lines {
				if lines[i].CallID == p.CallID {
					lines[i].Outcome = p.Status
				}
			}
		case journal.TypeCompensated:
			var p journal.Compensated
			err = e.Decode(&p)
			for i := range lines {
				if lines[i].Key == p.Key {
					lines[i].Compensated = append(lines[i].Compensated, p)
				}
			}
		}
		if err != nil {
			return nil, "", err
		}
	}
	return lines, workspace, nil
}

func (a *app) effectsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "effects RUN", Short: "List what a run has sent to others: it does not go back", Example: "  belay effects last\n  belay effects last --json",
		Args: oneRun, ValidArgsFunction: a.completeRun,
		RunE: func(_ *cobra.Command, args []string) error {
			runID, dir, err := a.find(args[0])
			if err == nil {
				err = readable(dir)
			}
			if err != nil {
				return err
			}
			all, _, err := ledger(dir)
			if err != nil {
				return damaged(err, runID)
			}
			if asJSON {
				return a.json(all)
			}
			if len(all) == 0 {
				return a.lines("the run has had no external effect")
			}
			var lines []string
			for _, x := range all {
				line := fmt.Sprintf("%s  %s → %s", x.Key, render.Line(x.Summary), render.Line(x.Target))
				switch {
				case x.Outcome == "":
					line += a.screen().Alarm("  outcome unknown")
				default:
					line += "  " + x.Outcome
				}
				if x.Compensation != "" {
					line += "\n  makes up for it: " + render.Line(x.Compensation)
				}
				for _, c := range x.Compensated {
					line += fmt.Sprintf("\n  compensated: %s (exit %d)", render.Line(c.Command), c.Exit)
				}
				lines = append(lines, line)
			}
			return a.lines(lines...)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) compensateCommand() *cobra.Command {
	var with string
	var yes, asJSON bool
	cmd := &cobra.Command{
		Use: "compensate RUN KEY", Short: "Make up for an external effect of a run",
		Long: `Run the command that makes up for an external effect, in the run's workspace, as you and without a sandbox, and record it. The tool
that had the effect may have said which command that is; --with names another one.`,
		Example: "  belay compensate last 3f2a --yes\n  belay compensate last 3f2a --with \"gh issue close 7\"",
		Args:    exactly(2, "a run and the effect's key, or a unique beginning of it"), ValidArgsFunction: a.completeRun,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			runID, dir, err := a.find(args[0])
			if err == nil {
				err = readable(dir)
			}
			if err != nil {
				return err
			}
			log, err := journal.Open(dir, nil)
			if errors.Is(err, journal.ErrBusy) {
				err = usagef("%w", err)
			}
			if err != nil {
				return damaged(err, runID)
			}
			defer func() { err = errors.Join(err, log.Close()) }()
			all, workspace, err := ledger(dir)
			if err != nil {
				return damaged(err, runID)
			}
			fits := slices.DeleteFunc(all, func(x ledgerLine) bool { return args[1] == "" || !strings.HasPrefix(x.Key, args[1]) })
			if len(fits) != 1 {
				return usagef("%q fits %d external effects; `%s effects %s` lists them", args[1], len(fits), self(), runID)
			}
			line := with
			if line == "" {
				line = fits[0].Compensation
			}
			if line == "" {
				return usagef("nothing says what makes up for %q: name the command with --with", fits[0].Summary)
			}
			if !asJSON {
				fmt.Fprintln(a.err, "to make up for "+render.Line(fits[0].Summary)+": "+render.Line(line))
			}
			if ok, err := a.agreed(yes, asJSON, "Run it?"); err != nil || !ok {
				return err
			}
			run := exec.CommandContext(cmd.Context(), "sh", "-c", line)
			run.Dir = workspace
			output, runErr := run.CombinedOutput()
			done := journal.Compensated{Key: fits[0].Key, Command: redact.Scrub(line, a.environ), OK: runErr == nil, Exit: run.ProcessState.ExitCode(), Output: redact.Scrub(string(output), a.environ)}
			if _, err := log.Append(journal.Entry{Type: journal.TypeCompensated, Payload: done}); err != nil {
				return err
			}
			if asJSON {
				err = a.json(done)
			} else if err = a.lines(strings.TrimRight(render.Clean(done.Output), "\n")); err == nil && done.OK {
				err = a.lines(a.screen().Good("compensated") + "  " + done.Key)
			}
			if err == nil && !done.OK {
				err = fmt.Errorf("the command failed (exit %d); it is recorded", done.Exit)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&with, "with", "", "the shell `command` to run")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
