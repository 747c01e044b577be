package eval

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain lets this binary be the process that TestKilled kills.
func TestMain(m *testing.M) {
	if dir := os.Getenv("EVAL_TEST_SWEEP"); dir != "" {
		suite, err := LoadSuite(filepath.Join(dir, "suite"))
		if err == nil {
			err = RunSuite(context.Background(), Config{Suite: suite, Out: filepath.Join(dir, "out"), Runner: instant{}, Box: plainBox{}, Trials: 10, Parallel: 3, Retries: 1,
				Facts: []Fact{{"agent", "instant"}}, Progress: func(p Progress) { fmt.Println(p.Done) }})
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// instant is an agent that writes what is right in odd trials.
type instant struct{}

func (instant) Run(_ context.Context, a Attempt) (Run, error) {
	word := "wrong"
	if a.Trial%2 == 1 || a.Trial == 0 {
		word = "right"
	}
	return Run{End: Ended}, os.WriteFile(filepath.Join(a.Workspace, "answer.txt"), []byte(word), 0o644)
}

// plainBox runs lines without a sandbox: what is tested here is what is made of how they end.
type plainBox struct{}

func (plainBox) Run(ctx context.Context, c Command) (Exit, error) {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", c.Line)
	cmd.Dir, cmd.Env, cmd.WaitDelay = c.Dir, append(os.Environ(), c.Env...), time.Second
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return Exit{TimedOut: true, Output: string(out)}, nil
	case errors.As(err, &exit) && exit.ExitCode() < 0:
		return Exit{Code: 137, Signal: "killed", Output: string(out)}, nil
	case errors.As(err, &exit):
		return Exit{Code: exit.ExitCode(), Output: string(out)}, nil
	}
	return Exit{Output: string(out)}, err
}

func writeTasks(t testing.TB, dir string, n int) {
	t.Helper()
	for i := range n {
		task := filepath.Join(dir, "suite", fmt.Sprintf("t%03d", i))
		if err := os.MkdirAll(task, 0o755); err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("id: t%03d\nworkspace: {empty: true}\nprompt: x\ngraders: [{type: code, run: \"grep -q right answer.txt\"}]\noracle: {run: \"echo right > answer.txt\"}\n", i)
		if err := os.WriteFile(filepath.Join(task, "task.yaml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestKilled kills a sweep fifty times, each time after a few results, and then lets it end: every trial is there once.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	const tasks, trials = 20, 10
	writeTasks(t, dir, tasks)
	r := rand.New(rand.NewPCG(7, 7))
	kills := 0
	for ended := false; !ended; {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "EVAL_TEST_SWEEP="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		after := -1
		if kills < 50 {
			after = r.IntN(4)
		}
		lines := bufio.NewScanner(out)
		var last string
		for n := 0; n != after && lines.Scan(); n++ {
			last = lines.Text()
		}
		if after >= 0 {
			cmd.Process.Kill()
		}
		err = cmd.Wait()
		switch {
		case err == nil:
			ended = true
		case after >= 0:
			kills++
		default:
			t.Fatalf("%v: %s", err, last)
		}
	}
	if kills != 50 {
		t.Fatalf("only %d kills before the end", kills)
	}
	lines, err := ReadLog(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	results := Collect(lines)
	seen := map[string]bool{}
	for _, trial := range results.Trials {
		key := fmt.Sprint(trial.Task, trial.Trial)
		if seen[key] {
			t.Errorf("%s is there twice", key)
		}
		seen[key] = true
	}
	if len(seen) != tasks*trials {
		t.Errorf("%d results, want %d", len(seen), tasks*trials)
	}
	for _, c := range results.Counts() {
		if c.N != trials || c.C != trials/2 {
			t.Errorf("%s: %d of %d", c.ID, c.C, c.N)
		}
	}
}

// TestTornLine cuts a log in the middle of its last line: what was acknowledged stays.
func TestTornLine(t *testing.T) {
	dir := t.TempDir()
	log, _, err := OpenLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if err := log.Append(Line{Type: lineTrial, Trial: &Trial{Task: "a", Trial: i + 1, Outcome: Pass}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := OpenLog(dir); err == nil {
		t.Error("two processes write at once")
	}
	log.Close()
	file := filepath.Join(dir, logName)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data[:len(data)-20], 0o644); err != nil {
		t.Fatal(err)
	}
	log, lines, err := OpenLog(dir)
	if err != nil || len(lines) != 2 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	if err := log.Append(Line{Type: lineTrial, Trial: &Trial{Task: "a", Trial: 3, Outcome: Fail}}); err != nil {
		t.Fatal(err)
	}
	log.Close()
	if lines, err := ReadLog(dir); err != nil || len(lines) != 3 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(data), `"trial":1`, `"trial":9`, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadLog(dir); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("a changed line: %v", err)
	}
}
