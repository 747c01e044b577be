//go:build unix

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"belay/harness"
	"belay/loop"
)

// TestMain makes this test program a belay whose runs last until they are stopped, when the environment says so.
func TestMain(m *testing.M) {
	kind := os.Getenv("BELAY_TEST_RUN")
	if kind == "" {
		os.Exit(m.Run())
	}
	a := &app{in: os.Stdin, out: os.Stdout, err: os.Stderr, home: func() (string, error) { return os.Getenv("BELAY_HOME"), nil },
		userDir: func() (string, error) { return os.Getenv("BELAY_HOME"), nil }}
	a.run = func(ctx context.Context, cfg harness.Config) (harness.Result, error) {
		if cfg.Progress != nil {
			cfg.Progress("working")
		}
		fmt.Fprintln(os.Stderr, "ready")
		if kind == "stubborn" {
			<-time.After(time.Hour) // deaf to its context
		}
		<-ctx.Done()
		return record(os.Getenv("BELAY_HOME"), loop.ExitInterrupted)(ctx, cfg)
	}
	os.Exit(a.main(context.Background(), []string{"run", "x", "--model", "rehearsal:f", os.Getenv("BELAY_TEST_FLAG")}))
}

func TestInterrupt(t *testing.T) {
	tests := []struct {
		kind, flag string
		signals    []syscall.Signal
	}{
		{"polite", "--json", []syscall.Signal{syscall.SIGINT}},
		{"polite", "--json=false", []syscall.Signal{syscall.SIGTERM}},
		{"stubborn", "--json", []syscall.Signal{syscall.SIGINT, syscall.SIGINT}},
		{"stubborn", "--json=false", []syscall.Signal{syscall.SIGTERM, syscall.SIGINT}},
	}
	for _, tt := range tests {
		t.Run(tt.kind+tt.flag, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), "BELAY_TEST_RUN="+tt.kind, "BELAY_TEST_FLAG="+tt.flag, "BELAY_HOME="+t.TempDir())
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			cmd.Stderr = cmd.Stdout // what is said may stand on either
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			said := bufio.NewScanner(out)
			await := func(text string) {
				for said.Scan() {
					if strings.Contains(said.Text(), text) {
						return
					}
				}
				t.Fatalf("it ended without saying %q", text)
			}
			await("ready")
			for n, signal := range tt.signals {
				if err := cmd.Process.Signal(signal); err != nil {
					t.Fatal(err)
				}
				if n == 0 {
					await("stopping; press again to leave at once")
				}
			}
			for said.Scan() {
			}
			var exit *exec.ExitError
			if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != int(loop.ExitInterrupted) {
				t.Errorf("it ended with %v, want exit 130", err)
			}
		})
	}
}
