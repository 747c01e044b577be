// Package family runs a program together with everything that it starts, and ends them all before it returns.
package family

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"time"
)

// End is how a program ended.
type End struct {
	Code   int    // exit code; 128+n when signal n ended it
	Signal string // "" when it exited by itself
	Memory int64  // bytes of the largest process, 0 where the system does not tell
	// Kept is why a process might be left over, "" where none can be.
	Kept string
}

// First is the first argument of a program that is to call BeFirst.
const First = "first-of-a-family"

// grace is how long a program may take to end in order after its context was cancelled.
const grace = 5 * time.Second

// Run starts the program and waits. When ctx ends it is asked to stop, and killed when it does not. When Run returns, no process that it
// has started is alive; they die with this process too. Self is a program that calls BeFirst when its first argument is First. An error
// means that it could not be started.
func Run(ctx context.Context, self string, cmd *exec.Cmd) (End, error) {
	// The kernel ends the program when the thread that started it is gone.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	kept, err := start(self, cmd)
	if err != nil {
		return End{}, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	done := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-done:
			return
		case <-ctx.Done():
		}
		interrupt(cmd)
		select {
		case <-done:
		case <-time.After(grace):
			kill(cmd)
		}
	}()
	err = cmd.Wait()
	close(done)
	<-watched
	kill(cmd) // what is left of its group
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		return End{}, err
	}
	end := ended(cmd.ProcessState)
	end.Kept = kept
	return end, nil
}
