package demo

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/message"
	"belay/model"
	"belay/model/rehearsal"
)

// TestScriptRepairsTheProject plays the script against the real project with the barest of loops: its expectations
// hold, the first completion is refused by the tests and the second accepted.
func TestScriptRepairsTheProject(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bill")
	if err := Unpack(dir); err != nil {
		t.Fatal(err)
	}
	script, err := rehearsal.Parse(ScriptName, Script())
	if err != nil {
		t.Fatal(err)
	}
	client := rehearsal.New(script)
	req := model.Request{Messages: []message.Message{message.UserText(Task)}}
	var completions []bool
	for len(completions) == 0 || !completions[len(completions)-1] {
		reply, err := model.Collect(client.Stream(context.Background(), req), nil)
		if err != nil {
			t.Fatal(err)
		}
		if client.Info().Price.Of(reply.Usage) <= 0 {
			t.Errorf("turn %d costs nothing", req.Replies+1)
		}
		req.Replies++
		results := message.Message{Role: message.User}
		for _, call := range message.Calls(reply.Blocks) {
			text, failed := do(t, dir, call)
			if call.Name == "TaskComplete" {
				completions = append(completions, !failed)
			}
			results.Blocks = append(results.Blocks, message.Block{Kind: message.KindResult, Result: &message.ToolResult{CallID: call.ID, Text: text, Error: failed}})
		}
		req.Messages = append(req.Messages, message.Message{Role: message.Assistant, Blocks: reply.Blocks}, results)
	}
	if d := cmp.Diff([]bool{false, true}, completions); d != "" {
		t.Errorf("completions: %s", d)
	}
	if req.Replies != script.Turns() {
		t.Errorf("done after %d turns of %d", req.Replies, script.Turns())
	}
}

func do(t *testing.T, dir string, call message.ToolCall) (text string, failed bool) {
	t.Helper()
	var args struct {
		Command   string
		FilePath  string `json:"file_path"`
		OldString string `json:"old_string"`
		NewString string `json:"new_string"`
	}
	if err := json.Unmarshal(call.Args, &args); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, args.FilePath)
	switch call.Name {
	case "Bash":
		return run(dir, strings.Fields(args.Command))
	case "TaskComplete":
		return run(dir, []string{"go", "test", "./..."})
	case "Read":
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(data), false
	case "Edit":
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(data), args.OldString); n != 1 {
			t.Fatalf("old_string is there %d times: %q", n, args.OldString)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(data), args.OldString, args.NewString, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		return "edited", false
	}
	t.Fatalf("the script uses %s, which the first tools do not hold", call.Name)
	return "", true
}

func run(dir string, argv []string) (string, bool) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	out, err := cmd.CombinedOutput()
	return string(out), err != nil
}

func TestUnpackRefusesAFullFolder(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine.txt"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Unpack(dir); err == nil || !strings.Contains(err.Error(), "mine.txt") {
		t.Errorf("got %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the folder was touched: %v %v", entries, err)
	}
}

func TestUnpackWritesTheProject(t *testing.T) {
	dir := t.TempDir()
	if err := Unpack(dir); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if d := cmp.Diff([]string{"bill.go", "bill_test.go", "go.mod"}, names); d != "" {
		t.Error(d)
	}
}
