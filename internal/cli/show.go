package cli

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"belay/harness"
	"belay/internal/render"
	"belay/journal"
)

func (a *app) showCommand() *cobra.Command {
	var asJSON, full, follow bool
	var only string
	cmd := &cobra.Command{
		Use:   "show RUN",
		Short: "Tell the story of a run",
		Long: `Tell the story of a run: its task, each turn's words and calls with class and verdict, what was verified, how it
ended and what proves it. A run that is still being written is told as far as it goes; --follow waits for more and
ends with the process that writes, and with Ctrl-C. It never writes.

On a terminal a story longer than the screen is shown a page at a time, by $PAGER or less. --turns shows a part of a
long run: 12, 90-120, or 90- for all from there on.`,
		Example:           "  belay show last\n  belay show r_01k5 --full\n  belay show last --turns 90-\n  belay show last --follow\n  belay show last --json | jq '.[].type'",
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
			events := journal.Read(dir)
			chosen, err := turnRange(only)
			if err != nil {
				return err
			}
			if follow {
				ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
				defer stop()
				events = journal.Follow(ctx, dir)
			}
			events = chosen.of(events)
			switch {
			case asJSON && follow:
				return a.streamJSON(runID, events)
			case asJSON:
				return a.showJSON(dir, chosen)
			}
			story := render.Story{Screen: a.screen(), Full: full, Follow: follow, Holds: func(start journal.SessionStart, proofs []journal.Proof) (bool, error) {
				return a.holds(cmd.Context(), start, proofs)
			}}
			if follow {
				return damaged(story.Tell(a.out, runID, events), runID)
			}
			return a.page(func(w io.Writer) error { return damaged(story.Tell(w, runID, events), runID) })
		},
	}
	cmd.Flags().BoolVar(&full, "full", false, "cut nothing: arguments, outputs, thinking")
	cmd.Flags().StringVar(&only, "turns", "", "only these turns, as `N`, FROM-TO or FROM-")
	cmd.Flags().BoolVar(&follow, "follow", false, "wait for more while the run is being written")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the events as a JSON array; with --follow, as one line of JSON each")
	return cmd
}

// holds says whether the workspace is still the tree that was proved.
func (a *app) holds(ctx context.Context, start journal.SessionStart, proofs []journal.Proof) (bool, error) {
	home, err := a.home()
	if err != nil {
		return false, err
	}
	if _, err := os.Stat(start.Workspace); err != nil {
		return false, err
	}
	tree, err := harness.TreeDigest(ctx, start.Workspace, home)
	if err != nil {
		return false, err
	}
	for _, p := range proofs {
		if p.Tree != tree {
			return false, nil
		}
	}
	return true, nil
}

// showJSON prints a run's events only when all of them are sound: half an array is no JSON. So it reads the run
// twice, and holds one event at a time.
func (a *app) showJSON(dir string, chosen turns) error {
	for e, err := range journal.Read(dir) {
		if err != nil {
			return damaged(err, e.RunID)
		}
	}
	out := bufio.NewWriter(a.out)
	before := "[\n"
	for e, err := range chosen.of(journal.Read(dir)) {
		if err != nil {
			return damaged(err, e.RunID)
		}
		line, err := compact(e)
		if err != nil {
			return err
		}
		out.WriteString(before)
		out.Write(bytes.TrimSuffix(line, []byte("\n")))
		before = ",\n"
	}
	if before == "[\n" {
		out.WriteString("[")
	}
	out.WriteString("\n]\n")
	return out.Flush()
}

// streamJSON prints each event as it comes.
func (a *app) streamJSON(runID string, events iter.Seq2[journal.Event, error]) error {
	for e, err := range events {
		if err != nil {
			return damaged(err, runID)
		}
		line, err := compact(e)
		if err != nil {
			return err
		}
		if _, err := a.out.Write(line); err != nil {
			return err
		}
	}
	return nil
}

// damaged adds to a damaged journal's error what to do about it.
func damaged(err error, runID string) error {
	var damage *journal.DamageError
	if !errors.As(err, &damage) {
		return err
	}
	return &advice{err, "what comes before that line is sound; `" + self() + " journal verify " + runID + "` lists every finding, and `" + self() + " journal repair " + runID + "` shows what can be done"}
}

// advice is an error with a second line that says what to do.
type advice struct {
	err error
	do  string
}

func (e *advice) Error() string { return e.err.Error() + "\n" + e.do }
func (e *advice) Unwrap() error { return e.err }
