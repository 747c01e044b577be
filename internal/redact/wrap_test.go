package redact

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/journal"
	"belay/message"
	"belay/tool"
	"belay/tool/tooltest"
	"belay/verify"
)

// Every payload, and every way in which JSON can write a string, and blobs.
func TestLog(t *testing.T) {
	home := t.TempDir()
	r := memory(t, Config{Home: home, RunID: "r_1", Known: []string{"known-value-1"}})
	first, err := r.Entries([]journal.Entry{
		{Type: journal.TypeSessionStart, Payload: journal.SessionStart{System: "map: " + claude, Tools: json.RawMessage(`[]`)}},
		{Type: journal.TypeUserMessage, Payload: journal.UserMessage{Text: "use " + github}},
	})
	if err != nil {
		t.Fatal(err)
	}
	file, _, err := journal.Create(home, "r_1", nil, first...)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	log := r.Log(file)
	escaped := `\u0067hp_` + strings.ReplaceAll(github[4:], "2", `\u0032`)
	opaque := json.RawMessage(`{"sig":"` + awsID + `","known":"known-value-1"}`)
	big := strings.Repeat("x y\n", 8000)
	events, err := log.Append(
		journal.Entry{Type: journal.TypeModelReply, Payload: journal.ModelReply{Stop: message.StopToolUse, Blocks: []message.Block{
			{Kind: message.KindThinking, Text: "signed: " + awsID, Opaque: &message.Opaque{Provider: "p", Raw: opaque}},
			{Kind: message.KindCall, Call: &message.ToolCall{ID: "c", Name: "Do", Args: json.RawMessage(`{"n":1.50,"b":"` + escaped + `","` + github + `":0,"password":"hunter22!"}`)}},
			{Kind: message.KindCall, Call: &message.ToolCall{ID: "d", Name: "Do", Args: json.RawMessage(`{"b":"` + github + `"}`)}, Opaque: &message.Opaque{Provider: "p", Raw: opaque}},
		}}},
		journal.Entry{Type: journal.TypeToolRequest, Payload: journal.ToolRequest{CallID: "c", Tool: "Do", Args: json.RawMessage(`{"z":"` + jwtKey + `"}`)}},
		journal.Entry{Type: journal.TypeToolResult, Payload: journal.ToolResult{CallID: "c", Text: big + github + big}},
		journal.Entry{Type: "later.type", Payload: map[string]any{"a": []string{github}}},
	)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := log.Write(journal.Entry{Type: journal.TypeGuard, Payload: journal.Guard{Note: github}}); err != nil {
		t.Fatal(err)
	}
	if _, err := log.PutBlob([]byte(big + pemKey)); err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(journal.Entry{Type: journal.TypeGuard, Payload: journal.Guard{Note: "plain"}}); err != nil {
		t.Fatal(err)
	}
	name := r.Text(github)
	var reply journal.ModelReply
	if err := events[0].Decode(&reply); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`{"n":1.50,"b":%q,%q:0,"password":%q}`, name, name, r.learn("hunter22!", "value", false))
	if diff := cmp.Diff(want, string(reply.Blocks[1].Call.Args)); diff != "" {
		t.Error(diff)
	}
	if thought := reply.Blocks[0]; thought.Text != "signed: "+awsID || !strings.Contains(string(thought.Opaque.Raw), awsID) || strings.Contains(string(thought.Opaque.Raw), "known-value-1") {
		t.Errorf("an opaque block became %q %s", thought.Text, thought.Opaque.Raw)
	}
	if signed := reply.Blocks[2]; string(signed.Call.Args) != fmt.Sprintf(`{"b":%q}`, name) || signed.Opaque == nil || !strings.Contains(string(signed.Opaque.Raw), awsID) || strings.Contains(string(signed.Opaque.Raw), "known-value-1") {
		t.Errorf("a signed call became %s %+v", signed.Call.Args, signed.Opaque)
	}
	// The events given back are those that are read, and nothing on the disk holds a secret.
	var read []journal.Event
	for e, err := range log.Events() {
		if err != nil {
			t.Fatal(err)
		}
		read = append(read, e)
	}
	if diff := cmp.Diff(events[2].Payload, read[5].Payload); diff != "" {
		t.Error(diff)
	}
	secrets := []string{github, claude, jwtKey, "known-value-1", "hunter22!", strings.Split(pemKey, "\n")[1], strings.Split(pemKey, "\n")[2], escaped}
	err = filepath.Walk(journal.RunsDir(home), func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		for _, s := range secrets {
			if bytes.Contains(data, []byte(s)) {
				t.Errorf("%s holds %q", path, s)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	// What the journal names, the vault can give back.
	again := memory(t, Config{Home: home, RunID: "r_1"})
	for _, e := range read {
		if _, err := again.Restore(string(e.Payload)); err != nil {
			t.Errorf("event %d: %v", e.Seq, err)
		}
	}
}

func TestEnv(t *testing.T) {
	inner := tooltest.NewEnv(t, map[string]string{"a.env": "GITHUB_TOKEN=" + github + "\nWEIRD_PASSWORD='; rm -rf x #1'\n", github + ".txt": "", "«secret:x»": "«secret:github:000000000000»"})
	r := memory(t, Config{})
	env := r.Env(inner, false)
	data, err := env.ReadFile("a.env")
	if err != nil || strings.Contains(string(data), github) || strings.Contains(string(data), "rm -rf") {
		t.Fatalf("%q, %v", data, err)
	}
	name, weird := r.Text(github), r.learn("; rm -rf x #1", "value", false)
	// Written, the placeholders are values again, and what only looks like one stays.
	if _, err := env.ReadFile("«secret:x»"); err == nil {
		t.Error("a path with half a placeholder was taken")
	}
	entries, err := env.ReadDir(".")
	if err != nil || len(entries) != 3 || entries[1].Name != name+".txt" {
		t.Fatalf("%v, %v", entries, err)
	}
	fake, err := env.ReadFile(entries[2].Name)
	if err != nil {
		t.Fatal(err)
	}
	if err := env.WriteFile("b", append(data, fake...)); err != nil {
		t.Fatal(err)
	}
	if got, want := inner.Get(t, "b"), inner.Get(t, "a.env")+"«secret:github:000000000000»"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if _, err := env.Stat(entries[1].Name); err != nil {
		t.Error(err)
	}
	if err := env.Remove(entries[1].Name); err != nil {
		t.Error(err)
	}
	// No placeholder reaches a file.
	var mistake *tool.Mistake
	for _, bad := range []string{"x «secret:github:000000000000»", "cut " + name[:20]} {
		if err := env.WriteFile("c", []byte(bad)); !errors.As(err, &mistake) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := inner.Stat("c"); err == nil {
		t.Error("a placeholder was written")
	}
	// Commands get values that no shell can misread, and what they print is hidden, however it is cut.
	sh := func(env tool.Env, line string) (string, error) {
		var out bytes.Buffer
		_, err := env.Exec(t.Context(), tool.Command{Argv: []string{"sh", "-c", line}, Output: &out, Env: []string{"W=" + weird}, Stdin: strings.NewReader("in " + name)})
		return out.String(), err
	}
	if got, err := sh(env, "printf %s "+name+" > d; head -c 9 d; tail -c +10 d; echo; echo \"$W\"; cat"); err != nil || got != name+"\n"+weird+"\nin "+name {
		t.Errorf("%q, %v", got, err)
	}
	if inner.Get(t, "d") != github {
		t.Errorf("%q", inner.Get(t, "d"))
	}
	if _, err := sh(env, "echo "+weird); !errors.As(err, &mistake) || !strings.Contains(mistake.Failure.Message, "shell") {
		t.Errorf("%v", err)
	}
	if _, err := sh(r.Env(inner, true), "echo x"); !errors.As(err, &mistake) || mistake.Failure.Code != tool.Denied {
		t.Errorf("a command that may reach the network got a secret: %v", err)
	}
	// A placeholder in a path names a file, and leads nowhere else.
	up := r.learn("../../etc", "value", false)
	if _, err := env.ReadFile(up + "/passwd"); !errors.As(err, &mistake) {
		t.Errorf("%v", err)
	}
}

// leaky is a tool that gets a secret from elsewhere than its environment.
type leaky struct{ tool.Tool }

func (leaky) Spec() tool.Spec {
	return tool.Spec{Name: "Leaky", Description: "d", Schema: json.RawMessage(`{"type":"object","additionalProperties":false}`), Replay: tool.Pure}
}

func (leaky) Run(_ context.Context, env tool.Env, _ tool.Call) (tool.Result, error) {
	if env != nil {
		return tool.Result{}, fmt.Errorf("write: %w", env.WriteFile("x", []byte("«secret:github:000000000000»")))
	}
	return tool.Result{Summary: github, Text: "t " + github, Data: json.RawMessage(`{"d":"` + github + `"}`), Error: &tool.Failure{Message: github}}, nil
}

func TestTools(t *testing.T) {
	plain, err := tool.NewRegistry(leaky{})
	if err != nil {
		t.Fatal(err)
	}
	r := memory(t, Config{})
	registry, err := r.Tools(plain)
	if err != nil {
		t.Fatal(err)
	}
	subject, _ := registry.Lookup("Leaky")
	result, err := subject.Run(t.Context(), nil, tool.Call{})
	if err != nil {
		t.Fatal(err)
	}
	if all := fmt.Sprint(result.Summary, result.Text, string(result.Data), *result.Error); strings.Contains(all, github) || strings.Count(all, opening) != 4 {
		t.Error(all)
	}
	result, err = subject.Run(t.Context(), r.Env(tooltest.NewEnv(t, nil), false), tool.Call{})
	if err != nil || result.Error == nil || result.Error.Code != tool.InvalidArguments {
		t.Errorf("%v, %v", result, err)
	}
}

type checker struct{ verify.Verifier }

func (checker) Name() string { return "TOKEN=" + github + " make test" }
func (checker) Verify(context.Context) (verify.Report, error) {
	return verify.Report{Verifier: github, Output: "o " + github, LogHash: "raw"}, nil
}

func TestVerifier(t *testing.T) {
	r := memory(t, Config{})
	v := r.Verifier(checker{})
	report, err := v.Verify(t.Context())
	if err != nil || strings.Contains(v.Name()+report.Verifier+report.Output, github) || report.LogHash == "raw" {
		t.Errorf("%q %+v %v", v.Name(), report, err)
	}
}

func TestScrub(t *testing.T) {
	if got := Scrub("panic: "+github+" zz-top-88-11", []string{"DEPLOY_TOKEN=zz-top-88-11"}); strings.Contains(got, github) || strings.Contains(got, "zz-top") {
		t.Error(got)
	}
}

// Several tools read at once, and several processes begin at once.
func TestConcurrent(t *testing.T) {
	home := t.TempDir()
	var wg sync.WaitGroup
	seen := make([]string, 8)
	for i := range seen {
		wg.Go(func() {
			r, err := Open(Config{Home: home, RunID: fmt.Sprint("r_", i)})
			if err != nil {
				t.Error(err)
				return
			}
			var inner sync.WaitGroup
			for range 4 {
				inner.Go(func() {
					hidden := r.Hide(pemKey + github)
					if err := r.Keep(hidden); err != nil {
						t.Error(err)
					}
					if back, err := r.Restore(hidden); err != nil || back != pemKey+github {
						t.Error(back, err)
					}
				})
			}
			inner.Wait()
			seen[i] = r.Text(github)
		})
	}
	wg.Wait()
	for _, s := range seen {
		if s != seen[0] {
			t.Errorf("one state, two names: %q and %q", s, seen[0])
		}
	}
}

func BenchmarkEntry(b *testing.B) {
	r := memory(b, Config{})
	out, _ := exec.Command("go", "help", "build").Output()
	e := journal.Entry{Type: journal.TypeToolResult, Payload: journal.ToolResult{CallID: "c", Text: string(out[:min(len(out), 4000)])}}
	b.SetBytes(4000)
	for b.Loop() {
		if _, err := r.Entry(e); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	home := b.TempDir()
	for b.Loop() {
		if _, err := Open(Config{Home: home, RunID: "r_1", Environ: os.Environ()}); err != nil {
			b.Fatal(err)
		}
	}
}

// A document keeps every byte but those of secrets, and its strings are read as any reader of JSON reads them.
func FuzzJSON(f *testing.F) {
	f.Add(`{"a":[1.0,"x\n\u00e9\ud83d\ude00\"\\\/"],"token":"abcdef123456","b":{"password":"p1\tp2p3p4"},"\u0061":null}`)
	f.Add(`{"apiKey":"` + github + `"}`)
	f.Fuzz(func(t *testing.T, doc string) {
		if !json.Valid([]byte(doc)) {
			return
		}
		if got := mapStrings([]byte(doc), func(_, s string) string { return s }); string(got) != doc {
			t.Errorf("%q became %q", doc, got)
		}
		var strs int
		mapStrings([]byte(doc), func(_, s string) string {
			strs++
			b, err := json.Marshal(s)
			if err != nil || !json.Valid(b) {
				t.Errorf("%q: %v", s, err)
			}
			return s
		})
		r := memory(t, Config{})
		hidden := mapStrings([]byte(doc), r.member)
		if !json.Valid(hidden) {
			t.Errorf("%q became %q", doc, hidden)
		}
		if again := mapStrings(hidden, r.member); !bytes.Equal(again, hidden) {
			t.Errorf("%q, and again %q", hidden, again)
		}
	})
}
