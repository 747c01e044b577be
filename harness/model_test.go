package harness_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/harness"
	"belay/journal"
	"belay/model/rehearsal"
	"belay/model/rehearsal/serve"
)

// A run with everything that a dialect has to carry: errors, cuts, thinking, broken arguments, failed calls.
const everything = `version: 1
turns:
  - say: "First I look – größe."
    thinking: "Where is it? 🤔"
    calls: [{tool: Read, args: {file_path: "a.txt"}}, {tool: Read, args: {file_path: "missing.txt"}}]
  - error: {status: 529, retry_after: 0.01}
    calls: [{tool: Bash, bad_args: '{"command": "ls'}]
  - cut_stream: true
    expect: {last_result_error: true}
    calls: [{tool: Write, args: {file_path: "b.txt", content: "one\n\"two\" <three> &amp; 日本\n"}}]
  - calls: [{tool: Read, args: {file_path: "b.txt"}}, {tool: LS}] # a Bash result tells how long it took
    usage: {input: 100, output: 10, cache_read: 50, cache_write: 3}
  - stop: max_tokens
    say: "cut by the lim"
  - calls: [{tool: TaskComplete, args: {summary: "done", evidence: "b.txt"}}]
otherwise: {say: "Nothing left."}
`

// TestSameJournalOverEveryDialect is the promise that makes a rehearsal over HTTP worth something: the journal is
// the same but for ids, times, the model's name and what was sent.
func TestSameJournalOverEveryDialect(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "sk-test-that-must-not-be-written")
	t.Setenv("OPENAI_API_KEY", "sk-test-that-must-not-be-written")
	t.Setenv("GEMINI_API_KEY", "sk-test-that-must-not-be-written")
	dir := t.TempDir()
	script := filepath.Join(dir, "everything.yaml")
	if err := os.WriteFile(script, []byte(everything), 0o600); err != nil {
		t.Fatal(err)
	}
	want := strings.Join(run(t, dir, "rehearsal:"+script), "\n")
	if !strings.Contains(want, `"stop":"length"`) || !strings.Contains(want, `"type":"tool.result"`) {
		t.Fatalf("the run was cut short:\n%s", want)
	}
	for _, provider := range []string{"anthropic", "openai", "openai-responses", "gemini"} {
		s, err := rehearsal.Load(script)
		if err != nil {
			t.Fatal(err)
		}
		var keys sync.Map
		h := serve.New(s)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			keys.Store(r.Header.Get("X-Api-Key")+r.Header.Get("X-Goog-Api-Key")+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), true)
			h.ServeHTTP(w, r)
		}))
		got := strings.Join(run(t, dir, provider+":scripted@"+server.URL), "\n")
		server.Close()
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s:\n%s", provider, d)
		}
		if _, sent := keys.Load("sk-test-that-must-not-be-written"); !sent {
			t.Errorf("%s: the key was not sent", provider)
		}
	}
}

// run works in the same place each time, and returns the events without what may differ.
func run(t *testing.T, dir, name string) []string {
	t.Helper()
	workspace, home := filepath.Join(dir, "ws"), filepath.Join(dir, "home")
	for _, d := range []string{workspace, home} {
		if err := os.RemoveAll(d); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(workspace, "a.txt"), []byte("größe\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var events []string
	result, err := harness.Run(t.Context(), harness.Config{
		Task: "Write b.txt.", Workspace: workspace, Home: home, Model: name, Verify: []string{"test -f b.txt"},
		Bounds:  journal.Bounds{Turns: 12},
		Observe: func(e journal.Event) { events = append(events, neutral(t, e)) },
	})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	err = filepath.WalkDir(home, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte("sk-test-that-must-not")) {
			t.Errorf("%s: %s holds the key", name, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return append(events, "exit "+result.Reason)
}

func neutral(t *testing.T, e journal.Event) string {
	t.Helper()
	var payload any
	if err := e.Decode(&payload); err != nil {
		t.Fatal(err)
	}
	if end, ok := payload.(map[string]any); ok && e.Type == journal.TypeSessionEnd {
		delete(end, "usage") // with what was wasted, which dialects count differently
	}
	if kept, ok := payload.(map[string]any); ok && e.Type == journal.TypeCheckpoint {
		delete(kept, "id") // a moment and chance
	}
	data, err := json.Marshal(map[string]any{"type": e.Type, "turn": e.Turn, "payload": without(payload)})
	if err != nil {
		t.Fatal(err)
	}
	return names.Replace(string(data))
}

// names of the model, where a text holds one
var names = strings.NewReplacer("rehearsal:everything", "MODEL", "anthropic:scripted", "MODEL", "openai:scripted", "MODEL",
	"openai-responses:scripted", "MODEL", "gemini:scripted", "MODEL")

// without drops what may differ, wherever it stands.
func without(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			switch key {
			case "model", "context_policy", "wire_hash", "codec", "duration_ms", "run_id", "pid", "host", "boot_id", "stats", "ms", "config", "wasted":
				delete(v, key)
			default:
				v[key] = without(inner)
			}
		}
	case []any:
		for i := range v {
			v[i] = without(v[i])
		}
	}
	return v
}
