package loop

import (
	"context"

	"belay/journal"
	"belay/message"
)

// turn is the inner loop: one model call and what it causes. It returns the outcome when the run ends.
func (s *session) turn(ctx context.Context) (*Outcome, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if stop, err := s.bounded(); stop != nil || err != nil {
		return stop, err
	}
	if s.Inbox != nil {
		for _, text := range s.Inbox() {
			if err := s.record(s.entry(journal.TypeUserMessage, journal.UserMessage{Text: text})); err != nil {
				return nil, err
			}
		}
	}
	if err := s.heard(ctx); err != nil {
		return nil, err
	}
	s.turns = s.guard.turns + 1
	if stop, err := s.ready(ctx); stop != nil || err != nil {
		return stop, err
	}
	reply, err := s.ask(ctx)
	if err != nil {
		return nil, err
	}
	calls := message.Calls(reply.Blocks)
	if why := mayNotRun(reply.Stop); why != nil {
		if err := s.refuseAll(calls, *why); err != nil {
			return nil, err
		}
	}
	switch reply.Stop {
	case message.StopRefusal:
		return &Outcome{Exit: ExitWaiting, Reason: "the model refused: " + orNothing(message.PlainText(reply.Blocks))}, nil
	case message.StopPause:
		return nil, nil // the provider wants the same content again
	case message.StopLength:
		if len(calls) == 0 {
			return nil, s.tell(sayCutReply)
		}
		return nil, nil
	}
	if len(calls) == 0 {
		return s.answered(ctx, reply)
	}
	if out, err := s.steps(ctx, calls); out != nil || err != nil {
		return out, err
	}
	return s.noticed()
}
