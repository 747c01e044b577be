package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"belay/message"
	"belay/model"
	"belay/model/rehearsal"
	"belay/model/rehearsal/serve"
)

var update = flag.Bool("update", false, "write the golden files")

func client() *Client { return New(Config{Model: "claude-sonnet-5"}) }

func decode(c *Client, r io.Reader) (model.Reply, error) {
	resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(r)}
	return model.Collect(c.Decode(resp, model.Request{PrefixHash: "p", Replies: 2}), nil)
}

// sse makes a stream of events: kind and JSON without its type.
func sse(events ...string) string {
	var b strings.Builder
	for _, e := range events {
		kind, rest, _ := strings.Cut(e, " ")
		fmt.Fprintf(&b, "event: %s\ndata: {\"type\":%q%s}\n\n", kind, kind, map[bool]string{true: "," + rest, false: ""}[rest != ""])
	}
	return b.String()
}

const start = `message_start "message":{"usage":{"input_tokens":10,"cache_read_input_tokens":5,"cache_creation_input_tokens":3,"output_tokens":1}}`

func text(i int, s string) []string {
	return []string{
		fmt.Sprintf(`content_block_start "index":%d,"content_block":{"type":"text","text":""}`, i),
		fmt.Sprintf(`content_block_delta "index":%d,"delta":{"type":"text_delta","text":%q}`, i, s),
		fmt.Sprintf(`content_block_stop "index":%d`, i),
	}
}

func stop(reason string) []string {
	return []string{`message_delta "delta":{"stop_reason":` + reason + `},"usage":{"output_tokens":20}`, `message_stop`}
}

func all(parts ...[]string) string {
	out := []string{start}
	for _, p := range parts {
		out = append(out, p...)
	}
	return sse(out...)
}

func TestDecode(t *testing.T) {
	usage := message.Usage{Input: 10, Output: 20, CacheRead: 5, CacheWrite: 3}
	call := func(id, name, args string) message.Block {
		return message.Block{Kind: message.KindCall, Call: &message.ToolCall{ID: id, Name: name, Args: json.RawMessage(args)}}
	}
	own := func(raw string) *message.Opaque {
		return &message.Opaque{Provider: "anthropic", Model: "claude-sonnet-5", Prefix: "p", Raw: json.RawMessage(raw)}
	}
	tool := func(i int, id string) string {
		return fmt.Sprintf(`content_block_start "index":%d,"content_block":{"type":"tool_use","id":%q,"name":"Bash","input":{}}`, i, id)
	}
	args := func(i int, s string) string {
		return fmt.Sprintf(`content_block_delta "index":%d,"delta":{"type":"input_json_delta","partial_json":%q}`, i, s)
	}
	for name, c := range map[string]struct {
		in   string
		want model.Reply
	}{
		"text":     {all(text(0, "hi"), stop(`"end_turn"`)), model.Reply{Blocks: []message.Block{message.Text("hi")}, Stop: message.StopEnd, Usage: usage}},
		"empty":    {all(stop(`"end_turn"`)), model.Reply{Stop: message.StopEnd, Usage: usage}},
		"length":   {all(text(0, "hi"), stop(`"max_tokens"`)), model.Reply{Blocks: []message.Block{message.Text("hi")}, Stop: message.StopLength, Usage: usage}},
		"sequence": {all(text(0, "hi"), stop(`"stop_sequence"`)), model.Reply{Blocks: []message.Block{message.Text("hi")}, Stop: message.StopEnd, Usage: usage}},
		"pause": {all([]string{`content_block_start "index":0,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`, args(0, `{"q":1}`), `content_block_stop "index":0`}, stop(`"pause_turn"`)),
			model.Reply{Blocks: []message.Block{{Kind: message.KindOpaque, Opaque: own(`{"id":"s","input":{"q":1},"name":"web_search","type":"server_tool_use"}`)}}, Stop: message.StopPause, Usage: usage}},
		"refusal": {all([]string{`message_delta "delta":{"stop_reason":"refusal","stop_details":{"type":"refusal","category":"cyber","explanation":"I will not."}},"usage":{"output_tokens":20}`, `message_stop`}),
			model.Reply{Blocks: []message.Block{message.Text("I will not.")}, Stop: message.StopRefusal, Usage: usage}},
		"interleaved calls, pings and strangers": {all(text(0, "on it"), []string{tool(1, "a"), `ping`, tool(2, "b"), args(1, ""), args(2, `{"y"`), args(1, `{"x":`), `mystery "index":7`, `content_block_delta "index":2,"delta":{"type":"odd_delta"}`,
			args(2, `:2}`), args(1, `1}`), `content_block_stop "index":2`, `content_block_stop "index":1`}, stop(`"tool_use"`)),
			model.Reply{Blocks: []message.Block{message.Text("on it"), call("a", "Bash", `{"x":1}`), call("b", "Bash", `{"y":2}`)}, Stop: message.StopToolUse, Usage: usage}},
		"calls under end_turn, without arguments": {all([]string{tool(0, "a"), args(0, "")}, stop(`"end_turn"`)), model.Reply{Blocks: []message.Block{call("a", "Bash", `{}`)}, Stop: message.StopToolUse, Usage: usage}},
		"the input at the start": {all([]string{`content_block_start "index":0,"content_block":{"type":"tool_use","id":"a","name":"Bash","input":{"x": 1}}`}, stop(`"tool_use"`)),
			model.Reply{Blocks: []message.Block{call("a", "Bash", `{"x": 1}`)}, Stop: message.StopToolUse, Usage: usage}},
		"a duplicate start": {all([]string{tool(0, "a"), tool(0, "a"), args(0, `{"x":1}`)}, stop(`"tool_use"`)), model.Reply{Blocks: []message.Block{call("a", "Bash", `{"x":1}`)}, Stop: message.StopToolUse, Usage: usage}},
		"thinking": {all([]string{`content_block_start "index":0,"content_block":{"type":"thinking","thinking":"","signature":""}`,
			`content_block_delta "index":0,"delta":{"type":"thinking_delta","thinking":"a <b> & "}`, `content_block_delta "index":0,"delta":{"type":"thinking_delta","thinking":"c\n"}`,
			`content_block_delta "index":0,"delta":{"type":"signature_delta","signature":"Eq/+="}`, `content_block_start "index":1,"content_block":{"type":"redacted_thinking","data":"x<y"}`}, text(2, "hi"), stop(`"end_turn"`)),
			model.Reply{Blocks: []message.Block{{Kind: message.KindThinking, Text: "a <b> & c\n", Opaque: own(`{"type":"thinking","thinking":"a <b> & c\n","signature":"Eq/+="}`)},
				{Kind: message.KindOpaque, Opaque: own(`{"type":"redacted_thinking","data":"x<y"}`)}, message.Text("hi")}, Stop: message.StopEnd, Usage: usage}},
		"omitted thinking": {all([]string{`content_block_start "index":0,"content_block":{"type":"thinking","thinking":"","signature":""}`, `content_block_delta "index":0,"delta":{"type":"signature_delta","signature":"S"}`}, text(1, "hi"), stop(`"end_turn"`)),
			model.Reply{Blocks: []message.Block{{Kind: message.KindThinking, Opaque: own(`{"type":"thinking","thinking":"","signature":"S"}`)}, message.Text("hi")}, Stop: message.StopEnd, Usage: usage}},
		"split surrogates": {all([]string{`content_block_start "index":0,"content_block":{"type":"text","text":""}`, `content_block_delta "index":0,"delta":{"type":"text_delta","text":"\ud83e"}`, `content_block_delta "index":0,"delta":{"type":"text_delta","text":"\uddd7"}`}, stop(`"end_turn"`)),
			model.Reply{Blocks: []message.Block{message.Text("🧗")}, Stop: message.StopEnd, Usage: usage}},
		"not streamed": {`{"type":"message","content":[{"type":"text","text":"hi"},{"type":"tool_use","id":"a","name":"Bash","input":{"x":1}}],"stop_reason":"tool_use","usage":{"input_tokens":10,"cache_read_input_tokens":5,"cache_creation_input_tokens":3,"output_tokens":20}}`,
			model.Reply{Blocks: []message.Block{message.Text("hi"), call("a", "Bash", `{"x":1}`)}, Stop: message.StopToolUse, Usage: usage}},
		"no usage, no event lines": {"data: {\"type\":\"message_start\",\"message\":{}}\n\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"12345\"}}\n\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\ndata: {\"type\":\"message_stop\"}\n\n",
			model.Reply{Blocks: []message.Block{message.Text("12345")}, Stop: message.StopEnd, Usage: message.Usage{Output: 2}}},
		"an unknown end with text": {all(text(0, "hi"), stop(`"brand_new"`)), model.Reply{Blocks: []message.Block{message.Text("hi")}, Stop: message.StopEnd, Usage: usage}},
		"an unusable id":           {all([]string{tool(0, ""), tool(1, "")}, stop(`"tool_use"`)), model.Reply{Blocks: []message.Block{call("call_3_1", "Bash", "{}"), call("call_3_2", "Bash", "{}")}, Stop: message.StopToolUse, Usage: usage}},
	} {
		for _, r := range []io.Reader{strings.NewReader(c.in), iotest.OneByteReader(strings.NewReader(c.in))} {
			got, err := decode(client(), r)
			if err != nil {
				t.Errorf("%s: %v", name, err)
			} else if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%s: %s", name, d)
			}
		}
	}
}

func TestDecodeFailures(t *testing.T) {
	tool := `content_block_start "index":0,"content_block":{"type":"tool_use","id":"a","name":"Bash","input":{}}`
	for name, c := range map[string]struct {
		in    string
		class model.Class
		want  string
	}{
		"nothing":                     {"", model.Transient, "ended before"},
		"no message_stop":             {all(text(0, "hi"), stop(`"end_turn"`)[:1]), model.Transient, "ended before"},
		"overloaded after the start":  {all(text(0, "hi")) + sse(`error "error":{"type":"overloaded_error","message":"Overloaded"}`), model.Transient, "Overloaded"},
		"a bad request in the stream": {all() + sse(`error "error":{"type":"invalid_request_error","message":"odd"}`), model.Validation, "odd"},
		"an unknown end with a call":  {all([]string{tool}, stop(`"brand_new"`)), model.Transient, "brand_new"},
		"no reason, a call":           {all([]string{tool}, stop(`null`)), model.Transient, "unknown reason"},
		"tool_use without a call":     {all(text(0, "<invoke name=...>"), stop(`"tool_use"`)), model.Transient, "no call"},
		"a lost start":                {all([]string{`content_block_delta "index":3,"delta":{"type":"text_delta","text":"x"}`}, stop(`"end_turn"`)), model.Transient, "ended before"},
		"the window is full":          {all(text(0, "hi"), stop(`"model_context_window_exceeded"`)), model.Validation, "context window"},
		"a page":                      {"<!doctype html>", model.Environment, "ANTHROPIC_BASE_URL"},
		"a proxy's text":              {all(text(0, "hi")) + "upstream died\n", model.Transient, "upstream died"},
		"half an event":               {all(text(0, "hi")) + `data: {"type":"messa`, model.Transient, "ended before"},
		"an error as JSON":            {`{"type":"error","error":{"type":"authentication_error","message":"bad key"}}`, model.Environment, "ANTHROPIC_API_KEY"},
		"another service's JSON":      {`{"status":"ok"}`, model.Environment, "no model server"},
		"cut JSON":                    {`{"type":"message","content":[{"type":"te`, model.Transient, "ended before"},
	} {
		got, err := decode(client(), strings.NewReader(c.in))
		var e *model.Error
		if !errors.As(err, &e) || e.Class != c.class || !strings.Contains(e.Error(), c.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// streamed is what a served rehearsal sends.
func streamed(t *testing.T, script, path, body string) []byte {
	t.Helper()
	s, err := rehearsal.Parse("t.yaml", []byte(script))
	if err != nil {
		t.Fatal(err)
	}
	req := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	req.Header.Set("Anthropic-Version", "2026-10-21")
	w := httptest.NewRecorder()
	serve.New(s, serve.Signed()).ServeHTTP(w, req)
	if w.Code != 200 {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	return w.Body.Bytes()
}

// TestCutAtEveryByte holds that a cut stream is a retryable error, and never half a reply.
func TestCutAtEveryByte(t *testing.T) {
	data := streamed(t, "version: 1\nturns: [{say: größe, thinking: hm, calls: [{tool: A, args: {x: 1}}, {tool: B}]}]\n", "/v1/messages",
		`{"model":"m","max_tokens":10,"stream":true,"messages":[{"role":"user","content":"go"}]}`)
	whole, err := decode(client(), bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	terminal := bytes.LastIndex(data, []byte("message_stop"))
	for n := range len(data) {
		for name, r := range map[string]io.Reader{"end": bytes.NewReader(data[:n]), "reset": io.MultiReader(bytes.NewReader(data[:n]), iotest.ErrReader(errors.New("connection reset")))} {
			got, err := decode(client(), r)
			switch {
			case err != nil && !model.AsError(err).Retryable():
				t.Fatalf("%s after byte %d: not retryable: %v", name, n, err)
			case err == nil && n < terminal:
				t.Fatalf("%s after byte %d of %d: taken for whole", name, n, len(data))
			case err == nil && cmp.Diff(whole, got) != "":
				t.Fatalf("%s after byte %d: %s", name, n, cmp.Diff(whole, got))
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(all(text(0, "hi"), stop(`"end_turn"`))))
	f.Add([]byte(all([]string{`content_block_start "index":0,"content_block":{"type":"tool_use","id":"a","name":"Bash","input":{}}`, `content_block_delta "index":0,"delta":{"type":"input_json_delta","partial_json":"{\"x\""}`}, stop(`"tool_use"`))))
	f.Add([]byte(`{"type":"message","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn"}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := decode(client(), bytes.NewReader(in))
		again, err2 := decode(client(), iotest.HalfReader(bytes.NewReader(in)))
		if (err == nil) != (err2 == nil) || cmp.Diff(got, again) != "" {
			t.Fatalf("the split changes the reply: %v, %v\n%s", err, err2, cmp.Diff(got, again))
		}
		if err == nil {
			checkCalls(t, got)
		}
	})
}

func checkCalls(t *testing.T, r model.Reply) {
	t.Helper()
	for _, c := range message.Calls(r.Blocks) {
		var object map[string]json.RawMessage
		if c.BadArgs == "" && (json.Unmarshal(c.Args, &object) != nil || object == nil) {
			t.Fatalf("%+v may run", c)
		}
	}
}

func TestGoldenBody(t *testing.T) {
	raw := func(s string) *message.Opaque {
		return &message.Opaque{Provider: "anthropic", Model: "claude-opus-5-5", Prefix: "p1", Raw: json.RawMessage(s)}
	}
	foreign := &message.Opaque{Provider: "openai", Model: "gpt", Raw: json.RawMessage(`{"secret":1}`)}
	call := func(id, args, bad string) message.Block {
		return message.Block{Kind: message.KindCall, Call: &message.ToolCall{ID: id, Name: "Bash", Args: json.RawMessage(args), BadArgs: bad}}
	}
	result := func(id, s string, failed bool) message.Block {
		return message.Block{Kind: message.KindResult, Result: &message.ToolResult{CallID: id, Text: s, Error: failed}}
	}
	req := model.Request{
		System: "You climb & <belay>.", PrefixHash: "p1", MaxOutput: 4096,
		Tools: []model.Tool{{Name: "Bash", Description: "Runs.", Schema: json.RawMessage(`{"type": "object", "properties": {"command": {"type": "string"}}}`)}, {Name: "LS", Description: "Lists."}},
		Messages: []message.Message{
			message.UserText("Go."), message.UserText("  "), message.UserText("Now."),
			{Role: message.Assistant, Blocks: []message.Block{
				{Kind: message.KindThinking, Text: "signed", Opaque: raw(`{"type":"thinking","thinking":"signed","signature":"S<"}`)},
				{Kind: message.KindThinking, Text: "unsigned"}, {Kind: message.KindOpaque, Opaque: foreign},
				call("functions.bash:0", `{"command": "ls"}`, ""), message.Text("text after a call"), call("b", `"{\"x\""`, "not valid JSON: …"),
			}},
			{Role: message.User, Blocks: []message.Block{message.Text("recap"), result("b", "Error (INVALID): no", true), result("functions.bash:0", "", false)}},
			{Role: message.Assistant, Blocks: []message.Block{message.Text("trailing space \n")}},
		},
	}
	body, err := New(Config{Model: "claude-opus-5-5"}).Encode(req)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "body.json", body)
	if strings.Contains(string(body), "secret") {
		t.Error("another provider's block was sent")
	}
	req.PrefixHash = "p2"
	if body, err := New(Config{Model: "claude-opus-5-5"}).Encode(req); err != nil || strings.Contains(string(body), `"thinking":"signed"`) {
		t.Errorf("thinking that is bound to another prefix was sent: %v", err)
	}
	req.PrefixHash = "p1"
	if body, err := New(Config{Model: "claude-haiku-4-5"}).Encode(req); err != nil || strings.Contains(string(body), "signed") || strings.Contains(string(body), "adaptive") {
		t.Errorf("thinking of another model was sent: %v %s", err, body)
	}
}

func golden(t *testing.T, name string, body []byte) {
	t.Helper()
	var b bytes.Buffer
	if err := json.Indent(&b, body, "", "  "); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, append(b.Bytes(), '\n'), 0o644); err != nil {
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

// TestCacheMarks holds the server's rules: at most four marks, and none too far from the one before it.
func TestCacheMarks(t *testing.T) {
	for _, calls := range []int{0, 1, 3, 7, 20, 45} {
		req := model.Request{System: "s", Messages: []message.Message{message.UserText("go")}}
		for turn := range 4 {
			said, told := message.Message{Role: message.Assistant, Blocks: []message.Block{message.Text("x")}}, message.Message{Role: message.User, Blocks: nil}
			for i := range calls {
				id := fmt.Sprintf("c%d_%d", turn, i)
				said.Blocks = append(said.Blocks, message.Block{Kind: message.KindCall, Call: &message.ToolCall{ID: id, Name: "A", Args: []byte("{}")}})
				told.Blocks = append(told.Blocks, message.Block{Kind: message.KindResult, Result: &message.ToolResult{CallID: id, Text: "r"}})
			}
			if calls == 0 {
				told.Blocks = []message.Block{message.Text("go on")}
			}
			req.Messages = append(req.Messages, said, told)
			body, err := client().Encode(req)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(body), "cache_control"); n < 2 || n > 4 {
				t.Errorf("%d calls, turn %d: %d marks", calls, turn, n)
			}
			if !strings.HasSuffix(string(body), `"cache_control":{"type":"ephemeral"}}]}]}`) {
				t.Errorf("%d calls, turn %d: the last block has no mark", calls, turn)
			}
		}
	}
}

func TestHeaders(t *testing.T) {
	var seen []http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.Header)
		_, _ = io.WriteString(w, all(text(0, "hi"), stop(`"end_turn"`)))
	}))
	defer server.Close()
	c := New(Config{Model: "m", BaseURL: server.URL + "/v1/", Key: func() string { return "sk-1" }})
	for range 2 {
		if _, err := model.Collect(c.Stream(t.Context(), model.Request{Messages: []message.Message{message.UserText("x")}}), nil); err != nil {
			t.Fatal(err)
		}
	}
	if h := seen[0]; h.Get("X-Api-Key") != "sk-1" || h.Get("Anthropic-Version") != "2023-06-01" || h.Get("Belay-Replies") != "0" {
		t.Errorf("%v", h)
	}
	official := New(Config{Model: "m", Key: func() string { return "sk-1" }})
	if h := official.header(model.Request{}); h.Get("Anthropic-Version") != "2026-10-21" || h.Get("Belay-Replies") != "" {
		t.Errorf("%v", h)
	}
}
