package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"belay/eval"
)

// evals compares trials of an eval with the agent's command alone: what copying, a process name space, reading the journal, grading and
// the log add to it. The aim: 150 ms.
func evals(trials int, binary string) error {
	dir, err := os.MkdirTemp("", "bench-eval-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if binary == "" {
		binary = filepath.Join(dir, "belay")
		if out, err := exec.Command("go", "build", "-o", binary, "belay/cmd/belay").CombinedOutput(); err != nil {
			return fmt.Errorf("build belay: %w: %s", err, out)
		}
	}
	task := filepath.Join(dir, "suite", "answer")
	for name, text := range map[string]string{
		"task.yaml": "id: answer\nworkspace: {dir: w}\nprompt: x\ngraders:\n  - {type: code, run: \"sh check.sh\", files: hidden}\n" +
			"  - {type: transcript, forbid: [{class: 4}, {circumvention: true}]}\n",
		"oracle.yaml":     "version: 1\nturns: [{calls: [{tool: Write, args: {file_path: answer.txt, content: right}}]}]\notherwise: {say: Done.}\n",
		"w/answer.txt":    "wrong\n",
		"hidden/check.sh": "grep -q right answer.txt\n",
	} {
		file := filepath.Join(task, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			return err
		}
	}
	script := filepath.Join(task, "oracle.yaml")
	fmt.Printf("median of %d trials, ms\n\n| agent | alone | trial | over | of it grading |\n|---|---|---|---|---|\n", trials)
	for _, a := range []struct {
		name string
		flag []string
		line string
	}{
		{"a shell line", []string{"--agent", ": {prompt}; echo right > answer.txt"}, ": x; echo right > answer.txt"},
		{"belay, two turns", []string{"--model", "rehearsal:oracle"}, "exec \"$BELAY\" run x --json --model rehearsal:" + script},
	} {
		alone, err := commandAlone(trials, dir, binary, a.line)
		if err != nil {
			return err
		}
		whole, grading, err := trialsOf(trials, dir, binary, a.flag)
		if err != nil {
			return err
		}
		fmt.Printf("| %s | %.1f | %.1f | **%.1f** | %.1f |\n", a.name, median(alone), median(whole), median(whole)-median(alone), median(grading))
	}
	return nil
}

// commandAlone times a shell line, each time in a new folder and with a new state, in ms.
func commandAlone(times int, dir, binary, line string) ([]float64, error) {
	var all []float64
	for range times {
		place, err := os.MkdirTemp(dir, "alone-")
		if err != nil {
			return nil, err
		}
		work := filepath.Join(place, "work")
		if err := os.Mkdir(work, 0o755); err != nil {
			return nil, err
		}
		cmd := exec.Command("/bin/sh", "-c", line)
		cmd.Dir, cmd.Env = work, append(os.Environ(), "BELAY="+binary, "BELAY_HOME="+filepath.Join(place, "state"))
		began := time.Now()
		err = cmd.Run()
		all = append(all, ms(time.Since(began)))
		if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) { // an answer without a proof is exit 3
			return nil, err
		}
		if data, err := os.ReadFile(filepath.Join(work, "answer.txt")); err != nil || len(data) == 0 {
			return nil, fmt.Errorf("the agent alone did nothing: %w", errors.Join(err, fs.ErrInvalid))
		}
	}
	return all, nil
}

// trialsOf runs trials one after the other, and gives the times from one result to the next, and those of grading, in ms.
func trialsOf(times int, dir, binary string, flags []string) (whole, grading []float64, err error) {
	out, err := os.MkdirTemp(dir, "results-")
	if err != nil {
		return nil, nil, err
	}
	args := append([]string{"eval", "run", filepath.Join(dir, "suite"), "--no-controls", "--trials", strconv.Itoa(times + 1), "--out", out, "--json"}, flags...)
	cmd := exec.Command(binary, args...)
	cmd.Env = append(os.Environ(), "BELAY_HOME="+filepath.Join(dir, "home"))
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, nil, fmt.Errorf("belay eval run: %w: %s", err, said)
	}
	lines, err := eval.ReadLog(out)
	if err != nil {
		return nil, nil, err
	}
	var last time.Time
	for _, l := range lines {
		if l.Trial == nil {
			continue
		}
		if l.Trial.Outcome != eval.Pass {
			said, _ := json.Marshal(l.Trial)
			return nil, nil, fmt.Errorf("a trial did not pass: %s", said)
		}
		if !last.IsZero() {
			whole, grading = append(whole, ms(l.TS.Sub(last))), append(grading, float64(l.Trial.GradeMS))
		}
		last = l.TS
	}
	return whole, grading, nil
}
