package journal

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"belay/message"
)

// turn is what a turn of a real run adds: a reply with a call, its request, and a result of two kilobytes.
func turnOf(n int) []Entry {
	id := fmt.Sprint("call_", n)
	return []Entry{
		{Type: TypeModelCall, Turn: n, Payload: ModelCall{Model: "m", CtxHash: strings.Repeat("a", 64), PrefixHash: strings.Repeat("b", 64), Messages: n, Bytes: 1000}},
		{Type: TypeModelReply, Turn: n, Payload: ModelReply{Stop: message.StopToolUse, Blocks: []message.Block{message.Text("Now the tests once more."),
			{Kind: message.KindCall, Call: &message.ToolCall{ID: id, Name: "Bash", Args: json.RawMessage(`{"command":"go test ./..."}`)}}}}},
		{Type: TypeToolRequest, Turn: n, Payload: ToolRequest{CallID: id, Tool: "Bash", Args: json.RawMessage(`{"command":"go test ./..."}`), Class: 1, Summary: "go test ./..."}},
		{Type: TypeToolResult, Turn: n, Payload: ToolResult{CallID: id, Status: "success", Text: strings.Repeat("ok  \tpkg/name\t0.123s\n", 100)}},
	}
}

// BenchmarkAppend is a durable append of a turn's events, in four entries and one sync; BenchmarkBare writes and syncs the
// same bytes. The first may cost 1.3 times the second.
func BenchmarkAppend(b *testing.B) {
	f, _, err := Create(b.TempDir(), "r_01", nil, story()...)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	n := 0
	for b.Loop() {
		n++
		if _, err := f.Append(turnOf(n)...); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBare(b *testing.B) {
	lines, _, _, err := newChain("r_01", nil).seal(turnOf(1), nil)
	if err != nil {
		b.Fatal(err)
	}
	file, err := os.Create(filepath.Join(b.TempDir(), "bare"))
	if err != nil {
		b.Fatal(err)
	}
	defer file.Close()
	for b.Loop() {
		if _, err := file.Write(lines); err != nil {
			b.Fatal(err)
		}
		if err := file.Sync(); err != nil {
			b.Fatal(err)
		}
	}
}

// longRun makes a run of at least that many events, unsynced: only its size counts.
func longRun(tb testing.TB, events int) (dir string, size int64) {
	tb.Helper()
	f, _, err := Create(tb.TempDir(), "r_01", nil, story()...)
	if err != nil {
		tb.Fatal(err)
	}
	for n := 1; n <= events/4; n++ {
		if _, err := f.Write(turnOf(n)...); err != nil {
			tb.Fatal(err)
		}
	}
	size = f.at.offset
	if err := f.Close(); err != nil {
		tb.Fatal(err)
	}
	return f.Dir(), size
}

func benchmarkOpen(b *testing.B, events int, sidecar bool) {
	dir, size := longRun(b, events)
	b.SetBytes(size)
	for b.Loop() {
		if !sidecar {
			os.Remove(filepath.Join(dir, indexName))
		}
		f, err := Open(dir, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		f.Close()
		b.StartTimer()
	}
}

func BenchmarkOpen10000(b *testing.B)             { benchmarkOpen(b, 10_000, true) }
func BenchmarkOpen10000WithoutIndex(b *testing.B) { benchmarkOpen(b, 10_000, false) }

func BenchmarkRead10000(b *testing.B) {
	dir, size := longRun(b, 10_000)
	b.SetBytes(size)
	for b.Loop() {
		for _, err := range Read(dir) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

// TestSize is slow, so it runs where BELAY_BIG is set: a million events and a blob of a gigabyte in bounded memory.
func TestSize(t *testing.T) {
	events, blob := 20_000, int64(16<<20)
	if os.Getenv("BELAY_BIG") != "" {
		events, blob = 1_000_000, 1<<30
	}
	dir, size := longRun(t, events)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began := time.Now()
	f, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	opened := time.Since(began)
	runtime.ReadMemStats(&after)
	t.Logf("%d events, %d MB: opened in %v with %d MB allocated", events, size>>20, opened, (after.TotalAlloc-before.TotalAlloc)>>20)
	// What is allocated goes with the number of calls (their hashes), never with the bytes.
	if got, want := after.TotalAlloc-before.TotalAlloc, uint64(8<<20+events*80); got > want {
		t.Errorf("opening allocated %d bytes, want at most %d", got, want)
	}
	runtime.ReadMemStats(&before)
	ref, err := f.PutBlobFrom(&pattern{left: blob})
	if err != nil || ref.Size != blob {
		t.Fatalf("stored %+v, %v", ref, err)
	}
	if err := f.checkBlob(ref); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 4<<20 {
		t.Errorf("a blob of %d bytes cost %d bytes of memory", blob, got)
	}
}

// pattern gives that many bytes.
type pattern struct{ left int64 }

func (p *pattern) Read(b []byte) (int, error) {
	n := int(min(int64(len(b)), p.left))
	p.left -= int64(n)
	for i := range b[:n] {
		b[i] = byte(i)
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}
