package modeltest_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"belay/message"
	"belay/model"
	"belay/model/anthropic"
	"belay/model/gemini"
	"belay/model/modeltest"
	"belay/model/openai"
	"belay/model/rehearsal"
	"belay/model/rehearsal/serve"
)

func inProcess(_ *testing.T, s *rehearsal.Script) model.Client { return rehearsal.New(s) }

func served(t *testing.T, s *rehearsal.Script, options ...serve.Option) string {
	t.Helper()
	server := httptest.NewServer(serve.New(s, options...))
	t.Cleanup(server.Close)
	return server.URL
}

func overAnthropic(t *testing.T, s *rehearsal.Script) model.Client {
	return anthropic.New(anthropic.Config{Model: "scripted", BaseURL: served(t, s)})
}

func overOpenAI(t *testing.T, s *rehearsal.Script) model.Client {
	return openai.New(openai.Config{Model: "scripted", BaseURL: served(t, s)})
}

func overResponses(t *testing.T, s *rehearsal.Script) model.Client {
	return openai.NewResponses(openai.Config{Model: "scripted", BaseURL: served(t, s)})
}

func overGemini(t *testing.T, s *rehearsal.Script) model.Client {
	return gemini.New(gemini.Config{Model: "scripted", BaseURL: served(t, s)})
}

var dialects = map[string]modeltest.Make{"anthropic": overAnthropic, "openai-chat": overOpenAI, "openai-responses": overResponses, "gemini": overGemini}

func TestInProcess(t *testing.T) { modeltest.Run(t, inProcess) }
func TestAnthropic(t *testing.T) { modeltest.Run(t, overAnthropic) }
func TestOpenAI(t *testing.T)    { modeltest.Run(t, overOpenAI) }
func TestResponses(t *testing.T) { modeltest.Run(t, overResponses) }
func TestGemini(t *testing.T)    { modeltest.Run(t, overGemini) }

// TestSameConversation compares whole conversations: what a journal would hold.
func TestSameConversation(t *testing.T) {
	s := modeltest.Script(t)
	want := modeltest.Converse(t, inProcess(t, s), 15)
	for name, make := range dialects {
		if d := modeltest.Diff(t, want, modeltest.Converse(t, make(t, s), 15)); d != "" {
			t.Errorf("%s:\n%s", name, d)
		}
	}
}

// TestSignedThinking sends thinking back as it came; the server refuses it changed.
func TestSignedThinking(t *testing.T) {
	s := modeltest.Script(t)
	c := anthropic.New(anthropic.Config{Model: "scripted", BaseURL: served(t, s, serve.Signed())})
	all := modeltest.Converse(t, c, 4)
	var signed *message.Opaque
	for _, b := range all[0].Reply.Blocks {
		if b.Kind == message.KindThinking {
			signed = b.Opaque
		}
	}
	if signed == nil || signed.Provider != "anthropic" || signed.Model != "scripted" || signed.Prefix != all[0].Request.PrefixHash {
		t.Fatalf("the signature was not kept: %+v", signed)
	}
	req := all[3].Request
	signed.Raw = []byte(`{"type":"thinking","thinking":"another","signature":"` + "AAAA" + `"}`)
	if _, err := model.Collect(c.Stream(t.Context(), req), nil); err != nil || c.Codec() != "anthropic/1-earlier-reasoning" {
		t.Errorf("changed thinking is refused, and left out from then on: %v, %s", err, c.Codec())
	}
	req.PrefixHash = "of another system prompt" // now the thinking is bound to something else, and is left out
	if _, err := model.Collect(c.Stream(t.Context(), req), nil); err != nil {
		t.Errorf("another prefix: %v", err)
	}
}

// TestSealedReasoning sends encrypted reasoning back as it came, also when system prompt and tools have changed: it
// is bound to the model. A server that cannot read it is asked again without it.
func TestSealedReasoning(t *testing.T) {
	s := modeltest.Script(t)
	c := openai.NewResponses(openai.Config{Model: "scripted", BaseURL: served(t, s, serve.Signed())})
	all := modeltest.Converse(t, c, 5)
	sealed := all[0].Reply.Blocks[0].Opaque
	if sealed == nil || sealed.Provider != "openai" || sealed.Prefix != "" {
		t.Fatalf("the reasoning was not kept: %+v", all[0].Reply.Blocks[0])
	}
	req := all[4].Request
	body, err := c.Encode(req)
	if err != nil || !bytes.Contains(body, sealed.Raw) {
		t.Errorf("the reasoning is not sent back as it came (%v):\n%s\n%.2000s", err, sealed.Raw, body)
	}
	req.PrefixHash = "of another system prompt"
	if again, _ := c.Encode(req); !bytes.Contains(again, sealed.Raw) {
		t.Error("another prefix drops the reasoning")
	}
	sealed.Raw = bytes.Replace(sealed.Raw, []byte(`"encrypted_content":"`), []byte(`"encrypted_content":"A`), 1)
	if _, err := model.Collect(c.Stream(t.Context(), req), nil); err != nil {
		t.Errorf("reasoning that the server cannot read: %v", err)
	}
	if c.Codec() != "openai-responses/1-earlier-reasoning" {
		t.Errorf("the codec is still called %s", c.Codec())
	}
}

// TestThoughtSignatures puts signatures back on the calls that they came with; a history that another model made
// has the documented stand-in.
func TestThoughtSignatures(t *testing.T) {
	s := modeltest.Script(t)
	url := served(t, s, serve.Signed())
	c := gemini.New(gemini.Config{Model: "gemini-4-argon", BaseURL: url})
	all := modeltest.Converse(t, c, 5)
	calls := 0
	for _, b := range all[0].Reply.Blocks {
		if b.Call != nil {
			if calls++; (b.Opaque != nil) != (calls == 1) {
				t.Errorf("call %d: %+v", calls, b.Opaque)
			}
		}
	}
	req := all[4].Request
	other := gemini.New(gemini.Config{Model: "gemini-5", BaseURL: url}) // signatures of another model are not sent
	body, err := other.Encode(req)
	if err != nil || !bytes.Contains(body, []byte("skip_thought_signature_validator")) {
		t.Errorf("another model: %v\n%.2000s", err, body)
	}
	if _, err := model.Collect(other.Stream(t.Context(), req), nil); err != nil {
		t.Errorf("another model: %v", err)
	}
}

// TestFieldsThatAreRefused leaves out what a server does not know, and remembers it.
func TestFieldsThatAreRefused(t *testing.T) {
	s := modeltest.Script(t)
	h := serve.New(s)
	refusals := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte(`"stream_options"`)) {
			refusals++
			w.WriteHeader(422)
			_, _ = io.WriteString(w, `{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"],"msg":"Extra inputs are not permitted"}]}`)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		h.ServeHTTP(w, r)
	}))
	defer server.Close()
	c := openai.New(openai.Config{Model: "scripted", BaseURL: server.URL})
	modeltest.Converse(t, c, 3)
	if refusals != 1 || c.Codec() != "openai-chat/1-stream_options" {
		t.Errorf("%d refusals, codec %s", refusals, c.Codec())
	}
}
