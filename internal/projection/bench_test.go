package projection

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"belay/journal"
	"belay/message"
)

// BenchmarkReplay10000 is `belay replay --verify` of a run of 10,000 events: the check of its chain and blobs, and of every
// context. It should pass 50 MB a second, and take twice as long for twice as many.
func BenchmarkReplay10000(b *testing.B) { benchmarkReplay(b, 2500) }
func BenchmarkReplay20000(b *testing.B) { benchmarkReplay(b, 5000) }

func benchmarkReplay(b *testing.B, turns int) {
	log, _, err := journal.Create(b.TempDir(), journal.NewRunID(), nil,
		journal.Entry{Type: journal.TypeSessionStart, Payload: journal.SessionStart{Projection: Version, System: "s", Tools: json.RawMessage("[]")}},
		journal.Entry{Type: journal.TypeUserMessage, Payload: journal.UserMessage{Text: "do it"}})
	if err != nil {
		b.Fatal(err)
	}
	fold := &Fold{}
	for e, err := range log.Events() {
		if err == nil {
			err = fold.Apply(e)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	for n := 1; n <= turns; n++ {
		_, h, err := fold.Request()
		if err != nil {
			b.Fatal(err)
		}
		id := fmt.Sprint("call_", n)
		events, err := log.Write(
			journal.Entry{Type: journal.TypeModelCall, Turn: n, Payload: journal.ModelCall{Model: "m", CtxHash: h.CtxHash, PrefixHash: h.PrefixHash}},
			journal.Entry{Type: journal.TypeModelReply, Turn: n, Payload: journal.ModelReply{Stop: message.StopToolUse, Blocks: []message.Block{
				{Kind: message.KindCall, Call: &message.ToolCall{ID: id, Name: "Bash", Args: json.RawMessage(`{"command":"go test ./..."}`)}}}}},
			journal.Entry{Type: journal.TypeToolRequest, Turn: n, Payload: journal.ToolRequest{CallID: id, Tool: "Bash", Args: json.RawMessage(`{"command":"go test ./..."}`), Class: 1}},
			journal.Entry{Type: journal.TypeToolResult, Turn: n, Payload: journal.ToolResult{CallID: id, Status: "success", Text: fmt.Sprint(n) + strings.Repeat("ok  \tpkg/name\t0.123s\n", 100)}})
		if err != nil {
			b.Fatal(err)
		}
		for _, e := range events {
			if err := fold.Apply(e); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := log.Close(); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(log.Dir(), "journal.jsonl"))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(info.Size())
	for b.Loop() {
		if _, findings, err := journal.Check(log.Dir()); err != nil || len(findings) > 0 {
			b.Fatal(findings, err)
		}
		contexts, err := Replay(journal.Read(log.Dir()))
		if err != nil || len(contexts) != turns || contexts[turns-1].Verdict != Proved {
			b.Fatal(len(contexts), err)
		}
	}
}
