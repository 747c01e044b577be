package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"belay/message"
	"belay/model"
	"belay/model/rehearsal"
	"belay/model/rehearsal/serve"
)

var update = flag.Bool("update", false, "write the golden files")

func client() *Client { return New(Config{Model: "m", BaseURL: "http://127.0.0.1:1/v1"}) }

func decode(c *Client, r io.Reader) (model.Reply, error) {
	resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(r)}
	return model.Collect(c.Decode(resp, model.Request{Replies: 2}), nil)
}

func sse(chunks ...string) string {
	var b strings.Builder
	for _, c := range chunks {
		b.WriteString("data: " + c + "\n\n")
	}
	return b.String()
}

func piece(fields string) string {
	return `{"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{` + fields + `},"finish_reason":null}],"usage":null}`
}

func toolPiece(fields string) string { return piece(`"tool_calls":[{` + fields + `}]`) }

func ending(reason string) string {
	return `{"choices":[{"index":0,"delta":{},"finish_reason":` + reason + `}]}`
}

const (
	counts = `{"choices":[],"usage":{"prompt_tokens":18,"completion_tokens":20,"total_tokens":38,"prompt_tokens_details":{"cached_tokens":5,"cache_write_tokens":3}}}`
	done   = "[DONE]"
)

var counted = message.Usage{Input: 10, Output: 20, CacheRead: 5, CacheWrite: 3}

func callOf(id, name, args string) message.Block {
	return message.Block{Kind: message.KindCall, Call: &message.ToolCall{ID: id, Name: name, Args: json.RawMessage(args)}}
}

func thought(s string) message.Block { return message.Block{Kind: message.KindThinking, Text: s} }

func TestDecode(t *testing.T) {
	reply := func(stop message.StopReason, blocks ...message.Block) model.Reply {
		return model.Reply{Blocks: blocks, Stop: stop, Usage: counted}
	}
	hi := message.Text("hi")
	for name, c := range map[string]struct {
		in   string
		want model.Reply
	}{
		"text":               {sse(piece(`"role":"assistant","content":""`), piece(`"content":"h"`), piece(`"content":"i"`), ending(`"stop"`), counts, done), reply(message.StopEnd, hi)},
		"calls":              {sse(toolPiece(`"index":0,"id":"a","type":"function","function":{"name":"Bash","arguments":""}`), toolPiece(`"index":0,"function":{"arguments":"{\"x\":"}`), toolPiece(`"index":0,"function":{"arguments":"1}"}`), ending(`"tool_calls"`), counts, done), reply(message.StopToolUse, callOf("a", "Bash", `{"x":1}`))},
		"stop with calls":    {sse(toolPiece(`"index":0,"id":"a","function":{"name":"Bash","arguments":"{}"}`), ending(`"stop"`), counts, done), reply(message.StopToolUse, callOf("a", "Bash", `{}`))},
		"length":             {sse(piece(`"content":"hi"`), ending(`"length"`), counts, done), reply(message.StopLength, hi)},
		"filter":             {sse(piece(`"content":"hi"`), ending(`"content_filter"`), counts, done), reply(message.StopRefusal, hi)},
		"refusal":            {sse(piece(`"refusal":"h"`), piece(`"refusal":"i"`), ending(`"stop"`), counts, done), reply(message.StopRefusal, hi)},
		"pause":              {sse(piece(`"content":"hi"`), ending(`"pause_turn"`), counts, done), reply(message.StopPause, hi)},
		"empty":              {sse(piece(`"role":"assistant","content":""`), ending(`"stop"`), counts, done), reply(message.StopEnd)},
		"no index":           {sse(toolPiece(`"id":"a","function":{"name":"Bash","arguments":"{}"}`), toolPiece(`"id":"b","function":{"name":"LS","arguments":"{}"}`), ending(`"stop"`), counts, done), reply(message.StopToolUse, callOf("a", "Bash", `{}`), callOf("b", "LS", `{}`))},
		"no id":              {sse(toolPiece(`"index":0,"function":{"name":"Bash","arguments":"{}"}`), toolPiece(`"index":1,"id":"","function":{"name":"LS"}`), ending(`"tool_calls"`), counts, done), reply(message.StopToolUse, callOf("call_3_1", "Bash", `{}`), callOf("call_3_2", "LS", `{}`))},
		"index always 0":     {sse(toolPiece(`"index":0,"id":"a","function":{"name":"Bash","arguments":"{}"}`), toolPiece(`"index":0,"id":"b","function":{"name":"LS","arguments":"{}"}`), ending(`"tool_calls"`), counts, done), reply(message.StopToolUse, callOf("a", "Bash", `{}`), callOf("b", "LS", `{}`))},
		"arguments object":   {sse(toolPiece(`"index":0,"id":"a","function":{"name":"Bash","arguments":{"x":1}}`), ending(`"tool_calls"`), counts, done), reply(message.StopToolUse, callOf("a", "Bash", `{"x":1}`))},
		"arguments null":     {sse(toolPiece(`"index":0,"id":"a","function":{"name":"Bash","arguments":null}`), ending(`"tool_calls"`), counts, done), reply(message.StopToolUse, callOf("a", "Bash", `{}`))},
		"empty lists":        {sse(piece(`"content":"hi","tool_calls":[]`), piece(`"tool_calls":null`), toolPiece(`"id":"","type":"function"`), toolPiece(`"id":"","function":{"name":""}`), ending(`"stop"`), counts, done), reply(message.StopEnd, hi)},
		"content null":       {sse(piece(`"role":"assistant","content":null`), piece(`"content":"hi","reasoning_content":null`), ending(`"stop"`), counts, done), reply(message.StopEnd, hi)},
		"text after calls":   {sse(toolPiece(`"index":0,"id":"a","function":{"name":"Bash","arguments":"{}"}`), piece(`"content":"hi"`), ending(`"tool_calls"`), counts, done), reply(message.StopToolUse, hi, callOf("a", "Bash", `{}`))},
		"reasoning_content":  {sse(piece(`"reasoning_content":"h"`), piece(`"reasoning_content":"m"`), piece(`"content":"hi"`), ending(`"stop"`), counts, done), reply(message.StopEnd, thought("hm"), hi)},
		"the same twice":     {sse(piece(`"reasoning":"hm","reasoning_content":"hm","reasoning_details":[{"text":"hm"}]`), piece(`"content":"hi"`), ending(`"stop"`), counts, done), reply(message.StopEnd, thought("hm"), hi)},
		"reasoning":          {sse(piece(`"reasoning":"hm"`), piece(`"content":"hi"`), ending(`"stop"`), counts, done), reply(message.StopEnd, thought("hm"), hi)},
		"reasoning object":   {sse(piece(`"reasoning":{"x":1},"reasoning_details":[{"type":"reasoning.text","text":"hm"}]`), piece(`"content":"hi"`), ending(`"stop"`), counts, done), reply(message.StopEnd, thought("hm"), hi)},
		"content parts":      {sse(piece(`"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]`), piece(`"content":[{"type":"text","text":"h"}]`), piece(`"content":"i"`), ending(`"stop"`), counts, done), reply(message.StopEnd, thought("hm"), hi)},
		"finish empty first": {sse(`{"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":""}]}`, ending(`"stop"`), ending(`"length"`), counts, done), reply(message.StopEnd, hi)},
		"finish in the chunk": {sse(`{"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}`, counts, done),
			reply(message.StopEnd, hi)},
		"no DONE":              {strings.TrimRight(sse(piece(`"content":"hi"`), ending(`"stop"`), counts), "\n"), reply(message.StopEnd, hi)},
		"DONE only":            {sse(piece(`"content":"hi"`), counts, done), reply(message.StopEnd, hi)},
		"a reset after finish": {sse(piece(`"content":"hi"`), counts, ending(`"stop"`)), reply(message.StopEnd, hi)},
		"usage in the choice":  {sse(piece(`"content":"hi"`), `{"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":18,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":5,"cache_write_tokens":3}}}]}`, done), reply(message.StopEnd, hi)},
		"usage of groq": {sse(piece(`"content":"hi"`), `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":7,"completion_tokens":8}}}`, done),
			model.Reply{Blocks: []message.Block{hi}, Stop: message.StopEnd, Usage: message.Usage{Input: 7, Output: 8}}},
		"usage in every chunk": {sse(`{"choices":[{"index":0,"delta":{"content":"hi"}}],"usage":{"prompt_tokens":18,"completion_tokens":1}}`, ending(`"stop"`), counts, done), reply(message.StopEnd, hi)},
		"usage without choices": {sse(piece(`"content":"hi"`), ending(`"stop"`), `{"usage":{"prompt_tokens":7,"completion_tokens":8,"prompt_cache_hit_tokens":5}}`, done),
			model.Reply{Blocks: []message.Block{hi}, Stop: message.StopEnd, Usage: message.Usage{Input: 2, Output: 8, CacheRead: 5}}},
		"reasoning beside the output": {sse(piece(`"content":"hi"`), ending(`"stop"`), `{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":8,"total_tokens":115}}`, done),
			model.Reply{Blocks: []message.Block{hi}, Stop: message.StopEnd, Usage: message.Usage{Input: 7, Output: 108}}},
		"usage null": {sse(piece(`"content":"12345"`), ending(`"stop"`), `{"choices":[],"usage":null}`, done),
			model.Reply{Blocks: []message.Block{message.Text("12345")}, Stop: message.StopEnd, Usage: message.Usage{Output: 2}}},
		"chunks without choice or delta": {sse(`{"choices":[],"prompt_filter_results":[]}`, `{"choices":[{"index":0,"content_filter_results":{}}]}`, `{"choices":[{"index":1,"delta":{"content":"another"}}]}`, piece(`"content":"hi"`), ending(`"stop"`), counts, done), reply(message.StopEnd, hi)},
		"comments, CRLF, no space":       {": OPENROUTER PROCESSING\r\n\r\ndata:" + piece(`"content":"hi"`) + "\r\n\r\ndata:" + ending(`"stop"`) + "\r\n\r\ndata:" + counts + "\r\n\r\ndata:[DONE]\r\n\r\n", reply(message.StopEnd, hi)},
		"not streamed": {` {"choices":[{"index":0,"message":{"role":"assistant","content":"hi","reasoning_content":"hm","tool_calls":[{"id":"a","type":"function","function":{"name":"Bash","arguments":"{}"}}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":18,"completion_tokens":20,"prompt_tokens_details":{"cached_tokens":5,"cache_write_tokens":3}}}`,
			reply(message.StopToolUse, thought("hm"), hi, callOf("a", "Bash", `{}`))},
		"split characters":  {sse(piece("\"content\":\"\xf0\x9f\""), piece("\"content\":\"\xa7\x97\""), ending(`"stop"`), counts, done), reply(message.StopEnd, message.Text("🧗"))},
		"function_call":     {sse(piece(`"function_call":{"name":"Bash","arguments":"{"}`), piece(`"function_call":{"arguments":"}"}`), ending(`"function_call"`), counts, done), reply(message.StopToolUse, callOf("call_3_1", "Bash", `{}`))},
		"thinking in tags":  {sse(piece(`"content":"\n<th"`), piece(`"content":"ink>h"`), piece(`"content":"m</"`), piece(`"content":"think>\n\nh"`), piece(`"content":"i"`), ending(`"stop"`), counts, done), reply(message.StopEnd, thought("hm"), hi)},
		"an open tag":       {sse(piece(`"content":"<think>hm</thi"`), ending(`"length"`), counts, done), reply(message.StopLength, thought("hm</thi"))},
		"half a tag":        {sse(piece(`"content":"<thi"`), ending(`"stop"`), counts, done), reply(message.StopEnd, message.Text("<thi"))},
		"a tag in the text": {sse(piece(`"content":"use <think>x</think>"`), ending(`"stop"`), counts, done), reply(message.StopEnd, message.Text("use <think>x</think>"))},
		"unknown end":       {sse(piece(`"content":"hi"`), ending(`"repetition_truncation"`), counts, done), reply(message.StopEnd, hi)},
	} {
		for _, r := range []io.Reader{strings.NewReader(c.in), iotest.OneByteReader(strings.NewReader(c.in))} {
			if name == "a reset after finish" {
				r = io.MultiReader(r, iotest.ErrReader(errors.New("connection reset")))
			}
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
	open := toolPiece(`"index":0,"id":"a","function":{"name":"Bash","arguments":"{\"x\""}`)
	for name, c := range map[string]struct {
		in    string
		class model.Class
		want  string
	}{
		"nothing":                   {"", model.Transient, "ended before"},
		"only DONE":                 {sse(done), model.Transient, "ended before"},
		"an open call, then DONE":   {sse(open, done), model.Transient, "ended before"},
		"an open call, then end":    {sse(open), model.Transient, "ended before"},
		"text, then end":            {sse(piece(`"content":"hi"`)), model.Transient, "ended before"},
		"tool_calls without calls":  {sse(piece(`"content":"hi"`), ending(`"tool_calls"`), done), model.Transient, "no call"},
		"unknown end of calls":      {sse(open, ending(`"function_call_filter: MALFORMED"`), done), model.Transient, "malformed"},
		"unknown end of nothing":    {sse(ending(`"glitch"`), done), model.Transient, "glitch"},
		"network_error":             {sse(piece(`"content":"hi"`), ending(`"network_error"`), done), model.Transient, "network_error"},
		"the window is full":        {sse(piece(`"content":"hi"`), ending(`"model_context_window_exceeded"`), done), model.Validation, "context window"},
		"an error in the stream":    {sse(piece(`"content":"hi"`), `{"error":{"message":"boom","code":502}}`, done), model.Transient, "boom"},
		"an error and a finish":     {sse(ending(`"stop"`), `{"error":{"message":"boom","code":502}}`, done), model.Transient, "boom"},
		"an error in the choice":    {sse(`{"choices":[{"index":0,"delta":{},"finish_reason":"error","error":{"message":"boom","code":502}}]}`, done), model.Transient, "boom"},
		"an error of vllm":          {sse(`{"object":"error","message":"too bad","code":400}`), model.Validation, "too bad"},
		"an error as JSON":          {`{"error":{"message":"bad key","code":"invalid_api_key"}}`, model.Environment, "OPENAI_API_KEY"},
		"a bare error line":         {sse(piece(`"content":"hi"`)) + `{"error":"upstream gone"}` + "\n", model.Transient, "upstream gone"},
		"a page":                    {"<html>", model.Environment, "OPENAI_BASE_URL"},
		"another service":           {`{"status":"ok"}`, model.Environment, "no model server"},
		"a line of text":            {sse(piece(`"content":"hi"`)) + "upstream error: read ECONNRESET\n", model.Transient, "ECONNRESET"},
		"plain text":                {"Hello from nginx\n", model.Transient, "Hello from nginx"},
		"no JSON":                   {sse("hello"), model.Transient, "ended before"},
		"choices of another kind":   {sse(`{"choices":"none","error":{"message":"boom","code":503}}`), model.Transient, "boom"},
		"overflow under 200":        {sse(`{"error":{"message":"the request exceeds the available context size","type":"exceed_context_size_error","code":400}}`), model.Validation, "context size"},
		"a stream of other objects": {sse(`{"hello":1}`, `{"hello":2}`), model.Transient, "ended before"},
	} {
		got, err := decode(client(), strings.NewReader(c.in))
		var e *model.Error
		if !errors.As(err, &e) || e.Class != c.class || !strings.Contains(e.Error(), c.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestCutAtEveryByte holds that a stream that is cut before its finish reason is a retryable error, and one that
// is cut after it has every call whole.
func TestCutAtEveryByte(t *testing.T) {
	s, err := rehearsal.Parse("t.yaml", []byte("version: 1\nturns: [{say: größe, thinking: hm, calls: [{tool: A, args: {x: 1}}, {tool: B}]}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	serve.New(s).ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(
		`{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"go"}]}`)))
	data := w.Body.Bytes()
	whole, err := decode(client(), bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	terminal := bytes.Index(data, []byte(`"finish_reason":"tool_calls"`))
	if terminal < 0 {
		t.Fatalf("no finish reason in %s", data)
	}
	for n := range len(data) {
		for name, r := range map[string]io.Reader{"end": bytes.NewReader(data[:n]), "reset": io.MultiReader(bytes.NewReader(data[:n]), iotest.ErrReader(errors.New("connection reset")))} {
			got, err := decode(client(), r)
			switch {
			case err != nil && !model.AsError(err).Retryable():
				t.Fatalf("%s after byte %d: not retryable: %v", name, n, err)
			case err == nil && n < terminal:
				t.Fatalf("%s after byte %d of %d: taken for whole", name, n, len(data))
			case err == nil && cmp.Diff(whole.Blocks, got.Blocks) != "":
				t.Fatalf("%s after byte %d: %s", name, n, cmp.Diff(whole, got))
			}
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(sse(toolPiece(`"index":0,"id":"a","function":{"name":"Bash","arguments":"{}"}`), ending(`"stop"`), counts, done)))
	f.Add([]byte(sse(piece(`"content":[{"type":"thinking","thinking":[{"text":"x"}]}],"reasoning":"y"`), ending(`"length"`))))
	f.Add([]byte(`{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := decode(client(), bytes.NewReader(in))
		again, err2 := decode(client(), iotest.HalfReader(bytes.NewReader(in)))
		if (err == nil) != (err2 == nil) || cmp.Diff(got, again) != "" {
			t.Fatalf("the split changes the reply: %v, %v\n%s", err, err2, cmp.Diff(got, again))
		}
		for _, c := range message.Calls(got.Blocks) {
			var object map[string]json.RawMessage
			if c.BadArgs == "" && (json.Unmarshal(c.Args, &object) != nil || object == nil) {
				t.Fatalf("%+v may run", c)
			}
		}
	})
}

func TestGoldenBodies(t *testing.T) {
	req := model.Request{
		System: "You climb & <belay>.", PrefixHash: strings.Repeat("ab", 32), MaxOutput: 4096,
		Tools: []model.Tool{{Name: "Bash", Description: "Runs.", Schema: json.RawMessage(`{"type": "object", "properties": {}}`)}, {Name: "LS", Description: "Lists."}},
		Messages: []message.Message{
			message.UserText("Go."), message.UserText("Now."),
			{Role: message.Assistant, Blocks: []message.Block{thought("hm"),
				{Kind: message.KindOpaque, Opaque: &message.Opaque{Provider: "anthropic", Raw: json.RawMessage(`{"secret":1}`)}},
				message.Text("on it"), callOf("functions.bash:0", "Bash", `{"command": "ls <x>"}`),
				{Kind: message.KindCall, Call: &message.ToolCall{ID: "b", Name: "Bash", Args: json.RawMessage(`"{\"x\""`), BadArgs: "not valid JSON: …"}}}},
			{Role: message.User, Blocks: []message.Block{message.Text("recap"),
				{Kind: message.KindResult, Result: &message.ToolResult{CallID: "b", Text: "no such argument", Error: true}},
				{Kind: message.KindResult, Result: &message.ToolResult{CallID: "functions.bash:0", Text: "x"}}}},
			{Role: message.Assistant, Blocks: []message.Block{callOf("c", "LS", `{}`)}},
		},
	}
	for name, cfg := range map[string]Config{
		"openai":   {Model: "gpt-6.2-sol"},
		"local":    {Model: "qwen3:8b", BaseURL: "http://127.0.0.1:11434/v1"},
		"deepseek": {Model: "deepseek-reasoner", BaseURL: "https://api.deepseek.com"},
		"mistral":  {Model: "mistral-large", BaseURL: "https://api.mistral.ai/v1"},
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
}

func TestBaseURLs(t *testing.T) {
	for in, want := range map[string]string{
		"": DefaultBaseURL, "http://127.0.0.1:8080": "http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/": "http://127.0.0.1:8080/v1",
		"http://h/v1/": "http://h/v1", "https://h/api/openai/v1/chat/completions": "https://h/api/openai/v1",
	} {
		if got := baseURL(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if i := New(Config{Model: "gpt-6.2-sol"}).Info(); i.Price == nil || i.ContextWindow == 0 {
		t.Errorf("%+v", i)
	}
	if i := New(Config{Model: "gpt-6.2-sol", BaseURL: "http://127.0.0.1:1"}).Info(); i.Price != nil {
		t.Errorf("the price of another server's model: %+v", i)
	}
}

// TestOneConnection holds that a connection is used again, and that the key is sent as this dialect wants it.
func TestOneConnection(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sk-1" {
			t.Errorf("%v", r.Header)
		}
		_, _ = io.WriteString(w, sse(piece(`"content":"hi"`), ending(`"stop"`), counts, done))
	}))
	defer server.Close()
	c := New(Config{Model: "m", BaseURL: server.URL, Key: func() string { return "sk-1" }})
	fresh := 0
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		if !i.Reused {
			fresh++
		}
	}})
	for range 5 {
		if _, err := model.Collect(c.Stream(ctx, model.Request{Messages: []message.Message{message.UserText("x")}}), nil); err != nil {
			t.Fatal(err)
		}
	}
	if fresh != 1 {
		t.Errorf("%d connections", fresh)
	}
}

// TestSilentEnd holds that a reply is complete with its finish reason, also where the server then keeps silent.
func TestSilentEnd(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, sse(piece(`"content":"hi"`), counts, ending(`"stop"`)))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	c := New(Config{Model: "m", BaseURL: server.URL, Idle: 200 * time.Millisecond})
	got, err := model.Collect(c.Stream(t.Context(), model.Request{Messages: []message.Message{message.UserText("x")}}), nil)
	if d := cmp.Diff(model.Reply{Blocks: []message.Block{message.Text("hi")}, Stop: message.StopEnd, Usage: counted}, got); err != nil || d != "" {
		t.Errorf("%v %s", err, d)
	}
}

func TestDiscover(t *testing.T) {
	listing := func(body string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v1/models" {
				http.NotFound(w, r)
				return
			}
			_, _ = io.WriteString(w, body)
		}))
		t.Cleanup(s.Close)
		return strings.TrimPrefix(s.URL, "http://")
	}
	refused := httptest.NewServer(http.NotFoundHandler())
	refused.Close()
	nobody := strings.TrimPrefix(refused.URL, "http://")
	page, empty := listing("<html>"), listing(`{"data":[]}`)
	one, two := listing(`{"object":"list","data":[{"id":"nomic-embed-text"},{"id":"qwen3:8b"},{"id":"x"}]}`), listing(`{"data":[{"id":"other"}]}`)
	got, err := Discover(t.Context(), nobody, page, empty, one, two)
	if want := (model.Spec{Provider: "openai", Name: "qwen3:8b", BaseURL: "http://" + one + "/v1"}); err != nil || got != want {
		t.Errorf("got %+v %v", got, err)
	}
	if again, err := model.ParseSpec(got.String()); err != nil || again != got {
		t.Errorf("%q is read as %+v %v", got.String(), again, err)
	}
	if _, err := Discover(t.Context(), nobody, page, empty); !errors.Is(err, ErrNoServer) {
		t.Errorf("nobody: %v", err)
	}
}

// BenchmarkDecode compares with encoding/json on the same bytes.
func BenchmarkDecode(b *testing.B) {
	var chunks []string
	for i := range 2000 {
		chunks = append(chunks, piece(fmt.Sprintf(`"content":"token %d "`, i)))
	}
	data := []byte(sse(append(chunks, ending(`"stop"`), counts, done)...))
	b.Run("client", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			if _, err := decode(client(), bytes.NewReader(data)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("json", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			for _, c := range chunks {
				var v chunk
				if err := json.Unmarshal([]byte(c), &v); err != nil {
					b.Fatal(err)
				}
			}
		}
	})
}
