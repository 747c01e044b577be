package loop

import (
	"context"

	"belay/effect"
	"belay/internal/failpoint"
	"belay/journal"
	"belay/message"
	"belay/tool"
)

// settleOpen settles what an earlier process left open: no context holds a call without a result. A call
// that was never recorded has had no effect and takes its ordinary way, if its reply ended as one whose calls
// count. One that was recorded runs again
// only where its tool says that this changes nothing; any other outcome is unknown, and the model is told so.
func (s *session) settleOpen(ctx context.Context) (*Outcome, error) {
	for _, call := range s.fold.Open() {
		request, recorded := s.guard.asked[call.ID]
		why := mayNotRun(s.guard.stop)
		switch {
		case !recorded && why != nil:
			if err := s.refuseAll([]message.ToolCall{call}, *why); err != nil {
				return nil, err
			}
		case !recorded:
			if out, err := s.steps(ctx, []message.ToolCall{call}); out != nil || err != nil {
				return out, err
			}
		case s.people.asked[call.ID] != "" && request.Permission.Verdict != effect.Allow || s.signalOf(request.Tool) == tool.Question:
			if out, err := s.goOnWaiting(ctx, call, request); out != nil || err != nil {
				return out, err
			}
		case request.Permission.Verdict == effect.Allow && tool.Replay(request.Replay) == tool.Pure && s.runsAgain(ctx, request):
			t, _ := s.Tools.Lookup(request.Tool)
			if err := s.run(ctx, []step{{call: call, tool: t, request: request}}); err != nil {
				return nil, err
			}
		case request.Permission.Verdict == effect.Allow && tool.Replay(request.Replay) == tool.Reversible && len(request.Before) > 0 && s.Checkpoints != nil && s.runsAgain(ctx, request):
			// What is there now is kept first: somebody may have changed it since.
			if err := s.preserve(ctx, "before a call runs again", true, false); err != nil {
				return nil, err
			}
			if err := s.Checkpoints.PutBack(ctx, request.Before); err != nil {
				return nil, err
			}
			t, _ := s.Tools.Lookup(request.Tool)
			if err := s.run(ctx, []step{{call: call, tool: t, request: request}}); err != nil {
				return nil, err
			}
		case s.plans.plans(s.Tools, request):
			if err := s.planned(ctx, step{call: call, request: request}, true); err != nil {
				return nil, err
			}
		default:
			failpoint.Hit("settle.before")
			if err := s.settle(call.ID, tool.Spec{}, tool.Fail(outcomeUnknown)); err != nil {
				return nil, err
			}
			failpoint.Hit("settle.after")
		}
	}
	return nil, nil
}

// signalOf is what a call of a tool means to the loop.
func (s *session) signalOf(name string) tool.Signal {
	if t, ok := s.Tools.Lookup(name); ok {
		return t.Spec().Signal
	}
	return tool.NoSignal
}

// runsAgain says whether a recorded call still plans and is still allowed as it was.
func (s *session) runsAgain(ctx context.Context, request journal.ToolRequest) bool {
	t, ok := s.Tools.Lookup(request.Tool)
	if !ok || t.Spec().Signal != tool.NoSignal {
		return false
	}
	again, err := s.prepare(ctx, message.ToolCall{ID: request.CallID, Name: request.Tool, Args: request.Args})
	return err == nil && again.why == nil && again.request.Class <= request.Class
}
