package journal

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"belay/effect"
	"belay/message"
)

var makeFixtures = flag.Bool("make-fixtures", false, "write the fixtures that are not there yet; those that are there are frozen")

const fixtureDir = "../testdata/journal/v1"

// payloads says which struct belongs to which type of event.
var payloads = map[Type]any{
	TypeWriterOpen: WriterOpen{}, TypeFork: Fork{}, TypeSessionStart: SessionStart{}, TypeSessionEnd: SessionEnd{}, TypeUserMessage: UserMessage{},
	TypeModelCall: ModelCall{}, TypeModelReply: ModelReply{}, TypeToolRequest: ToolRequest{}, TypeToolResult: ToolResult{}, TypeVerify: Verify{},
	TypeGuard: Guard{}, TypeDegraded: Degraded{}, TypeResume: Resume{},
	TypePlan: Plan{}, TypeReplan: Replan{}, TypeRecap: Recap{}, TypeErase: Erase{}, TypeCompaction: Compaction{},
	TypeHook:       Hook{},
	TypeAgentStart: AgentStart{}, TypeAgentEnd: AgentEnd{},
	TypeCircumvention: Circumvention{},
	TypeQuestion:      Question{}, TypeAnswer: Answer{}, TypePermission: Permitted{},
	TypeJudge: Judgement{}, TypeEscalate: Escalation{}, TypeMisjudged: Misjudged{},
	TypeConnection: Connection{},
	TypeCheckpoint: Checkpoint{}, TypeRewind: Rewind{}, TypeExternal: External{}, TypeCompensated: Compensated{},
}

// everyType is a run with every type of event and every field filled.
func everyType() []Entry {
	return filled(TypeWriterOpen, TypeSessionStart, TypeDegraded, TypeUserMessage, TypeModelCall, TypeModelReply, TypeToolRequest, TypeToolResult, TypeGuard, TypeVerify, TypeSessionEnd, TypeResume)
}

func filled(types ...Type) []Entry {
	var entries []Entry
	for _, t := range types {
		p := reflect.New(reflect.TypeOf(payloads[t]))
		fill(p.Elem(), string(t))
		entries = append(entries, Entry{Type: t, Agent: "main", Session: 1, Turn: 2, Step: "s1", Payload: p.Elem().Interface()})
	}
	return entries
}

const wholeOutput = "the whole output"

// fill gives every field a value that depends on nothing.
func fill(v reflect.Value, name string) {
	switch v.Interface().(type) {
	case json.RawMessage:
		v.Set(reflect.ValueOf(json.RawMessage(`{"a":[1,2.50,"<&>"]}`)))
		return
	case []message.Block:
		v.Set(reflect.ValueOf([]message.Block{message.Text("I look"), {Kind: message.KindCall, Call: &message.ToolCall{ID: "call_1", Name: "Read", Args: json.RawMessage(`{"file_path":"a"}`)}}}))
		return
	case Ref:
		v.Set(reflect.ValueOf(Ref{Hash: hashOf([]byte(wholeOutput)), Size: int64(len(wholeOutput))}))
		return
	case effect.Verdict:
		v.Set(reflect.ValueOf(effect.Allow))
		return
	case message.StopReason:
		v.Set(reflect.ValueOf(message.StopToolUse))
		return
	}
	if name == "CallID" {
		v.SetString("call_1")
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				fill(v.Field(i), f.Name)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), name)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), name)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, name)
		fill(value, name)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("the " + name + " é <&>")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(int64(len(name)))
	case reflect.Float64:
		v.SetFloat(1.5)
	}
}

// future is what a later version may write: types, envelope fields and payload fields that nobody knows yet.
func future() []byte {
	var lines []byte
	sum := zeroSum
	for i, line := range []string{
		`{"v":1,"run_id":"r_future","seq":1,"ts":"2026-09-07T10:14:03.120Z","type":"writer.open","agent":"main","session":1,"turn":0,"payload":{"host":"h","pid":1,"epoch":1,"cpu":"riscv"}`,
		`{"v":1,"run_id":"r_future","seq":2,"ts":"2026-09-07T10:14:03.121Z","type":"hologram","agent":"main","session":1,"turn":0,"payload":{"depth":3},"signed":{"by":"k1"}`,
		`{"v":1,"run_id":"r_future","seq":3,"lane":2,"ts":"2026-09-07T10:14:03.122Z","type":"user.message","agent":"main","session":1,"turn":0,"payload":{"text":"hi","mood":"good"}`,
	} {
		if i > 0 {
			lines = append(lines, '\n')
		}
		sum = Sum(sum, []byte(line))
		lines = append(lines, line+sumPrefix+sum+sumSuffix...)
	}
	return append(lines, '\n')
}

func TestMakeFixtures(t *testing.T) {
	if !*makeFixtures {
		if _, err := os.Stat(fixtureDir); err != nil {
			t.Fatal(err)
		}
		return
	}
	put := func(content []byte) (Ref, error) {
		store := blobs{place: place{osDisk{}, fixtureDir}, fresh: map[string]bool{}}
		return store.put(content)
	}
	if _, err := put([]byte(wholeOutput)); err != nil {
		t.Fatal(err)
	}
	seal := func(id string, entries []Entry) []byte {
		lines, _, _, err := newChain(id, clock()).seal(entries, put)
		if err != nil {
			t.Fatal(err)
		}
		return lines
	}
	long := append([]Entry{{Type: TypeWriterOpen, Payload: WriterOpen{Host: "h", PID: 1, Epoch: 1}}}, story()...)
	for name, text := range map[string][]byte{"every-type": seal("r_everytype", everyType()), "blobs": seal("r_blobs", long), "future": future(),
		"checkpoints": seal("r_checkpoints", filled(TypeWriterOpen, TypeCheckpoint, TypeRewind, TypeExternal, TypeCompensated)),
		"people":      seal("r_people", filled(TypeWriterOpen, TypePlan, TypeReplan, TypeRecap, TypeErase, TypeCompaction, TypeHook, TypeQuestion, TypeAnswer, TypePermission, TypeAgentStart, TypeAgentEnd, TypeCircumvention)),
		"network":     seal("r_network", filled(TypeWriterOpen, TypeConnection)),
		"judge":       seal("r_judge", filled(TypeWriterOpen, TypeSessionStart, TypeQuestion, TypeAnswer, TypePermission, TypeJudge, TypeEscalate, TypeMisjudged))} {
		path := filepath.Join(fixtureDir, name+".jsonl")
		if _, err := os.Stat(path); err == nil {
			t.Logf("%s is frozen", path)
			continue
		}
		if err := os.MkdirAll(fixtureDir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// The fixtures are read for ever: sound, whole and to the last byte, whatever this version would write today.
func TestFixtures(t *testing.T) {
	frozen := map[string]string{ // file -> number of events and the last sum, which vouches for every byte
		"blobs.jsonl":       "7 0e8be10524a1d24f06e561891b8e7401",
		"every-type.jsonl":  "12 58251865ee1763bfb98b769a572d55c0",
		"checkpoints.jsonl": "5 49d6d5159bcf42dc39cf9d584f16e5cd",
		"people.jsonl":      "13 2e5eafbca5f59d3d21c612b963f045ae",
		"judge.jsonl":       "8 62d52feb09634d6a3f71c5590a985700",
		"network.jsonl":     "2 539365e8cc545333aaeeba5a5271fb80",
		"future.jsonl":      "3 1ae97a1db8cda484f4314debbb36ec7c",
	}
	files, err := filepath.Glob(filepath.Join(fixtureDir, "*.jsonl"))
	if err != nil || len(files) != len(frozen) {
		t.Fatalf("%d fixtures, %d are known (%v)", len(files), len(frozen), err)
	}
	for _, file := range files {
		text := mustRead(t, file)
		first, err := readEvent(bytes.TrimSuffix(slices.Collect(bytes.Lines(text))[0], []byte("\n")))
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(t.TempDir(), first.RunID)
		if err := os.CopyFS(filepath.Join(dir, blobsName), os.DirFS(filepath.Join(fixtureDir, blobsName))); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, journalName), text, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, findings, err := Check(dir); err != nil || len(findings) > 0 {
			t.Errorf("%s: %v, %v", file, findings, err)
		}
		events := read(t, dir)
		if got := fmt.Sprint(len(events), " ", events[len(events)-1].Sum); got != frozen[filepath.Base(file)] {
			t.Errorf("%s: %q", filepath.Base(file), got)
		}
		for _, e := range events {
			known, ok := payloads[e.Type]
			if !ok {
				continue
			}
			p := reflect.New(reflect.TypeOf(known))
			if err := e.Decode(p.Interface()); err != nil {
				t.Errorf("%s: %v", file, err)
			}
			if strings.HasPrefix(filepath.Base(file), "future") {
				continue
			}
			// What it says is all taken: nothing that was written then is lost by who reads it now.
			var was, is map[string]any
			again, err := encode(p.Elem().Interface())
			if err != nil || json.Unmarshal(e.Payload, &was) != nil || json.Unmarshal(again, &is) != nil {
				t.Fatal(err)
			}
			for field, value := range was {
				if !reflect.DeepEqual(is[field], value) {
					t.Errorf("%s: event %d: %s was %v and is read as %v", file, e.Seq, field, value, is[field])
				}
			}
		}
		// And it can be gone on with.
		f, err := Open(dir, clock())
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if _, err := f.Append(Entry{Type: TypeUserMessage, Payload: UserMessage{Text: "go on"}}); err != nil {
			t.Fatal(err)
		}
		f.Close()
		if got := mustRead(t, filepath.Join(dir, journalName)); !bytes.HasPrefix(got, text) {
			t.Errorf("%s: going on changed it", file)
		}
	}
}

// The document speaks of every type and every field.
func TestContractIsComplete(t *testing.T) {
	doc := string(mustRead(t, "../docs/contracts/journal.md"))
	for typ, payload := range payloads {
		if !strings.Contains(doc, "| `"+string(typ)+"` |") {
			t.Errorf("docs/contracts/journal.md has no line for %s", typ)
			continue
		}
		_, line, _ := strings.Cut(doc, "| `"+string(typ)+"` |")
		line, _, _ = strings.Cut(line, "\n")
		struct_ := reflect.TypeOf(payload)
		for i := range struct_.NumField() {
			name, _, _ := strings.Cut(struct_.Field(i).Tag.Get("json"), ",")
			if !strings.Contains(line, "`"+name) {
				t.Errorf("docs/contracts/journal.md: %s lacks the field `%s`", typ, name)
			}
		}
	}
}
