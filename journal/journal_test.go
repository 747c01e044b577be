package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"belay/effect"
	"belay/message"
)

var start = time.Date(2026, 9, 7, 10, 14, 3, 120e6, time.UTC)

// clock ticks a second with each look.
func clock() func() time.Time {
	now := start
	return func() time.Time { now = now.Add(time.Second); return now }
}

// story is a small run with every kind of value: short, long, binary-looking, and one that looks like a blob.
func story() []Entry {
	return []Entry{
		{Type: TypeSessionStart, Payload: SessionStart{Version: "1", Workspace: "/w", System: "You <are> & \u2028 here", Tools: json.RawMessage(`[{"name":"Bash"}]`)}},
		{Type: TypeUserMessage, Payload: UserMessage{Text: "fix it \x00\x1b[31m\xff"}},
		{Type: TypeModelReply, Turn: 1, Payload: ModelReply{Blocks: []message.Block{
			message.Text(strings.Repeat("long ", 5000)),
			{Kind: message.KindCall, Call: &message.ToolCall{ID: "c1", Name: "Bash", Args: json.RawMessage(`{"command":"ls","n":1.0}`)}},
		}, Stop: message.StopToolUse}},
		{Type: TypeToolRequest, Turn: 1, Payload: ToolRequest{CallID: "c1", Tool: "Bash", Args: json.RawMessage(`{"$blob":"../../etc/passwd","bytes":3}`), Class: effect.ClassRead}},
		{Type: TypeToolResult, Turn: 1, Payload: ToolResult{CallID: "c1", Status: "success", Text: strings.Repeat("é\n", 20000)}},
		{Type: TypeSessionEnd, Payload: SessionEnd{Reason: "done", Exit: 3}},
	}
}

func create(t *testing.T) *File {
	t.Helper()
	f, _, err := Create(t.TempDir(), "r_01", clock(), story()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func read(t *testing.T, dir string) []Event {
	t.Helper()
	var events []Event
	for e, err := range Read(dir) {
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

// What is read is what was written, whole, however it is stored.
func TestRoundTrip(t *testing.T) {
	home := t.TempDir()
	f, written, err := Create(home, "r_01", clock(), story()...)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got := read(t, f.Dir())
	if diff := cmp.Diff(written, got); diff != "" {
		t.Errorf("read differs from written:\n%s", diff)
	}
	for i, entry := range story() {
		want, err := encode(entry.Payload)
		if err != nil {
			t.Fatal(err)
		}
		if string(got[i+1].Payload) != string(want) {
			t.Errorf("event %d: payload\n%.200s\nwant\n%.200s", got[i+1].Seq, got[i+1].Payload, want)
		}
	}
	lines, err := os.ReadFile(filepath.Join(f.Dir(), journalName))
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(lines) {
		if len(line) > 20<<10 {
			t.Errorf("a line of %d bytes: large values belong into blobs", len(line))
		}
	}
	if entries, _ := os.ReadDir(filepath.Join(home, "staging")); len(entries) != 0 {
		t.Errorf("staging still holds %v", entries)
	}
}

// The format is frozen: these are the bytes that a reader of any later version must understand.
func TestFrozenLine(t *testing.T) {
	e := Event{V: 1, RunID: "r_01", Seq: 17, TS: Time{start}, Type: "tool.request", Agent: "main", Session: 1, Turn: 4, Step: "s3", Payload: json.RawMessage(`{"a":"<&>"}`)}
	line, err := seal(zeroSum, &e)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"v":1,"run_id":"r_01","seq":17,"ts":"2026-09-07T10:14:03.120Z","type":"tool.request","agent":"main","session":1,"turn":4,"step":"s3","payload":{"a":"<&>"},"sum":"363e35c06d9e7321e211d8d99d1e1e17"}` + "\n"
	if string(line) != want {
		t.Errorf("got  %swant %s", line, want)
	}
}

// Every single flipped byte is found, with the line it is in.
func TestEveryFlippedByteIsFound(t *testing.T) {
	f := create(t)
	path := filepath.Join(f.Dir(), journalName)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	put := func(i int, b byte) {
		if _, err := file.WriteAt([]byte{b}, int64(i)); err != nil {
			t.Fatal(err)
		}
	}
	for i, b := range whole {
		put(i, b^1)
		_, findings, err := Check(f.Dir())
		if err != nil || len(findings) == 0 {
			t.Fatalf("byte %d (%q) flipped: findings %v, error %v", i, whole[i], findings, err)
		}
		line := 1 + bytes.Count(whole[:i], []byte("\n"))
		if findings[0].Line != line {
			t.Fatalf("byte %d of line %d flipped, but found at %v", i, line, findings[0])
		}
		put(i, b)
	}
}

// A damaged, missing or exchanged blob is found.
func TestDamagedBlobIsFound(t *testing.T) {
	f := create(t)
	blobs, err := filepath.Glob(filepath.Join(f.Dir(), blobsName, "*", "*"))
	if err != nil || len(blobs) < 4 {
		t.Fatalf("blobs %v, %v", blobs, err)
	}
	for _, path := range blobs {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for name, damage := range map[string]func() error{
			"changed": func() error { return os.WriteFile(path, append([]byte("x"), content...), 0o600) },
			"missing": func() error { return os.Remove(path) },
		} {
			if err := damage(); err != nil {
				t.Fatal(err)
			}
			if _, findings, err := Check(f.Dir()); err != nil || len(findings) != 1 {
				t.Errorf("%s blob %s: findings %v, error %v", name, filepath.Base(path), findings, err)
			}
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Cut anywhere in its last line, a journal opens with what was whole before, and goes on.
func TestTornTailIsCut(t *testing.T) {
	f := create(t)
	want := read(t, f.Dir())
	f.Close()
	path := filepath.Join(f.Dir(), journalName)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	last := bytes.LastIndexByte(whole[:len(whole)-1], '\n') + 1
	for size := last; size < len(whole); size++ {
		if err := os.WriteFile(path, whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		again, err := Open(f.Dir(), clock())
		if err != nil {
			t.Fatalf("cut at byte %d: %v", size, err)
		}
		if _, err := again.Append(Entry{Type: TypeUserMessage, Payload: UserMessage{Text: "go on"}}); err != nil {
			t.Fatal(err)
		}
		again.Close()
		got := read(t, f.Dir())
		// The last sum vouches for everything before it.
		kept := len(got) - 2 // the writer's opening and the new message stand after it
		if kept != len(want)-1 || got[kept-1].Sum != want[kept-1].Sum {
			t.Fatalf("cut at byte %d: %d events are left of %d", size, kept, len(want))
		}
		if _, findings, err := Check(f.Dir()); err != nil || len(findings) != 0 {
			t.Fatalf("cut at byte %d, then reopened: %v, %v", size, findings, err)
		}
	}
}

// Damage in the middle is never skipped: the run cannot be written, and reading stops where it is.
func TestDamageInTheMiddleStopsEverything(t *testing.T) {
	f := create(t)
	f.Close()
	path := filepath.Join(f.Dir(), journalName)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.Collect(bytes.Lines(whole))
	for name, bad := range map[string][][]byte{
		"line missing": slices.Concat(lines[:2], lines[3:]),
		"line doubled": slices.Concat(lines[:3], lines[2:]),
		"lines joined": {bytes.Join(lines[:2], nil), bytes.TrimSuffix(lines[2], []byte("\n")), bytes.Join(lines[3:], nil)},
		"zeros":        slices.Concat(lines[:2], [][]byte{make([]byte, 100), []byte("\n")}, lines[3:]),
	} {
		if err := os.WriteFile(path, bytes.Join(bad, nil), 0o600); err != nil {
			t.Fatal(err)
		}
		var damage *DamageError
		if _, err := Open(f.Dir(), nil); !errors.As(err, &damage) || damage.Finding.Line < 3 {
			t.Errorf("%s: open gave %v", name, err)
		}
		var last error
		for _, err := range Read(f.Dir()) {
			last = err
		}
		if !errors.As(last, &damage) {
			t.Errorf("%s: read ended with %v", name, last)
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(after, bytes.Join(bad, nil)) {
			t.Errorf("%s: opening changed the damaged file (%v)", name, err)
		}
	}
}

// A call has at most one outcome, and an outcome has a call. A refused batch leaves nothing behind.
func TestOutcomesAreUnique(t *testing.T) {
	f := create(t)
	before := read(t, f.Dir())
	request := func(id string) Entry {
		return Entry{Type: TypeToolRequest, Payload: ToolRequest{CallID: id, Args: json.RawMessage("{}")}}
	}
	result := func(id string) Entry { return Entry{Type: TypeToolResult, Payload: ToolResult{CallID: id}} }
	for name, entries := range map[string][]Entry{
		"second outcome":         {result("c1")},
		"outcome without a call": {result("c2")},
		"call asked twice":       {request("c1")},
		"twice in one batch":     {request("c3"), result("c3"), result("c3")},
	} {
		if _, err := f.Append(entries...); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := f.Append(result("c1")); !errors.Is(err, ErrSettled) {
		t.Errorf("second outcome: %v", err)
	}
	if diff := cmp.Diff(before, read(t, f.Dir())); diff != "" {
		t.Errorf("refused batches left traces:\n%s", diff)
	}
	if _, err := f.Append(request("c4"), result("c4")); err != nil {
		t.Error(err)
	}
}

// Two writers cannot be.
func TestOneWriter(t *testing.T) {
	f := create(t)
	if _, err := Open(f.Dir(), nil); !errors.Is(err, ErrBusy) {
		t.Errorf("second writer: %v", err)
	}
	f.Close()
	if _, err := f.Append(Entry{Type: TypeUserMessage, Payload: UserMessage{}}); !errors.Is(err, ErrClosed) {
		t.Errorf("append after close: %v", err)
	}
}

// Unknown types and fields, as a later version might write them, are read and kept.
func TestUnknownIsKept(t *testing.T) {
	f := create(t)
	if _, err := f.Append(Entry{Type: "hologram", Payload: map[string]any{"new": []int{1}}}); err != nil {
		t.Fatal(err)
	}
	events := read(t, f.Dir())
	if e := events[len(events)-1]; e.Type != "hologram" || string(e.Payload) != `{"new":[1]}` {
		t.Errorf("got %+v", e)
	}
}

// FuzzUnseal: no line of bytes makes the reader panic or accept what it would not write.
func FuzzUnseal(f *testing.F) {
	e := Event{V: 1, RunID: "r_01", Seq: 1, TS: Time{start}, Type: "x", Payload: json.RawMessage(`{}`)}
	line, _ := seal(zeroSum, &e)
	f.Add(bytes.TrimSuffix(line, []byte("\n")))
	f.Add([]byte(`,"sum":"00000000000000000000000000000000"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := unseal(zeroSum, line)
		if err == nil && Sum(zeroSum, line[:len(line)-sumLen]) != e.Sum {
			t.Errorf("accepted a line with the sum %q", e.Sum)
		}
	})
}

// FuzzPack: whatever a payload holds, it comes back from its blobs as it was.
func FuzzPack(f *testing.F) {
	f.Add(`{"a":{"$blob":"00","bytes":1}}`)
	f.Add(`{"$blob":"x"}`)
	f.Add(`{"raw":{"$blob":"x"},"b":"` + strings.Repeat("x", inlineMax) + `"}`)
	f.Fuzz(func(t *testing.T, payload string) {
		if !json.Valid([]byte(payload)) || !strings.HasPrefix(payload, "{") {
			t.Skip()
		}
		blobs := map[string][]byte{}
		put := func(b []byte) (Ref, error) {
			h := hashOf(b)
			blobs[h] = bytes.Clone(b)
			return Ref{Hash: h, Size: int64(len(b))}, nil
		}
		stored, whole, err := pack(json.RawMessage(payload), put)
		if err != nil {
			t.Skip()
		}
		got, err := unpack(stored, func(r Ref) ([]byte, error) { return blobs[r.Hash], nil })
		if err != nil {
			t.Fatal(err)
		}
		var a, b any
		if json.Unmarshal(whole, &a) != nil || json.Unmarshal(got, &b) != nil || !cmp.Equal(a, b) {
			t.Errorf("packed %s, unpacked %s", whole, got)
		}
	})
}

// FuzzEnvelope: what the fast reader of lines takes, it reads as a JSON decoder does.
func FuzzEnvelope(f *testing.F) {
	for _, e := range []Event{
		{V: 1, RunID: "r_01", Seq: 1, TS: Time{start}, Type: "x", Agent: "main", Session: 1, Payload: json.RawMessage(`{}`)},
		{V: 1, RunID: "r_\"é", Seq: 123456789, TS: Time{start}, Type: "tool.request", Agent: "a", Session: 2, Turn: 3, Step: "s1", Payload: json.RawMessage(`{"a":"}"}`)},
	} {
		line, err := seal(zeroSum, &e)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(bytes.TrimSuffix(line, []byte("\n")))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		got, ok := envelope(line)
		if !ok || !json.Valid(got.Payload) {
			return
		}
		var want Event
		if err := json.Unmarshal(line, &want); err != nil {
			t.Fatalf("took a line that is no JSON: %v", err)
		}
		if string(got.Payload) != string(want.Payload) {
			t.Fatalf("payload %q, want %q", got.Payload, want.Payload)
		}
		if got.Payload, want.Payload = nil, nil; !cmp.Equal(got, want) {
			t.Fatal(cmp.Diff(want, got))
		}
	})
}
