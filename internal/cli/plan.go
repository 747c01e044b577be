package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"belay/harness"
	"belay/internal/render"
	"belay/journal"
)

func jsonRaw(b []byte) json.RawMessage { return b }

func (a *app) planCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "plan",
		Short:   "Show or change the plan of a run",
		Example: "  belay plan show last\n  belay plan edit last",
		Args:    a.noSuchCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.planShowCommand(), a.planEditCommand())
	return cmd
}

// shownPlan is what --json prints.
type shownPlan struct {
	RunID string `json:"run_id"`
	Made  bool   `json:"made"` // whether the run has a plan at all
	journal.Plan
}

func (a *app) planShowCommand() *cobra.Command {
	var asJSON, write bool
	cmd := &cobra.Command{
		Use:               "show RUN",
		Short:             "Show the plan of a run: objective, constraints, steps and their states",
		Example:           "  belay plan show last\n  belay plan show r_01k5 --json\n  belay plan show last --write",
		Args:              oneRun,
		ValidArgsFunction: a.completeRun,
		RunE: func(_ *cobra.Command, args []string) error {
			runID, dir, plan, made, err := a.planOf(args[0])
			if err != nil {
				return err
			}
			if write {
				file := filepath.Join(summarize(dir).Workspace, "PLAN.md")
				if err := os.WriteFile(file, []byte(harness.PlanMarkdown(plan)), 0o644); err != nil {
					return fmt.Errorf("write the plan: %w", err)
				}
				fmt.Fprintln(a.err, "wrote "+file)
			}
			if asJSON {
				return a.json(shownPlan{runID, made, plan})
			}
			lines := strings.Split(strings.TrimRight(render.Clean(harness.PlanMarkdown(plan)), "\n"), "\n")
			if !made {
				lines = append(lines, "", "no plan was made")
			}
			return a.lines(lines...)
		},
	}
	cmd.Flags().BoolVar(&write, "write", false, "also write it to PLAN.md in the run's workspace")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) planOf(run string) (runID, dir string, plan journal.Plan, made bool, err error) {
	runID, dir, err = a.find(run)
	if err == nil {
		err = readable(dir)
	}
	if err == nil {
		if plan, made, err = harness.PlanOf(journal.Read(dir)); err != nil {
			err = damaged(err, runID)
		}
	}
	return runID, dir, plan, made, err
}

func (a *app) planEditCommand() *cobra.Command {
	var file string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "edit RUN",
		Short: "Change the plan of a run that stands still, its objective included",
		Long: `Open the plan of a run as JSON in $VISUAL or $EDITOR, or take it from --file (- is standard input). What is saved
is recorded as a replan by the person; the model reads it in the next request.`,
		Example:           "  belay plan edit last\n  belay plan show last --json > plan.json && belay plan edit last --file plan.json",
		Args:              oneRun,
		ValidArgsFunction: a.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			runID, dir, plan, made, err := a.planOf(args[0])
			if err != nil {
				return err
			}
			old, err := json.MarshalIndent(shownPlan{runID, made, plan}, "", "  ")
			if err != nil {
				return err
			}
			data, err := a.edited(file, old)
			if err != nil {
				return err
			}
			next := shownPlan{}
			dec := json.NewDecoder(bytes.NewReader(data))
			dec.DisallowUnknownFields()
			if err := dec.Decode(&next); err != nil {
				return usagef("the plan cannot be read, so nothing is changed: %w", err)
			}
			if wrong := harness.PlanFlaw(next.Plan); wrong != "" {
				return usagef("the plan cannot be taken, so nothing is changed: %s", wrong)
			}
			if err := harness.EditPlan(filepath.Dir(filepath.Dir(dir)), runID, next.Plan); err != nil {
				return err
			}
			if asJSON {
				return a.json(shownPlan{runID, true, next.Plan})
			}
			return a.lines(a.screen().Good("replanned")+"  "+runID, a.screen().Dim("to go on: ")+self()+" resume "+runID)
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "take the plan from this `file` instead of an editor; - is standard input")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// edited is the text after the person has edited it.
func (a *app) edited(file string, old []byte) ([]byte, error) {
	switch {
	case file == "-":
		var b bytes.Buffer
		_, err := b.ReadFrom(a.in)
		return b.Bytes(), err
	case file != "":
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, usagef("%w", err)
		}
		return data, nil
	}
	editor := ""
	for _, name := range []string{"VISUAL", "EDITOR"} {
		for _, v := range a.environ {
			if value, ok := strings.CutPrefix(v, name+"="); ok && editor == "" {
				editor = strings.TrimSpace(value)
			}
		}
	}
	if editor == "" {
		return nil, usagef("no editor is set: set EDITOR, or give the plan with --file")
	}
	dir, err := os.MkdirTemp("", "belay-plan-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "plan.json")
	if err := os.WriteFile(path, append(old, '\n'), 0o600); err != nil {
		return nil, err
	}
	words := strings.Fields(editor)
	cmd := exec.Command(words[0], append(words[1:], path)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return nil, usagef("the editor %q failed, so nothing is changed: %w", editor, err)
	}
	return os.ReadFile(path)
}

func (a *app) compactCommand() *cobra.Command {
	var focus string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "compact RUN",
		Short: "Summarise the older part of a run's context now",
		Long: `Summarise the older part of the context of a run that stands still. The last rounds stay word for word, and so do
objective, constraints and plan; the originals stay in the journal. A summary that is unsound is made again once, and
then by belay itself from its records.`,
		Example:           "  belay compact last\n  belay compact r_01k5 --focus \"the database schema\"",
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
			cfg := harness.Config{Home: filepath.Dir(filepath.Dir(dir)), Version: version()}
			if cfg.Known, err = a.known(); err != nil {
				return err
			}
			done, err := harness.Compact(cmd.Context(), runID, cfg, focus)
			if err != nil {
				return err
			}
			var last journal.Compaction
			if done {
				for e, err := range journal.Read(dir) {
					if err != nil {
						return err
					}
					if e.Type == journal.TypeCompaction {
						last = journal.Compaction{}
						if err := e.Decode(&last); err != nil {
							return err
						}
					}
				}
			}
			if asJSON {
				return a.json(struct {
					RunID     string `json:"run_id"`
					Compacted bool   `json:"compacted"`
					journal.Compaction
				}{runID, done, last})
			}
			if !done {
				return a.lines("nothing to summarise: the context has no more rounds than stay word for word, or no summary would be smaller")
			}
			return a.lines(fmt.Sprintf("%s  events %d to %d, by %s: about %s tokens, were %s", a.screen().Good("summarised"), last.From, last.To, render.Line(last.By), render.Count(last.After), render.Count(last.Before)))
		},
	}
	cmd.Flags().StringVar(&focus, "focus", "", "what must be `kept` above all")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
