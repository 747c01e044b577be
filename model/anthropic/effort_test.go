package anthropic

import (
	"strings"
	"testing"

	"belay/message"
	"belay/model"
)

func TestEffort(t *testing.T) {
	for _, c := range []struct {
		model, effort string
		limit         int64
		want, not     string
	}{
		{"claude-opus-5-5", "high", 0, `"output_config":{"effort":"high"}`, "budget_tokens"},
		{"claude-opus-5-5", "none", 0, `"output_config":{"effort":"low"}`, "budget_tokens"},
		{"claude-opus-5-5", "", 0, `"thinking":{"type":"adaptive","display":"summarized"}`, "output_config"},
		{"claude-haiku-4-5", "medium", 0, `"thinking":{"type":"enabled","budget_tokens":8192}`, "output_config"},
		{"claude-haiku-4-5", "high", 2000, `"budget_tokens":1999`, "output_config"},
		{"claude-haiku-4-5", "high", 500, `"max_tokens":500`, "thinking"}, // no room for the least budget
		{"somebody-elses", "high", 0, `"model":"somebody-elses"`, "effort"},
	} {
		body, err := New(Config{Model: c.model, Effort: c.effort}).Encode(model.Request{MaxOutput: c.limit, Messages: []message.Message{message.UserText("go")}})
		if err != nil || !strings.Contains(string(body), c.want) || strings.Contains(string(body), c.not) {
			t.Errorf("%+v: %v\n%s", c, err, body)
		}
	}
}
