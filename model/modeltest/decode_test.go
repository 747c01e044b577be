package modeltest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"belay/message"
	"belay/model"
	"belay/model/anthropic"
	"belay/model/gemini"
	"belay/model/openai"
	"belay/model/rehearsal"
	"belay/model/rehearsal/serve"
)

type codec interface {
	model.Client
	model.Encoder
	Decode(resp *http.Response, req model.Request) iter.Seq2[model.Event, error]
}

// codecs are all four, with the paths under which a rehearsal answers them.
func codecs() map[string]codec {
	return map[string]codec{
		"/v1/messages":         anthropic.New(anthropic.Config{Model: "m"}),
		"/v1/chat/completions": openai.New(openai.Config{Model: "m"}),
		"/v1/responses":        openai.NewResponses(openai.Config{Model: "m"}),

		"/v1beta/models/m:streamGenerateContent?alt=sse": gemini.New(gemini.Config{Model: "m"}),
	}
}

// answers are what a rehearsal streams for one turn, by path.
func answers(tb testing.TB, turn string) map[string][]byte {
	tb.Helper()
	s, err := rehearsal.Parse("a.yaml", []byte("version: 1\nturns: ["+turn+"]\n"))
	if err != nil {
		tb.Fatal(err)
	}
	out := map[string][]byte{}
	for path, c := range codecs() {
		body, err := c.Encode(model.Request{Messages: []message.Message{message.UserText("go")}})
		if err != nil {
			tb.Fatal(err)
		}
		r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
		r.Header.Set("Anthropic-Version", "2026-10-21")
		w := httptest.NewRecorder()
		serve.New(s).ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			tb.Fatalf("%s: %s", path, w.Body)
		}
		out[path] = w.Body.Bytes()
	}
	return out
}

func read(c codec, body io.Reader) (model.Reply, error) {
	return model.Collect(c.Decode(&http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(body)}, model.Request{}), nil)
}

const busyTurn = `{thinking: "hm, größe", say: "I look – 🧗", calls: [{tool: Bash, args: {command: "ls -l"}}, {tool: LS}]}`

// TestEveryPrefix holds that no prefix of a stream is a reply with calls, and that it fails in a way that is tried again.
func TestEveryPrefix(t *testing.T) {
	for path, body := range answers(t, busyTurn) {
		c := codecs()[path]
		whole, err := read(c, bytes.NewReader(body))
		if err != nil || len(message.Calls(whole.Blocks)) != 2 {
			t.Fatalf("%s: %+v %v", path, whole, err)
		}
		for n := range body {
			got, err := read(c, bytes.NewReader(body[:n]))
			if err == nil && len(message.Calls(got.Blocks)) == 2 && got.Stop == message.StopToolUse {
				continue // the rest says nothing more: a blank line, [DONE], usage
			}
			if err == nil || !model.AsError(err).Retryable() {
				t.Errorf("%s, %d of %d bytes: %+v %v\n…%s", path, n, len(body), got, err, body[max(0, n-80):n])
			}
		}
	}
}

// FuzzDecode holds that no bytes make a decoder panic, and that a call to be run has arguments that are an object.
func FuzzDecode(f *testing.F) {
	for _, turn := range []string{busyTurn, `{stop: max_tokens, say: x}`, `{calls: [{tool: A, bad_args: '{"x'}]}`} {
		for _, body := range answers(f, turn) {
			f.Add(body)
			f.Add(bytes.ReplaceAll(body, []byte(`"index":0`), []byte(`"index":-1`)))
			f.Add(bytes.ReplaceAll(body, []byte(`output_index`), []byte(`x`)))
			f.Add(bytes.ReplaceAll(body, []byte(`null`), []byte(`[{}]`)))
		}
	}
	f.Add([]byte(`[{"candidates":[{"content":{"parts":[{"functionCall":null},{"text":null},7]}}]}]`))
	f.Add([]byte(`data: {"type":"response.output_item.done","item":null}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		for path, c := range codecs() {
			reply, err := read(c, bytes.NewReader(body))
			if err != nil {
				continue
			}
			for _, call := range message.Calls(reply.Blocks) {
				var args map[string]json.RawMessage
				if call.BadArgs == "" && (json.Unmarshal(call.Args, &args) != nil || call.Name == "" || call.ID == "") {
					t.Errorf("%s: a call that cannot be run: %+v", path, call)
				}
			}
		}
	})
}

// TestHugeStreams holds that what is endless ends, in bounded memory, and deep nesting does no harm.
func TestHugeStreams(t *testing.T) {
	for path, c := range codecs() {
		for name, body := range map[string]io.Reader{
			"a line of 65 MB":        io.MultiReader(strings.NewReader(`data: {"x":"`), io.LimitReader(endless("a"), 65<<20)),
			"a million empty events": io.LimitReader(endless("data:\n\n: hm\n\n"), 12_000_000),
			"nested":                 strings.NewReader("data: " + strings.Repeat(`{"a":[`, 10_000) + "\n\n"),
			"nested arguments":       strings.NewReader(`data: {"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"A","arguments":` + strings.Repeat("[", 20_000) + "\n\n"),
		} {
			if reply, err := read(c, body); err == nil {
				t.Errorf("%s, %s: %+v", path, name, reply)
			}
		}
	}
}

type endless string

func (e endless) Read(p []byte) (int, error) {
	n := 0
	for n+len(e) <= len(p) {
		n += copy(p[n:], e)
	}
	return n, nil
}

// TestOneConnectionForAll holds that every dialect uses its connection again, turn for turn.
func TestOneConnectionForAll(t *testing.T) {
	s, err := rehearsal.Parse("c.yaml", []byte("version: 1\nturns: ["+busyTurn+","+busyTurn+","+busyTurn+"]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, connect := range map[string]func(url string) model.Client{
		"anthropic": func(url string) model.Client { return anthropic.New(anthropic.Config{Model: "m", BaseURL: url}) },
		"chat":      func(url string) model.Client { return openai.New(openai.Config{Model: "m", BaseURL: url}) },
		"responses": func(url string) model.Client { return openai.NewResponses(openai.Config{Model: "m", BaseURL: url}) },
		"gemini":    func(url string) model.Client { return gemini.New(gemini.Config{Model: "m", BaseURL: url}) },
	} {
		var connections atomic.Int32
		server := httptest.NewUnstartedServer(serve.New(s))
		server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				connections.Add(1)
			}
		}
		server.Start()
		c := connect(server.URL)
		for i := range 3 {
			if _, err := model.Collect(c.Stream(t.Context(), model.Request{Replies: i, Messages: []message.Message{message.UserText("go")}}), nil); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if n := connections.Load(); n != 1 {
			t.Errorf("%s: %d connections for three turns", name, n)
		}
		server.Close()
	}
}

// BenchmarkDecode compares a decoder with encoding/json reading the same events into the same kind of values.
func BenchmarkDecode(b *testing.B) {
	long := strings.Repeat("a long line that is written to a file – ", 2000)
	for path, body := range answers(b, `{say: "`+long+`", calls: [{tool: Write, args: {content: "`+long+`"}}]}`) {
		c := codecs()[path]
		var events [][]byte
		for line := range bytes.Lines(body) {
			if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok && data[0] == '{' {
				events = append(events, data)
			}
		}
		b.Run("belay"+strings.ReplaceAll(path, "/", "_"), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				if _, err := read(c, bytes.NewReader(body)); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run("json"+strings.ReplaceAll(path, "/", "_"), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				for _, data := range events {
					var v map[string]any
					if err := json.Unmarshal(data, &v); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// TestStall holds that a stream which goes silent on an open connection is given up, in every dialect.
func TestStall(t *testing.T) {
	s, err := rehearsal.Parse("s.yaml", []byte("version: 1\nturns: [{say: hello there, cut_stream: {after: 4, how: stall}}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	const idle = 100 * time.Millisecond
	for name, connect := range map[string]func(url string) model.Client{
		"anthropic": func(url string) model.Client {
			return anthropic.New(anthropic.Config{Model: "m", BaseURL: url, Idle: idle})
		},
		"chat": func(url string) model.Client {
			return openai.New(openai.Config{Model: "m", BaseURL: url, Idle: idle})
		},
		"responses": func(url string) model.Client {
			return openai.NewResponses(openai.Config{Model: "m", BaseURL: url, Idle: idle})
		},
		"gemini": func(url string) model.Client {
			return gemini.New(gemini.Config{Model: "m", BaseURL: url, Idle: idle})
		},
	} {
		server := httptest.NewServer(serve.New(s))
		c := connect(server.URL)
		req := model.Request{Messages: []message.Message{message.UserText("go")}}
		if _, err := model.Collect(c.Stream(t.Context(), req), nil); err == nil || !strings.Contains(err.Error(), "silent") || !model.AsError(err).Retryable() {
			t.Errorf("%s: %v", name, err)
		}
		if reply, err := model.Collect(c.Stream(t.Context(), req), nil); err != nil || message.PlainText(reply.Blocks) != "hello there" {
			t.Errorf("%s, again: %+v %v", name, reply, err)
		}
		server.CloseClientConnections()
		server.Close()
	}
}
