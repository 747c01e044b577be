package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"belay/effect"
	"belay/internal/projection"
	"belay/journal"
	"belay/message"
	"belay/model"
	"belay/policy"
	"belay/tool"
)

// Auto judges a call of class 3 that nobody is asked about. It asks its model through ask, which puts every request and every
// answer on record.
type Auto func(ctx context.Context, c policy.Case, ask func(context.Context, model.Request) (model.Reply, error)) (journal.Judgement, error)

// How many blocks of the judge, in a row and since the person last spoke, bring in a person.
const (
	maxBlockRow = 3
	maxBlocks   = 20
)

// jury is what is known of the judge's work and of what it may see, folded from the journal.
type jury struct {
	said    []string              // by the person
	ran     []journal.ToolRequest // calls that were allowed
	waiting map[string]journal.ToolRequest
	asked   map[string]journal.Question // of the model's own, by id
	ruled   map[string]journal.Judgement
	row     int
	all     int
}

func (j *jury) apply(e *decoded) error {
	if j.waiting == nil {
		j.waiting, j.ruled, j.asked = map[string]journal.ToolRequest{}, map[string]journal.Judgement{}, map[string]journal.Question{}
	}
	switch e.Type {
	case journal.TypeUserMessage:
		var p journal.UserMessage
		if err := e.Decode(&p); err != nil {
			return err
		}
		if p.By == "" {
			j.hears(p.Text)
		}
	case journal.TypeAnswer:
		var a journal.Answer
		if err := e.Decode(&a); err != nil {
			return err
		}
		if a.By == "timeout" {
			break
		}
		switch {
		case a.Choice == AnswerNo:
			j.hears("No. " + a.Reason)
		case len(j.asked[a.ID].Options) == 0 && j.asked[a.ID].ID != "":
			j.hears(strings.TrimSpace(a.Choice + "\n" + a.Reason)) // an option is in the model's words, this is in the person's
		case a.Reason != "":
			j.hears(a.Reason)
		default:
			j.row, j.all = 0, 0
		}
	case journal.TypeQuestion:
		var q journal.Question
		if err := e.Decode(&q); err != nil {
			return err
		}
		if q.Kind == "question" {
			j.asked[q.ID] = q
		}
	case journal.TypeToolRequest:
		var p journal.ToolRequest
		if err := e.Decode(&p); err != nil {
			return err
		}
		switch p.Permission.Verdict {
		case effect.Allow:
			j.ran = append(j.ran, p)
		case effect.Ask:
			j.waiting[p.CallID] = p
		}
	case journal.TypePermission:
		var p journal.Permitted
		if err := e.Decode(&p); err != nil {
			return err
		}
		if r, ok := j.waiting[p.CallID]; ok && p.Verdict == effect.Allow {
			j.ran = append(j.ran, r)
		}
		delete(j.waiting, p.CallID)
	case journal.TypeJudge:
		var p journal.Judgement
		if err := e.Decode(&p); err != nil {
			return err
		}
		j.ruled[p.CallID] = p
		if p.Verdict == effect.Allow {
			j.row = 0
		} else {
			j.row, j.all = j.row+1, j.all+1
		}
	}
	return nil
}

// hears takes the person's words, after which blocks are counted anew.
func (j *jury) hears(text string) {
	j.said = append(j.said, text)
	j.row, j.all = 0, 0
}

// judged has a call judged that the mode allows. What is blocked does not run; after too many blocks a person is asked.
func (s *session) judged(ctx context.Context, st *step, action policy.Action, d policy.Decision) error {
	ruling, known := s.jury.ruled[st.call.ID]
	if !known {
		s.progress("a model judges whether it may run: %s", st.request.Summary)
		var stages []journal.JudgeStage
		var fault, err error
		if ruling, err = s.Auto(ctx, s.caseOf(*st), s.askJudge(&stages, &fault)); err == nil {
			err = fault
		}
		if err != nil {
			return err
		}
		ruling.Stages, ruling.Model = stages, s.judgeClient().Info().ID()
		ruling.CallID, ruling.Row, ruling.All = st.call.ID, 0, s.jury.all
		if ruling.Verdict != effect.Allow {
			ruling.Row, ruling.All = s.jury.row+1, s.jury.all+1
		}
		if err := s.record(s.entry(journal.TypeJudge, ruling)); err != nil {
			return err
		}
	}
	if ruling.Verdict == effect.Allow {
		st.request.Permission.Rule, st.request.Permission.By = "judge", "judge"
		st.request.Permission.Reason = ruling.Reason
		return nil
	}
	d.Rule, d.Reason = "judge", "a model that judges blocked it: "+ruling.Reason
	st.request.Permission = journal.Permission{Verdict: effect.Deny, Rule: d.Rule, By: "judge", Reason: d.Reason}
	if ruling.Row < maxBlockRow && ruling.All < maxBlocks {
		st.why = &tool.Failure{Code: tool.Denied, Message: "not run (class 3): " + d.Reason,
			Hint: "Find a safer way to do the task, one that does not need this. Do not circumvent the block by another spelling, tool or script. If there is no safer way, call ReportBlocker."}
		return nil
	}
	why := fmt.Sprintf("the judge has blocked %d calls in a row, %d in all; the last one: %s", ruling.Row, ruling.All, ruling.Reason)
	if !known {
		if err := s.record(s.entry(journal.TypeEscalate, journal.Escalation{Why: why, To: "person", Kind: "judge", CallID: st.call.ID, Class: d.Class, Rule: "judge"})); err != nil {
			return err
		}
	}
	d.Verdict, d.Reason = effect.Ask, "escalated: "+why
	st.request.Permission = journal.Permission{Verdict: effect.Ask, Rule: "judge", By: "judge", Reason: d.Reason}
	st.request.Grant = d.Grant
	st.asks = &ask{action, s.question(*st, action, d)}
	return nil
}

// caseOf is what the judge may see of a call: the person's words and what ran, never what the model says or what a tool returned.
func (s *session) caseOf(st step) policy.Case {
	c := policy.Case{Said: s.jury.said, Candidate: act(st.request, st.runs)}
	for _, r := range s.jury.ran {
		if t, ok := s.Tools.Lookup(r.Tool); !ok || t.Spec().Signal != tool.NoSignal {
			continue // what the model reports is no act
		}
		text := ""
		if _, plan, err := s.plan(message.ToolCall{ID: r.CallID, Name: r.Tool, Args: r.Args}); err == nil {
			text = plan.Runs
		}
		a := act(r, text)
		a.Effects, a.Class = nil, 0
		c.Earlier = append(c.Earlier, a)
	}
	return c
}

// act is what runs of a call: a line without its comments, or the arguments without those that only describe.
func act(r journal.ToolRequest, runs string) policy.Act {
	a := policy.Act{Tool: r.Tool, Runs: runs, Class: r.Class}
	if runs == "" {
		var args map[string]json.RawMessage
		if json.Unmarshal(r.Args, &args) == nil {
			for _, words := range []string{"description", "explanation", "reason", "summary"} {
				delete(args, words)
			}
			if text, err := json.Marshal(args); err == nil {
				a.Runs = string(text)
			}
		}
	}
	for _, e := range r.Effects {
		if len(a.Effects) == 40 {
			break
		}
		if e.Kind != effect.Exec {
			a.Effects = append(a.Effects, strings.TrimSpace(string(e.Kind)+" "+e.Target))
		}
	}
	return a
}

// asideTries is how often a model is asked where asking again may help.
const asideTries = 3

// asideTime bounds one answer.
const asideTime = 2 * time.Minute

func (s *session) judgeClient() model.Client {
	if s.Judging != nil {
		return s.Judging
	}
	return s.Client
}

// askJudge asks the judge's model. What is no answer of its, but a fault of the harness or of a script, goes to fault.
func (s *session) askJudge(stages *[]journal.JudgeStage, fault *error) func(context.Context, model.Request) (model.Reply, error) {
	client := s.judgeClient()
	return func(ctx context.Context, request model.Request) (model.Reply, error) {
		reply, cost, err := s.aside(ctx, client, request)
		stage := journal.JudgeStage{Answer: message.PlainText(reply.Blocks), Usage: reply.Usage, Cost: cost}
		if err != nil {
			stage.Error = err.Error()
			if why := faultOf(err); why != nil {
				*fault = why
			}
		}
		*stages = append(*stages, stage)
		return reply, err
	}
}

// faultOf is what stops the run: a journal that cannot be written, or a script that does not say what it is asked for.
func faultOf(err error) error {
	var store *storeError
	if errors.As(err, &store) {
		return store.err
	}
	var failure *model.Error
	if errors.As(err, &failure) && failure.Class == model.Script {
		return err
	}
	return nil
}

// aside asks a model something that is no part of the conversation, and puts both sides on record.
func (s *session) aside(ctx context.Context, client model.Client, request model.Request) (model.Reply, message.Cost, error) {
	request.Replies = s.fold.Replies()
	hash, size, err := projection.Digest(request)
	if err != nil {
		return model.Reply{}, 0, err
	}
	call := journal.ModelCall{Model: client.Info().ID(), Purpose: string(request.Purpose), CtxHash: hash, PrefixHash: hash, Messages: len(request.Messages), Bytes: size, Estimate: size / 4}
	if err := s.note(s.entry(journal.TypeModelCall, call)); err != nil {
		return model.Reply{}, 0, &storeError{err}
	}
	started := time.Now()
	var reply model.Reply
	tries := 0
	for wait := firstWait; ; wait *= 2 {
		tries++
		timed, cancel := context.WithTimeout(ctx, asideTime)
		reply, err = s.collectOnce(timed, client, request)
		cancel()
		if err == nil || ctx.Err() != nil || tries == asideTries || !model.AsError(err).Retryable() {
			break
		}
		if sleepErr := s.sleep(ctx, wait); sleepErr != nil {
			break
		}
	}
	var kept []message.Block
	for _, b := range reply.Blocks {
		if b.Kind == message.KindText { // a call in it is none
			kept = append(kept, b)
		}
	}
	record := journal.ModelReply{Purpose: string(request.Purpose), Blocks: kept, Stop: reply.Stop, Usage: reply.Usage, DurationMS: time.Since(started).Milliseconds(), Attempts: tries}
	if err != nil {
		record.Stop, record.Error, record.Blocks = message.StopError, err.Error(), nil
	}
	if price := client.Info().Price; price != nil {
		record.Cost = price.Of(reply.Usage)
	}
	if storeErr := s.record(s.entry(journal.TypeModelReply, record)); storeErr != nil {
		return reply, 0, &storeError{storeErr}
	}
	reply.Blocks = kept
	return reply, record.Cost, err
}
