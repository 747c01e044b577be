package projection

import (
	"fmt"
	"iter"

	"belay/journal"
	"belay/message"
	"belay/model"
)

// Turn is one request as it was sent and as another policy would have sent it. Tokens are estimates, calibrated by what
// the provider counted; costs are of the input alone, with what an unbroken prefix saves where the price says so.
type Turn struct {
	Turn       int          `json:"turn"`
	Seq        int64        `json:"seq"`
	Tokens     int64        `json:"tokens"`
	WouldBe    int64        `json:"would_be_tokens"`
	Cost       message.Cost `json:"cost_usd"`
	WouldCost  message.Cost `json:"would_cost_usd"`
	Broke      string       `json:"broke,omitempty"`       // erase or compaction, as recorded
	WouldBreak string       `json:"would_break,omitempty"` // the same under the other policy
	Over       bool         `json:"over,omitempty"`        // the other policy would have stopped here
	request    model.Request
}

// Request is what the other policy would have sent.
func (t Turn) Request() model.Request { return t.request }

// WhatIf replays a run under another policy, without any model: where the policy wants a summary, it has the one that
// belay makes of its records. What the model answered is as it was.
func WhatIf(events iter.Seq2[journal.Event, error], policy Policy) ([]Turn, error) {
	was, is := &Fold{}, &Fold{}
	facts := &Facts{}
	var turns []Turn
	var price *message.Price
	var recap journal.Recap
	var before, wouldBefore paid
	broke := ""
	for e, err := range events {
		if err != nil {
			return turns, err
		}
		var call journal.ModelCall
		switch e.Type {
		case journal.TypeSessionStart:
			var p journal.SessionStart
			if err := e.Decode(&p); err != nil {
				return turns, err
			}
			price = p.Model.Price
		case journal.TypeRecap:
			recap = journal.Recap{}
			if err := e.Decode(&recap); err != nil {
				return turns, err
			}
		case journal.TypeModelCall:
			if err := e.Decode(&call); err != nil {
				return turns, err
			}
		case journal.TypeErase, journal.TypeCompaction:
			broke = string(e.Type)
		}
		if e.Type == journal.TypeModelCall && call.Purpose == "" {
			is.rate = was.rate
			t := Turn{Turn: e.Turn, Seq: e.Seq, Tokens: was.Estimate(), Broke: broke}
			broke = ""
			if t.WouldBreak, err = is.obey(policy, facts, recap); err != nil {
				return turns, fmt.Errorf("event %d: %w", e.Seq, err)
			}
			t.WouldBe, t.Over = is.Estimate(), is.Estimate() > policy.Limit()
			t.Cost, before = before.next(price, t.Tokens, was.request.PrefixHash)
			t.WouldCost, wouldBefore = wouldBefore.next(price, t.WouldBe, is.request.PrefixHash)
			if t.request, _, err = is.Request(); err != nil {
				return turns, fmt.Errorf("event %d: %w", e.Seq, err)
			}
			turns = append(turns, t)
		}
		if err := was.Apply(e); err != nil {
			return turns, fmt.Errorf("event %d: %w", e.Seq, err)
		}
		if !sizeBreak(e) {
			if err := is.Apply(e); err != nil {
				return turns, fmt.Errorf("event %d: %w", e.Seq, err)
			}
		}
		if err := facts.Apply(e); err != nil {
			return turns, err
		}
	}
	return turns, nil
}

// sizeBreak says whether an event is what another policy would have decided otherwise.
func sizeBreak(e journal.Event) bool {
	if e.Type == journal.TypeCompaction {
		return true
	}
	var p journal.Erase
	return e.Type == journal.TypeErase && e.Decode(&p) == nil && p.Reason != "errors"
}

// obey does what the policy wants done before a request.
func (f *Fold) obey(policy Policy, facts *Facts, recap journal.Recap) (what string, err error) {
	for range 3 {
		erase, compact := f.Due(policy, f.estimate() > policy.Limit())
		switch {
		case erase != nil:
			what, err = "erase", f.erase(*erase)
		case compact:
			keep, rounds := f.Cut(policy)
			since, until := f.Since(), f.Until(keep)
			c := journal.Compaction{From: since + 1, To: until, Keep: keep, Rounds: rounds, By: "harness", Summary: facts.Summary(since, until)}
			if int64(len(c.Summary)) >= f.MiddleBytes(keep) {
				return what, nil
			}
			c.Drop = f.DropFor(policy, c.Summary)
			what, err = "compaction", f.compact(c)
		default:
			return what, nil
		}
		if err == nil && recap.Text != "" {
			err = f.hear(message.UserText(recap.Text))
		}
		if err != nil {
			return what, err
		}
	}
	return what, nil
}

// paid is the request before, of which a provider may still hold the prefix.
type paid struct {
	tokens int64
	prefix string
}

func (p paid) next(price *message.Price, tokens int64, prefix string) (message.Cost, paid) {
	now := paid{tokens, prefix}
	if price == nil {
		return 0, now
	}
	u := message.Usage{Input: tokens}
	if p.prefix == prefix && price.CacheRead > 0 {
		held := min(p.tokens, tokens)
		u = message.Usage{Input: tokens - held, CacheRead: held}
	}
	return price.Of(u), now
}
