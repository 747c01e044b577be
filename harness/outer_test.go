package harness_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"belay/harness"
	"belay/internal/features"
	"belay/journal"
	"belay/loop"
)

// TestKilledBeforeItBegan: a session that was announced and never began is no failed attempt, however often that happens.
func TestKilledBeforeItBegan(t *testing.T) {
	cfg := situated(t, `turns:
  - calls: [{tool: Bash, args: {command: "echo ok > a.txt; echo ok > b.txt"}}]
  - calls: [{tool: TaskComplete, args: {summary: Done., evidence: the files}}]
`)
	cfg.Task = ""
	list := "- {id: a, title: First, verify: test -f a.txt, priority: 1}\n- {id: b, title: Second, verify: test -f b.txt, priority: 2}\n"
	if err := os.WriteFile(filepath.Join(cfg.Workspace, "features.yaml"), []byte(list), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "list"}} {
		if out, err := exec.Command("git", append([]string{"-C", cfg.Workspace}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	outer := harness.Outer{Config: cfg, Features: "features.yaml", Sessions: 1}
	first, err := harness.RunOuter(t.Context(), outer)
	if err != nil || first.Exit != loop.ExitBound {
		t.Fatalf("%+v %v", first, err)
	}
	for range 3 {
		log, err := journal.Open(filepath.Join(journal.RunsDir(os.Getenv("BELAY_HOME")), first.RunID), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := log.Append(journal.Entry{Type: journal.TypeAgentStart, Payload: journal.AgentStart{Run: journal.NewRunID(), Feature: "b", Attempt: 1}}); err != nil {
			t.Fatal(err)
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := harness.RunOuter(t.Context(), outer); err != nil { // the bound of one session is reached already
			t.Fatal(err)
		}
	}
	outer.Sessions = 0
	last, err := harness.RunOuter(t.Context(), outer)
	if err != nil || last.Exit != loop.ExitProved || last.Features[1].Status != features.Done {
		t.Errorf("%+v %v", last, err)
	}
}
