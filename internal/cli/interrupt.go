package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"belay/loop"
)

// interruptible makes the first SIGINT, SIGTERM or SIGHUP (the terminal is gone) cancel the context after saying
// so, and the second leave at once. A write to a closed pipe becomes an ordinary error, so that the run can end in order. Cancel may be called
// at any time; stop gives the signals back and must be called once.
func interruptible(ctx context.Context, say func(string)) (_ context.Context, cancel, stop func()) {
	ctx, cancel = context.WithCancel(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	done := make(chan struct{})
	go func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-signals:
			}
			if n > 0 {
				os.Exit(int(loop.ExitInterrupted))
			}
			cancel() // before saying so: the terminal may be the one that hangs
			say("stopping; press again to leave at once")
		}
	}()
	return ctx, cancel, func() {
		signal.Stop(signals)
		signal.Stop(pipe)
		close(done)
		cancel()
	}
}
