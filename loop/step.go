package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"belay/effect"
	"belay/journal"
	"belay/message"
	"belay/policy"
	"belay/tool"
)

// step is the only path from a call to an effect: plan, judge, record, run, record. last says that no other
// call of the same reply comes after this one.
func (s *session) step(ctx context.Context, call message.ToolCall, last bool) (*Outcome, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	request := journal.ToolRequest{CallID: call.ID, Tool: call.Name, Args: argsOf(call)}
	t, plan, err := s.plan(call)
	if failure := (*tool.Mistake)(nil); errors.As(err, &failure) {
		request.Permission = journal.Permission{Verdict: effect.Deny, Rule: "plan", By: "harness", Reason: failure.Failure.Message}
		return nil, s.refuse(request, failure.Failure)
	} else if err != nil {
		return nil, fmt.Errorf("plan %s: %w", call.Name, err)
	}
	decision := s.Judge(plan.Effects)
	request.Summary, request.Effects, request.Class = plan.Summary, plan.Effects, decision.Class
	request.Permission = journal.Permission{Verdict: decision.Verdict, Rule: decision.Rule, By: "policy", Reason: decision.Reason}
	request.Replay = string(plan.Replay)
	if decision.Verdict != effect.Allow {
		return nil, s.refuse(request, denied(decision))
	}
	if t.Spec().Signal == tool.Complete && !last {
		return nil, s.refuse(request, completeNotLast)
	}
	if decision.Class >= effect.ClassReversible {
		if err := s.keepBase(ctx); err != nil {
			return nil, err
		}
	}
	request.Grant = decision.Grant
	if err := s.record(s.entry(journal.TypeToolRequest, request)); err != nil {
		return nil, err
	}
	switch t.Spec().Signal {
	case tool.Complete:
		return s.complete(ctx, call)
	case tool.Blocker:
		return s.blocked(call)
	}
	started := time.Now()
	result, err := run(ctx, t, s.Env(decision.Grant), tool.Call{ID: call.ID, Name: call.Name, Args: request.Args, Key: request.Key})
	if ctx.Err() != nil {
		result = tool.Fail(interrupted)
	} else if err != nil {
		result = tool.Fail(tool.Failure{Code: "HARNESS", Message: err.Error()})
	}
	result.Stats.Duration = time.Since(started)
	if err := s.settle(call.ID, t.Spec(), result); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, err
}

// plan finds the tool and asks it what the call would do. A *tool.Mistake is the model's, to be told to it.
func (s *session) plan(call message.ToolCall) (tool.Tool, tool.Plan, error) {
	if call.BadArgs != "" {
		return nil, tool.Plan{}, tool.Mistakef(tool.InvalidArguments, "Send the call again with its arguments as one JSON object.", "the arguments are not a JSON object: %s", call.BadArgs)
	}
	return s.Tools.Plan(s.Place, tool.Call{ID: call.ID, Name: call.Name, Args: call.Args})
}

// run calls the tool; a panic in it is the harness's fault and nothing worse.
func run(ctx context.Context, t tool.Tool, env tool.Env, call tool.Call) (result tool.Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("tool %s panicked: %v", call.Name, p)
		}
	}()
	if result, err = t.Run(ctx, env, call); err != nil {
		err = fmt.Errorf("tool %s: %w", call.Name, err)
	}
	return result, err
}

// settle records the outcome of a call: the whole output apart, and what of it the model reads.
func (s *session) settle(callID string, spec tool.Spec, r tool.Result) error {
	entry, err := s.outcome(callID, spec, r)
	if err != nil {
		return err
	}
	return s.record(entry)
}

func (s *session) outcome(callID string, spec tool.Spec, r tool.Result) (journal.Entry, error) {
	text, cut := tool.CutText(r.Text, spec.Budget, spec.Cut)
	result := journal.ToolResult{
		CallID: callID, Status: string(r.Status), Summary: r.Summary, Text: text, Truncated: cut,
		Size: max(r.Stats.Bytes, int64(len(r.Text))), DurationMS: r.Stats.Duration.Milliseconds(),
		Exit: r.Stats.Exit, Denied: r.Stats.Denied, Read: r.Context.Read, Wrote: r.Context.Wrote,
	}
	if r.Error != nil {
		result.Code = string(r.Error.Code)
	}
	if cut {
		ref, err := s.Log.PutBlob([]byte(r.Text))
		if err != nil {
			return journal.Entry{}, err
		}
		result.Raw = &ref
	}
	return s.entry(journal.TypeToolResult, result), nil
}

// refuse records a call that does not run together with the result that says why.
func (s *session) refuse(request journal.ToolRequest, why tool.Failure) error {
	outcome, err := s.outcome(request.CallID, tool.Spec{}, tool.Fail(why))
	if err != nil {
		return err
	}
	return s.record(s.entry(journal.TypeToolRequest, request), outcome)
}

// refuseAll refuses every call of a reply that must not be executed.
func (s *session) refuseAll(calls []message.ToolCall, why tool.Failure) error {
	for _, call := range calls {
		request := journal.ToolRequest{CallID: call.ID, Tool: call.Name, Args: argsOf(call),
			Permission: journal.Permission{Verdict: effect.Deny, Rule: "stop", By: "harness", Reason: why.Message}}
		if err := s.refuse(request, why); err != nil {
			return err
		}
	}
	return nil
}

// argsOf is the call's arguments where they are JSON at all: only then can a line of JSON hold them.
func argsOf(call message.ToolCall) json.RawMessage {
	if !json.Valid(call.Args) {
		return json.RawMessage(`{}`)
	}
	return call.Args
}

// denied is what a model reads of a refusal.
func denied(d policy.Decision) tool.Failure {
	why := "refused (class %d, %v, rule %s): %s"
	if d.Verdict == effect.Ask {
		why = "refused, since it needs a person's consent and nobody can be asked (class %d, %v, rule %s): %s"
	}
	return tool.Failure{Code: tool.Denied, Message: fmt.Sprintf(why, d.Class, d.Class, d.Rule, d.Reason),
		Hint: "Do the task without it, or call ReportBlocker and say what a person should do."}
}
