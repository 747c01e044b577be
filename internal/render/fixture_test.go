package render

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"belay/effect"
	"belay/journal"
	"belay/message"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares with testdata/name.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update writes it):\n%s", name, diff)
	}
}

const (
	fixtureID = "r_01k5abcdefghjkmnpqrstvwxyz"
	evil      = "\x1b]0;owned\a\x1b[2J\x1b[31mred\x1b[0m\u202egnol\r"
)

// clock is a time that moves only when it is told to.
type clock struct{ now time.Time }

func newClock() *clock { return &clock{time.Date(2026, 9, 7, 10, 14, 3, 0, time.UTC)} }

func (c *clock) Now() time.Time          { return c.now }
func (c *clock) advance(d time.Duration) { c.now = c.now.Add(d) }

// reply makes a model.reply with words and calls.
func reply(words string, calls ...string) journal.ModelReply {
	r := journal.ModelReply{Stop: message.StopToolUse, Usage: message.Usage{Input: 1200, Output: 80}, Cost: message.USD(0.0048), DurationMS: 3, Attempts: 1}
	r.Blocks = append(r.Blocks, message.Block{Kind: message.KindThinking, Text: "What does the test say?"})
	if words != "" {
		r.Blocks = append(r.Blocks, message.Text(words))
	}
	for _, id := range calls {
		r.Blocks = append(r.Blocks, message.Block{Kind: message.KindCall, Call: &message.ToolCall{ID: id, Name: "Bash", Args: json.RawMessage(`{}`)}})
	}
	return r
}

func allowed(id, tool, summary string, class effect.Class, args string) journal.ToolRequest {
	return journal.ToolRequest{CallID: id, Tool: tool, Args: json.RawMessage(args), Summary: summary, Class: class,
		Permission: journal.Permission{Verdict: effect.Allow, Rule: "defaults", By: "policy"}}
}

// fixture is a run in which everything happens that a person gets to see, without its end.
func fixture() []journal.Entry {
	var entries []journal.Entry
	turn := 0
	add := func(kind journal.Type, payload any) {
		entries = append(entries, journal.Entry{Type: kind, Turn: turn, Payload: payload})
	}
	call := func(n int) {
		turn++
		add(journal.TypeModelCall, journal.ModelCall{Model: "rehearsal:fix", CtxHash: "c", PrefixHash: "p", Messages: n, Bytes: 4096, Estimate: 1024})
	}
	add(journal.TypeSessionStart, journal.SessionStart{Version: "test", Workspace: "/home/me/project", Mode: "edit", Sandbox: "namespaces, landlock",
		Model: journal.ModelInfo{ID: "rehearsal:fix", Scripted: true}, Projection: "1", System: "s", Tools: json.RawMessage(`[]`), Verify: []string{"go test ./..."}})
	add(journal.TypeDegraded, journal.Degraded{Component: "sandbox", Loss: "no cgroup limits: memory is not bounded"})
	add(journal.TypeUserMessage, journal.UserMessage{Text: "Fix the failing test in this project. Do not change the tests themselves: they say what is wanted, and the code is what is wrong."})
	call(1)
	add(journal.TypeModelReply, reply("I look around first,\nthen run the tests.", "c1", "c2"))
	add(journal.TypeToolRequest, allowed("c1", "Bash", "go test ./...", 2, `{"command":"go test ./..."}`))
	one := 1
	add(journal.TypeToolResult, journal.ToolResult{CallID: "c1", Status: "error", Code: "EXIT_STATUS", Summary: "exit 1 · 6 lines", Exit: &one, DurationMS: 1234,
		Text: "--- FAIL: TestMedian (0.00s)\n\tmedian_test.go:12: got 2" + evil, Denied: []string{"connect to proxy.example.com:443"}})
	add(journal.TypeToolRequest, allowed("c2", "Read", "median.go", 1, `{"file_path":"median.go"}`))
	add(journal.TypeToolResult, journal.ToolResult{CallID: "c2", Status: "success", Summary: "24 lines", Text: "package stats", DurationMS: 2})
	call(3)
	add(journal.TypeModelReply, reply("", "c3", "c4", "c5"))
	add(journal.TypeToolRequest, journal.ToolRequest{CallID: "c3", Tool: "Bash", Args: json.RawMessage(`{"command":"git push --force"}`), Summary: "git push --force" + evil, Class: 4,
		Permission: journal.Permission{Verdict: effect.Deny, Rule: "defaults.class-4", By: "policy", Reason: "it sends to another machine"}})
	add(journal.TypeToolResult, journal.ToolResult{CallID: "c3", Status: "error", Code: "DENIED", Summary: "DENIED", Text: "Error (DENIED): refused"})
	add(journal.TypeToolRequest, journal.ToolRequest{CallID: "c4", Tool: "Wrte", Args: json.RawMessage(`{}`),
		Permission: journal.Permission{Verdict: effect.Deny, Rule: "plan", By: "harness", Reason: "there is no tool Wrte"}})
	add(journal.TypeToolResult, journal.ToolResult{CallID: "c4", Status: "error", Code: "UNKNOWN_TOOL", Summary: "UNKNOWN_TOOL", Text: "Error (UNKNOWN_TOOL): there is no tool Wrte\nUse one of Bash, Edit."})
	add(journal.TypeVerify, journal.Verify{Verifier: "go test ./...", Base: true, Exit: 1, Summary: "exit 1", Output: "--- FAIL: TestMedian", DurationMS: 900})
	add(journal.TypeToolRequest, allowed("c5", "Edit", "edit median.go (+1 -1)", 2, `{"file_path":"median.go","old_string":"a","new_string":"b"}`))
	add(journal.TypeToolResult, journal.ToolResult{CallID: "c5", Status: "success", Summary: "1 replacement", Text: "ok", DurationMS: 4})
	call(5)
	add(journal.TypeModelReply, reply("That should be it."+evil, "c6"))
	add(journal.TypeToolRequest, allowed("c6", "TaskComplete", "", 1, `{"summary":"done"}`))
	add(journal.TypeVerify, journal.Verify{Verifier: "go test ./...", Exit: 1, Summary: "exit 1 · 1 failed", DurationMS: 1100,
		Output: "=== RUN   TestMedian\n--- FAIL: TestMedian (0.00s)\n    median_test.go:12: Median([1 2]) = 2, want 1.5\nFAIL\nFAIL\tproject\t0.002s\n" + evil})
	add(journal.TypeToolResult, journal.ToolResult{CallID: "c6", Status: "error", Code: "UNVERIFIED", Summary: "UNVERIFIED", Text: "Error (UNVERIFIED): not finished: the harness ran `go test ./...` on the tree and it failed (exit 1)."})
	add(journal.TypeUserMessage, journal.UserMessage{Text: "Go on with the task.", By: "harness"})
	add(journal.TypeGuard, journal.Guard{Bound: "usd", Value: 2.5, Limit: 3})
	add("team.message", map[string]string{"from": "a later version"})
	call(7)
	add(journal.TypeModelReply, journal.ModelReply{Stop: message.StopError, Error: "overloaded (HTTP 529)", Attempts: 5})
	return entries
}

func fixtureEnd() []journal.Entry {
	verified := journal.Verify{Verifier: "go test ./...", OK: true, Summary: "exit 0 · 3 passed", Output: "ok", DurationMS: 1300}
	proof := journal.Proof{Command: "go test ./...", Tree: "3f2a9c0d1e4b5a69", LogHash: "9bc1d2e3f4a5b6c7", DurationMS: 1300, Seq: 31, RedBefore: true}
	return []journal.Entry{
		{Type: journal.TypeVerify, Turn: 4, Payload: verified},
		{Type: journal.TypeSessionEnd, Turn: 4, Payload: journal.SessionEnd{Reason: "finished and proved: the harness ran the verifiers itself and they pass", Standing: "proved",
			Summary: "Median now averages the two middle values.", Proof: []journal.Proof{proof}, Turns: 4, Usage: message.Usage{Input: 4800, Output: 320}, Cost: message.USD(0.0192)}},
	}
}

// store writes entries into a real journal and returns what it holds.
func store(t testing.TB, entries []journal.Entry) []journal.Event {
	t.Helper()
	c := newClock()
	log, events, err := journal.Create(t.TempDir(), fixtureID, c.Now, entries...)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return events
}
