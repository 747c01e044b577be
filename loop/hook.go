package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"belay/effect"
	"belay/journal"
	"belay/message"
	"belay/policy"
	"belay/tool"
)

// Moment is a point at which people's hooks run, by the name that their settings use.
type Moment string

const (
	BeforeCall   Moment = "PreToolUse"
	AfterCall    Moment = "PostToolUse"
	AfterFailure Moment = "PostToolUseFailure"
	OnAsk        Moment = "PermissionRequest"
	OnPrompt     Moment = "UserPromptSubmit"
	OnStart      Moment = "SessionStart"
	OnEnd        Moment = "SessionEnd"
	OnStop       Moment = "Stop"
	OnCompact    Moment = "PreCompact"
	OnNotice     Moment = "Notification"
)

// HookInput is what hooks are told at a moment.
type HookInput struct {
	Moment  Moment
	Subject string // what a matcher is held against: a tool's name, how a session starts
	CallID  string
	Tool    string
	Args    json.RawMessage
	Action  *policy.Action // of a call that was planned
	More    map[string]any // the moment's own fields
}

// HookOutcome is what all hooks of a moment say together. They can tighten only.
type HookOutcome struct {
	Deny    bool
	Ask     bool
	Reason  string
	Failed  bool            // denied since a hook failed, not since one decided
	Args    json.RawMessage // that the call gets instead; nil is its own
	Context []string        // what the model is told
	Halt    bool            // the run must stop
	HaltWhy string
	Ran     []journal.Hook
}

// maxStops is how often a Stop hook may refuse an end before a person is asked.
const maxStops = 8

// hook runs the hooks of a moment and records each of them.
func (s *session) hook(ctx context.Context, in HookInput) (HookOutcome, error) {
	if s.Hooks == nil {
		return HookOutcome{}, nil
	}
	out := s.Hooks(ctx, in)
	var entries []journal.Entry
	for _, ran := range out.Ran {
		ran.CallID, ran.Tool = in.CallID, in.Tool
		entries = append(entries, s.entry(journal.TypeHook, ran))
	}
	if len(entries) == 0 {
		return out, nil
	}
	return out, s.note(entries...)
}

// hookBefore lets hooks look at a call before it is judged. They may rewrite it, which makes it another call: it is planned
// again. Ask is why a person must consent.
func (s *session) hookBefore(ctx context.Context, st *step, planned tool.Tool, plan tool.Plan) (t tool.Tool, p tool.Plan, ask string, err error) {
	if s.Hooks == nil {
		return planned, plan, "", nil
	}
	out, err := s.hook(ctx, HookInput{Moment: BeforeCall, Subject: st.call.Name, CallID: st.call.ID, Tool: st.call.Name, Args: st.call.Args,
		Action: &policy.Action{Tool: st.call.Name, Args: st.call.Args, Commands: plan.Commands, Effects: plan.Effects},
		More:   map[string]any{"tool_name": st.call.Name, "tool_input": s.absolute(st.call), "tool_use_id": st.call.ID}})
	switch {
	case err != nil:
		return planned, plan, "", err
	case out.Halt:
		s.halt = out.HaltWhy
		st.refuseBy("hook", "a hook stops the run: "+out.HaltWhy)
		return planned, plan, "", nil
	case out.Deny:
		st.refuseBy("hook", out.Reason)
		return planned, plan, "", nil
	}
	s.advice = append(s.advice, out.Context...)
	if out.Ask {
		ask = orNothing(out.Reason)
	}
	if out.Args == nil {
		return planned, plan, ask, nil
	}
	st.call.Args = out.Args
	st.request.Args = out.Args
	again, plan, err := s.plan(st.call)
	return again, plan, ask, err
}

// refuseBy makes the step one that does not run.
func (st *step) refuseBy(rule, why string) {
	st.why = &tool.Failure{Code: tool.Denied, Message: "refused by a hook: " + why, Hint: "Do it in another way that the hook lets through, or call ReportBlocker and say what a person should do."}
	st.request.Permission = journal.Permission{Verdict: effect.Deny, Rule: rule, By: "hook", Reason: why}
}

// absolute is the call's arguments with the path of a file tool as hooks expect it.
func (s *session) absolute(call message.ToolCall) json.RawMessage {
	var args map[string]json.RawMessage
	if json.Unmarshal(call.Args, &args) != nil {
		return json.RawMessage("{}")
	}
	for _, key := range []string{"file_path", "path"} {
		var path string
		if raw, has := args[key]; has && json.Unmarshal(raw, &path) == nil && path != "" {
			args[key], _ = json.Marshal(s.Place.Resolve(path)) // a string cannot fail
		}
	}
	text, err := json.Marshal(args)
	if err != nil {
		return call.Args
	}
	return text
}

// hookAfter lets hooks look at what came of a call. Their words go to the model behind the result.
func (s *session) hookAfter(ctx context.Context, st step, r *tool.Result) error {
	if s.Hooks == nil {
		return nil
	}
	in := HookInput{Moment: AfterCall, Subject: st.call.Name, CallID: st.call.ID, Tool: st.call.Name, Args: st.request.Args,
		Action: &policy.Action{Tool: st.call.Name, Args: st.request.Args, Effects: st.request.Effects},
		More:   map[string]any{"tool_name": st.call.Name, "tool_input": s.absolute(st.call), "tool_use_id": st.call.ID, "duration_ms": r.Stats.Duration.Milliseconds()}}
	if r.Status == tool.Error {
		in.Moment, in.More["error"] = AfterFailure, r.Text
	} else {
		in.More["tool_response"] = map[string]any{"status": r.Status, "text": r.Text, "summary": r.Summary, "data": r.Data, "exit_code": r.Stats.Exit}
	}
	out, err := s.hook(ctx, in)
	if err != nil {
		return err
	}
	if out.Halt {
		s.halt = out.HaltWhy
	}
	if out.Deny {
		out.Context = append(out.Context, out.Reason)
	}
	for _, text := range append(s.advice, out.Context...) {
		r.Text = strings.TrimRight(r.Text, "\n") + "\n[a hook says: " + text + "]"
	}
	s.advice = nil
	return nil
}

// hookStop lets hooks refuse an end of the run. It returns the end, or nothing where the run goes on.
func (s *session) hookStop(ctx context.Context, out *Outcome) (*Outcome, error) {
	if s.Hooks == nil || out == nil || out.Standing == "" {
		return out, nil // only a claim to be done can be refused
	}
	said, err := s.hook(ctx, HookInput{Moment: OnStop, More: map[string]any{"stop_hook_active": s.stops > 0, "last_assistant_message": out.Summary, "background_tasks": []any{}, "session_crons": []any{}}})
	switch {
	case err != nil || said.Halt:
		return out, err
	case !said.Deny && len(said.Context) == 0:
		return out, nil
	case !said.Deny:
		said.Reason = strings.Join(said.Context, "\n")
	}
	s.stops++
	if s.stops > maxStops {
		return s.pause(ExitWaiting, fmt.Sprintf("escalated: a Stop hook has refused the end %d times; the last time: %s", maxStops, said.Reason),
			journal.Guard{Bound: "stops", Value: float64(s.stops), Limit: maxStops, Hard: true})
	}
	return nil, s.tell("A hook of this project says that you are not done: " + said.Reason)
}

// hookOpen runs the hooks of a session's start and of what the person has said, and tells the model what they say. The
// outcome is set where one refuses the prompt.
func (s *session) hookOpen(ctx context.Context) (*Outcome, error) {
	if s.Hooks == nil {
		return nil, nil
	}
	source := "startup"
	if s.guard.session > 1 {
		source = "resume"
	}
	start, err := s.hook(ctx, HookInput{Moment: OnStart, Subject: source, More: map[string]any{"source": source, "model": s.Client.Info().ID()}})
	if err != nil {
		return nil, err
	}
	told := start.Context
	if prompt := s.keep.prompt(); prompt != "" && (s.guard.session == 1 || s.fresh) {
		said, err := s.hook(ctx, HookInput{Moment: OnPrompt, More: map[string]any{"prompt": prompt}})
		switch {
		case err != nil:
			return nil, err
		case said.Deny:
			return &Outcome{Exit: ExitWaiting, Reason: "a hook refuses the task: " + said.Reason}, nil
		case said.Halt:
			return &Outcome{Exit: ExitWaiting, Reason: "a hook stops the run: " + said.HaltWhy}, nil
		}
		told = append(told, said.Context...)
	}
	if start.Halt {
		return &Outcome{Exit: ExitWaiting, Reason: "a hook stops the run: " + start.HaltWhy}, nil
	}
	if len(told) > 0 {
		return nil, s.tell("Hooks of this project say:\n" + strings.Join(told, "\n"))
	}
	return nil, nil
}

// hookEnd runs the hooks of a session's end; they decide nothing.
func (s *session) hookEnd(out Outcome) error {
	if s.Hooks == nil {
		return nil
	}
	reason := "other"
	if out.Exit == ExitInterrupted {
		reason = "prompt_input_exit"
	}
	_, err := s.hook(context.Background(), HookInput{Moment: OnEnd, Subject: reason, More: map[string]any{"reason": reason, "exit_code": int(out.Exit)}})
	return err
}

// halted ends the run where a hook wants that.
func (s *session) halted() *Outcome {
	if s.halt == "" {
		return nil
	}
	return &Outcome{Exit: ExitWaiting, Reason: "a hook stops the run: " + s.halt}
}
