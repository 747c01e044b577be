package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"belay/effect"
	"belay/journal"
	"belay/message"
	"belay/policy"
	"belay/tool"
)

// The answers to a question about a call.
const (
	AnswerOnce   = "once"
	AnswerRun    = "run"
	AnswerAlways = "always"
	AnswerNo     = "no"

	// AnswerExplain asks for an explanation, after which the question comes again with it.
	AnswerExplain = "?"
)

// ErrNobody is what an asker returns where nobody can answer any more: the run waits, and its question stays open.
var ErrNobody = errors.New("nobody is there to answer")

// maxRules is how many rules one "always" saves, at most.
const maxRules = 5

// people is what is known of questions and consents, folded from the journal.
type people struct {
	questions map[string]journal.Question // open
	answers   map[string]journal.Answer
	granted   map[string]bool   // rules that hold for the run
	asked     map[string]string // call id -> question id
	approved  bool              // a person has approved the plan as it stands
	refusal   *journal.Answer   // the person has not, and the model has not heard of it yet
	count     int               // questions in all: how often a person was interrupted
}

func (p *people) apply(e *decoded) error {
	if p.questions == nil {
		p.questions, p.answers, p.granted, p.asked = map[string]journal.Question{}, map[string]journal.Answer{}, map[string]bool{}, map[string]string{}
	}
	switch e.Type {
	case journal.TypeQuestion:
		var q journal.Question
		if err := e.Decode(&q); err != nil {
			return err
		}
		if _, again := p.questions[q.ID]; !again {
			p.count++
		}
		p.questions[q.ID] = q
		if q.CallID != "" && (q.Kind == "permission" || q.Kind == "question") {
			p.asked[q.CallID] = q.ID
		}
	case journal.TypeAnswer:
		var a journal.Answer
		if err := e.Decode(&a); err != nil {
			return err
		}
		p.answers[a.ID] = a
		if p.questions[a.ID].Kind == "plan" {
			if p.approved = a.Choice == "yes"; !p.approved {
				p.refusal = &a
			}
		}
		delete(p.questions, a.ID)
	case journal.TypeToolRequest:
		var r journal.ToolRequest
		if p.refusal == nil {
			break
		}
		if err := e.Decode(&r); err != nil {
			return err
		}
		if r.Permission.Rule == "plan" {
			p.refusal = nil
		}
	case journal.TypeReplan: // another plan than the one that was approved
		p.approved = false
	case journal.TypePermission:
		var g journal.Permitted
		if err := e.Decode(&g); err != nil {
			return err
		}
		if g.Verdict == effect.Allow && g.For != AnswerOnce {
			for _, r := range g.Rules {
				p.granted[r] = true
			}
		}
	}
	return nil
}

// canAsk says whether there is anybody to ask, now or later.
func (s *session) canAsk() bool { return s.Ask != nil || s.PauseToAsk || s.ApprovePlan || s.answering }

// narrow are the narrowest rules that would allow an action: one for each command of a line, or the path of a file. None
// means that no rule says just this.
func narrow(a policy.Action, place tool.Place) []string {
	var rules []string
	add := func(rule string) {
		if !slices.Contains(rules, rule) {
			rules = append(rules, rule)
		}
	}
	switch {
	case a.Tool == "Bash":
		for _, c := range a.Commands {
			// A rule cannot say a line with a star or a parenthesis in it as it is, and a wrapper runs what it is given.
			if strings.ContainsAny(c.Text, "*()\n") || len(c.Inner) > 0 {
				return nil
			}
			add("Bash(" + c.Text + ")")
		}
	case slices.Contains([]string{"Write", "Edit", "MultiEdit"}, a.Tool):
		for _, e := range a.Effects {
			rel := place.Rel(e.Target)
			if e.Kind == effect.Read || e.Target == "" {
				continue
			}
			if strings.ContainsAny(rel, "*?[]()\n") || strings.HasPrefix(rel, "..") || strings.HasPrefix(rel, "/") {
				return nil
			}
			add("Edit(/" + rel + ")")
		}
	default:
		add(a.Tool)
	}
	if len(rules) > maxRules {
		return nil
	}
	return rules
}

// question puts a call to a person.
func (s *session) question(st step, a policy.Action, d policy.Decision) journal.Question {
	q := journal.Question{ID: "q_" + st.call.ID, Kind: "permission", CallID: st.call.ID, Tool: st.call.Name, Summary: st.request.Summary, Args: st.request.Args,
		Effects: st.request.Effects, Class: d.Class, Rule: d.Rule, Why: d.Why(), Undo: undo(d.Class),
		Text: fmt.Sprintf("May %s run? %s", st.call.Name, st.request.Summary)}
	q.Runs, q.Parts = st.runs, s.parts(a)
	q.Options = []journal.Option{{ID: AnswerOnce, Label: "yes, this once"}}
	rules := narrow(a, s.Place)
	if len(rules) > 0 {
		q.Options = append(q.Options, journal.Option{ID: AnswerRun, Label: "yes, for this run: " + strings.Join(rules, " ")})
	}
	if len(rules) > 0 && s.Remember != nil && !strings.HasPrefix(d.Rule, "ask:") && !strings.HasPrefix(d.Rule, "breaker") && d.Rule != "hook" && d.Rule != "judge" {
		q.Options = append(q.Options, journal.Option{ID: AnswerAlways, Label: "always: saves " + strings.Join(rules, " ")})
		q.Rules = rules
	}
	q.Options = append(q.Options, journal.Option{ID: AnswerNo, Label: "no, because …"})
	return q
}

// maxParts is how many commands of a line a question takes apart.
const maxParts = 20

// parts judges the commands of a line by themselves, where there are several.
func (s *session) parts(a policy.Action) []journal.Part {
	if len(a.Commands) < 2 || len(a.Commands) > maxParts {
		return nil
	}
	var parts []journal.Part
	for _, c := range a.Commands {
		args, err := json.Marshal(map[string]string{"command": c.Text})
		if err != nil {
			return nil
		}
		_, plan, err := s.plan(message.ToolCall{ID: "part", Name: a.Tool, Args: args})
		if err != nil {
			return nil // it does not stand alone, as the body of a loop
		}
		d := s.Judge(policy.Action{Tool: a.Tool, Args: args, Commands: plan.Commands, Effects: plan.Effects})
		parts = append(parts, journal.Part{Text: c.Text, Class: d.Class, Effects: plan.Effects})
	}
	return parts
}

// undo says what can be taken back of a class.
func undo(c effect.Class) string {
	switch c {
	case effect.ClassRead:
		return "it changes nothing"
	case effect.ClassReversible:
		return "a checkpoint covers it: belay rewind takes it back"
	case effect.ClassIrreversible:
		return "nothing here brings back what it changes"
	case effect.ClassExternal:
		return "what has left this machine cannot be called back"
	}
	return "it changes what decides about the agent itself"
}

// granted says whether a person has allowed just this for the whole run.
func (s *session) grantedForRun(a policy.Action, d policy.Decision) bool {
	rules := narrow(a, s.Place)
	if len(rules) == 0 || strings.HasPrefix(d.Rule, "breaker") {
		return false
	}
	return !slices.ContainsFunc(rules, func(r string) bool { return !s.people.granted[r] })
}

// consent asks a person about a call and does what the answer says. The request stands in the journal before the question:
// whatever happens while nobody answers, it is known what waits.
func (s *session) consent(ctx context.Context, st step) (*Outcome, error) {
	said, err := s.hook(ctx, HookInput{Moment: OnAsk, Subject: st.call.Name, CallID: st.call.ID, Tool: st.call.Name, Args: st.request.Args, Action: &st.asks.action,
		More: map[string]any{"tool_name": st.call.Name, "tool_input": s.absolute(st.call)}})
	if err != nil {
		return nil, err
	}
	if said.Deny {
		st.refuseBy("hook", said.Reason)
		return nil, s.refuse(st.request, *st.why)
	}
	if err := s.keepBaseOf(ctx, &st); err != nil {
		return nil, err
	}
	if err := s.record(s.entry(journal.TypeToolRequest, st.request), s.entry(journal.TypeQuestion, st.asks.question)); err != nil {
		return nil, err
	}
	return s.wait(ctx, st)
}

// wait gets the answer to a step's question, from the journal or from a person, and acts on it.
func (s *session) wait(ctx context.Context, st step) (*Outcome, error) {
	q := st.asks.question
	a, answered := s.people.answers[q.ID]
	if !answered {
		var out *Outcome
		var err error
		if a, out, err = s.answerTo(ctx, q); out != nil || err != nil {
			return out, err
		}
	}
	granted := journal.Permitted{CallID: st.call.ID, Verdict: effect.Deny, By: a.By, Who: a.Who, Reason: a.Reason, For: a.Choice}
	switch a.Choice {
	case AnswerOnce:
		granted.Verdict = effect.Allow
	case AnswerRun:
		granted.Verdict, granted.Rules = effect.Allow, narrow(st.asks.action, s.Place)
	case AnswerAlways:
		granted.Verdict, granted.Rules = effect.Allow, q.Rules
		if len(q.Rules) == 0 || s.Remember == nil {
			granted.For = AnswerOnce // it was not offered
		} else if err := s.Remember(q.Rules); err != nil {
			return nil, fmt.Errorf("save the rules: %w", err)
		}
	}
	entries := []journal.Entry{s.entry(journal.TypePermission, granted)}
	if granted.Verdict == effect.Allow {
		st.request.Permission = journal.Permission{Verdict: effect.Allow, Rule: "consent", By: a.By, Reason: a.Reason}
		if st.request.Class >= effect.ClassReversible {
			if err := s.preserve(ctx, "before "+brief(st.request), false, false); err != nil {
				return nil, err
			}
		}
		entries = append(entries, s.external(st)...)
	}
	if err := s.record(entries...); err != nil {
		return nil, err
	}
	if granted.Verdict != effect.Allow {
		why := tool.Failure{Code: tool.Denied, Message: "a person said no", Hint: "Do not try to get around it. Do the task in another way, or call ReportBlocker."}
		switch {
		case a.Reason != "":
			why.Message += ": " + a.Reason
		case a.Choice != AnswerNo:
			why.Message += ": " + a.Choice
		}
		return nil, s.settle(st.call.ID, tool.Spec{}, tool.Fail(why))
	}
	return nil, s.run(ctx, []step{st})
}

// answerTo asks a person who is there, or pauses the run until somebody is. An answer that was left meanwhile counts.
func (s *session) answerTo(ctx context.Context, q journal.Question) (journal.Answer, *Outcome, error) {
	if s.Left != nil {
		if a, found, err := s.Left(q); err != nil || found {
			if err != nil {
				return a, nil, err
			}
			return s.heardAnswer(q, a)
		}
	}
	if s.Ask == nil {
		if s.Notify != nil {
			if a, found := s.Notify(ctx, q); found {
				return s.heardAnswer(q, a)
			}
			if ctx.Err() != nil {
				return journal.Answer{}, nil, ctx.Err()
			}
			if q.OnTimeout == "default" && q.Default != "" {
				return s.heardAnswer(q, journal.Answer{Choice: q.Default, By: "timeout", Reason: "nobody answered in time"})
			}
		}
		return journal.Answer{}, s.waiting(q), nil
	}
	if _, err := s.hook(ctx, HookInput{Moment: OnNotice, Subject: "permission_prompt", More: map[string]any{"message": q.Text, "notification_type": "permission_prompt"}}); err != nil {
		return journal.Answer{}, nil, err
	}
	asking, cancel := ctx, func() {}
	if q.TimeoutMS > 0 {
		asking, cancel = context.WithTimeout(ctx, time.Duration(q.TimeoutMS)*time.Millisecond)
	}
	defer cancel()
	for {
		a, err := s.Ask(asking, q)
		switch {
		case ctx.Err() != nil:
			return a, nil, ctx.Err()
		case asking.Err() != nil && q.OnTimeout == "default" && q.Default != "":
			a = journal.Answer{Choice: q.Default, By: "timeout", Reason: "nobody answered in time"}
		case asking.Err() != nil || errors.Is(err, ErrNobody):
			return a, s.waiting(q), nil
		case err != nil:
			return a, nil, fmt.Errorf("ask a person: %w", err)
		case a.Choice == AnswerExplain && q.Kind == "permission":
			if err := s.explain(ctx, &q); err != nil {
				return a, nil, err
			}
			continue
		}
		return s.heardAnswer(q, a)
	}
}

// heardAnswer records an answer.
func (s *session) heardAnswer(q journal.Question, a journal.Answer) (journal.Answer, *Outcome, error) {
	a.ID = q.ID
	if a.By == "" {
		a.By = "user"
	}
	return a, nil, s.record(s.entry(journal.TypeAnswer, a))
}

// waiting is the end of a session that needs a person.
func (s *session) waiting(q journal.Question) *Outcome {
	var ids []string
	for _, o := range q.Options {
		ids = append(ids, o.ID)
	}
	return &Outcome{Exit: ExitWaiting, Question: q.ID, Reason: fmt.Sprintf("waiting for a person: %s (%s). Answer with `belay answer %s %s %s`, then `belay resume %s`",
		cutWords(q.Text, 400), q.ID, s.Log.RunID(), q.ID, strings.Join(ids, "|"), s.Log.RunID())}
}

// ask is what a step needs a person for.
type ask struct {
	action   policy.Action
	question journal.Question
}

// askUser answers AskUser: the model's own question.
func (s *session) askUser(ctx context.Context, call message.ToolCall) (*Outcome, error) {
	q, err := s.ownQuestion(call)
	if err != nil {
		return nil, err
	}
	if a, known := s.people.answers[q.ID]; known {
		return nil, s.answered2(call, q, a)
	}
	if err := s.record(s.entry(journal.TypeQuestion, q)); err != nil {
		return nil, err
	}
	if s.Ask == nil && s.Notify == nil && q.OnTimeout == "default" && q.Default != "" {
		a := journal.Answer{ID: q.ID, Choice: q.Default, By: "timeout", Reason: "nobody can be asked"}
		if err := s.record(s.entry(journal.TypeAnswer, a)); err != nil {
			return nil, err
		}
		return nil, s.answered2(call, q, a)
	}
	a, out, err := s.answerTo(ctx, q)
	if out != nil || err != nil {
		return out, err
	}
	return nil, s.answered2(call, q, a)
}

func (s *session) ownQuestion(call message.ToolCall) (journal.Question, error) {
	var args struct {
		Question  string
		Options   []journal.Option
		Default   string
		Timeout   float64
		OnTimeout string `json:"on_timeout"`
	}
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return journal.Question{}, err // the schema was checked before
	}
	return journal.Question{ID: "q_" + call.ID, Kind: "question", CallID: call.ID, Text: args.Question, Options: args.Options, Default: args.Default,
		TimeoutMS: int64(args.Timeout * 1000), OnTimeout: args.OnTimeout}, nil
}

// answered2 tells the model what the person chose.
func (s *session) answered2(call message.ToolCall, q journal.Question, a journal.Answer) error {
	text := "The person answers: " + a.Choice
	for _, o := range q.Options {
		if o.ID == a.Choice && o.Label != "" && o.Label != o.ID {
			text += " (" + o.Label + ")"
		}
	}
	if a.Reason != "" {
		text += "\n" + a.Reason
	}
	if a.By == "timeout" {
		text = "Nobody answered in time, so the default holds: " + a.Choice
	}
	return s.settle(call.ID, tool.Spec{}, tool.Result{Status: tool.Success, Summary: a.Choice, Text: text})
}

// goOnWaiting takes up a call whose question was open when the run stopped: its answer may have come since, else the question
// is asked again.
func (s *session) goOnWaiting(ctx context.Context, call message.ToolCall, request journal.ToolRequest) (*Outcome, error) {
	if t, ok := s.Tools.Lookup(request.Tool); ok && t.Spec().Signal == tool.Question {
		return s.askUser(ctx, call)
	}
	id := s.people.asked[call.ID]
	q, open := s.people.questions[id]
	if !open {
		q = journal.Question{ID: id, CallID: call.ID, Kind: "permission", Text: "May " + request.Tool + " run? " + request.Summary}
	}
	s.answering = true // what was asked is asked again, however the run is called now
	defer func() { s.answering = false }()
	st, err := s.prepare(ctx, message.ToolCall{ID: request.CallID, Name: request.Tool, Args: request.Args})
	if err != nil {
		return nil, err
	}
	if st.why != nil { // it does not plan, or is not allowed, any more
		return nil, s.settle(call.ID, tool.Spec{}, tool.Fail(*st.why))
	}
	key := request.Key
	if st.asks == nil {
		st.asks = &ask{}
	}
	st.asks.question = q
	st.request = request
	st.request.Key = key
	return s.wait(ctx, st)
}
