package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"belay/internal/render"
	"belay/journal"
	"belay/message"
	"belay/model"
	"belay/model/rehearsal"
)

func (a *app) rehearseCommand() *cobra.Command {
	var f runFlags
	var check bool
	cmd := &cobra.Command{
		Use:   `rehearse FILE ["task"|-|@file]`,
		Short: "Play a scripted model: run it, serve it over HTTP, or record one from a run",
		Long: `Check a rehearsal, which is a script that plays the model's part, and run it in the current folder, as
"belay run --model rehearsal:FILE" does. Without a task, the script's name is the task. A mistake in the script is
shown with its line and column before anything starts. docs/rehearsal.md describes the format.`,
		Annotations: ofRun,
		Example: `  belay rehearse script.yaml
  belay rehearse script.yaml "make the tests pass" --workspace ./project --verify "go test ./..."
  belay rehearse script.yaml --check
  belay rehearse serve script.yaml
  belay rehearse record last > script.yaml`,
		Args: between(1, 2, "a rehearsal's file and perhaps a task in quotes"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			script, err := load(args[0])
			if err != nil {
				return err
			}
			if check {
				return a.checked(script, f.json)
			}
			f.cfg.Model = "rehearsal:" + args[0]
			cfg, err := a.configure(&f, cmd.Flags().Changed)
			if err != nil {
				return err
			}
			if cfg.Task = script.Name; len(args) == 2 {
				if cfg.Task, err = a.task(args[1]); err != nil {
					return err
				}
			}
			return a.perform(cmd.Context(), cfg, f.outputFlags, a.run)
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&check, "check", false, "only check the script; run nothing")
	f.register(cmd.Flags())
	a.completeFlags(cmd)
	cmd.AddCommand(a.rehearseServeCommand(), a.rehearseRecordCommand())
	return cmd
}

// load reads a rehearsal; what is wrong with it is the caller's mistake.
func load(file string) (*rehearsal.Script, error) {
	script, err := rehearsal.Load(file)
	if err != nil {
		return nil, usagef("%w", err)
	}
	return script, nil
}

func (a *app) checked(script *rehearsal.Script, asJSON bool) error {
	if asJSON {
		return a.json(struct {
			Name  string `json:"name"`
			File  string `json:"file"`
			Turns int    `json:"turns"`
		}{script.Name, script.File, script.Turns()})
	}
	return a.lines(fmt.Sprintf("%s  %s: %d turns", a.screen().Good("sound"), render.Line(script.Name), script.Turns()))
}

func (a *app) rehearseRecordCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "record RUN",
		Short: "Turn a run's replies into a rehearsal",
		Long: `Write, on standard output, a rehearsal that says what the model of a run said: thinking, texts, calls, stops and
usage. Played from the same tree, it does what the run did. Failed calls of the model are left out; what a script
cannot say is named in a comment at its head.`,
		Example:           "  belay rehearse record last > script.yaml\n  belay rehearse record r_01k5 > script.yaml && belay rehearse script.yaml \"the task\"",
		Args:              oneRun,
		ValidArgsFunction: a.completeRun,
		RunE: func(_ *cobra.Command, args []string) error {
			runID, dir, err := a.find(args[0])
			if err == nil {
				err = readable(dir)
			}
			if err != nil {
				return err
			}
			recording, err := recorded(runID, dir)
			if err != nil {
				return damaged(err, runID)
			}
			_, err = a.out.Write(recording.YAML())
			return err
		},
	}
}

// recorded takes from a run's journal what its model said.
func recorded(runID, dir string) (rehearsal.Recording, error) {
	r := rehearsal.Recording{Name: "recorded-" + runID}
	from := ""
	var said []string
	for e, err := range journal.Read(dir) {
		if err != nil {
			return r, err
		}
		switch e.Type {
		case journal.TypeSessionStart:
			var p journal.SessionStart
			if err := e.Decode(&p); err != nil {
				return r, err
			}
			from, r.Price = p.Model.ID, p.Model.Price
		case journal.TypeUserMessage:
			var p journal.UserMessage
			if err := e.Decode(&p); err != nil {
				return r, err
			}
			if p.By == "" {
				said = append(said, render.Line(p.Text))
			}
		case journal.TypeModelReply:
			var p journal.ModelReply
			if err := e.Decode(&p); err != nil {
				return r, err
			}
			if p.Purpose == "" && p.Stop != message.StopError {
				r.Replies = append(r.Replies, model.Reply{Blocks: p.Blocks, Stop: p.Stop, Usage: p.Usage})
			}
		}
	}
	if len(r.Replies) == 0 {
		return r, usagef("run %s holds no reply of a model, so there is nothing to record", runID)
	}
	r.Notes = []string{"What " + from + " said in the run " + runID + "."}
	for i, text := range said {
		what := "Task: "
		if i > 0 {
			what = "Told later: "
		}
		r.Notes = append(r.Notes, what+render.Cut(strings.TrimSpace(text), 200))
	}
	return r, nil
}
