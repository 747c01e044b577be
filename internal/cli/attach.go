package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"belay/harness"
	"belay/internal/render"
	"belay/journal"
)

func (a *app) attachCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "attach RUN",
		Short: "Follow a run as it works, and answer what it asks",
		Long: `Follow a run as it works, from another terminal, and answer what it asks a person. It never stops the run: Ctrl-C leaves the run alone. A
run that has paused for an answer takes it with the next belay resume.`,
		Example:           "  belay attach last\n  belay attach r_01k5",
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
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return a.attach(ctx, runID, dir)
		},
	}
}

func (a *app) attach(ctx context.Context, runID, dir string) error {
	live := render.NewLive(a.out, a.screen(), nil)
	defer live.Close()
	var asking sync.WaitGroup
	defer asking.Wait()
	answerable := render.IsTerminal(a.in) && render.IsTerminal(a.out)
	term := &terminal{live, newKeyboard(a.in)}
	open := map[string]context.CancelFunc{}
	var mu sync.Mutex
	ask := func(q journal.Question) {
		ctx, cancel := context.WithCancel(ctx)
		mu.Lock()
		open[q.ID] = cancel
		mu.Unlock()
		asking.Go(func() {
			defer cancel()
			answer, err := term.ask(ctx, q)
			if err != nil {
				return
			}
			answer.ID = q.ID
			home, err := a.home()
			if err == nil {
				var waiting bool
				if waiting, err = harness.Answer(home, runID, answer); err == nil && !waiting {
					live.Notice("  answered; to go on: " + self() + " resume " + runID)
				}
			}
			if err != nil {
				live.Notice("  " + render.Line(err.Error()))
			}
		})
	}
	var last *journal.Question
	for e, err := range journal.Follow(ctx, dir) {
		if err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return damaged(err, runID)
		}
		live.Observe(e)
		switch e.Type {
		case journal.TypeQuestion:
			var q journal.Question
			if e.Decode(&q) == nil {
				last = &q
			}
		case journal.TypeAnswer:
			var given journal.Answer
			if e.Decode(&given) == nil {
				mu.Lock()
				if cancel := open[given.ID]; cancel != nil {
					cancel()
				}
				mu.Unlock()
				last = nil
			}
			continue
		}
		if last != nil && answerable && e.Type == journal.TypeQuestion {
			if still, err := harness.OpenQuestions(dir); err == nil && len(still) > 0 && still[len(still)-1].ID == last.ID {
				ask(*last)
			}
		}
	}
	if ctx.Err() != nil && !errors.Is(ctx.Err(), context.Canceled) {
		return ctx.Err()
	}
	return nil
}
