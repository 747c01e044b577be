package modeltest_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"belay/message"
	"belay/model"
	"belay/model/anthropic"
	"belay/model/openai"
	"belay/model/rehearsal"
	"belay/model/rehearsal/serve"
	"belay/model/stream"
)

// FuzzNeverRefused makes conversations with everything that goes wrong in one (no results, results twice, white
// space, foreign blocks and ids, broken arguments) and holds that a strict server takes what clients make of it.
func FuzzNeverRefused(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed)
	}
	s, err := rehearsal.Parse("v.yaml", []byte("version: 1\nturns: [{say: x}]\notherwise: {say: y}\n"))
	if err != nil {
		f.Fatal(err)
	}
	h := serve.New(s)
	clients := map[string]model.Encoder{
		"/v1/messages":         anthropic.New(anthropic.Config{Model: "m"}),
		"/v1/chat/completions": openai.New(openai.Config{Model: "m"}),
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		req := model.Request{Messages: wild(rand.New(rand.NewPCG(seed, 1))), Tools: []model.Tool{{Name: "A"}}}
		for path, c := range clients {
			body, err := c.Encode(req)
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(string(body)))
			r.Header.Set("Anthropic-Version", "2026-10-21")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != http.StatusOK {
				t.Errorf("seed %d, %s: %s\n%s", seed, path, w.Body, body)
			}
		}
	})
}

// wild begins with a user's text and says anything after it.
func wild(r *rand.Rand) []message.Message {
	messages := []message.Message{message.UserText("go")}
	var ids []string
	texts := []string{"", " ", "x", "y \n", "日本 <b>", "\x00\xff"}
	for range r.IntN(9) {
		m := message.Message{Role: message.User}
		if r.IntN(2) == 0 {
			m.Role = message.Assistant
		}
		for range r.IntN(5) {
			switch k := r.IntN(6); {
			case k < 2:
				m.Blocks = append(m.Blocks, message.Text(texts[r.IntN(len(texts))]))
			case k < 4 && m.Role == message.Assistant:
				id := []string{"call_%d", "functions.a:%d", strings.Repeat("long", 5) + "%d"}[r.IntN(3)]
				call := message.ToolCall{ID: fmt.Sprintf(id, len(ids)), Name: "A"}
				call.Args, call.BadArgs = stream.Args([]string{"", `{"a":1}`, `{"a`, "[1]", `"x"`, "\xff"}[r.IntN(6)])
				ids = append(ids, call.ID)
				m.Blocks = append(m.Blocks, message.Block{Kind: message.KindCall, Call: &call})
			case k < 4:
				id := "nobody"
				if len(ids) > 0 {
					id = ids[len(ids)-1-r.IntN(min(3, len(ids)))]
				}
				m.Blocks = append(m.Blocks, message.Block{Kind: message.KindResult, Result: &message.ToolResult{CallID: id, Text: texts[r.IntN(len(texts))], Error: r.IntN(2) == 0}})
			case m.Role == message.Assistant && k == 4:
				m.Blocks = append(m.Blocks, message.Block{Kind: message.KindThinking, Text: "hm"})
			case m.Role == message.Assistant:
				m.Blocks = append(m.Blocks, message.Block{Kind: message.KindOpaque, Opaque: &message.Opaque{Provider: "other", Model: "m", Raw: json.RawMessage(`{"type":"riddle"}`)}})
			}
		}
		messages = append(messages, m)
	}
	return messages
}
