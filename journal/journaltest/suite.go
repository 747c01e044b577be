// Package journaltest is the suite that every store of a journal passes.
package journaltest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/effect"
	"belay/journal"
	"belay/message"
)

// Store makes the logs of one kind of store.
type Store struct {
	// Create starts a run with entries and returns the log and the events that these became.
	Create func(t *testing.T, entries ...journal.Entry) (journal.Log, []journal.Event)
	// Reopen opens a run whose log was closed as its next writer.
	Reopen func(t *testing.T, closed journal.Log) (journal.Log, error)
}

// Run holds a store against the contract.
func Run(t *testing.T, s Store) {
	for name, test := range map[string]func(*testing.T, Store){
		"what is read is what was written": roundTrip,
		"unknown types and fields":         unknown,
		"unique outcomes":                  outcomes,
		"all or nothing":                   allOrNothing,
		"blobs":                            blobs,
		"reopen":                           reopen,
		"one writer":                       oneWriter,
		"closed":                           closed,
		"side by side":                     sideBySide,
		"size":                             size,
		"random histories":                 random,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

// Story is a small run with every kind of value: short, long, binary-looking, and one that looks like a blob.
func Story() []journal.Entry {
	return []journal.Entry{
		{Type: journal.TypeSessionStart, Payload: journal.SessionStart{Version: "1", Workspace: "/w", System: "You <are> & \u2028 here", Tools: json.RawMessage(`[{"name":"Bash"}]`)}},
		{Type: journal.TypeUserMessage, Payload: journal.UserMessage{Text: "fix it \x00\x1b[31m\xff"}},
		{Type: journal.TypeModelReply, Turn: 1, Step: "s1", Agent: "a", Session: 2, Payload: journal.ModelReply{Blocks: []message.Block{
			message.Text(strings.Repeat("long ", 5000)),
			{Kind: message.KindCall, Call: &message.ToolCall{ID: "c1", Name: "Bash", Args: json.RawMessage(`{"command":"ls","n":1.0}`)}},
		}, Stop: message.StopToolUse}},
		request("c1", `{"$blob":"../../etc/passwd","bytes":3}`),
		{Type: journal.TypeToolResult, Turn: 1, Payload: journal.ToolResult{CallID: "c1", Status: "success", Text: strings.Repeat("é\n", 20000)}},
		{Type: journal.TypeSessionEnd, Payload: journal.SessionEnd{Reason: "done", Exit: 3}},
	}
}

func request(id, args string) journal.Entry {
	return journal.Entry{Type: journal.TypeToolRequest, Turn: 1, Payload: journal.ToolRequest{CallID: id, Tool: "Bash", Args: json.RawMessage(args), Class: effect.ClassRead}}
}

func result(id string) journal.Entry {
	return journal.Entry{Type: journal.TypeToolResult, Payload: journal.ToolResult{CallID: id}}
}

func say(text string) journal.Entry {
	return journal.Entry{Type: journal.TypeUserMessage, Payload: journal.UserMessage{Text: text}}
}

func events(t *testing.T, log journal.Log) []journal.Event {
	t.Helper()
	var all []journal.Event
	for e, err := range log.Events() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// diff is cmp.Diff, which takes seconds over long payloads that are equal.
func diff[E journal.Event | []journal.Event](want, got E) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got)
}

func mustAppend(t *testing.T, log journal.Log, entries ...journal.Entry) []journal.Event {
	t.Helper()
	got, err := log.Append(entries...)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func compact(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Events come back as they were returned, dense in number, with the payload that was given, however it is stored.
func roundTrip(t *testing.T, s Store) {
	log, written := s.Create(t, Story()...)
	defer log.Close()
	more, err := log.Write(say("on which nothing depends"))
	if err != nil {
		t.Fatal(err)
	}
	written = append(written, more...)
	got := events(t, log)
	if d := diff(written, got); d != "" {
		t.Fatalf("read differs from written:\n%s", d)
	}
	if len(got) != len(Story())+2 || got[0].Type != journal.TypeWriterOpen {
		t.Fatalf("%d events, the first is %s", len(got), got[0].Type)
	}
	for i, e := range got {
		if e.Seq != int64(i+1) || e.RunID != log.RunID() || e.V != journal.Version || len(e.Sum) != 32 {
			t.Errorf("event %d: %+v", i+1, e)
		}
		if i > 0 && i <= len(Story()) {
			if want := compact(t, Story()[i-1].Payload); string(e.Payload) != want {
				t.Errorf("event %d: payload\n%.200s\nwant\n%.200s", e.Seq, e.Payload, want)
			}
		}
	}
	if e := got[3]; e.Agent != "a" || e.Session != 2 || e.Turn != 1 || e.Step != "s1" {
		t.Errorf("envelope %+v", e)
	}
	if e := got[1]; e.Agent != "main" || e.Session != 1 {
		t.Errorf("envelope %+v", e)
	}
}

// What a later version may write is kept.
func unknown(t *testing.T, s Store) {
	log, _ := s.Create(t)
	defer log.Close()
	mustAppend(t, log, journal.Entry{Type: "hologram", Payload: map[string]any{"new": []int{1}, "big": strings.Repeat("x", 40_000)}})
	got := events(t, log)
	e := got[len(got)-1]
	if e.Type != "hologram" || string(e.Payload) != `{"big":"`+strings.Repeat("x", 40_000)+`","new":[1]}` {
		t.Errorf("got %.100s", e.Payload)
	}
}

// A call has at most one outcome, and an outcome has a call.
func outcomes(t *testing.T, s Store) {
	log, _ := s.Create(t, Story()...)
	defer func() { log.Close() }()
	for name, entries := range map[string][]journal.Entry{
		"second outcome":              {result("c1")},
		"outcome without a call":      {result("c2")},
		"call asked twice":            {request("c1", "{}")},
		"outcome twice in one batch":  {request("c3", "{}"), result("c3"), result("c3")},
		"call twice in one batch":     {request("c3", "{}"), request("c3", "{}")},
		"as another kind of payload":  {{Type: journal.TypeToolResult, Payload: json.RawMessage(`{"status":"success","call_id":"c1"}`)}},
		"a result that names no call": {{Type: journal.TypeToolResult, Payload: map[string]int{"n": 1}}},
	} {
		before := events(t, log)
		if _, err := log.Append(entries...); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if d := diff(before, events(t, log)); d != "" {
			t.Errorf("%s left traces:\n%s", name, d)
		}
	}
	if _, err := log.Append(result("c1")); !errors.Is(err, journal.ErrSettled) {
		t.Errorf("second outcome: %v", err)
	}
	mustAppend(t, log, request("c4", "{}"), request(`c"5`, "{}"), result("c4"))
	log.Close()
	log, err := s.Reopen(t, log)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(result("c4")); !errors.Is(err, journal.ErrSettled) {
		t.Errorf("second outcome after reopening: %v", err)
	}
	mustAppend(t, log, result(`c"5`))
}

// A batch of which one entry is refused leaves nothing, and the next one follows what was there.
func allOrNothing(t *testing.T, s Store) {
	log, _ := s.Create(t, say("task"))
	defer log.Close()
	before := events(t, log)
	for _, bad := range []journal.Entry{result("nobody"), {Type: "x", Payload: func() {}}, {Type: "x", Payload: []int{1}}} {
		if _, err := log.Append(say("first"), request("c", "{}"), bad); err == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
	if d := diff(before, events(t, log)); d != "" {
		t.Errorf("refused batches left traces:\n%s", d)
	}
	mustAppend(t, log, request("c", "{}"), result("c"))
	if got := events(t, log); len(got) != len(before)+2 {
		t.Errorf("%d events", len(got))
	}
}

// A blob comes back as it was, is stored once, and survives reopening.
func blobs(t *testing.T, s Store) {
	log, _ := s.Create(t)
	content := bytes.Repeat([]byte("\x00\xffblob"), 100_000)
	ref, err := log.PutBlob(content)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := log.PutBlob(content); err != nil || again != ref {
		t.Errorf("stored again: %v, %v", again, err)
	}
	if stream, ok := log.(journal.BlobStreamer); ok {
		if again, err := stream.PutBlobFrom(bytes.NewReader(content)); err != nil || again != ref {
			t.Errorf("streamed: %v, %v", again, err)
		}
		in, err := stream.OpenBlob(ref)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(in); err != nil || !bytes.Equal(got, content) {
			t.Errorf("read back %d bytes, %v", len(got), err)
		}
		in.Close()
		if _, err := stream.PutBlobFrom(io.MultiReader(strings.NewReader("half"), failing{})); err == nil {
			t.Error("half a blob was stored")
		}
	}
	mustAppend(t, log, journal.Entry{Type: journal.TypeToolRequest, Payload: journal.ToolRequest{CallID: "c", Args: json.RawMessage("{}")}},
		journal.Entry{Type: journal.TypeToolResult, Payload: journal.ToolResult{CallID: "c", Raw: &ref}})
	log.Close()
	if log, err = s.Reopen(t, log); err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if got, err := log.Blob(ref); err != nil || !bytes.Equal(got, content) {
		t.Errorf("after reopening: %d bytes, %v", len(got), err)
	}
	for _, bad := range []string{strings.Repeat("0", 64), "", "../../../../etc/passwd", strings.Repeat("/", 64)} {
		if _, err := log.Blob(journal.Ref{Hash: bad}); err == nil {
			t.Errorf("there is a blob %q", bad)
		}
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the source broke") }

// A reopened log goes on where it was, under the next writer's number.
func reopen(t *testing.T, s Store) {
	log, _ := s.Create(t, Story()...)
	for epoch := int64(2); epoch < 6; epoch++ {
		before := events(t, log)
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		var err error
		if log, err = s.Reopen(t, log); err != nil {
			t.Fatal(err)
		}
		if d := diff(before, events(t, log)); d != "" {
			t.Fatalf("reopening changed it:\n%s", d)
		}
		got := mustAppend(t, log, say("more"))
		var w journal.WriterOpen
		if len(got) != 2 || got[0].Type != journal.TypeWriterOpen || got[0].Decode(&w) != nil || w.Epoch != epoch {
			t.Errorf("writer %d begins with %+v", epoch, got)
		}
		if d := diff(append(before, got...), events(t, log)); d != "" {
			t.Fatalf("after reopening:\n%s", d)
		}
	}
	log.Close()
}

// While a log is open, nobody else may write.
func oneWriter(t *testing.T, s Store) {
	log, _ := s.Create(t, say("task"))
	if _, err := s.Reopen(t, log); !errors.Is(err, journal.ErrBusy) {
		t.Errorf("second writer: %v", err)
	}
	log.Close()
}

func closed(t *testing.T, s Store) {
	log, _ := s.Create(t, say("task"))
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	if _, err := log.Append(say("late")); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("append: %v", err)
	}
	if _, err := log.PutBlob([]byte("late")); !errors.Is(err, journal.ErrClosed) {
		t.Errorf("blob: %v", err)
	}
}

// Who appends at the same time as others gets back what became of it.
func sideBySide(t *testing.T, s Store) {
	log, _ := s.Create(t)
	defer log.Close()
	var mu sync.Mutex
	told := map[int64]journal.Event{}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 4 {
				id := fmt.Sprintf("c%d_%d", i, j)
				got, err := log.Append(request(id, "{}"), result(id))
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := log.Append(result(id)); !errors.Is(err, journal.ErrSettled) {
					t.Error(err)
				}
				mu.Lock()
				for _, e := range got {
					told[e.Seq] = e
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	got := events(t, log)
	for _, e := range got[1:] {
		if d := diff(told[e.Seq], e); d != "" {
			t.Fatalf("event %d:\n%s", e.Seq, d)
		}
	}
}

// Random batches, refusals and reopenings never part what was acknowledged from what is read.
func random(t *testing.T, s Store) {
	for seed := range uint64(2) {
		rng := rand.New(rand.NewPCG(seed, 7))
		log, want := s.Create(t)
		for range 80 {
			var batch []journal.Entry
			for range 1 + rng.IntN(4) {
				switch id := fmt.Sprint("c", rng.IntN(30)); rng.IntN(4) {
				case 0:
					batch = append(batch, request(id, "{}"))
				case 1:
					batch = append(batch, result(id))
				case 2:
					batch = append(batch, say(strings.Repeat("x", rng.IntN(18_000))))
				default:
					batch = append(batch, journal.Entry{Type: "x", Payload: map[string]string{"$blob": id}})
				}
			}
			add := log.Append
			if rng.IntN(2) == 0 {
				add = log.Write
			}
			if got, err := add(batch...); err == nil {
				want = append(want, got...)
			}
			if rng.IntN(20) == 0 {
				log.Close()
				var err error
				if log, err = s.Reopen(t, log); err != nil {
					t.Fatal(err)
				}
			}
		}
		if d := diff(want, events(t, log)); d != "" {
			t.Errorf("seed %d:\n%s", seed, d)
		}
		log.Close()
	}
}

// size holds what a log says of itself against what was put into it, before and after it is opened anew.
func size(t *testing.T, s Store) {
	log, _ := s.Create(t, Story()...)
	measure := func() int64 {
		t.Helper()
		n, err := log.Size()
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	empty := measure()
	if empty <= 0 {
		t.Fatalf("a log with events has the size %d", empty)
	}
	if _, err := log.PutBlob(bytes.Repeat([]byte("0123456789abcdef"), 1<<14)); err != nil {
		t.Fatal(err)
	}
	grown := measure()
	if grown-empty != 1<<18 {
		t.Errorf("a blob of %d bytes added %d", 1<<18, grown-empty)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := s.Reopen(t, log)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	log = again
	if n := measure(); n != grown {
		t.Errorf("opened anew it has the size %d, and had %d", n, grown)
	}
}
