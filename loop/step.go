package loop

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"belay/effect"
	"belay/internal/failpoint"
	"belay/journal"
	"belay/message"
	"belay/policy"
	"belay/tool"
)

// step is one call on the only path from a call to an effect: prepared (planned and judged), recorded, run,
// recorded. Why is set on a call that must not run.
type step struct {
	call    message.ToolCall
	tool    tool.Tool
	request journal.ToolRequest
	why     *tool.Failure
	asks    *ask // a person has to agree

	runs         string // the text of a command line that runs
	compensation string // a shell line that makes up for an external effect
}

// steps takes the calls of a reply in their order. Calls that only read run side by side; every other call
// runs alone.
func (s *session) steps(ctx context.Context, calls []message.ToolCall) (*Outcome, error) {
	var ahead *step // the next call, where it was looked at already
	for i := 0; i < len(calls); {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		batch, after, err := s.batch(ctx, calls[i:], ahead)
		if err != nil {
			return nil, err
		}
		ahead = after
		i += len(batch)
		first := batch[0]
		if out, err := s.approve(ctx, &first); out != nil || err != nil {
			return out, err
		}
		switch {
		case first.why != nil:
			err = s.refuse(first.request, *first.why)
		case first.asks != nil:
			if out, err := s.consent(ctx, first); out != nil || err != nil {
				return out, err
			}
		case first.tool.Spec().Signal != tool.NoSignal:
			if out, err := s.signal(ctx, first, i == len(calls)); out != nil || err != nil {
				return out, err
			}
		default:
			err = s.perform(ctx, batch)
		}
		if err != nil {
			return nil, err
		}
		if out := s.halted(); out != nil {
			return out, s.refuseAll(calls[i:], refusedCall)
		}
	}
	return nil, nil
}

// batch prepares the first call and, where it only reads, those after it that only read too. The call that ends the batch
// comes back prepared: hooks see each call once.
func (s *session) batch(ctx context.Context, calls []message.ToolCall, ahead *step) (batch []step, after *step, err error) {
	for _, call := range calls {
		next := ahead
		if ahead = nil; next == nil {
			made, err := s.prepare(ctx, call)
			if err != nil {
				return nil, nil, err
			}
			next = &made
		}
		if len(batch) > 0 && !next.parallel() {
			return batch, next, nil
		}
		if batch = append(batch, *next); !next.parallel() {
			return batch, nil, nil
		}
	}
	return batch, nil, nil
}

// parallel says whether the call may run beside others of its kind.
func (st step) parallel() bool {
	return st.why == nil && st.asks == nil && st.request.Class == effect.ClassRead && st.tool.Spec().Signal == tool.NoSignal
}

// prepare plans a call, shows it to the hooks and has it judged. Nothing is done yet.
func (s *session) prepare(ctx context.Context, call message.ToolCall) (step, error) {
	st := step{call: call, request: journal.ToolRequest{CallID: call.ID, Tool: call.Name, Args: call.Args}}
	t, plan, err := s.plan(call)
	var consent string
	if err == nil {
		t, plan, consent, err = s.hookBefore(ctx, &st, t, plan)
		call = st.call
	}
	var mistake *tool.Mistake
	if errors.As(err, &mistake) {
		st.why = &mistake.Failure
		st.request.Permission = journal.Permission{Verdict: effect.Deny, Rule: "plan", By: "harness", Reason: mistake.Failure.Message}
		return st, nil
	}
	if err != nil || st.why != nil {
		st.request.Summary, st.request.Effects = plan.Summary, plan.Effects
		return st, err
	}
	action := policy.Action{Tool: call.Name, Args: call.Args, Commands: plan.Commands, Effects: plan.Effects}
	decision := s.Judge(action)
	if consent != "" && decision.Verdict == effect.Allow {
		decision.Verdict, decision.Rule, decision.Reason = effect.Ask, "hook", consent
	}
	st.tool = t
	st.compensation, st.runs = plan.Compensation, plan.Runs
	st.request.Summary, st.request.Effects, st.request.Class, st.request.Replay = plan.Summary, plan.Effects, decision.Class, string(plan.Replay)
	st.request.Permission = journal.Permission{Verdict: decision.Verdict, Rule: decision.Rule, By: "policy", Reason: decision.Reason}
	asks := decision.Verdict == effect.Ask && s.canAsk()
	consented := s.grantedForRun(action, decision)
	if asks && consented {
		asks, decision.Verdict = false, effect.Allow
		st.request.Permission = journal.Permission{Verdict: effect.Allow, Rule: "consent", By: "user", Reason: "a person has allowed it for this run"}
	}
	if decision.Verdict != effect.Allow && !asks {
		why := denied(decision)
		st.why = &why
		return st, nil
	}
	if why := s.plans.critique(call, s.said); why != nil {
		st.request.Permission = journal.Permission{Verdict: effect.Deny, Rule: "critique", By: "harness", Reason: "the same call failed twice in the same way"}
		st.why = why
		return st, nil
	}
	st.request.Grant = decision.Grant
	if s.Auto != nil && !consented && decision.Verdict == effect.Allow && decision.Class == effect.ClassIrreversible {
		if err := s.judged(ctx, &st, action, decision); err != nil || st.why != nil {
			return st, err
		}
	}
	if asks {
		st.asks = &ask{action, s.question(st, action, decision)}
	}
	if serious(st.request) || st.asks != nil && st.request.Class >= effect.ClassIrreversible {
		st.request.Key = s.once.key(s.Log.RunID(), call)
		if why := s.once.again(st.request); why != nil && st.asks == nil { // a person who is asked decides that too
			st.request.Permission = journal.Permission{Verdict: effect.Deny, Rule: "once", By: "harness", Reason: "the same effect was had before in this step"}
			st.why, st.request.Grant = why, effect.Grant{}
		}
	}
	return st, nil
}

// plan finds the tool and asks it what the call would do. A *tool.Mistake is the model's, to be told to it.
func (s *session) plan(call message.ToolCall) (tool.Tool, tool.Plan, error) {
	if call.BadArgs != "" {
		return nil, tool.Plan{}, tool.Mistakef(tool.InvalidArguments, "Send the call again with its arguments as one JSON object.", "the arguments are not a JSON object: %s", call.BadArgs)
	}
	return s.Tools.Plan(s.Place, tool.Call{ID: call.ID, Name: call.Name, Args: call.Args})
}

// signal handles a call that acts on the run and not on the world.
func (s *session) signal(ctx context.Context, st step, last bool) (*Outcome, error) {
	signal := st.tool.Spec().Signal
	complete := signal == tool.Complete
	if signal == tool.Planning {
		return nil, s.planned(ctx, st, false)
	}
	if complete && !last {
		return nil, s.refuse(st.request, completeNotLast)
	}
	if err := s.record(s.entry(journal.TypeToolRequest, st.request)); err != nil {
		return nil, err
	}
	switch signal {
	case tool.Complete:
		return s.complete(ctx, st.call)
	case tool.Question:
		return s.askUser(ctx, st.call)
	}
	return s.blocked(st.call)
}

// perform records the requests, runs them, and records what came of them: one call, or several that only read.
func (s *session) perform(ctx context.Context, batch []step) error {
	if err := s.keepBaseOf(ctx, &batch[0]); err != nil {
		return err
	}
	if err := s.guarded(ctx, &batch[0]); err != nil { // what changes something runs alone
		return err
	}
	var requests []journal.Entry
	for _, st := range batch {
		requests = append(requests, s.entry(journal.TypeToolRequest, st.request))
		requests = append(requests, s.external(st)...)
	}
	failpoint.Hit("step.before-request")
	if err := s.record(requests...); err != nil {
		return err
	}
	failpoint.Hit("step.after-request")
	return s.run(ctx, batch)
}

// keepBaseOf notes in the first call that may change the tree what it was before.
func (s *session) keepBaseOf(ctx context.Context, st *step) error {
	if st.request.Class < effect.ClassReversible || s.base.Digest != "" {
		return nil
	}
	tree, err := s.keepBase(ctx)
	if err == nil {
		st.request.Tree, st.request.Tests = tree.Digest, tree.Tests
	}
	return err
}

// run runs calls that are already recorded, side by side, and settles them in their order.
func (s *session) run(ctx context.Context, batch []step) error {
	results, faults := make([]tool.Result, len(batch)), make([]error, len(batch))
	var running sync.WaitGroup
	slots := make(chan struct{}, maxParallel)
	for i, st := range batch {
		running.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			results[i], faults[i] = s.runOne(ctx, st)
		})
	}
	running.Wait()
	failpoint.Hit("step.after-run")
	connections := s.connections(batch)
	outcomes := make([]journal.Entry, len(batch))
	for i, st := range batch {
		if err := s.hookAfter(ctx, st, &results[i]); err != nil {
			return err
		}
		var err error
		if outcomes[i], err = s.outcome(st.call.ID, st.tool.Spec(), results[i]); err != nil {
			return err
		}
	}
	for i, st := range batch {
		outcomes = append(outcomes, s.misjudged(st.request, results[i])...)
	}
	if err := s.record(append(connections, outcomes...)...); err != nil {
		return err
	}
	var touched []string
	for _, r := range results {
		touched = append(append(touched, r.Context.Read...), r.Context.Wrote...)
	}
	if err := s.nestedInstructions(touched); err != nil {
		return err
	}
	failpoint.Hit("step.after-result")
	if err := s.followed(ctx, batch[0]); err != nil {
		return err
	}
	return errors.Join(append(faults, ctx.Err())...)
}

// maxParallel is how many reading calls run at once.
const maxParallel = 8

// runOne runs one call. A panic in a tool is the harness's fault and nothing worse.
func (s *session) runOne(ctx context.Context, st step) (result tool.Result, fault error) {
	started := time.Now()
	defer func() {
		if p := recover(); p != nil {
			fault = fmt.Errorf("tool %s panicked: %v", st.call.Name, p)
		}
		if ctx.Err() != nil {
			result, fault = tool.Fail(interrupted), nil
			if errors.Is(context.Cause(ctx), errTimeUp) {
				result = tool.Fail(outOfTime)
			}
		} else if fault != nil {
			result = tool.Fail(tool.Failure{Code: tool.HarnessFault, Message: fault.Error()})
		}
		result.Stats.Duration = time.Since(started)
	}()
	call := tool.Call{ID: st.call.ID, Name: st.call.Name, Args: st.request.Args, Key: st.request.Key}
	if result, fault = st.tool.Run(ctx, s.Env(st.request.Grant), call); fault != nil {
		fault = fmt.Errorf("tool %s: %w", st.call.Name, fault)
	}
	return result, fault
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
		Hashes: s.hashes(r.Context), Images: r.Images,
	}
	if r.Error != nil {
		result.Code = string(r.Error.Code)
	}
	if cut {
		stored := "the whole output is stored"
		if tool.Dropped(r.Text) {
			stored = "of the output, the start and the end are stored"
		}
		result.Text = strings.TrimRight(text, "\n") + fmt.Sprintf("\n[%s; look inside with SearchResult {\"ref\":%q}]", stored, callID)
		ref, err := s.Log.PutBlob([]byte(r.Text))
		if err != nil {
			return journal.Entry{}, err
		}
		result.Raw = &ref
	}
	return s.entry(journal.TypeToolResult, result), nil
}

// hashes says what the files that a call read or wrote are now, so that a resume can tell which of them changed since.
func (s *session) hashes(c tool.Context) map[string]string {
	if s.Hash == nil {
		return nil
	}
	var found map[string]string
	for _, path := range slices.Concat(c.Read, c.Wrote) {
		if hash := s.Hash(path); hash != "" {
			if found == nil {
				found = map[string]string{}
			}
			found[path] = hash
		}
	}
	return found
}

// refuse records a call that does not run together with the result that says why.
func (s *session) refuse(request journal.ToolRequest, why tool.Failure) error {
	outcome, err := s.outcome(request.CallID, tool.Spec{}, tool.Fail(why))
	if err != nil {
		return err
	}
	return s.record(append([]journal.Entry{s.entry(journal.TypeToolRequest, request), outcome}, s.attempted(request)...)...)
}

// refuseAll refuses every call of a reply that must not be executed.
func (s *session) refuseAll(calls []message.ToolCall, why tool.Failure) error {
	for _, call := range calls {
		request := journal.ToolRequest{CallID: call.ID, Tool: call.Name, Args: call.Args,
			Permission: journal.Permission{Verdict: effect.Deny, Rule: "stop", By: "harness", Reason: why.Message}}
		if err := s.refuse(request, why); err != nil {
			return err
		}
	}
	return nil
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
