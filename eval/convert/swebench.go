package convert

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// instance is one row of the data set.
type instance struct {
	Repo       string          `json:"repo"`
	ID         string          `json:"instance_id"`
	Base       string          `json:"base_commit"`
	Patch      string          `json:"patch"`
	TestPatch  string          `json:"test_patch"`
	Problem    string          `json:"problem_statement"`
	FailToPass json.RawMessage `json:"FAIL_TO_PASS"`
	PassToPass json.RawMessage `json:"PASS_TO_PASS"`
	Image      string          `json:"image"`
	EvalScript string          `json:"eval_script"`
}

// names reads a list, or a list in a string as the data set's rows have it.
func names(raw json.RawMessage) (all []string, err error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = json.RawMessage(text)
	}
	if len(raw) == 0 {
		return nil, nil
	}
	err = json.Unmarshal(raw, &all)
	return all, err
}

// sweBench reads a JSON Lines file, or the *.jsonl of a folder. A repository is taken from repos/OWNER__NAME beside it: without one the task would need
// the network.
func sweBench(dir, out string) ([]Verdict, error) {
	files := []string{dir}
	base := filepath.Dir(dir)
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		base = dir
		if files, err = filepath.Glob(filepath.Join(dir, "*.jsonl")); err != nil {
			return nil, err
		}
	}
	var all []Verdict
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		in := bufio.NewScanner(bytes.NewReader(data))
		in.Buffer(nil, 64<<20)
		for number := 1; in.Scan(); number++ {
			if strings.TrimSpace(in.Text()) == "" {
				continue
			}
			var row instance
			from := fmt.Sprintf("%s:%d", file, number)
			if err := json.Unmarshal(in.Bytes(), &row); err != nil {
				all = append(all, Verdict{Task: from, From: from, Why: err.Error()})
				continue
			}
			v := Verdict{Task: identifier(row.ID), From: from}
			err := oneInstance(row, base, out, &v)
			all = append(all, finish(v, out, err))
		}
		if err := in.Err(); err != nil {
			return all, err
		}
	}
	return all, nil
}

func oneInstance(row instance, base, out string, v *Verdict) error {
	if row.ID == "" || row.Base == "" || row.Patch == "" || row.TestPatch == "" {
		return fmt.Errorf("the row lacks instance_id, base_commit, patch or test_patch")
	}
	repo, err := filepath.Abs(filepath.Join(base, "repos", strings.ReplaceAll(row.Repo, "/", "__")))
	if err != nil {
		return err
	}
	if !exists(repo) {
		return fmt.Errorf("network needed: the repository %s is not at %s", row.Repo, repo)
	}
	if err := exec.Command("git", "-C", repo, "cat-file", "-e", row.Base+"^{commit}").Run(); err != nil {
		return fmt.Errorf("the repository at %s has no commit %s", repo, row.Base)
	}
	if row.Image != "" || row.EvalScript != "" {
		return fmt.Errorf("image needed: its tests run by a script in %s", orImage(row.Image))
	}
	if err := exec.Command("python3", "-c", "import pytest").Run(); err != nil {
		return fmt.Errorf("image needed: its tests run with pytest and what the repository depends on, which are not installed here")
	}
	must, err := names(row.FailToPass)
	if err != nil {
		return fmt.Errorf("FAIL_TO_PASS: %w", err)
	}
	keep, err := names(row.PassToPass)
	if err != nil {
		return fmt.Errorf("PASS_TO_PASS: %w", err)
	}
	if len(must) == 0 {
		return fmt.Errorf("FAIL_TO_PASS is empty: nothing would tell whether it is solved")
	}
	to, err := place(out, v.Task)
	if err != nil {
		return err
	}
	v.To = to
	v.Shims = []string{"the environment is this machine's python3, not the instance's image", "the repository holds the base commit alone: later commits would give the solution away"}
	for name, text := range map[string]string{"solution.patch": row.Patch, "hidden/test.patch": row.TestPatch, "hidden/tests.txt": strings.Join(append(must, keep...), "\n") + "\n"} {
		if err := copyText(filepath.Join(to, name), text); err != nil {
			return err
		}
	}
	line := `git apply --whitespace=nowarn "$BELAY_TESTS_DIR/test.patch" && tr '\n' '\0' < "$BELAY_TESTS_DIR/tests.txt" | xargs -0 python3 -m pytest -q -p no:cacheprovider`
	return copyText(filepath.Join(to, "task.yaml"), fmt.Sprintf("id: %s\nsource: {kind: swe-bench, url: %s}\nworkspace: {git: %s, commit: %s}\nprompt: %s\npaths: {/tests: tests}\nshims: %s\ngraders:\n  - {name: tests, type: code, run: %s, files: {hidden: /tests}, timeout: 30m}\noracle: {patch: solution.patch}\n",
		v.Task, quote(row.Repo), quote(repo), row.Base, quote(row.Problem), list(v.Shims), quote(line)))
}

func orImage(image string) string {
	if image == "" {
		return "an image"
	}
	return "the image " + image
}
