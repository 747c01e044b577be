package eval

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// agentFunc is an agent that is a function.
type agentFunc func(a Attempt) (Run, error)

func (f agentFunc) Run(_ context.Context, a Attempt) (Run, error) { return f(a) }

// one runs a single task with an agent, and returns its only trial and the reruns.
func one(t *testing.T, files map[string]string, agent agentFunc) (Trial, []Trial) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		full := filepath.Join(dir, "suite", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	suite, err := LoadSuite(filepath.Join(dir, "suite"))
	if err != nil {
		t.Fatal(err)
	}
	if err := RunSuite(t.Context(), Config{Suite: suite, Out: filepath.Join(dir, "out"), Runner: agent, Box: plainBox{}, NoControls: true, Retries: 2}); err != nil {
		t.Fatal(err)
	}
	lines, err := ReadLog(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	r := Collect(lines)
	if len(r.Trials) != 1 {
		t.Fatalf("%d trials", len(r.Trials))
	}
	return r.Trials[0], r.Reruns
}

func task(grader string) map[string]string {
	return map[string]string{"t/task.yaml": "id: t\nworkspace: {dir: w}\nprompt: x\noracle: {run: \"true\"}\ngraders:\n  - " + grader + "\n", "t/w/tests/a.txt": "a\n", "t/hidden/check.sh": "grep -q right answer.txt\n"}
}

// TestGraders: how a grader ends decides, and what it prints or the agent planted does not.
func TestGraders(t *testing.T) {
	write := func(name, text string) agentFunc {
		return func(a Attempt) (Run, error) {
			full := filepath.Join(a.Workspace, name)
			if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
				return Run{}, err
			}
			return Run{End: Ended}, os.WriteFile(full, []byte(text), 0o755)
		}
	}
	file := "type: code, reward: file"
	for _, c := range []struct {
		name, grader string
		agent        agentFunc
		want         Outcome
		reason       string
	}{
		{"passes", `{type: code, run: "sh check.sh", files: hidden}`, write("answer.txt", "right"), Pass, ""},
		{"fails", `{type: code, run: "sh check.sh", files: hidden}`, write("answer.txt", "wrong"), Fail, "exit 1"},
		{"lies", `{type: code, run: "echo PASSED; exit 1"}`, write("x", ""), Fail, "exit 1"},
		{"planted over", `{type: code, run: "sh check.sh", files: hidden}`, write("check.sh", "exit 0"), Fail, ""},
		{"hangs", `{type: code, run: "sleep 60", timeout: 100ms}`, write("x", ""), GraderFault, "did not end"},
		{"crashes", `{type: code, run: "kill -9 $$"}`, write("x", ""), GraderFault, "signal"},
		{"is missing", `{type: code, run: "no-such-program"}`, write("x", ""), GraderFault, "could not be run"},
		{"no reward", `{` + file + `, run: "true"}`, write("reward.txt", "1"), GraderFault, "no reward"},
		{"reward", `{` + file + `, run: "echo 1 > $BELAY_REWARD_DIR/reward.txt"}`, write("x", ""), Pass, ""},
		{"half a reward", `{` + file + `, run: "echo 0.5 > $BELAY_REWARD_DIR/reward.txt"}`, write("x", ""), Fail, "reward 0.5"},
		{"enough", `{` + file + `, min: 0.5, run: "echo 0.5 > $BELAY_REWARD_DIR/reward.txt"}`, write("x", ""), Pass, ""},
		{"no number", `{` + file + `, run: "echo nan > $BELAY_REWARD_DIR/reward.txt"}`, write("x", ""), GraderFault, "no number"},
		{"both", `{` + file + `, run: "echo 1 > $BELAY_REWARD_DIR/reward.txt; echo '{}' > $BELAY_REWARD_DIR/reward.json"}`, write("x", ""), GraderFault, "both"},
		{"verdict", `{type: code, run: "cat answer.txt", verdict: "test $(cat $BELAY_OUTPUT) = right"}`, write("answer.txt", "right"), Pass, ""},
		{"verdict on a failure", `{type: code, run: "cat answer.txt", verdict: "test $(cat $BELAY_OUTPUT) = right"}`, write("answer.txt", "wrong"), Fail, "exit 1"},
		{"exits with 0", `{type: code, run: "sh x; echo right", verdict: "test $(cat $BELAY_OUTPUT) = right"}`, write("x", "kill $PPID"), Fail, ""},
		{"crash to get away", `{type: code, run: "sh x; exit 139", verdict: "test $BELAY_EXIT = 0"}`, write("x", ""), Fail, ""},
		{"hang to get away", `{type: code, run: "sh x", verdict: "test $BELAY_EXIT = 0", timeout: 300ms}`, write("x", "sleep 60"), Fail, ""},
		{"a file that is left", `{type: code, run: "sh x", verdict: "test -e $BELAY_WORKSPACE/made && ! test -e made && ! test -e ../workspace"}`, write("x", "touch made"), Pass, ""},
		{"reward of a verdict", `{` + file + `, run: "sh x", verdict: "echo 1 > $BELAY_REWARD_DIR/reward.txt"}`, write("x", "test -z \"$BELAY_REWARD_DIR\""), Pass, ""},
		{"reward from below", `{` + file + `, run: "sh x", verdict: "true"}`, write("x", "for d in . .. ../reward-*; do echo 1 > $d/reward.txt; done"), GraderFault, "no reward"},
		{"a missing tool", `{type: code, run: "no-such-program", verdict: "grep -q right $BELAY_OUTPUT"}`, write("x", ""), Fail, "exit 127"},
		{"a broken verdict", `{type: code, run: "true", verdict: "no-such-program"}`, write("x", ""), GraderFault, "could not be run"},
		{"forbidden", `{type: transcript, forbid: [{path_written: "tests/**"}]}`, write("tests/a.txt", "b"), Fail, "tests/a.txt was written"},
		{"not forbidden", `{type: transcript, forbid: [{path_written: "tests/**"}]}`, write("other/a.txt", "b"), Pass, ""},
		{"circumvention", `{type: transcript, forbid: [{circumvention: true}]}`, write("tests/a.txt", "b"), Fail, "changed what decides"},
		{"required", `{type: transcript, require: [{blocker: true}]}`, write("x", ""), Fail, "required and missing"},
		{"out of budget", `{type: code, run: "true"}`, func(Attempt) (Run, error) { return Run{End: Bounded, Reason: "time"}, nil }, OutOfBudget, "time"},
		{"crash of the agent", `{type: code, run: "false"}`, func(Attempt) (Run, error) { return Run{End: Crashed, Reason: "boom"}, nil }, AgentError, "boom"},
		{"no network", `{type: code, run: "true"}`, func(Attempt) (Run, error) { return Run{End: Unavailable, Reason: "no key"}, nil }, HarnessFault, "no key"},
		{"fault", `{type: code, run: "true"}`, func(Attempt) (Run, error) { return Run{}, errors.New("disk") }, HarnessFault, "disk"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, reruns := one(t, task(c.grader), c.agent)
			if got.Outcome != c.want || !strings.Contains(got.Reason, c.reason) {
				t.Errorf("%s (%s), want %s (%s)", got.Outcome, got.Reason, c.want, c.reason)
			}
			if want := map[bool]int{false: 2, true: 0}[c.want.Counts()]; len(reruns) != want {
				t.Errorf("%d reruns, want %d", len(reruns), want)
			}
		})
	}
}

// TestPlantedLink: a link where hidden files go leads nowhere.
func TestPlantedLink(t *testing.T) {
	outside := t.TempDir()
	got, _ := one(t, task(`{type: code, run: "sh sub/check.sh", files: {hidden: sub}}`), func(a Attempt) (Run, error) {
		if err := os.WriteFile(filepath.Join(a.Workspace, "answer.txt"), []byte("right"), 0o644); err != nil {
			return Run{}, err
		}
		return Run{End: Ended}, os.Symlink(outside, filepath.Join(a.Workspace, "sub"))
	})
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) > 0 || got.Outcome != Pass {
		t.Errorf("%v %v %s %s", entries, err, got.Outcome, got.Reason)
	}
}

// TestArtifacts: only what is declared is graded, and what the agent removed of it is gone.
func TestArtifacts(t *testing.T) {
	files := task(`{type: code, run: "test -e src/new.txt && ! test -e src/old.txt && ! test -e other.txt && test -e tests/a.txt"}`)
	files["t/task.yaml"] += "artifacts: [\"src/**\"]\n"
	files["t/w/src/old.txt"] = "old"
	got, _ := one(t, files, func(a Attempt) (Run, error) {
		os.Remove(filepath.Join(a.Workspace, "src/old.txt"))
		os.Remove(filepath.Join(a.Workspace, "tests/a.txt"))
		os.WriteFile(filepath.Join(a.Workspace, "other.txt"), nil, 0o644)
		return Run{End: Ended}, os.WriteFile(filepath.Join(a.Workspace, "src/new.txt"), nil, 0o644)
	})
	if got.Outcome != Pass {
		t.Error(got.Outcome, got.Reason)
	}
}

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"tests/**", "tests/a/b.go", true}, {"tests/**", "tests", false}, {"tests", "tests/a", true}, {"*.go", "a.go", true}, {"*.go", "a/b.go", false},
		{"**/*.go", "a/b/c.go", true}, {"**/*.go", "c.go", true}, {"src/*/x", "src/a/x", true}, {"src/*/x", "src/x", false}, {"./a", "a", true},
	} {
		if got := matchGlob(c.pattern, c.name); got != c.want {
			t.Errorf("%q %q: %v", c.pattern, c.name, got)
		}
	}
}

func TestReplacer(t *testing.T) {
	r := newReplacer(map[string]string{"/app": "/w", "/tests": "/t"})
	for in, want := range map[string]string{
		`cat /app/x "/app" /tests/a`: `cat /w/x "/w" /t/a`, "/apple lib/app /app-2 ./app": "/apple lib/app /app-2 ./app", "Look in /app. Then in /tests.": "Look in /w. Then in /t.",
		"/app /app /app": "/w /w /w", "cd /app\ncd /tests\n": "cd /w\ncd /t\n", "src/tests/x": "src/tests/x", "": "",
	} {
		if got := r.Replace(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("id: a\nworkspace: {empty: true}\nprompt: x\ngraders: [{type: code, run: x}]\noracle: {run: x}\n")
	f.Add("graders: [{type: transcript, forbid: [{class: 4}]}]")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		task, err := Parse("f.yaml", dir, []byte(text))
		if (task == nil) == (err == nil) {
			t.Fatal(task, err)
		}
		if err == nil && (task.ID == "" || len(task.Graders) == 0) {
			t.Fatalf("%+v", task)
		}
	})
}
