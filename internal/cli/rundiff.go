package cli

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"belay/checkpoint"
	"belay/internal/snapshot"
	"belay/journal"
)

func (a *app) diffCommand() *cobra.Command {
	var step string
	var stat, asJSON bool
	cmd := &cobra.Command{
		Use: "diff RUN", Short: "Show what the agent changed, apart from what you changed",
		Long: `Show what the agent of a run changed, apart from what anybody else changed meanwhile. Where both changed a file, each of the
agent's changes stands by itself. What was taken back is left out.`,
		Example: "  belay diff last\n  belay diff last --stat\n  belay diff last --step s2 --json", Args: oneRun, ValidArgsFunction: a.completeRun,
		RunE: func(_ *cobra.Command, args []string) error {
			runID, dir, err := a.find(args[0])
			if err == nil {
				err = readable(dir)
			}
			if err != nil {
				return err
			}
			s, err := a.checkpoints(summarize(dir).Workspace)
			if err != nil {
				return err
			}
			changes, err := agentChanges(s, dir, step)
			if err != nil {
				return damaged(fmt.Errorf("what run %s changed: %w", runID, err), runID)
			}
			return a.showChanges(s.Read, changes, stat, asJSON)
		},
	}
	cmd.Flags().StringVar(&step, "step", "", "only what one `step` changed")
	cmd.Flags().BoolVar(&stat, "stat", false, "only name the files")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// agentChanges folds a run's checkpoints: of each path, what the agent made of it, one change for each stretch in which
// nobody else changed it.
func agentChanges(s *snapshot.Store, dir, step string) ([]checkpoint.Change, error) {
	mine := map[string][]checkpoint.Change{}
	open := map[string]bool{} // the last change of a path may go on
	trees, last := map[string]string{}, ""
	for e, err := range journal.Read(dir) {
		if err != nil {
			return nil, err
		}
		switch e.Type {
		case journal.TypeCheckpoint:
			var c journal.Checkpoint
			if err := e.Decode(&c); err != nil {
				return nil, err
			}
			trees[c.ID] = c.Tree
			if last != "" && last != c.Tree {
				changes, err := s.Diff(last, c.Tree)
				if err != nil {
					return nil, err
				}
				byAgent := map[string]bool{}
				for _, path := range c.Agent {
					byAgent[path] = true
				}
				for _, ch := range changes {
					if !byAgent[ch.Path] {
						open[ch.Path] = false
						continue
					}
					if step != "" && e.Step != step {
						continue
					}
					extend(mine, open, ch)
				}
			}
			last = c.Tree
		case journal.TypeRewind:
			var w journal.Rewind
			if err := e.Decode(&w); err != nil {
				return nil, err
			}
			if to := trees[w.Checkpoint]; w.Files && to != "" && last != "" {
				changes, err := s.Diff(last, to)
				if err != nil {
					return nil, err
				}
				for _, ch := range changes {
					if len(mine[ch.Path]) > 0 {
						first := mine[ch.Path][0]
						first.Now, first.NowMode = ch.Now, ch.NowMode
						mine[ch.Path] = []checkpoint.Change{first}
					}
				}
				last = to
			}
		}
	}
	var all []checkpoint.Change
	for _, path := range slices.Sorted(maps.Keys(mine)) {
		for _, c := range mine[path] {
			switch {
			case c.Was == c.Now && c.WasMode == c.NowMode:
				continue
			case c.WasMode == 0:
				c.Kind = checkpoint.Added
			case c.NowMode == 0:
				c.Kind = checkpoint.Deleted
			default:
				c.Kind = checkpoint.Modified
			}
			all = append(all, c)
		}
	}
	return all, nil
}

// extend adds a change to those of its path.
func extend(mine map[string][]checkpoint.Change, open map[string]bool, c checkpoint.Change) {
	have := mine[c.Path]
	if n := len(have); n > 0 && open[c.Path] {
		have[n-1].Now, have[n-1].NowMode = c.Now, c.NowMode
		return
	}
	mine[c.Path], open[c.Path] = append(have, c), true
}
