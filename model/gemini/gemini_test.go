package gemini

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/message"
	"belay/model"
)

var update = flag.Bool("update", false, "write what comes out as what is wanted")

func callOf(id, name, args string, o *message.Opaque) message.Block {
	return message.Block{Kind: message.KindCall, Call: &message.ToolCall{ID: id, Name: name, Args: json.RawMessage(args)}, Opaque: o}
}

func TestGoldenBodies(t *testing.T) {
	own := func(raw string) *message.Opaque {
		return &message.Opaque{Provider: "gemini", Model: "gemini-4-argon", Raw: json.RawMessage(raw)}
	}
	req := model.Request{
		System: "You climb & <belay>.", PrefixHash: strings.Repeat("ab", 32), MaxOutput: 4096,
		Tools: []model.Tool{
			{Name: "Bash", Description: "Runs.", Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{"command":{"type":"string","minLength":1},"env":{"type":"object"},"n":{"type":["integer","null"],"exclusiveMinimum":0}},"required":["command"]}`)},
			{Name: "LS", Description: "Lists."}},
		Messages: []message.Message{
			message.UserText("Go."), message.UserText("Now."),
			{Role: message.Assistant, Blocks: []message.Block{{Kind: message.KindThinking, Text: "hm"},
				{Kind: message.KindOpaque, Opaque: &message.Opaque{Provider: "anthropic", Raw: json.RawMessage(`{"secret":1}`)}},
				{Kind: message.KindText, Text: "on it", Opaque: own(`{"text":"on it","thoughtSignature":"AA"}`)},
				callOf("call_1_1", "Bash", `{"command": "ls <x>"}`, own(`{"thoughtSignature":"BB"}`)),
				{Kind: message.KindCall, Call: &message.ToolCall{ID: "b", Name: "Bash", Args: json.RawMessage(`"{\"x\""`), BadArgs: "not valid JSON: …"}}}},
			{Role: message.User, Blocks: []message.Block{message.Text("recap"),
				{Kind: message.KindResult, Result: &message.ToolResult{CallID: "b", Text: "no such argument", Error: true}},
				{Kind: message.KindResult, Result: &message.ToolResult{CallID: "call_1_1", Text: "x"}}}},
			{Role: message.Assistant, Blocks: []message.Block{callOf("toolu_1", "LS", `{}`, &message.Opaque{Provider: "other", Raw: json.RawMessage(`{"thoughtSignature":"secret"}`)})}},
		},
	}
	for name, cfg := range map[string]Config{
		"argon": {Model: "gemini-4-argon", Effort: "high"},
		"old":   {Model: "models/gemini-2.5-flash", Effort: "low"},
	} {
		body, err := New(cfg).Encode(req)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(body), "secret") {
			t.Errorf("%s: another provider's block was sent", name)
		}
		var b bytes.Buffer
		if err := json.Indent(&b, body, "", "  "); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", name+".json")
		if *update {
			if err := os.WriteFile(path, append(b.Bytes(), '\n'), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(strings.TrimSpace(string(want)), b.String()); d != "" {
			t.Errorf("%s (run with -update to accept): %s", name, d)
		}
	}
}

// TestAddress holds where requests go, and that the key travels in a header only.
func TestAddress(t *testing.T) {
	for base, want := range map[string]string{"": "/v1beta/models/m%2Fx:streamGenerateContent", "/v1/publishers/google": "/v1/publishers/google/models/m%2Fx:streamGenerateContent"} {
		var path, key string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			path, key = r.URL.EscapedPath(), r.Header.Get("X-Goog-Api-Key")
			if r.URL.RawQuery != "alt=sse" {
				t.Errorf("the query is %q", r.URL.RawQuery)
			}
			_, _ = w.Write([]byte("data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"hi\"}]},\"finishReason\":\"STOP\"}]}\n\n"))
		}))
		c := New(Config{Model: "m/x", BaseURL: server.URL + base, Key: func() string { return "k" }})
		if _, err := model.Collect(c.Stream(t.Context(), model.Request{Messages: []message.Message{message.UserText("go")}}), nil); err != nil || path != want || key != "k" {
			t.Errorf("%q: %s %s %v", base, path, key, err)
		}
		server.Close()
	}
	if i := New(Config{Model: "gemini-4-argon"}).Info(); i.Price == nil || i.ContextWindow == 0 || i.ID() != "gemini:gemini-4-argon" {
		t.Errorf("%+v", i)
	}
}
