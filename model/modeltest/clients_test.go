package modeltest_test

import (
	"net/http/httptest"
	"testing"

	"belay/message"
	"belay/model"
	"belay/model/anthropic"
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

func TestInProcess(t *testing.T) { modeltest.Run(t, inProcess) }
func TestAnthropic(t *testing.T) { modeltest.Run(t, overAnthropic) }
func TestOpenAI(t *testing.T)    { modeltest.Run(t, overOpenAI) }

// TestSameConversation compares whole conversations: what a journal would hold.
func TestSameConversation(t *testing.T) {
	s := modeltest.Script(t)
	want := modeltest.Converse(t, inProcess(t, s), 15)
	for name, make := range map[string]modeltest.Make{"anthropic": overAnthropic, "openai": overOpenAI} {
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
	if _, err := model.Collect(c.Stream(t.Context(), req), nil); err == nil || model.AsError(err).Class != model.Validation {
		t.Errorf("changed thinking: %v", err)
	}
	req.PrefixHash = "of another system prompt" // now the thinking is bound to something else, and is left out
	if _, err := model.Collect(c.Stream(t.Context(), req), nil); err != nil {
		t.Errorf("another prefix: %v", err)
	}
}
