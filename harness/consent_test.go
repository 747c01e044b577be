package harness_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"belay/harness"
	"belay/internal/sandbox"
	"belay/journal"
	"belay/loop"
	"belay/policy"
)

// situated is a repository with a branch and a script for the model.
func situated(t *testing.T, script string) harness.Config {
	t.Helper()
	t.Setenv("BELAY_HOME", filepath.Join(t.TempDir(), "state"))
	ws := t.TempDir()
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "a"}, {"branch", "old"}} {
		if out, err := exec.Command("git", append([]string{"-C", ws}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	file := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(file, []byte("version: 1\nname: s\n"+script), 0o644); err != nil {
		t.Fatal(err)
	}
	return harness.Config{Task: "delete the branch old", Workspace: ws, Model: "rehearsal:" + file, Mode: policy.Edit, Sandbox: sandboxOr()}
}

// sandboxOr is what lets commands run on this machine.
func sandboxOr() string {
	if sandbox.Probe(context.Background()).Isolation == sandbox.None {
		return "off"
	}
	return "on"
}

func branches(t *testing.T, ws string) string {
	t.Helper()
	out, err := exec.Command("git", "-C", ws, "branch", "--list", "old").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func events[P any](t *testing.T, r harness.Result, typ journal.Type) []P {
	t.Helper()
	var all []P
	for e, err := range journal.Read(r.Dir) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type != typ {
			continue
		}
		var p P
		if err := e.Decode(&p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

const deletes = `turns:
  - calls: [{tool: Bash, args: {command: "git branch -D old"}}]
  - say: done
`

// Who does not understand a command asks for an explanation, and is asked again with it. A model may call it worse than its class
// is, and no better.
func TestExplanation(t *testing.T) {
	for name, c := range map[string]struct{ says, risk, text string }{
		"worse":      {"high\nIt deletes a branch.", "high", "It deletes a branch."},
		"better":     {"low\nIt is harmless.", "medium", "It is harmless."},
		"no label":   {"It deletes a branch.", "medium", "It deletes a branch."},
		"only label": {"medium", "medium", "The model gave no explanation."},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := situated(t, deletes+"when:\n  - purpose: explain\n    say: "+quoted(c.says)+"\n")
			var asked []journal.Question
			cfg.Ask = func(_ context.Context, q journal.Question) (journal.Answer, error) {
				if asked = append(asked, q); len(asked) == 1 {
					return journal.Answer{Choice: loop.AnswerExplain}, nil
				}
				return journal.Answer{Choice: loop.AnswerNo, Reason: "not now"}, nil
			}
			r, err := harness.Run(t.Context(), cfg)
			if err != nil || len(asked) != 2 || asked[0].Explanation != nil || asked[1].Explanation == nil {
				t.Fatalf("%v: %+v", err, asked)
			}
			if e := *asked[1].Explanation; e.Risk != c.risk || e.Text != c.text || e.By != "rehearsal:s" {
				t.Errorf("%+v", e)
			}
			if asked[0].Runs != "git branch -D old" || asked[0].Class != 3 || r.Asked != 1 || branches(t, cfg.Workspace) == "" {
				t.Errorf("%+v, asked %d", asked[0], r.Asked)
			}
			if answers := events[journal.Answer](t, r, journal.TypeAnswer); len(answers) != 1 || answers[0].Who == "" || answers[0].By != "user" {
				t.Errorf("%+v", answers)
			}
			calls := events[journal.ModelReply](t, r, journal.TypeModelReply)
			if !slices.ContainsFunc(calls, func(m journal.ModelReply) bool { return m.Purpose == "explain" && m.Usage.Input > 0 }) {
				t.Errorf("the explanation is not on record: %+v", calls)
			}
		})
	}
}

func quoted(s string) string { return "\"" + strings.ReplaceAll(s, "\n", `\n`) + "\"" }

// A run that waits takes an answer that comes from another process, and no other.
func TestAnswerFromElsewhere(t *testing.T) {
	cfg := situated(t, deletes)
	cfg.RunID = journal.NewRunID()
	cfg.Ask = func(ctx context.Context, q journal.Question) (journal.Answer, error) {
		if _, err := harness.Answer("", cfg.RunID, journal.Answer{ID: q.ID, Choice: "perhaps"}); err == nil {
			t.Error("an answer that is none was taken")
		}
		live, err := harness.Answer("", cfg.RunID, journal.Answer{ID: q.ID, Choice: loop.AnswerOnce})
		if err != nil || !live {
			t.Errorf("live %v, %v", live, err)
		}
		<-ctx.Done() // the person at the terminal says nothing
		return journal.Answer{}, ctx.Err()
	}
	r, err := harness.Run(t.Context(), cfg)
	if err != nil || branches(t, cfg.Workspace) != "" {
		t.Fatalf("%+v %v", r, err)
	}
	if left, err := os.ReadDir(filepath.Join(r.Dir, "answers")); err != nil || len(left) != 0 {
		t.Errorf("%v %v", left, err)
	}
}

// Nobody knows whether an interrupted call of class 3 had its effect: a person is asked, and what they say is told to the model in
// their name.
func TestUnknownOutcomeIsAsked(t *testing.T) {
	cfg := situated(t, `turns:
  - calls: [{tool: Bash, args: {command: "git branch -D old && sleep 100"}}]
  - expect: {last_user_contains: "it had its effect"}
    say: Then it is gone.
`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cfg.Ask = func(context.Context, journal.Question) (journal.Answer, error) {
		return journal.Answer{Choice: loop.AnswerOnce}, nil
	}
	started := false
	cfg.Observe = func(e journal.Event) {
		if e.Type == journal.TypePermission {
			started = true
			cancel()
		}
	}
	r, err := harness.Run(ctx, cfg)
	if err != nil || r.Exit != loop.ExitInterrupted || !started {
		t.Fatalf("%+v %v", r, err)
	}
	again := harness.Config{Sandbox: cfg.Sandbox}
	for range 2 { // it is asked again until there is an answer
		if r, err = harness.Resume(t.Context(), r.RunID, again); err != nil || r.Exit != loop.ExitWaiting || r.Question != "q_outcome_call_1_1" {
			t.Fatalf("%+v %v", r, err)
		}
	}
	if qs := events[journal.Question](t, r, journal.TypeQuestion); len(qs) != 2 {
		t.Errorf("%d questions", len(qs))
	}
	if _, err := harness.Answer("", r.RunID, journal.Answer{ID: r.Question, Choice: "happened", Reason: "I looked"}); err != nil {
		t.Fatal(err)
	}
	if r, err = harness.Resume(t.Context(), r.RunID, again); err != nil || r.Exit != loop.ExitUnverified || r.Summary != "Then it is gone." {
		t.Fatalf("%+v %v", r, err)
	}
	if open, err := harness.OpenQuestions(r.Dir); err != nil || len(open) != 0 {
		t.Errorf("%+v %v", open, err)
	}
}

// A person's message is an answer too.
func TestMessageAnswersUnknownOutcome(t *testing.T) {
	cfg := situated(t, `turns:
  - calls: [{tool: Bash, args: {command: "git branch -D old && sleep 100"}}]
  - expect: {last_user_contains: "it did, go on"}
    say: Then it is gone.
`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cfg.Ask = func(context.Context, journal.Question) (journal.Answer, error) {
		return journal.Answer{Choice: loop.AnswerOnce}, nil
	}
	cfg.Observe = func(e journal.Event) {
		if e.Type == journal.TypePermission {
			cancel()
		}
	}
	r, err := harness.Run(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if r, err = harness.Resume(t.Context(), r.RunID, harness.Config{Sandbox: cfg.Sandbox}); err != nil || r.Exit != loop.ExitWaiting {
		t.Fatalf("%+v %v", r, err)
	}
	if r, err = harness.Resume(t.Context(), r.RunID, harness.Config{Sandbox: cfg.Sandbox, Task: "it did, go on"}); err != nil || r.Summary != "Then it is gone." {
		t.Fatalf("%+v %v", r, err)
	}
	if open, err := harness.OpenQuestions(r.Dir); err != nil || len(open) != 0 {
		t.Errorf("%+v %v", open, err)
	}
}

// What a person agrees to is kept before like what nobody is asked about, and what it sends stands in the ledger.
func TestConsentKeepsWhatComesBefore(t *testing.T) {
	cfg := situated(t, `turns:
  - calls: [{tool: Bash, args: {command: "echo new > kept.txt; git branch -D old"}}]
  - calls: [{tool: Bash, args: {command: "git push origin main"}}]
  - calls: [{tool: TaskComplete, args: {summary: done, evidence: none}}]
`)
	kept := filepath.Join(cfg.Workspace, "kept.txt")
	if err := os.WriteFile(kept, []byte("precious\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cfg.Verify = []string{"true"}
	cfg.Ask = func(context.Context, journal.Question) (journal.Answer, error) {
		return journal.Answer{Choice: loop.AnswerOnce}, nil
	}
	r, err := harness.Run(t.Context(), cfg)
	if err != nil || r.Asked != 2 {
		t.Fatalf("%+v %v", r, err)
	}
	if sent := events[journal.External](t, r, journal.TypeExternal); len(sent) != 1 || sent[0].Key == "" || !strings.Contains(sent[0].Summary, "git push") {
		t.Errorf("%+v", sent)
	}
	for _, m := range events[journal.UserMessage](t, r, journal.TypeUserMessage) {
		if strings.Contains(m.Text, "Somebody else") {
			t.Errorf("the agent's own change is taken for another's: %s", m.Text)
		}
	}
	if points := events[journal.Checkpoint](t, r, journal.TypeCheckpoint); len(points) < 2 || points[0].Tree == points[1].Tree {
		t.Errorf("%+v", points)
	}
}
