package loop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"belay/effect"
	"belay/internal/projection"
	"belay/journal"
	"belay/loop"
	"belay/message"
	"belay/tool"
	"belay/verify"
)

// BenchmarkResume10000 opens a run of 10,000 events and brings a session to where it stopped: below 100 ms and 64 MB.
func BenchmarkResume10000(b *testing.B) {
	log, _, err := journal.Create(b.TempDir(), journal.NewRunID(), nil,
		journal.Entry{Type: journal.TypeSessionStart, Payload: journal.SessionStart{Projection: projection.Version, System: "s", Tools: json.RawMessage("[]")}},
		journal.Entry{Type: journal.TypeUserMessage, Payload: journal.UserMessage{Text: "do it"}})
	if err != nil {
		b.Fatal(err)
	}
	for n := 1; n <= 2500; n++ {
		id := fmt.Sprint("call_", n)
		if _, err := log.Write(
			journal.Entry{Type: journal.TypeModelCall, Turn: n, Payload: journal.ModelCall{Model: "m"}},
			journal.Entry{Type: journal.TypeModelReply, Turn: n, Payload: journal.ModelReply{Stop: message.StopToolUse, Blocks: []message.Block{message.Text("Now the tests once more."),
				{Kind: message.KindCall, Call: &message.ToolCall{ID: id, Name: "Bash", Args: json.RawMessage(`{"command":"go test ./..."}`)}}}}},
			journal.Entry{Type: journal.TypeToolRequest, Turn: n, Payload: journal.ToolRequest{CallID: id, Tool: "Bash", Args: json.RawMessage(`{"command":"go test ./..."}`), Class: 1, Permission: journal.Permission{Verdict: effect.Allow}}},
			journal.Entry{Type: journal.TypeToolResult, Turn: n, Payload: journal.ToolResult{CallID: id, Status: "success", Text: fmt.Sprint(n) + strings.Repeat("ok  \tpkg/name\t0.123s\n", 100)}},
		); err != nil {
			b.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		b.Fatal(err)
	}
	tools, err := tool.NewRegistry()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		again, err := journal.Open(log.Dir(), nil)
		if err != nil {
			b.Fatal(err)
		}
		ctx, cancel := context.WithCancel(b.Context())
		cancel() // it stops where it would ask the model
		if _, err := loop.Run(ctx, loop.Config{Log: again, Client: &script{}, Tools: tools, Judge: judge,
			Tree: func(context.Context) (verify.Tree, error) { return verify.Tree{}, nil }}); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		again.Close()
		b.StartTimer()
	}
}
