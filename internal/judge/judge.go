// Package judge asks a model, in two stages, whether an action that nobody is asked about may run, and holds its answer against rules that no answer can get around.
package judge

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"belay/message"
	"belay/model"
	"belay/policy"
)

var (
	//go:embed judge.md
	prompt string
	//go:embed rules.txt
	builtIn string
)

// Asker sends one request to the model that judges.
type Asker func(context.Context, model.Request) (model.Reply, error)

// Stage is one answer.
type Stage struct {
	Answer string
	Err    error
}

// Ruling is the outcome of a case.
type Ruling struct {
	Allowed  bool
	Rule     string // hard_deny, soft_deny, none; "" where only the first stage spoke
	LiftedBy string // allow, intent
	Quote    string // the exception, or the person's words
	Reason   string
	Stages   []Stage
}

// Output bounds of the stages, in tokens. The first answers with one word; 16 is the least that all providers take.
const (
	firstOutput  = 16
	secondOutput = 2000
)

const (
	askFirst  = "Answer with one word: allow or block. Block when you are not sure."
	askSecond = `You blocked it. That may have been caution alone: now think it through. Which rule matches, if any? Does anything lift it?
Think in a few sentences, then end with one line of JSON and nothing behind it:
{"verdict": "allow" or "block", "rule": "hard_deny" or "soft_deny" or "none", "lifted_by": "none" or "allow" or "intent", "quote": "", "operation": "", "target": "", "scope": "", "reason": "…"}
With lifted_by allow, quote is the allow rule word for word. With lifted_by intent, quote is the passage of one of user_messages, word for word, that asks for it, and operation, target and scope are the words in that passage that name each.`
)

// Rules are the built-in rules with those of the policy files.
func Rules(own policy.Prose) policy.Prose {
	all := own
	for line := range strings.Lines(builtIn) {
		kind, rule, ok := strings.Cut(strings.TrimSpace(line), "\t")
		switch {
		case !ok || strings.HasPrefix(line, "#"):
		case kind == "hard_deny":
			all.HardDeny = append(slices.Clone(all.HardDeny), rule)
		case kind == "soft_deny":
			all.SoftDeny = append(slices.Clone(all.SoftDeny), rule)
		case kind == "allow":
			all.Allow = append(slices.Clone(all.Allow), rule)
		}
	}
	return all
}

// System is the part of the request that every case has in common.
func System(rules policy.Prose) string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(prompt))
	for _, part := range []struct {
		name  string
		lines []string
	}{{"environment (facts that the person wrote down)", rules.Environment}, {"hard_deny", rules.HardDeny}, {"soft_deny", rules.SoftDeny}, {"allow", rules.Allow}} {
		if len(part.lines) == 0 {
			continue
		}
		b.WriteString("\n\n" + part.name + ":")
		for _, line := range part.lines {
			b.WriteString("\n- " + strings.Join(strings.Fields(line), " "))
		}
	}
	return b.String()
}

// Bounds of what a case shows.
const (
	maxActs  = 60
	maxRuns  = 2000 // bytes of one earlier call
	maxWhole = 16000
	maxSaid  = 8000
)

// show is the case as JSON: nothing in it can end the frame it stands in.
func show(c policy.Case) (string, error) {
	type shown struct {
		Said      []string     `json:"user_messages"`
		Left      int          `json:"earlier_calls_left_out,omitempty"`
		Earlier   []policy.Act `json:"earlier_calls"`
		Candidate policy.Act   `json:"candidate"`
	}
	s := shown{Said: []string{}, Earlier: []policy.Act{}, Candidate: c.Candidate}
	for _, text := range c.Said {
		s.Said = append(s.Said, cut(text, maxSaid))
	}
	if n := len(c.Earlier) - maxActs; n > 0 {
		s.Left, c.Earlier = n, c.Earlier[n:]
	}
	for _, a := range c.Earlier {
		a.Runs = cut(a.Runs, maxRuns)
		s.Earlier = append(s.Earlier, a)
	}
	text, err := json.MarshalIndent(s, "", " ")
	return string(text), err
}

func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit/2], "") + fmt.Sprintf(" …[%d bytes left out]… ", len(s)-limit) + strings.ToValidUTF8(s[len(s)-limit/2:], "")
}

// Judge asks about a case. The first stage answers with one word and blocks when unsure; where it blocks, the second thinks
// and may lift that. What cannot be asked, or understood, is blocked. The second request begins with the first, so that a
// provider reads it from its cache.
func Judge(ctx context.Context, rules policy.Prose, c policy.Case, ask Asker) (Ruling, error) {
	if len(c.Candidate.Runs) > maxWhole {
		return Ruling{Rule: "none", Reason: fmt.Sprintf("it has %d bytes: too long to be judged", len(c.Candidate.Runs))}, nil
	}
	text, err := show(c)
	if err != nil {
		return Ruling{}, fmt.Errorf("show a call to the judge: %w", err)
	}
	request := model.Request{System: System(rules), Messages: []message.Message{message.UserText(text + "\n\n" + askFirst)},
		MaxOutput: firstOutput, Purpose: model.Judge, Choice: model.ChooseNone}
	var r Ruling
	first := answer(ctx, request, ask, &r)
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	if word(first) == "allow" {
		r.Allowed, r.Reason = true, "the first stage sees nothing against it"
		return r, nil
	}
	request.Messages = append(request.Messages, message.Message{Role: message.Assistant, Blocks: []message.Block{message.Text("block")}}, message.UserText(askSecond))
	request.MaxOutput = secondOutput
	second := answer(ctx, request, ask, &r)
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	r.decide(second, rules, c)
	return r, nil
}

func answer(ctx context.Context, request model.Request, ask Asker, r *Ruling) string {
	reply, err := ask(ctx, request)
	text := ""
	if err == nil {
		text = strings.TrimSpace(message.PlainText(reply.Blocks))
	}
	r.Stages = append(r.Stages, Stage{text, err})
	return text
}

// word is the one word of the first stage, without what models put around a word.
func word(s string) string {
	return strings.ToLower(strings.Trim(strings.TrimSpace(s), ".*`\"'!"))
}

// decide holds the second stage's answer against the order of the rules: a model that says allow against it is not followed.
func (r *Ruling) decide(text string, rules policy.Prose, c policy.Case) {
	says, ok := final(text)
	if !ok {
		r.Rule, r.Reason = "none", "the judge gave no verdict that can be read, so it stays blocked"
		return
	}
	r.Rule, r.Reason = says.Rule, says.Reason
	if r.Reason == "" {
		r.Reason = "the judge gave no reason"
	}
	if says.Verdict != "allow" {
		return
	}
	switch {
	case says.Rule == "none":
		r.Allowed = true
	case says.Rule == "hard_deny":
		r.Reason = "a hard_deny rule is never lifted: " + r.Reason
	case says.Rule != "soft_deny":
		r.Rule, r.Reason = "none", "the judge named no known kind of rule, so it stays blocked"
	case says.LiftedBy == "allow":
		at := slices.IndexFunc(rules.Allow, func(rule string) bool { return flat(rule) == flat(says.Quote) })
		if at < 0 {
			r.Reason = "the exception that the judge names is none of the policy's: " + r.Reason
			return
		}
		r.Allowed, r.LiftedBy, r.Quote = true, "allow", rules.Allow[at]
	case says.LiftedBy == "intent":
		if why := intent(says.Quote, says.Operation, says.Target, says.Scope, c.Said); why != "" {
			r.Reason = why + ": " + r.Reason
			return
		}
		r.Allowed, r.LiftedBy, r.Quote = true, "intent", says.Quote
	default:
		r.Reason = "nothing lifts the soft_deny rule: " + r.Reason
	}
}

// saying is the second stage's verdict.
type saying struct {
	Verdict, Rule, Quote, Operation, Target, Scope, Reason string
	LiftedBy                                               string `json:"lifted_by"`
}

// final finds the object that a text ends with.
func final(text string) (saying, bool) {
	text = strings.TrimRight(strings.TrimSpace(text), "` \n")
	for at := strings.LastIndex(text, "{"); at >= 0; at = strings.LastIndex(text[:at], "{") {
		var s saying
		if json.Unmarshal([]byte(text[at:]), &s) == nil {
			return s, s.Verdict != ""
		}
	}
	return saying{}, false
}

// intent says why a passage does not lift a rule: it must be the person's own words, and name operation, target and scope.
func intent(quote, operation, target, scope string, said []string) string {
	passage := flat(quote)
	if passage == "" || !slices.ContainsFunc(said, func(text string) bool { return strings.Contains(flat(text), passage) }) {
		return "the person did not say what the judge quotes"
	}
	for _, part := range []struct{ name, words string }{{"operation", operation}, {"target", target}, {"scope", scope}} {
		if w := flat(part.words); w == "" || !strings.Contains(passage, w) {
			return "the person's words do not name operation, target and scope (" + part.name + " is missing)"
		}
	}
	return ""
}

func flat(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }
