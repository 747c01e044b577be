package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"belay/effect"
	"belay/handoff"
	"belay/journal"
	"belay/message"
	"belay/tool"
)

// planner folds events into the goal and the plan, which are no part of the conversation: whatever happens to that, they
// are said again.
type planner struct {
	objective string
	said      []string // by the person, since the task
	plan      journal.Plan
	have      bool
	past      []was           // what was so, for who goes back
	told      map[string]bool // what instruction files in folders said in this context
	trigger   string          // why the steps may change now, "" where nothing is a reason

	recap *journal.Recap // the last one in this context
	need  string         // why another one is due

	stepErrors int
	verifies   int // failures of verifiers in a row
	calls      map[string]message.ToolCall
	failing    map[string]failing // by call
	same       map[signature][]string
	counts     map[signature]int // how many of them are left out already
	texts      map[string]string // of the last of them, as the journal has it
}

// was is what held after an event.
type was struct {
	seq       int64
	objective string
	said      int
	plan      journal.Plan
	have      bool
}

// back makes the plan what it was after an event.
func (p *planner) back(seq int64) {
	for i := len(p.past) - 1; i >= 0; i-- {
		if w := p.past[i]; w.seq <= seq {
			p.objective, p.said, p.plan, p.have, p.past = w.objective, p.said[:w.said:w.said], w.plan, w.have, p.past[:i+1]
			break
		}
	}
	p.recap, p.need, p.trigger = nil, "rewind", "user"
	clear(p.same)
	clear(p.failing)
}

// failing is a call that failed again and again in the same way.
type failing struct {
	how   signature
	times int
	what  string
	told  bool
}

// replanErrors is after how many errors in a step its plan may be changed.
const replanErrors = 3

// attempts is how often a call fails in the same way before the model must say what it does differently.
const attempts = 2

func (p *planner) apply(e *decoded) error {
	switch e.Type {
	case journal.TypeUserMessage, journal.TypePlan, journal.TypeReplan:
		defer func() { p.past = append(p.past, was{e.Seq, p.objective, len(p.said), p.plan, p.have}) }()
	}
	switch e.Type {
	case journal.TypeRewind:
		var r journal.Rewind
		if err := e.Decode(&r); err != nil {
			return err
		}
		if r.Context {
			p.back(r.ToSeq)
		}
	case journal.TypeSessionStart:
		var start journal.SessionStart
		if err := e.Decode(&start); err != nil {
			return err
		}
		if start.Fresh {
			p.recap, p.need = nil, "start"
			clear(p.same)
		}
	case journal.TypeUserMessage:
		var m journal.UserMessage
		if err := e.Decode(&m); err != nil {
			return err
		}
		switch {
		case strings.HasPrefix(m.Text, "<instructions ") && m.By != "":
			if p.told == nil {
				p.told = map[string]bool{}
			}
			p.told[m.Text] = true
		case m.By != "":
		case p.objective == "":
			p.objective, p.need = m.Text, "start"
		default:
			p.said, p.trigger, p.need = append(p.said, m.Text), "user", "person"
		}
	case journal.TypeAnswer:
		var a journal.Answer
		if err := e.Decode(&a); err != nil {
			return err
		}
		if a.By != "timeout" && a.Choice == AnswerNo {
			p.trigger = "user"
		}
	case journal.TypePlan:
		var plan journal.Plan
		if err := e.Decode(&plan); err != nil {
			return err
		}
		p.take(plan)
	case journal.TypeReplan:
		var re journal.Replan
		if err := e.Decode(&re); err != nil {
			return err
		}
		p.take(re.New)
		p.trigger, p.stepErrors, p.verifies = "", 0, 0
	case journal.TypeRecap:
		var r journal.Recap
		if err := e.Decode(&r); err != nil {
			return err
		}
		p.recap, p.need = &r, ""
	case journal.TypeErase:
		var x journal.Erase
		if err := e.Decode(&x); err != nil {
			return err
		}
		p.need = "erase"
		p.erased(x)
	case journal.TypeCompaction:
		p.need = "compaction"
		clear(p.told)
		clear(p.same)
		clear(p.texts)
	case journal.TypeGuard:
		var g journal.Guard
		if err := e.Decode(&g); err != nil {
			return err
		}
		if !g.Hard && slices.Contains([]string{"turns", "usd", "tokens", "time"}, g.Bound) {
			p.trigger = fmt.Sprintf("%d %% of the %s", softPercent, g.Bound)
		}
	case journal.TypeVerify:
		var v journal.Verify
		if err := e.Decode(&v); err != nil {
			return err
		}
		switch {
		case v.Base:
		case v.OK:
			p.verifies = 0
		default:
			if p.verifies++; p.verifies >= 2 {
				p.trigger = "a verifier failed twice"
			}
		}
	case journal.TypeToolRequest:
		var r journal.ToolRequest
		if err := e.Decode(&r); err != nil {
			return err
		}
		if p.calls == nil {
			p.calls, p.failing, p.same, p.counts, p.texts = map[string]message.ToolCall{}, map[string]failing{}, map[signature][]string{}, map[signature]int{}, map[string]string{}
		}
		if r.Permission.Rule == "critique" {
			break // it was no attempt
		}
		p.calls[r.CallID] = message.ToolCall{ID: r.CallID, Name: r.Tool, Args: r.Args}
	case journal.TypeToolResult:
		var r journal.ToolResult
		if err := e.Decode(&r); err != nil {
			return err
		}
		p.result(r)
	}
	return nil
}

// erased forgets the results whose texts are no longer in the context.
func (p *planner) erased(x journal.Erase) {
	gone := map[string]bool{}
	for _, r := range x.Results {
		gone[r.CallID] = true
	}
	for how, ids := range p.same {
		last := ids[len(ids)-1]
		kept := slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return gone[id] && (id != last || x.Reason != "errors") })
		if x.Reason == "errors" && len(kept) > 0 && len(ids) > len(kept) {
			p.counts[how] += len(ids) - len(kept)
		}
		if len(kept) == 0 {
			delete(p.same, how)
			delete(p.counts, how)
			continue
		}
		p.same[how] = kept
	}
}

// repeats is what makes only the last of identical errors of a step visible, with a count; ok says whether there is any.
func (p *planner) repeats() (e journal.Erase, ok bool) {
	e.Reason = "errors"
	for how, ids := range p.same {
		if len(ids) < 2 {
			continue
		}
		last := ids[len(ids)-1]
		for _, id := range ids[:len(ids)-1] {
			e.Results = append(e.Results, journal.Erased{CallID: id, Text: fmt.Sprintf("[the same error as that of the later call %s: only the last one is shown]", last)})
		}
		e.Results = append(e.Results, journal.Erased{CallID: last, Text: fmt.Sprintf("%s\n[this error came %d times in this step; the earlier ones are left out]", p.texts[last], p.counts[how]+len(ids))})
	}
	slices.SortFunc(e.Results, func(a, b journal.Erased) int { return strings.Compare(a.CallID, b.CallID) })
	return e, len(e.Results) > 0
}

// take makes a plan the plan. Another current step begins its counts afresh.
func (p *planner) take(plan journal.Plan) {
	if plan.Objective != "" {
		p.objective = plan.Objective
	}
	if p.plan.Current().ID != plan.Current().ID {
		p.stepErrors = 0
		clear(p.same)
		clear(p.counts)
		clear(p.failing)
	}
	p.plan, p.have, p.need = plan, true, "plan"
}

func (p *planner) result(r journal.ToolResult) {
	call, ok := p.calls[r.CallID]
	delete(p.calls, r.CallID)
	if !ok || r.Code == string(tool.Interrupted) {
		return
	}
	key := call.Name + "\x00" + string(call.Args)
	if r.Status != string(tool.Error) {
		delete(p.failing, key)
		return
	}
	how := sign("", "", r)
	if call.Name != "UpdatePlan" {
		if p.stepErrors++; p.stepErrors >= replanErrors {
			p.trigger = fmt.Sprintf("%d errors in a step", p.stepErrors)
		}
	}
	p.same[how] = append(p.same[how], r.CallID)
	p.texts[r.CallID] = r.Text
	if slices.Contains([]string{"TaskComplete", "ReportBlocker", "UpdatePlan"}, call.Name) {
		return // these say what differs themselves
	}
	f := p.failing[key]
	if f.how != how {
		f = failing{how: how}
	}
	f.times++
	f.what = firstLine(r.Text)
	p.failing[key] = f
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	if len(line) > 300 {
		line = strings.ToValidUTF8(line[:300], "") + "…"
	}
	return line
}

// critique refuses a third attempt at what failed twice in the same way, until the model has said what differs.
func (p *planner) critique(call message.ToolCall, said []message.Block) *tool.Failure {
	key := call.Name + "\x00" + string(call.Args)
	f, ok := p.failing[key]
	if !ok || f.times < attempts {
		return nil
	}
	for _, b := range said {
		if (b.Kind == message.KindText || b.Kind == message.KindThinking) && strings.TrimSpace(b.Text) != "" {
			return nil
		}
	}
	return &tool.Failure{Code: tool.Conflict, Message: fmt.Sprintf("not run: the last two attempts failed with: %s", f.what),
		Hint: "Say in words what differs now, then make the call in the same reply; or do something else."}
}

// critiqued tells the model, once, that two attempts at the same thing failed in the same way.
func (s *session) critiqued() error {
	for key, f := range s.plans.failing {
		if f.times == attempts && !f.told {
			f.told = true
			s.plans.failing[key] = f
			name, _, _ := strings.Cut(key, "\x00")
			return s.nudge(journal.Guard{Bound: "critique", Value: attempts, Limit: attempts}, fmt.Sprintf(sayCritique, name, f.what))
		}
	}
	return nil
}

// planned takes a plan, or says why not. The request, the plan and the outcome are one batch; recorded says that an earlier process has
// written the request already.
func (s *session) planned(ctx context.Context, st step, recorded bool) error {
	refuse := s.refuse
	if recorded {
		refuse = func(r journal.ToolRequest, why tool.Failure) error {
			return s.settle(r.CallID, tool.Spec{}, tool.Fail(why))
		}
	}
	var args struct {
		journal.Plan
		Contradicted string `json:"contradicted"`
	}
	if err := json.Unmarshal(st.call.Args, &args); err != nil {
		return err // the schema was checked before
	}
	p := &s.plans
	next := args.Plan
	var notes []string
	if next.Objective != "" && !sameWords(next.Objective, p.objective) {
		return refuse(st.request, tool.Failure{Code: tool.Denied, Message: "the plan is not taken: its objective is another one, and the objective is the person's: " + firstLine(p.objective),
			Hint: "Send the plan without an objective. If the objective must change, say so with ReportBlocker: a person changes it with `belay plan edit`."})
	}
	next.Objective = p.plan.Objective // "" where the task itself is the objective
	for _, c := range p.plan.Constraints {
		if !slices.Contains(next.Constraints, c) {
			next.Constraints = append(next.Constraints, c)
			notes = append(notes, "the constraint \""+c+"\" stays: only a person takes one away")
		}
	}
	for i := range next.Steps {
		next.Steps[i].ID = strings.TrimSpace(next.Steps[i].ID)
		if why := vague(next.Steps[i].Verify); why != "" {
			notes = append(notes, fmt.Sprintf("step %s: its verification is vague (%s): name a command, or what exactly is seen where", next.Steps[i].ID, why))
		}
	}
	why, proved, err := s.verifySteps(ctx, next)
	if err != nil {
		return err
	}
	if why != nil {
		return refuse(st.request, *why)
	}
	for _, id := range proved {
		notes = append(notes, "step "+id+" is verified")
	}
	var event journal.Entry
	switch {
	case !p.have:
		event = s.entry(journal.TypePlan, next)
	case samePlan(p.plan, next) && recorded: // belay stopped after it took the plan
	case samePlan(p.plan, next):
		notes = append(notes, "it is the plan that stands")
	case sameSteps(p.plan.Steps, next.Steps):
		event = s.entry(journal.TypePlan, next)
	default:
		trigger := p.trigger
		if trigger == "" && args.Contradicted != "" {
			if !slices.Contains(p.plan.Assumptions, args.Contradicted) {
				return refuse(st.request, tool.Failure{Code: tool.Conflict, Message: "the plan is not changed: the assumption that is said to be contradicted is none of its assumptions.", Hint: "Name one of: " + strings.Join(p.plan.Assumptions, " | ")})
			}
			trigger = "assumption contradicted: " + args.Contradicted
		}
		if trigger == "" && p.plan.Current().ID == "" {
			trigger = "all steps are done"
		}
		if trigger == "" {
			return refuse(st.request, tool.Failure{Code: tool.Conflict, Message: "the plan stands: its steps change only after 3 errors in a step, a verifier that failed twice, a contradicted assumption, 80 % of a budget, or the person's word.",
				Hint: "Send the same steps with their states. If an assumption of the plan turned out wrong, name it in \"contradicted\"."})
		}
		event = s.entry(journal.TypeReplan, journal.Replan{Old: p.plan, New: next, Trigger: trigger, By: "model"})
		notes = append(notes, "replanned: "+trigger)
	}
	text := "[the plan is kept]"
	for _, n := range notes {
		text += "\n- " + n
	}
	outcome, err := s.outcome(st.call.ID, tool.Spec{}, tool.Result{Status: tool.Success, Summary: st.request.Summary, Text: text})
	if err != nil {
		return err
	}
	var batch []journal.Entry
	if !recorded {
		batch = append(batch, s.entry(journal.TypeToolRequest, st.request))
	}
	if event.Type != "" {
		batch = append(batch, event)
	}
	if err := s.record(append(batch, outcome)...); err != nil {
		return err
	}
	if len(proved) > 0 {
		if err := s.preserve(ctx, "step "+strings.Join(proved, ", "), false, true); err != nil {
			return err
		}
	}
	if s.Plan != nil {
		return s.Plan(s.planWhole())
	}
	return nil
}

// planWhole is the plan with the objective that holds.
func (s *session) planWhole() journal.Plan {
	plan := s.plans.plan
	plan.Objective = s.plans.objective
	return plan
}

// sameWords compares what two texts say, not how they are set.
func sameWords(a, b string) bool {
	plain := func(s string) string {
		return strings.TrimRight(strings.ToLower(strings.Join(strings.Fields(s), " ")), ".!")
	}
	return plain(a) == plain(b)
}

// sameSteps says whether two lists are the same but for states.
func sameSteps(a, b []journal.Step) bool {
	return slices.EqualFunc(a, b, func(x, y journal.Step) bool {
		x.Status, y.Status = "", ""
		return x == y
	})
}

func samePlan(a, b journal.Plan) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}

// vague says why a verification cannot fail, "" where it can.
func vague(verify string) string {
	words := strings.Fields(strings.ToLower(strings.Trim(verify, " .!")))
	if len(words) == 0 {
		return "there is none"
	}
	for _, hollow := range []string{"works", "looks good", "looks fine", "is correct", "is fine", "check it", "check", "test it", "tests", "review", "verify", "manually", "manual check", "done", "ok", "make sure"} {
		if strings.Join(words, " ") == hollow || len(words) <= 4 && strings.HasSuffix(strings.Join(words, " "), " "+hollow) {
			return "\"" + verify + "\""
		}
	}
	return ""
}

// tell adds the plan to the note for the next reader.
func (p *planner) tell(n *handoff.Note) {
	if p.objective != "" {
		n.Objective = p.objective
	}
	n.Constraints = append(slices.Clone(p.said), p.plan.Constraints...)
	n.Decisions = append(n.Decisions, p.plan.Decisions...)
	n.Failed = append(n.Failed, p.plan.ErrorsMade...)
	n.Refs = append(n.Refs, p.plan.References...)
	for _, s := range p.plan.Steps {
		if s.Status == journal.StepDone {
			n.Done = append(n.Done, handoff.Done{What: "step " + s.ID + ": " + s.Text})
		}
	}
	if now := p.plan.Current(); now.ID != "" {
		n.Next = strings.TrimSpace(fmt.Sprintf("Step %s: %s (to be verified by: %s). %s", now.ID, now.Text, now.Verify, n.Next))
	}
}

// drift reports files that were changed and that nothing in the plan names. A plan that names no file says nothing
// about them.
func (s *session) drift(out *Outcome) error {
	p := &s.plans
	if !p.have {
		return nil
	}
	var all []string
	for _, step := range p.plan.Steps {
		all = append(all, step.Text, step.Verify)
	}
	names := strings.Join(slices.Concat(all, p.said, p.plan.Constraints, p.plan.Decisions, p.plan.References, []string{p.objective}), "\n")
	named := false
	for _, changed := range s.keep.tree.Changed {
		file := changed
		if rel, err := filepath.Rel(s.Place.Workspace, changed); err == nil && filepath.IsAbs(changed) {
			file = filepath.ToSlash(rel)
		}
		if dir := path.Dir(file); strings.Contains(names, path.Base(file)) || dir != "." && strings.Contains(names, dir+"/") || dir != "." && strings.Contains(names, path.Base(dir)) {
			named = true
			continue
		}
		out.Drift = append(out.Drift, file)
	}
	if !named && !namesAFile().MatchString(names) {
		out.Drift = nil
	}
	if len(out.Drift) == 0 {
		return nil
	}
	return s.note(s.entry(journal.TypeGuard, journal.Guard{Bound: "drift", Value: float64(len(out.Drift)), Note: "possible drift: changed, and not named by the plan: " + strings.Join(out.Drift, ", ")}))
}

// nestedInstructions tells what instruction files say in the folders that calls have touched, once in a context.
func (s *session) nestedInstructions(paths []string) error {
	if s.Nested == nil || len(paths) == 0 {
		return nil
	}
	for _, text := range s.Nested(paths) {
		if s.plans.told[text] {
			continue
		}
		if err := s.note(s.entry(journal.TypeUserMessage, journal.UserMessage{Text: text, By: "harness"})); err != nil {
			return err
		}
	}
	return nil
}

// plans says whether a recorded call is a plan that was allowed: taking it again changes nothing.
func (p *planner) plans(tools *tool.Registry, r journal.ToolRequest) bool {
	t, ok := tools.Lookup(r.Tool)
	return ok && t.Spec().Signal == tool.Planning && r.Permission.Verdict == effect.Allow
}
