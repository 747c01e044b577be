package wire

import (
	"encoding/json"
	"testing"

	"belay/message"
	"belay/model"
)

func TestLearn(t *testing.T) {
	refusal := func(text, field string) error {
		return &model.Error{Class: model.Validation, Status: 400, Message: text, Field: field}
	}
	for _, c := range []struct {
		err  error
		want string // the suffix; "" is that nothing can be done without
	}{
		{refusal("Unrecognized request argument supplied: stream_options", ""), "-stream_options"},
		{refusal("no", "reasoning.summary"), "-reasoning.summary"},
		{refusal("Extra inputs are not permitted: body.store", ""), "-store"},
		{refusal("the bookstore is unknown", ""), ""},                        // not a word of its own
		{refusal("store must be true for this organisation", ""), ""},        // says nothing of not knowing it
		{refusal("messages: unknown role", "messages"), ""},                  // cannot be left out
		{&model.Error{Class: model.Transient, Message: "unknown store"}, ""}, // no refusal
		{&model.Error{Class: model.Validation, ContextTooLarge: true, Message: "unknown store"}, ""},
	} {
		r := Optional(EarlierReasoning, "stream_options", "reasoning.summary", "store")
		if got := r.Learn(c.err, model.Request{}); got != (c.want != "") || r.Suffix() != c.want {
			t.Errorf("%v: %v %q", c.err, got, r.Suffix())
		}
		if r.Learn(c.err, model.Request{}) {
			t.Errorf("%v: the same refusal teaches twice, which would never end", c.err)
		}
	}
}

// TestStaleReasoning leaves out what was in the refused request, and nothing that comes later.
func TestStaleReasoning(t *testing.T) {
	old := &message.Opaque{Raw: json.RawMessage(`{"old":1}`)}
	req := model.Request{Messages: []message.Message{{Role: message.Assistant, Blocks: []message.Block{{Kind: message.KindThinking, Opaque: old}}}}}
	r := Optional(EarlierReasoning)
	unreadable := &model.Error{Class: model.Validation, Status: 400, Message: "The encrypted content could not be verified."}
	if !r.Learn(unreadable, req) || !r.Stale(old) || r.Stale(&message.Opaque{Raw: json.RawMessage(`{"new":1}`)}) || r.Suffix() != "-earlier-reasoning" {
		t.Errorf("%q", r.Suffix())
	}
	if r.Learn(unreadable, req) {
		t.Error("there is nothing more to leave out")
	}
}
