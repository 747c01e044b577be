package cli

import (
	"context"

	"belay/eval"
	"belay/harness"
	"belay/message"
	"belay/model"
)

// evalJudge is the model that grades; nil where none was named.
func (a *app) evalJudge(spec string) (eval.Judge, error) {
	if spec == "" {
		return nil, nil
	}
	client, err := a.evalClient(spec)
	if err != nil {
		return nil, err
	}
	return modelJudge{client}, nil
}

// evalClient makes the client of a model that was named.
func (a *app) evalClient(spec string) (model.Client, error) {
	known, err := a.known()
	if err != nil {
		return nil, err
	}
	client, err := harness.Connect(harness.Config{Model: spec, Known: known})
	if err != nil {
		return nil, usagef("%w", err)
	}
	return client, nil
}

type modelJudge struct{ client model.Client }

func (m modelJudge) Name() string { return m.client.Info().ID() }

// Ask sends one request of one message.
func (m modelJudge) Ask(ctx context.Context, prompt string) (string, float64, error) {
	reply, err := model.Collect(m.client.Stream(ctx, model.Request{
		Purpose:  model.Judge,
		System:   "You are a careful judge of software work.",
		Messages: []message.Message{message.UserText(prompt)},
	}), nil)
	usd := 0.0
	if price := m.client.Info().Price; price != nil {
		usd = price.Of(reply.Usage).Dollars()
	}
	return message.PlainText(reply.Blocks), usd, err
}
