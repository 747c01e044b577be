//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"belay/tool"
)

// TestSignalsToTheFirstProcess sends every signal there is to the helper that the command runs in.
func TestSignalsToTheFirstProcess(t *testing.T) {
	s := newSandbox(t, nil)
	needIsolation(t, s)
	t.Cleanup(s.Close)
	e := s.Env(write, "")
	must(t, e, "true")
	h := standingHelper(t, s)
	line := "for n in $(seq 1 64); do kill -$n 1; done 2>/dev/null; " +
		"python3 -c 'import os; [os.kill(1, n) for n in range(1, 65)]'; echo still"
	if out, exit := sh(t, e, line); exit.Code != 0 || out != "still" || len(exit.Denied) > 0 {
		t.Errorf("%+v %s", exit, out)
	}
	must(t, e, "true")
	if standingHelper(t, s) != h {
		t.Error("a signal ended the helper")
	}
}

// onOutput calls once when something is written.
type onOutput struct {
	buf bytes.Buffer
	do  func()
}

func (o *onOutput) Write(b []byte) (int, error) {
	if o.do != nil {
		o.do()
		o.do = nil
	}
	return o.buf.Write(b)
}

// TestHelperDiesDuringACommand ends it as the kernel does for want of memory.
func TestHelperDiesDuringACommand(t *testing.T) {
	s := newSandbox(t, nil)
	needIsolation(t, s)
	t.Cleanup(s.Close)
	must(t, s.Env(write, ""), "true")
	h := standingHelper(t, s)
	out := onOutput{do: func() { h.process.Kill() }}
	exit, err := s.Env(write, "").Exec(t.Context(), tool.Command{Argv: []string{"sh", "-c", "echo runs; sleep 1000"}, Output: &out, Timeout: time.Minute})
	if err != nil || exit.Code != 137 || exit.Signal != "killed" || exit.TimedOut || len(exit.Denied) != 1 || !strings.Contains(exit.Denied[0], "the sandbox ended") {
		t.Errorf("%+v %v", exit, err)
	}
	if out.buf.String() != "runs\n" {
		t.Errorf("%q", out.buf.String())
	}
	if out := must(t, s.Env(write, ""), "echo next"); out != "next" {
		t.Errorf("%q", out)
	}
}

// TestFirstProcessIsNotThere looks in proc for the helper under the numbers of all of its threads.
func TestFirstProcessIsNotThere(t *testing.T) {
	s := newSandbox(t, nil)
	needIsolation(t, s)
	t.Cleanup(s.Close)
	for _, e := range []tool.Env{s.Env(read, ""), s.Env(write, ""), s.VerifierEnv(discard, "")} {
		out := must(t, e, "ls -d /proc/1; for n in $(seq 1 400); do grep -sHE '^Tgid:[[:space:]]*1$' /proc/$n/status; head -1 /proc/$n/task/$n/mountinfo; "+
			"echo 0 > /proc/$n/oom_score_adj; done 2>/dev/null | grep -v ' / / '; cat /proc/$$/comm; sleep 1000 & cat /proc/$!/comm >/dev/null && ls /proc | grep -c '^[0-9]'")
		if lines := strings.Split(out, "\n"); len(lines) != 3 || !strings.Contains(lines[0], "/proc/1") || lines[1] != "sh" {
			t.Errorf("%q", out)
		}
	}
}

// TestVerifiersHaveTheirOwnHelper does to the standing helper, from outside, what no command of the agent can do any
// more, and looks whether a verifier gets to feel it.
func TestVerifiersHaveTheirOwnHelper(t *testing.T) {
	s := newSandbox(t, nil)
	needIsolation(t, s)
	t.Cleanup(s.Close)
	must(t, s.Env(read, ""), "true")
	h := standingHelper(t, s)
	outside(t, "/", "prlimit", "--pid", fmt.Sprint(h.process.Pid), "--stack=4194304:4194304")
	if out := must(t, s.Env(read, ""), "ulimit -Hs"); out != "4096" {
		t.Fatal("the limit did not reach the helper, so nothing was tested")
	}
	spaces := "readlink /proc/self/ns/net; readlink /proc/self/ns/pid; readlink /proc/self/ns/user"
	shared := must(t, s.Env(read, ""), spaces) // of a helper that stays, so that their numbers stay taken
	for range 2 {
		out := must(t, s.VerifierEnv(discard, ""), "ulimit -Hs; "+spaces)
		limit, own, _ := strings.Cut(out, "\n")
		if limit == "4096" {
			t.Errorf("a verifier inherited the limit %s", limit)
		}
		for name := range strings.Lines(own) {
			if name = strings.TrimSpace(name); strings.Contains(shared, name) {
				t.Errorf("a verifier shares %s", name)
			}
		}
		if standingHelper(t, s) != h {
			t.Error("the helper of a verifier waits for more")
		}
	}
}

// TestProcessorsAreGivenBack takes processors from every thread of the helper.
func TestProcessorsAreGivenBack(t *testing.T) {
	s := newSandbox(t, nil)
	needIsolation(t, s)
	t.Cleanup(s.Close)
	e := s.Env(write, "")
	before := must(t, e, "nproc")
	must(t, e, "for n in $(seq 1 200); do taskset -p 1 $n; done >/dev/null 2>&1; taskset 1 nproc")
	if after := must(t, e, "nproc"); after != before {
		t.Errorf("%s processors, before %s", after, before)
	}
}
