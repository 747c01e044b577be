package loop

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"belay/internal/failpoint"
	"belay/internal/projection"
	"belay/journal"
	"belay/message"
	"belay/model"
)

// Attempts at one request. A provider's own wish to wait is kept up to maxWait; without one the wait doubles
// from firstWait, each time with up to half of it added at random so that many agents do not come back at once.
const (
	maxAttempts = 5
	firstWait   = time.Second
	maxWait     = time.Minute
)

// ask gets the next reply, from the model or from one that stands in for it: a provider that is down for longer than
// patience lasts is replaced for the rest of the session.
func (s *session) ask(ctx context.Context) (model.Reply, error) {
	for {
		reply, err := s.askOne(ctx)
		if err != nil && ctx.Err() == nil {
			if smaller, shrinkErr := s.overflowed(ctx, err); shrinkErr != nil {
				return reply, shrinkErr
			} else if smaller {
				continue
			}
		}
		if err == nil || ctx.Err() != nil || len(s.Fallback) == 0 || !outage(err) {
			return reply, err
		}
		next := s.Fallback[0]
		loss := fmt.Sprintf("%s cannot be reached, %s goes on in its place: %v", s.Client.Info().ID(), next.Info().ID(), err)
		s.Client, s.Fallback = next, s.Fallback[1:]
		if err := s.note(s.entry(journal.TypeDegraded, journal.Degraded{Component: "model", Loss: loss})); err != nil {
			return model.Reply{}, err
		}
	}
}

// outage says whether another provider may do what this one cannot.
func outage(err error) bool {
	var failure *model.Error
	if !errors.As(err, &failure) {
		return false
	}
	switch failure.Kind {
	case model.Overloaded, model.RateLimit, model.Quota, model.Server, model.Network, model.StreamTruncated:
		return true
	}
	return failure.Class == model.Transient && failure.Kind != model.MalformedCall
}

// askOne projects the journal into a request, calls the model, and records both sides.
func (s *session) askOne(ctx context.Context) (model.Reply, error) {
	request, hashes, err := s.fold.Request()
	if err != nil {
		return model.Reply{}, fmt.Errorf("project the context: %w", err)
	}
	call, err := s.describe(request, hashes)
	if err != nil {
		return model.Reply{}, err
	}
	if err := s.note(s.entry(journal.TypeModelCall, call)); err != nil {
		return model.Reply{}, err
	}
	failpoint.Hit("ask.before-call")
	started := time.Now()
	reply, attempts, wasted, err := s.attempt(ctx, request)
	s.tidy(&reply)
	record := journal.ModelReply{
		Blocks: reply.Blocks, Stop: reply.Stop, Usage: reply.Usage,
		DurationMS: time.Since(started).Milliseconds(), Attempts: attempts,
	}
	if price := s.Client.Info().Price; price != nil {
		record.Cost = price.Of(reply.Usage) + price.Of(wasted) // what was billed is paid, whatever came of it
	}
	if wasted != (message.Usage{}) {
		record.Wasted = &wasted
	}
	if err != nil {
		record.Stop, record.Error = message.StopError, err.Error()
	}
	// The calls of a reply are recorded before they run, and this with them: one sync for both.
	store := s.record
	if err == nil && len(message.Calls(reply.Blocks)) > 0 {
		store = s.note
	}
	if storeErr := store(s.entry(journal.TypeModelReply, record)); storeErr != nil {
		return reply, storeErr
	}
	failpoint.Hit("ask.after-reply")
	reply.Blocks = s.said // what is acted on is what the journal says, as in a resumed run
	return reply, err
}

func (s *session) describe(request model.Request, hashes projection.Hashes) (journal.ModelCall, error) {
	call := journal.ModelCall{
		Model: s.Client.Info().ID(), Purpose: string(request.Purpose), CtxHash: hashes.CtxHash, PrefixHash: hashes.PrefixHash,
		Messages: hashes.Messages, Bytes: hashes.Bytes, Estimate: hashes.Estimate,
	}
	if wire, ok := s.Client.(model.Encoder); ok {
		body, err := wire.Encode(request)
		if err != nil {
			return call, fmt.Errorf("encode the request: %w", err)
		}
		sum := sha256.Sum256(body)
		call.WireHash, call.Codec = hex.EncodeToString(sum[:]), wire.Codec()
	}
	return call, nil
}

// attempt calls the model until it answers, for as long as trying again may help. Wasted is what the provider counted
// for attempts of which nothing came.
func (s *session) attempt(ctx context.Context, request model.Request) (reply model.Reply, attempts int, wasted message.Usage, err error) {
	wait := firstWait
	malformed := 0
	for attempts = 1; ; attempts++ {
		reply, err = s.stream(ctx, request)
		if err == nil || ctx.Err() != nil || errors.Is(err, errClientPanic) {
			return reply, attempts, wasted, err
		}
		failure := model.AsError(err)
		if failure.Usage != nil {
			wasted = wasted.Add(*failure.Usage)
		}
		if failure.Kind == model.MalformedCall {
			malformed++
		}
		if !failure.Retryable() || attempts == maxAttempts || malformed > model.MalformedTries {
			return reply, attempts, wasted, failure
		}
		pause := wait + rand.N(wait/2)
		if failure.RetryAfter > 0 {
			pause = min(failure.RetryAfter, maxWait)
		}
		s.progress("%v; trying again in %v", failure, pause.Round(100*time.Millisecond))
		if err := s.sleep(ctx, pause); err != nil {
			return reply, attempts, wasted, err
		}
		wait = min(2*wait, maxWait)
	}
}

// errClientPanic says that a client is broken: a fault of the program, not of the provider.
var errClientPanic = errors.New("the model's client panicked")

func (s *session) stream(ctx context.Context, request model.Request) (reply model.Reply, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errClientPanic, p)
		}
	}()
	return model.Collect(s.Client.Stream(ctx, request), s.Delta)
}

// maxCallID is the longest call id, in bytes, that is kept as it came.
const maxCallID = 128

// tidy makes a reply fit for the journal, whatever a client let through: ids that are unique in the run,
// arguments that are at least empty, usage that is not negative. Ids are only ever repeated to a provider
// from here, so giving another one is safe.
func (s *session) tidy(reply *model.Reply) {
	taken := map[string]bool{}
	for i, b := range reply.Blocks {
		if b.Kind != message.KindCall || b.Call == nil {
			continue
		}
		call := *b.Call
		if call.ID == "" || len(call.ID) > maxCallID || taken[call.ID] || s.guard.ids[call.ID] {
			call.ID = fmt.Sprintf("belay_%d_%d", s.turns, i)
		}
		taken[call.ID] = true
		if len(call.Args) == 0 {
			call.Args = json.RawMessage("{}")
		} else if call.BadArgs == "" && !json.Valid(call.Args) {
			call.BadArgs = "it is not JSON"
		}
		if !json.Valid(call.Args) {
			call.Args, _ = json.Marshal(string(call.Args)) // a string cannot fail
		}
		reply.Blocks[i].Call = &call
	}
	u := &reply.Usage
	u.Input, u.Output, u.CacheRead, u.CacheWrite = max(u.Input, 0), max(u.Output, 0), max(u.CacheRead, 0), max(u.CacheWrite, 0)
}

func (s *session) sleep(ctx context.Context, d time.Duration) error {
	if s.Sleep != nil {
		return s.Sleep(ctx, d)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
