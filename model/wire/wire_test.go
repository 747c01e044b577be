package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"belay/message"
	"belay/model"
)

func endpoint(base string) *Endpoint {
	return &Endpoint{Provider: "test", Model: "m", BaseURL: base, Key: func() string { return "sk-secret" }, KeyEnv: "TEST_API_KEY", URLEnv: "TEST_BASE_URL"}
}

func TestClassify(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		body   string
		want   model.Error // Message: a part of it
	}{
		{"anthropic overloaded in a stream", 200, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, model.Error{Class: model.Transient, Status: 529, Message: "Overloaded"}},
		{"anthropic rate limit", 429, `{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}`, model.Error{Class: model.Transient, Status: 429}},
		{"anthropic spend limit", 429, `{"type":"error","error":{"type":"rate_limit_error","message":"limit","details":{"error_code":"enforced_spend_limit_reached"}}}`, model.Error{Class: model.Environment, Status: 429, Message: "waiting does not help"}},
		{"anthropic credit", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."}}`, model.Error{Class: model.Environment, Status: 400}},
		{"anthropic overflow", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 213462 tokens > 200000 maximum"}}`, model.Error{Class: model.Validation, Status: 400, ContextTooLarge: true}},
		{"cloudflare 413", 413, `<html>too large</html>`, model.Error{Class: model.Validation, Status: 413, ContextTooLarge: true}},
		{"anthropic key", 401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`, model.Error{Class: model.Environment, Status: 401, Message: "TEST_API_KEY"}},
		{"the key repeated", 401, `{"error":{"message":"Incorrect API key provided: sk-secret."}}`, model.Error{Class: model.Environment, Status: 401, Message: "provided: [key]."}},
		{"openai overflow", 400, `{"error":{"message":"This model's maximum context length is 128000 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`, model.Error{Class: model.Validation, Status: 400, ContextTooLarge: true}},
		{"openai quota", 429, `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}`, model.Error{Class: model.Environment, Status: 429}},
		{"openai wait in words", 429, `{"error":{"message":"Rate limit reached. Please try again in 11.054s.","code":"rate_limit_exceeded"}}`, model.Error{Class: model.Transient, Status: 429, RetryAfter: 11054 * time.Millisecond}},
		{"a field", 400, `{"error":{"message":"Unsupported value","param":"temperature"}}`, model.Error{Class: model.Validation, Status: 400, Message: "field temperature"}},
		{"llama.cpp overflow as 500", 500, `{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}`, model.Error{Class: model.Validation, Status: 500, ContextTooLarge: true}},
		{"bedrock throttle", 429, `{"message":"Too many tokens, please wait before trying again."}`, model.Error{Class: model.Transient, Status: 429}},
		{"a limit that names the context", 429, `{"error":{"message":"rate limit: maximum context length is shared"}}`, model.Error{Class: model.Transient, Status: 429}},
		{"openrouter under 200", 200, `{"error":{"code":502,"message":"Provider returned error","metadata":{"raw":"upstream died"}}}`, model.Error{Class: model.Transient, Status: 502, Message: "upstream died"}},
		{"vllm under 200", 200, `{"object":"error","message":"bad request","type":"BadRequestError","code":400}`, model.Error{Class: model.Validation, Status: 400, Message: "bad request"}},
		{"a string", 500, `{"error":"model 'x' crashed"}`, model.Error{Class: model.Transient, Status: 500, Message: "crashed"}},
		{"ollama's own trouble", 500, `{"error":{"message":"error parsing tool call: raw='{'"}}`, model.Error{Class: model.Transient, Status: 500}},
		{"groq's own trouble", 400, `{"error":{"message":"Failed to call a function","code":"tool_use_failed","failed_generation":"<function>"}}`, model.Error{Class: model.Transient, Status: 400, Message: "<function>"}},
		{"fastapi", 404, `{"detail":"Not Found"}`, model.Error{Class: model.Environment, Status: 404, Message: "TEST_BASE_URL"}},
		{"gemini's list", 429, `[{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED"}}]`, model.Error{Class: model.Transient, Status: 429}},
		{"gateway page", 502, `<html><h1>Bad Gateway</h1></html>`, model.Error{Class: model.Transient, Status: 502}},
		{"a web site", 404, `<!doctype html><p>nothing here`, model.Error{Class: model.Environment, Status: 404, Message: "is no model server"}},
		{"a web site's form", 405, `Method Not Allowed`, model.Error{Class: model.Environment, Status: 405, Message: "is no model server"}},
		{"a redirect", 302, ``, model.Error{Class: model.Environment, Status: 302, Message: "is no model server"}},
		{"nothing", 503, ``, model.Error{Class: model.Transient, Status: 503}},
		{"forbidden", 403, `{"error":{"message":"no"}}`, model.Error{Class: model.Environment, Status: 403, Message: "TEST_API_KEY"}},
		{"unknown kind in a stream", 200, `{"error":{"message":"huh"}}`, model.Error{Class: model.Transient, Status: 500}},
	} {
		var e *model.Error
		if err := endpoint("https://x").Classify(c.status, http.Header{}, []byte(c.body)); !errors.As(err, &e) {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if e.Class != c.want.Class || e.Status != c.want.Status || e.ContextTooLarge != c.want.ContextTooLarge || e.RetryAfter != c.want.RetryAfter || !strings.Contains(e.Message, c.want.Message) {
			t.Errorf("%s:\n got %+v\nwant %+v", c.name, *e, c.want)
		}
		if strings.Contains(e.Error(), "sk-secret") {
			t.Errorf("%s shows the key: %v", c.name, e)
		}
	}
	keyless := endpoint("https://x")
	keyless.Key = nil
	if err := keyless.Classify(401, nil, []byte(`{"error":{"message":"no"}}`)); !strings.Contains(err.Error(), "wants a key: set TEST_API_KEY") {
		t.Errorf("without a key: %v", err)
	}
	clear := endpoint("http://192.0.2.1:11434/v1")
	if err := clear.Classify(401, nil, []byte(`{"error":{"message":"no"}}`)); clear.Secret() != "" || !strings.Contains(err.Error(), "use https") {
		t.Errorf("in clear text: %v", err)
	}
	if local := endpoint("http://[::1]:1"); local.Secret() != "sk-secret" {
		t.Error("a local server gets the key")
	}
}

func FuzzClassify(f *testing.F) {
	f.Add(200, []byte(`{"error":{"message":"x","code":429}}`))
	f.Add(500, []byte(`[{"error":"`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		var e *model.Error
		if err := endpoint("https://x").Classify(status, nil, body); !errors.As(err, &e) || e.Class == "" || e.Error() == "" || len(e.Message) > 4000 {
			t.Errorf("%d %q: %v", status, body, err)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		header, value, text string
		want                time.Duration
	}{
		{"Retry-After", "7", "", 7 * time.Second},
		{"Retry-After", "0.5", "", 500 * time.Millisecond},
		{"Retry-After", "Mon, 30 Nov 2026 12:00:30 GMT", "", 30 * time.Second},
		{"Retry-After", "Mon, 30 Nov 2026 11:00:00 GMT", "", 0},
		{"Retry-After", "soon", "", 0},
		{"Retry-After", "-3", "", 0},
		{"Retry-After", "NaN", "", 0},
		{"Retry-After", "1e300", "", 24 * time.Hour},
		{"Retry-After-Ms", "1250", "", 1250 * time.Millisecond},
		{"X", "", "Please retry after 45 seconds", 45 * time.Second},
		{"X", "", "Please try again in 120ms", 120 * time.Millisecond},
		{"X", "", "Please retry in 36.4s", 36400 * time.Millisecond},
		{"X", "", "try again in 1e999999s", 0},
		{"X", "", "", 0},
	} {
		if got := retryAfter(http.Header{c.header: {c.value}}, c.text, now); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestUnreachable(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	for base, want := range map[string]string{
		server.URL:        "nothing answers at " + server.URL + ": start the server, or set TEST_BASE_URL",
		"http://u:pw@%zz": "\"…@%zz\" cannot be used; set TEST_BASE_URL",
		"ftp://127.0.0.1": "no sound connection",
		"ftp://u:pw@h":    "ftp://u:xxxxx@h",
	} {
		_, err := endpoint(base).Do(t.Context(), http.MethodPost, "/x", nil, nil)
		if e := model.AsError(err); err == nil || e.Class != model.Environment || !strings.Contains(e.Message, want) || strings.Contains(e.Error(), "pw") {
			t.Errorf("%s: %v", base, err)
		}
	}
}

// TestStalls holds that a silent server is given up, before its header, in its body, and behind keep-alives.
func TestStalls(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		flush := func(s string) {
			_, _ = io.WriteString(w, s)
			_ = http.NewResponseController(w).Flush()
		}
		switch r.URL.Path {
		case "/body":
			flush("data: 1\n\n")
		case "/alive":
			for r.Context().Err() == nil {
				flush(": ping\n\n")
				select {
				case <-r.Context().Done():
				case <-time.After(5 * time.Millisecond):
				}
			}
		}
		select {
		case <-r.Context().Done():
		case <-release:
		}
	}))
	defer server.Close()
	defer close(release)
	for _, path := range []string{"/header", "/body", "/alive"} {
		e := endpoint(server.URL)
		e.Idle, e.Content = 60*time.Millisecond, time.Hour
		if path == "/alive" {
			e.Idle, e.Content = time.Hour, 60*time.Millisecond
		}
		resp, err := e.Do(t.Context(), http.MethodPost, path, nil, nil)
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			_ = resp.Body.Close()
		}
		if e := model.AsError(err); err == nil || !e.Retryable() || !strings.Contains(e.Message, "went silent") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestCancelClosesTheConnection waits until the server sees that the client has gone.
func TestCancelClosesTheConnection(t *testing.T) {
	gone := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "data: 1\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		close(gone)
	}))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := endpoint(server.URL).Do(ctx, http.MethodPost, "/", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	cancel()
	if _, err := io.ReadAll(resp.Body); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	<-gone
}

// TestNoRedirect holds that a key goes to nobody else.
func TestNoRedirect(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	for _, client := range []*http.Client{nil, {}} {
		e := endpoint(server.URL)
		e.HTTP = client
		resp, err := e.Do(t.Context(), http.MethodPost, "/", http.Header{"X-Api-Key": {"k"}}, []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Fail(resp); model.AsError(err).Class != model.Environment {
			t.Errorf("got %v", err)
		}
		_ = resp.Body.Close()
	}
}

func TestSniff(t *testing.T) {
	for in, want := range map[string]Shape{"data: 1": Events, "": Events, "\n\n {\"a\":1}": JSON, "[1]": JSON, "<html>": Page, ": ok": Events} {
		shape, r, err := Sniff(strings.NewReader(in))
		rest, readErr := io.ReadAll(r)
		if shape != want || err != nil || readErr != nil || !bytes.HasSuffix([]byte(in), rest) {
			t.Errorf("%q: %v %q %v %v", in, shape, rest, err, readErr)
		}
	}
}

func TestArrange(t *testing.T) {
	text := message.Text
	call := func(id string) message.Block {
		return message.Block{Kind: message.KindCall, Call: &message.ToolCall{ID: id, Name: "A", Args: []byte("{}")}}
	}
	result := func(id, s string) message.Block {
		return message.Block{Kind: message.KindResult, Result: &message.ToolResult{CallID: id, Text: s}}
	}
	missing := result("b", "Interrupted: there is no result.")
	missing.Result.Error = true
	user := func(b ...message.Block) message.Message { return message.Message{Role: message.User, Blocks: b} }
	said := func(b ...message.Block) message.Message {
		return message.Message{Role: message.Assistant, Blocks: b}
	}
	opaque := message.Block{Kind: message.KindOpaque, Opaque: &message.Opaque{Raw: []byte("{}")}}
	for name, c := range map[string]struct{ in, want []message.Message }{
		"untouched":               {[]message.Message{user(text("a")), said(text("b")), user(text("c"))}, []message.Message{user(text("a")), said(text("b")), user(text("c"))}},
		"users that follow":       {[]message.Message{user(text("a")), user(text("b"))}, []message.Message{user(text("a"), text("b"))}},
		"assistants stay":         {[]message.Message{user(text("a")), said(text("b")), said(text("c"))}, []message.Message{user(text("a")), said(text("b")), said(text("c"))}},
		"results first, in order": {[]message.Message{said(call("a"), call("b")), user(text("x"), result("b", "2")), user(result("a", "1"))}, []message.Message{said(call("a"), call("b")), user(result("a", "1"), result("b", "2"), text("x"))}},
		"a missing result":        {[]message.Message{said(call("a"), call("b")), user(result("a", "1"))}, []message.Message{said(call("a"), call("b")), user(result("a", "1"), missing)}},
		"no results at all":       {[]message.Message{said(call("b")), said(text("c"))}, []message.Message{said(call("b")), user(missing), said(text("c"))}},
		"calls at the very end":   {[]message.Message{said(call("b"))}, []message.Message{said(call("b")), user(missing)}},
		"an orphan":               {[]message.Message{user(result("z", "old"))}, []message.Message{user(text("Result of a call that is not shown any more (z):\nold"))}},
		"calls last":              {[]message.Message{said(call("a"), text("x")), user(result("a", "1"))}, []message.Message{said(text("x"), call("a")), user(result("a", "1"))}},
		"nothing said":            {[]message.Message{user(text(" \n")), said(text("")), user(text("a"))}, []message.Message{user(text("a"))}},
		"dropped":                 {[]message.Message{user(text("a")), said(opaque), user(text("b"))}, []message.Message{user(text("a"), text("b"))}},
	} {
		got := Arrange(c.in, func(b message.Block) bool { return b.Opaque == nil })
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}
