package serve

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"belay/message"
	"belay/model"
	"belay/model/anthropic"
	"belay/model/openai"
	"belay/model/rehearsal"
)

func script(t *testing.T, text string) *rehearsal.Script {
	t.Helper()
	s, err := rehearsal.Parse("t.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const simple = "version: 1\nname: simple\nturns: [{say: one}, {say: two, thinking: hm, calls: [{tool: A, args: {x: 1}}]}, {say: three}]\notherwise: {say: more}\n"

func post(h http.Handler, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Anthropic-Version", "2023-06-01")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// TestRefusals holds that the server is as strict as the providers are.
func TestRefusals(t *testing.T) {
	a := func(messages string, more ...string) string {
		return `{"model":"m","max_tokens":9,"messages":[` + messages + `]` + strings.Join(append([]string{""}, more...), ",") + `}`
	}
	o := func(messages string, more ...string) string {
		return `{"model":"m","messages":[` + messages + `]` + strings.Join(append([]string{""}, more...), ",") + `}`
	}
	const user = `{"role":"user","content":"go"}`
	use := func(ids ...string) string {
		var blocks []string
		for _, id := range ids {
			blocks = append(blocks, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"A","input":{}}`, id))
		}
		return `{"role":"assistant","content":[` + strings.Join(blocks, ",") + `]}`
	}
	results := func(ids ...string) string {
		var blocks []string
		for _, id := range ids {
			blocks = append(blocks, fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":"ok"}`, id))
		}
		return `{"role":"user","content":[` + strings.Join(blocks, ",") + `]}`
	}
	calls := func(ids ...string) string {
		var list []string
		for _, id := range ids {
			list = append(list, fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":"A","arguments":"{}"}}`, id))
		}
		return `{"role":"assistant","content":null,"tool_calls":[` + strings.Join(list, ",") + `]}`
	}
	tool := func(id string) string { return fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"ok"}`, id) }
	for _, c := range []struct{ path, body, want string }{ // want "" is accepted
		{"/v1/messages", a(user), ""},
		{"/v1/messages", a(user + "," + use("a", "b") + "," + results("b", "a")), ""},
		{"/v1/messages", a(user + "," + use("a") + "," + results("a") + "," + user), ""},
		{"/v1/messages", a(user + `,{"role":"assistant","content":"a"},{"role":"assistant","content":"b"}`), ""},
		{"/v1/messages", a(user, `"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],"tools":[{"name":"A","input_schema":{"type":"object"}}],"temperature":0.5`), ""},
		{"/v1/messages", `{`, "not valid JSON"},
		{"/v1/messages", `{"model":"m","messages":[` + user + `]}`, "max_tokens"},
		{"/v1/messages", `{"max_tokens":1,"messages":[` + user + `]}`, "model"},
		{"/v1/messages", a(""), "at least one message"},
		{"/v1/messages", a(user, `"frobnicate":1`), "frobnicate: Extra inputs are not permitted"},
		{"/v1/messages", a(`{"role":"system","content":"x"}`), "role"},
		{"/v1/messages", a(`{"role":"assistant","content":"x"},` + user), "first message must use"},
		{"/v1/messages", a(`{"role":"user","content":" "}`), "non-empty"},
		{"/v1/messages", a(`{"role":"user","content":[]},` + user), "non-empty content"},
		{"/v1/messages", a(user + "," + use("a")), "without `tool_result` blocks immediately after: a"},
		{"/v1/messages", a(user + "," + use("a", "b") + "," + results("a")), "without `tool_result` blocks immediately after: b"},
		{"/v1/messages", a(user + "," + use("a") + "," + user + `,{"role":"assistant","content":"x"},` + results("a")), "without `tool_result`"},
		{"/v1/messages", a(user + "," + results("z")), "unexpected `tool_use_id`"},
		{"/v1/messages", a(user + "," + use("a", "a") + "," + results("a")), "must be unique"},
		{"/v1/messages", a(user + "," + use("functions.a:0") + "," + results("functions.a:0")), "should match pattern"},
		{"/v1/messages", a(user + "," + use("a") + `,{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"a"}]}`), "must come first"},
		{"/v1/messages", a(user + `,{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"A","input":{}},{"type":"text","text":"x"}]},` + results("a")), "text follows tool_use"},
		{"/v1/messages", a(user + `,{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"A","input":"{}"}]},` + results("a")), "valid dictionary"},
		{"/v1/messages", a(user + `,{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"forged"}]},` + user), "Invalid `signature`"},
		{"/v1/messages", a(user + `,{"role":"assistant","content":"x "}`), "trailing whitespace"},
		{"/v1/messages", a(user + `,{"role":"assistant","content":[{"type":"riddle"}]}`), "Input tag 'riddle'"},
		{"/v1/messages", a(user, `"tools":[{"name":"a b","input_schema":{"type":"object"}}]`), "pattern"},
		{"/v1/messages", a(user, `"tools":[{"name":"A","input_schema":{"type":"object"}},{"name":"A","input_schema":{"type":"object"}}]`), "unique"},
		{"/v1/messages", a(user, `"tools":[{"name":"A","input_schema":{"type":"string"}}]`), "input_schema"},
		{"/v1/messages", a(`{"role":"user","content":[` + strings.TrimSuffix(strings.Repeat(`{"type":"text","text":"x","cache_control":{"type":"ephemeral"}},`, 5), ",") + `]}`), "maximum of 4 blocks"},

		{"/v1/chat/completions", o(user), ""},
		{"/v1/chat/completions", o(user + "," + calls("a", "b") + "," + tool("b") + "," + tool("a") + "," + user), ""},
		{"/v1/chat/completions", o(`{"role":"developer","content":"s"},`+user+`,{"role":"assistant","content":[{"type":"text","text":"x"}]},`+user, `"tools":[{"type":"function","function":{"name":"A"}}]`), ""},
		{"/v1/chat/completions", `[]`, "parse the JSON body"},
		{"/v1/chat/completions", `{"messages":[` + user + `]}`, "model"},
		{"/v1/chat/completions", o(""), "empty array"},
		{"/v1/chat/completions", o(user, `"stream_options":{"include_usage":true}`), "only allowed when 'stream'"},
		{"/v1/chat/completions", o(user, `"max_tokens":1,"max_completion_tokens":1`), "at the same time"},
		{"/v1/chat/completions", o(user, `"max_tokens":0`), "below minimum"},
		{"/v1/chat/completions", o(`{"role":"wizard","content":"x"}`), "wizard"},
		{"/v1/chat/completions", o(`{"role":"user","content":null}`), "got null"},
		{"/v1/chat/completions", o(`{"role":"user","content":7}`), "content"},
		{"/v1/chat/completions", o(user + "," + calls("a")), "did not have response messages: a"},
		{"/v1/chat/completions", o(user + "," + calls("a", "b") + "," + tool("a") + "," + user), "did not have response messages: b"},
		{"/v1/chat/completions", o(user + "," + tool("a")), "must be a response"},
		{"/v1/chat/completions", o(user + "," + calls("") + "," + tool("")), "id"},
		{"/v1/chat/completions", o(user + "," + calls(strings.Repeat("a", 41)) + "," + tool(strings.Repeat("a", 41))), "1 to 40"},
		{"/v1/chat/completions", o(user + `,{"role":"assistant","content":null,"tool_calls":[]}`), "null"},
		{"/v1/chat/completions", o(user + `,{"role":"assistant","content":null,"tool_calls":[{"id":"a","function":{"name":"A","arguments":"{}"}}]},` + tool("a")), "type"},
		{"/v1/chat/completions", o(user + `,{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"A"}}]},` + tool("a")), "arguments"},
		{"/v1/chat/completions", o(user, `"tools":[{"type":"gadget"}]`), "tools[0].type"},
		{"/v1/chat/completions", o(user, `"tools":[{"type":"function","function":{"name":"a b"}}]`), "pattern"},
		{"/v1/chat/completions", o(user, `"tools":[{"type":"function","function":{"name":"A","parameters":{"type":"array"}}}]`), "type 'object'"},
	} {
		w := post(New(script(t, simple)), c.path, c.body)
		switch {
		case c.want == "" && w.Code != http.StatusOK:
			t.Errorf("%s %s: %d %s", c.path, c.body, w.Code, w.Body)
		case c.want != "" && (w.Code != http.StatusBadRequest || !json.Valid(w.Body.Bytes()) || !strings.Contains(w.Body.String(), c.want)):
			t.Errorf("%s %s:\n%d %s\nwant %s", c.path, c.body, w.Code, w.Body, c.want)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(a(user)))
	w := httptest.NewRecorder()
	New(script(t, simple)).ServeHTTP(w, r)
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "anthropic-version") {
		t.Errorf("without a version: %d %s", w.Code, w.Body)
	}
	r = httptest.NewRequest(http.MethodPost, "/v1/messages", strings.NewReader(a(user, `"temperature":1`)))
	r.Header.Set("Anthropic-Version", "2026-10-21")
	w = httptest.NewRecorder()
	New(script(t, simple)).ServeHTTP(w, r)
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "temperature") {
		t.Errorf("sampling in the newest version: %d %s", w.Code, w.Body)
	}
}

// TestWhole asks without streaming, and without the headers of belay's own clients: the turn is counted.
func TestWhole(t *testing.T) {
	const assistants = `{"role":"user","content":"go"},{"role":"assistant","content":"one"},{"role":"user","content":"on"}`
	want := []message.Block{{Kind: message.KindThinking, Text: "hm"}, message.Text("two"), {Kind: message.KindCall, Call: &message.ToolCall{ID: "call_2_1", Name: "A", Args: json.RawMessage(`{"x":1}`)}}}
	wantJSON, _ := json.Marshal(want)
	h := New(script(t, simple))
	check := func(name string, w *httptest.ResponseRecorder, decode func(*http.Response) (model.Reply, error)) {
		reply, err := decode(w.Result())
		got, _ := json.Marshal(reply.Blocks)
		if err != nil || string(got) != string(wantJSON) || reply.Stop != message.StopToolUse || reply.Usage.Output == 0 {
			t.Errorf("%s: %+v %v\n%s", name, reply, err, w.Body)
		}
	}
	for _, stream := range []string{"false", "true"} {
		check("anthropic, stream "+stream, post(h, "/v1/messages", `{"model":"m","max_tokens":9,"stream":`+stream+`,"messages":[`+assistants+`]}`), func(r *http.Response) (model.Reply, error) {
			return model.Collect(anthropic.New(anthropic.Config{Model: "m"}).Decode(r, model.Request{}), nil)
		})
		check("openai, stream "+stream, post(h, "/v1/chat/completions", `{"model":"m","stream":`+stream+`,"messages":[`+assistants+`]}`), func(r *http.Response) (model.Reply, error) {
			return model.Collect(openai.New(openai.Config{Model: "m"}).Decode(r, model.Request{}), nil)
		})
	}
}

func TestCutWhole(t *testing.T) {
	server := httptest.NewServer(New(script(t, "version: 1\nturns: [{say: hi, cut_stream: true}]\n")))
	defer server.Close()
	resp, err := http.Post(server.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"go"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if body, err := io.ReadAll(resp.Body); err == nil {
		t.Errorf("arrived whole: %s", body)
	}
}

func TestOtherRoutes(t *testing.T) {
	h := New(script(t, simple))
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w
	}
	if w := get("/v1/models"); w.Code != 200 || !strings.Contains(w.Body.String(), `"id":"simple"`) || w.Header().Get("Belay-Rehearsal") != `"simple"` {
		t.Errorf("models: %d %s %v", w.Code, w.Body, w.Header())
	}
	for _, path := range []string{"/", "/v1/messages", "/v1/embeddings"} {
		if w := get(path); w.Code != 404 || !json.Valid(w.Body.Bytes()) || !strings.Contains(w.Body.String(), "/v1/chat/completions") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	if w := post(h, "/v1/messages/count_tokens", `{"model":"m","messages":[{"role":"user","content":"12345678"}]}`); w.Code != 200 || w.Body.String() != `{"input_tokens":2}` {
		t.Errorf("count: %d %s", w.Code, w.Body)
	}
	r := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"go"}]}`))
	r.Header.Set("Belay-Replies", "many")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusBadRequest {
		t.Errorf("a wrong header: %d %s", w.Code, w.Body)
	}
}

// TestPieces holds that what is sent in pieces cuts lines and characters, and loses nothing.
func TestPieces(t *testing.T) {
	text := strings.Repeat("größe 日本 🧗 ", 60)
	w := &recorder{ResponseRecorder: httptest.NewRecorder()}
	write(w, []frame{{"a", text}, {"", text}})
	inside := false
	for _, p := range w.pieces {
		inside = inside || !utf8.ValidString(p)
	}
	if !inside || strings.Join(w.pieces, "") != "event: a\ndata: "+text+"\n\ndata: "+text+"\n\n" {
		t.Errorf("%q", w.pieces)
	}
	if s := split(text, 1, 7); strings.Join(s, "") != text || len(s) < 10 {
		t.Errorf("%q", s)
	}
}

type recorder struct {
	*httptest.ResponseRecorder
	pieces []string
}

func (r *recorder) Write(p []byte) (int, error) {
	r.pieces = append(r.pieces, string(p))
	return len(p), nil
}

func FuzzRequests(f *testing.F) {
	f.Add("/v1/messages", `{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"go"}]}`)
	f.Add("/v1/chat/completions", `{"model":"m","messages":[{"role":"tool","content":"go"}]}`)
	s, err := rehearsal.Parse("t.yaml", []byte(simple))
	if err != nil {
		f.Fatal(err)
	}
	h := New(s, Signed())
	f.Fuzz(func(t *testing.T, path, body string) {
		if path != "/v1/messages" {
			path = "/v1/chat/completions"
		}
		if w := post(h, path, body); w.Code != 200 && w.Code != 400 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}
