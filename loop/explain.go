package loop

import (
	"context"
	_ "embed"
	"encoding/json"
	"slices"
	"strings"

	"belay/effect"
	"belay/journal"
	"belay/message"
	"belay/model"
)

//go:embed explain.md
var explainPrompt string

// risks are the labels of an explanation, the lowest first.
var risks = []string{"low", "medium", "high"}

// explainOutput bounds an explanation in tokens.
const explainOutput = 600

// explain has the light model explain what a person is asked about, and puts it into the question. A model may call a thing
// worse than its class does, and no better.
func (s *session) explain(ctx context.Context, q *journal.Question) error {
	client := s.Light
	if client == nil {
		client = s.Client
	}
	shown, err := json.MarshalIndent(struct {
		Tool    string          `json:"tool"`
		Runs    string          `json:"runs"`
		Args    json.RawMessage `json:"arguments,omitempty"`
		Effects effect.Set      `json:"effects"`
		Why     string          `json:"judged"`
	}{q.Tool, orElse(q.Runs, q.Summary), q.Args, q.Effects, q.Why}, "", " ")
	if err != nil {
		return err
	}
	reply, _, err := s.aside(ctx, client, model.Request{System: strings.TrimSpace(explainPrompt), Messages: []message.Message{message.UserText(string(shown))},
		MaxOutput: explainOutput, Purpose: model.Explain, Choice: model.ChooseNone})
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e := journal.Explanation{By: client.Info().ID(), Risk: riskOf(q.Class)}
	switch {
	case err != nil:
		if fault := faultOf(err); fault != nil {
			return fault
		}
		e.Text = "No explanation could be had: " + err.Error()
	default:
		first, rest, _ := strings.Cut(strings.TrimSpace(message.PlainText(reply.Blocks)), "\n")
		said := slices.Index(risks, strings.ToLower(strings.Trim(strings.TrimSpace(first), ".*:` ")))
		if said < 0 {
			rest = first + "\n" + rest
		}
		e.Risk = risks[max(said, slices.Index(risks, e.Risk))]
		if e.Text = strings.TrimSpace(rest); e.Text == "" {
			e.Text = "The model gave no explanation."
		}
	}
	q.Explanation = &e
	return s.record(s.entry(journal.TypeQuestion, *q))
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// riskOf is the least that a class risks.
func riskOf(c effect.Class) string {
	switch {
	case c <= effect.ClassReversible:
		return "low"
	case c == effect.ClassIrreversible:
		return "medium"
	}
	return "high"
}
