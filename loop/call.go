package loop

import (
	"context"

	"belay/internal/projection"
	"belay/journal"
	"belay/message"
)

// Call runs calls as those of a model's reply would run, one after the other: planned, judged, contained and recorded.
// No model is asked; the reply stands in the log as a person's. Nothing is verified, since nothing is claimed.
func Call(ctx context.Context, cfg Config, calls []message.ToolCall) (Outcome, error) {
	s := &session{Config: cfg, fold: &projection.Fold{}, guard: newGuard(cfg.Bounds), red: map[string]bool{}, redOn: map[on]bool{}}
	for e, err := range cfg.Log.Events() {
		if err == nil {
			err = s.apply(e)
		}
		if err != nil {
			return Outcome{Exit: ExitFault, Reason: err.Error()}, err
		}
	}
	s.base.Digest = "unknown" // nothing will be compared with the tree before
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeLeft(), errTimeUp)
	defer cancel()
	out, err := s.callAll(ctx, calls)
	if err != nil {
		out, err = s.failed(ctx, err)
	}
	if out == nil {
		out = &Outcome{Exit: ExitUnverified, Reason: "the calls were made", Standing: "unverified"}
	}
	return s.end(*out, err)
}

func (s *session) callAll(ctx context.Context, calls []message.ToolCall) (*Outcome, error) {
	for _, call := range calls {
		s.turns = s.guard.turns + 1
		reply := journal.ModelReply{Blocks: []message.Block{{Kind: message.KindCall, Call: &call}}, Stop: message.StopToolUse}
		if err := s.note(s.entry(journal.TypeModelReply, reply)); err != nil {
			return nil, err
		}
		if out, err := s.steps(ctx, message.Calls(s.said)); out != nil || err != nil {
			return out, err
		}
	}
	return nil, nil
}
