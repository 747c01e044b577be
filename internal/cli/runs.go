package cli

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"belay/internal/render"
	"belay/journal"
	"belay/message"
)

// summary is one run in a list.
type summary struct {
	RunID     string        `json:"run_id"`
	Started   *journal.Time `json:"started,omitempty"`
	Model     string        `json:"model"`
	Workspace string        `json:"workspace"`
	Task      string        `json:"task"`
	State     string        `json:"state"` // finished, unfinished or damaged
	Standing  string        `json:"standing"`
	Exit      *int          `json:"exit,omitempty"` // where it is finished
	Turns     int           `json:"turns"`
	Cost      message.Cost  `json:"cost_usd"`
	Problem   string        `json:"problem,omitempty"` // why it is damaged
}

// summarize reads a run's journal and keeps what a list shows.
func summarize(dir string) summary {
	s := summary{RunID: filepath.Base(dir), State: "unfinished"}
	turn := 0
	for e, err := range journal.Read(dir) {
		if err == nil {
			err = s.take(e, &turn)
		}
		if err != nil {
			s.State, s.Problem = "damaged", err.Error()
			break
		}
	}
	return s
}

func (s *summary) take(e journal.Event, turn *int) error {
	if s.Started == nil {
		s.Started = &e.TS
	}
	switch e.Type {
	case journal.TypeSessionStart:
		var p journal.SessionStart
		if err := e.Decode(&p); err != nil {
			return err
		}
		s.Model, s.Workspace, s.State = p.Model.ID, p.Workspace, "unfinished"
		s.Standing, s.Exit = "", nil
	case journal.TypeUserMessage:
		var p journal.UserMessage
		if err := e.Decode(&p); err != nil {
			return err
		}
		if s.Task == "" && p.By == "" {
			s.Task = p.Text
		}
	case journal.TypeModelCall:
		if e.Turn != *turn {
			*turn = e.Turn
			s.Turns++
		}
	case journal.TypeModelReply:
		var p journal.ModelReply
		if err := e.Decode(&p); err != nil {
			return err
		}
		s.Cost += p.Cost
	case journal.TypeSessionEnd:
		var p journal.SessionEnd
		if err := e.Decode(&p); err != nil {
			return err
		}
		s.State, s.Standing, s.Exit = "finished", p.Standing, &p.Exit
	}
	return nil
}

func (a *app) runsCommand() *cobra.Command {
	var asJSON bool
	var limit int
	cmd := &cobra.Command{
		Use:     "runs",
		Short:   "List the runs, newest first",
		Example: "  belay runs\n  belay runs --limit 5\n  belay runs --json | jq -r '.[0].run_id'\n  belay runs archive r_01k5\n  belay runs rm r_01k5",
		Args:    a.noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 0 {
				return usagef("--limit must be 0 (all) or more")
			}
			return a.listRuns(limit, asJSON)
		},
	}
	cmd.Flags().IntVar(&limit, "limit", 0, "show only the newest `N`; 0 is all")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.AddCommand(a.runsArchiveCommand(), a.runsRestoreCommand(), a.runsRemoveCommand())
	return cmd
}

func (a *app) listRuns(limit int, asJSON bool) error {
	home, err := a.home()
	if err != nil {
		return err
	}
	ids, err := journal.Runs(home)
	if err != nil {
		return err
	}
	if limit > 0 && limit < len(ids) {
		ids = ids[:limit]
	}
	runs := make([]summary, 0, len(ids))
	for _, id := range ids {
		runs = append(runs, summarize(filepath.Join(journal.RunsDir(home), id)))
	}
	if asJSON {
		return a.json(runs)
	}
	if len(runs) == 0 {
		return a.lines("no runs yet in "+journal.RunsDir(home), "To make one: "+self()+" demo")
	}
	rows := [][]string{{"RUN", "STARTED", "MODEL", "END", "TURNS", "COST", "TASK"}}
	for _, s := range runs {
		started := "-"
		if s.Started != nil {
			started = s.Started.Local().Format("2006-01-02 15:04")
		}
		rows = append(rows, []string{s.RunID, started, render.Cut(render.Line(s.Model), 32), s.end(), fmt.Sprint(s.Turns), s.Cost.String(),
			render.Cut(render.Line(s.Task), 72)})
	}
	return a.screen().Table(a.out, rows)
}

// end is how a run ended in one or two words.
func (s summary) end() string {
	switch {
	case s.Exit == nil:
		return s.State
	case s.State == "damaged":
		return s.State
	case s.Standing != "":
		return render.Line(s.Standing)
	}
	return fmt.Sprintf("exit %d", *s.Exit)
}
