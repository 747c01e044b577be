package rehearsal

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"time"
	"unicode/utf8"

	"belay/message"
	"belay/model"
)

// Client plays a script in process. It is a model.Client and safe for concurrent use; the errors and cuts of
// the script are used up once per Client.
type Client struct {
	script *Script
	spent  Spent
}

var _ model.Client = (*Client)(nil)

// New makes a client that plays s.
func New(s *Script) *Client { return &Client{script: s} }

// Info describes the scripted model; Scripted is true.
func (c *Client) Info() model.Info { return c.script.Info() }

// Stream plays the turn that req.Replies and req.Purpose select.
func (c *Client) Stream(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		reply, cut, err := c.Play(ctx, req)
		if err != nil {
			yield(model.Event{}, err)
			return
		}
		events := Events(reply)
		if cut != nil {
			events = events[:cut.Of(len(events))]
		}
		for _, ev := range events {
			if err := ctx.Err(); err != nil {
				yield(model.Event{}, err)
				return
			}
			if !yield(ev, nil) {
				return
			}
		}
		if cut != nil {
			if err := cut.Error(); err != nil {
				yield(model.Event{}, err)
			}
		}
	}
}

// Play returns the whole reply to a request, after everything that can go wrong before its first event. A cut
// that is not nil says where the stream of the reply breaks.
func (c *Client) Play(ctx context.Context, req model.Request) (model.Reply, *Cut, error) {
	if err := ctx.Err(); err != nil {
		return model.Reply{}, nil, err
	}
	t, err := c.script.For(req)
	if err != nil {
		return model.Reply{}, nil, err
	}
	if err := c.script.Fits(req); err != nil {
		return model.Reply{}, nil, err
	}
	if err := c.script.Check(t, req); err != nil {
		return model.Reply{}, nil, err
	}
	if t.Delay > 0 {
		timer := time.NewTimer(t.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return model.Reply{}, nil, ctx.Err()
		}
	}
	failure, cut := c.spent.Next(t)
	if failure != nil {
		e := failure.Error()
		e.Message = fmt.Sprintf("rehearsal %s, %s: %s", c.script.File, t.Label, e.Message)
		return model.Reply{}, nil, e
	}
	return t.Reply(req), cut, nil
}

// Fits refuses a request above the context window, as a provider does, where the script gave one.
func (s *Script) Fits(req model.Request) error {
	if !s.bounded {
		return nil
	}
	if n := RequestTokens(req); n > s.ContextWindow {
		return &model.Error{Class: model.Validation, Status: http.StatusBadRequest, ContextTooLarge: true,
			Message: fmt.Sprintf("prompt is too long: %d tokens > %d, the context_window of rehearsal %s", n, s.ContextWindow, s.File)}
	}
	return nil
}

const deltaSize = 64 // bytes of one delta, about

// Events returns a whole reply as the stream it arrives in; the last event is the terminal one.
func Events(r model.Reply) []model.Event {
	var events []model.Event
	for i, b := range r.Blocks {
		kind, body := model.TextDelta, b.Text
		switch b.Kind {
		case message.KindThinking:
			kind = model.ThinkingDelta
		case message.KindCall:
			events = append(events, model.Event{Kind: model.CallStarted, Index: i, Name: b.Call.Name})
			kind, body = model.ArgsDelta, string(b.Call.Args)
		}
		for len(body) > 0 {
			n := min(deltaSize, len(body))
			for n < len(body) && !utf8.RuneStart(body[n]) {
				n++
			}
			events = append(events, model.Event{Kind: kind, Index: i, Delta: body[:n]})
			body = body[n:]
		}
		events = append(events, model.Event{Kind: model.BlockDone, Index: i, Block: &r.Blocks[i]})
	}
	usage := r.Usage
	return append(events,
		model.Event{Kind: model.UsageReport, Usage: &usage},
		model.Event{Kind: model.TurnDone, Stop: r.Stop})
}
