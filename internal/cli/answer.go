package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"belay/harness"
	"belay/internal/permissions"
	"belay/internal/render"
	"belay/journal"
)

func (a *app) answerCommand() *cobra.Command {
	var reason string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "answer RUN [ID CHOICE]",
		Short: "Answer what a run asks a person",
		Long: `Answer what a run asks a person: whether a call may happen, or a question of the model's own. Without ID, list what is asked.
ID may be left out where only one question is open.

A run that waits right now takes the answer up at once; one that has paused (exit 6) takes it up with the next resume. "no" goes
with a reason that the model reads; "?" has a model explain what a waiting run asks. The same can be left in a file,
answers/ID.json in the run's folder: {"choice": "no", "reason": "…"}.`,
		Example: `  belay answer last
  belay answer last once
  belay answer r_01k5 q_call_7_1 no --reason "use the staging server"
  belay answer last --json | jq -r '.[0].id'`,
		Args:              between(1, 3, "one run, and perhaps the question's id and the choice"),
		ValidArgsFunction: a.completeRun,
		RunE: func(_ *cobra.Command, args []string) error {
			runID, dir, err := a.find(args[0])
			if err == nil {
				err = readable(dir)
			}
			if err != nil {
				return err
			}
			open, err := harness.OpenQuestions(dir)
			if err != nil {
				return damaged(err, runID)
			}
			if len(args) == 1 {
				return a.listQuestions(runID, open, asJSON)
			}
			answer := journal.Answer{Choice: args[len(args)-1], Reason: reason}
			switch {
			case len(args) == 3:
				answer.ID = args[1]
			case len(open) == 1:
				answer.ID = open[0].ID
			case len(open) == 0:
				return usagef("run %s asks nothing", runID)
			default:
				return usagef("run %s asks %d things: name one; `%s answer %s` lists them", runID, len(open), self(), runID)
			}
			home, err := a.home()
			if err != nil {
				return err
			}
			live, err := harness.Answer(home, runID, answer)
			if err != nil {
				return damaged(err, runID)
			}
			if asJSON {
				return a.json(map[string]any{"run_id": runID, "id": answer.ID, "choice": answer.Choice, "live": live})
			}
			if live {
				return a.lines("answered; the run goes on")
			}
			return a.lines("answered", a.screen().Dim("to go on: ")+self()+" resume "+runID)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`words` that the model reads with the answer")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) listQuestions(runID string, open []journal.Question, asJSON bool) error {
	if asJSON {
		if open == nil {
			open = []journal.Question{}
		}
		return a.json(open)
	}
	if len(open) == 0 {
		return a.lines("run " + runID + " asks nothing")
	}
	for _, q := range open {
		if err := a.lines(render.Question(a.screen(), q)...); err != nil {
			return err
		}
		if err := a.lines(a.screen().Dim("  to answer: ") + self() + " answer " + runID + " " + q.ID + " CHOICE"); err != nil {
			return err
		}
	}
	return nil
}

// onAsk is what happens in a run without a person where one is needed.
type onAsk string

func (o *onAsk) String() string { return string(*o) }
func (o *onAsk) Type() string   { return "refuse|pause" }
func (o *onAsk) Set(s string) error {
	if s != "refuse" && s != "pause" {
		return fmt.Errorf("it is refuse or pause")
	}
	*o = onAsk(s)
	return nil
}

func registerOnAsk(cmd *cobra.Command, value *onAsk) {
	cmd.Flags().Var(value, "on-ask", "where a person's consent is needed and nobody is at the terminal: refuse and tell the model (default), or pause with exit 6")
	_ = cmd.RegisterFlagCompletionFunc("on-ask", cobra.FixedCompletions([]string{"refuse", "pause"}, cobra.ShellCompDirectiveNoFileComp))
}

// remember saves rules that allow in the person's own policy file.
func (a *app) remember(rules []string) error {
	dir, err := a.userDir()
	if err != nil {
		return err
	}
	return permissions.Remember(dir, rules)
}

// approval is what a person wants to approve as a whole.
type approval string

func (v *approval) String() string { return string(*v) }
func (v *approval) Type() string   { return "plan" }
func (v *approval) Set(s string) error {
	if s != "plan" {
		return fmt.Errorf("it is plan")
	}
	*v = approval(s)
	return nil
}

func registerApproval(cmd *cobra.Command, value *approval) {
	cmd.Flags().Var(value, "approve", "approve the plan as a whole before anything is changed; without a terminal the run waits with exit 6")
	_ = cmd.RegisterFlagCompletionFunc("approve", cobra.FixedCompletions([]string{"plan"}, cobra.ShellCompDirectiveNoFileComp))
}
