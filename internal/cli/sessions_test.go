package cli

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"belay/effect"
	"belay/policy"
	"belay/tool"
)

// Ordinary sessions of agents, as they type them, ask a person at most once in fifty commands in edit mode with a sandbox: who
// is asked more often stops reading.
func TestOrdinarySessionsAskSeldom(t *testing.T) {
	const oneIn = 50
	files, err := filepath.Glob(filepath.Join("testdata", "sessions", "*.jsonl"))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d sessions, %v", len(files), err)
	}
	s := policy.Situation{Mode: policy.Edit, Sandboxed: true, Workspace: "/work/app", Home: "/home/u", StateDir: "/home/u/.local/state/belay"}
	place := tool.Place{Workspace: s.Workspace, Dir: s.Workspace, Home: s.Home}
	commands, asks, byClass := 0, 0, map[effect.Class]int{}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			var c struct{ ID, Cmd string }
			if err := json.Unmarshal(lines.Bytes(), &c); err != nil || c.Cmd == "" {
				t.Fatalf("%s: %q: %v", file, lines.Text(), err)
			}
			commands++
			j := judgeLine(c.Cmd, s, place)
			byClass[j.Class]++
			if j.Verdict != effect.Allow {
				asks++
				t.Logf("%s: %s, class %d: %s", c.ID, j.Verdict, j.Class, c.Cmd)
			}
			if j.Verdict == effect.Deny {
				t.Errorf("%s is refused: %s: %s", c.ID, c.Cmd, j.Why)
			}
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d commands in %d sessions, %d asked about; by class: %v", commands, len(files), asks, byClass)
	if commands < 500 {
		t.Errorf("%d commands are too few", commands)
	}
	if asks*oneIn > commands {
		t.Errorf("%d of %d commands ask, which is more than one in %d", asks, commands, oneIn)
	}
}
