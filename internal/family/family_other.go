//go:build !linux

package family

import (
	"errors"
	"os"
	"os/exec"
	"time"
)

func start(_ string, cmd *exec.Cmd) (kept string, err error) {
	cmd.WaitDelay = time.Second
	return "on this system a process that the program has started may live on", cmd.Start()
}

func interrupt(cmd *exec.Cmd) { _ = cmd.Process.Signal(os.Interrupt) }

func kill(cmd *exec.Cmd) { _ = cmd.Process.Kill() }

func ended(state *os.ProcessState) End { return End{Code: state.ExitCode()} }

// BeFirst is never needed here.
func BeFirst([]string) error { return errors.New("there are no process name spaces on this system") }
