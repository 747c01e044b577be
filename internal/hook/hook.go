// Package hook runs people's commands at fixed moments of a run, by the protocol that their settings already use: a hook may tighten what happens, never widen it.
package hook

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"belay/journal"
)

// Config says which hooks there are and where they run.
type Config struct {
	Handlers  []Handler
	Dir       string // the workspace
	RunID     string
	Mode      string // of the run, as the protocol calls it
	Journal   string // path of the run's journal
	Environ   []string
	Applies   func(rule, tool string, input json.RawMessage) bool // whether a call is one that a permission rule speaks of; nil is always
	Transport func() doer                                         // nil is the network
}

// Hooks are the hooks of one run.
type Hooks struct {
	Config
}

// New makes the hooks of a run. There may be none.
func New(cfg Config) *Hooks { return &Hooks{Config: cfg} }

// Any says whether a moment has hooks at all.
func (h *Hooks) Any(event Event) bool {
	for _, handler := range h.Handlers {
		if handler.Event == event {
			return true
		}
	}
	return false
}

// Moment is what hooks are told.
type Moment struct {
	Event   Event
	Subject string         // what a matcher is held against: a tool's name, or how a session starts
	Tool    string         // the tool of a call
	Input   map[string]any // what this event has beside what all have
	Args    json.RawMessage
}

// Outcome is what all hooks of a moment together say.
type Outcome struct {
	Deny      bool // block: the call, the prompt, the stop
	Ask       bool // a person must consent
	Reason    string
	Failed    bool            // it is denied since a hook failed, not since one said so
	Args      json.RawMessage // what the call's arguments become; nil is as they are
	Context   []string        // what the model is told
	Messages  []string        // what the person is told
	Halt      bool            // the run must stop
	HaltWhy   string
	Ran       []journal.Hook
	Conflicts bool // two hooks wanted different arguments: the call is denied
}

// maxText is how many bytes of what a hook says are passed on.
const maxText = 10_000

// Run runs all hooks of a moment side by side and joins what they say: deny before ask before nothing. What allows is no
// decision: the policy has the last word.
func (h *Hooks) Run(ctx context.Context, m Moment) Outcome {
	var chosen []Handler
	for _, handler := range h.Handlers {
		if handler.Event != m.Event {
			continue
		}
		if about, err := matches(handler.Matcher, m.Subject); err != nil || !about {
			continue
		}
		if handler.If != "" && (m.Tool == "" || h.Applies != nil && !h.Applies(handler.If, m.Tool, m.Args)) {
			continue
		}
		chosen = append(chosen, handler)
	}
	answers := make([]answer, len(chosen))
	input := h.input(m)
	var running sync.WaitGroup
	for i, handler := range chosen {
		running.Go(func() { answers[i] = h.one(ctx, handler, m, input) })
	}
	running.Wait()
	var out Outcome
	for _, a := range answers {
		out.join(a)
	}
	return out
}

// input is the JSON that every hook of the moment reads.
func (h *Hooks) input(m Moment) []byte {
	all := map[string]any{"session_id": h.RunID, "transcript_path": h.Journal, "cwd": h.Dir, "permission_mode": h.Mode, "hook_event_name": string(m.Event)}
	for key, value := range m.Input {
		all[key] = value
	}
	text, err := json.Marshal(all)
	if err != nil { // arguments that are no JSON never come this far
		text = []byte("{}")
	}
	return append(text, '\n')
}

// answer is what one hook said.
type answer struct {
	ran     journal.Hook
	deny    bool
	ask     bool
	failed  bool
	reason  string
	args    json.RawMessage
	context string
	message string
	halt    bool
	haltWhy string
}

func (o *Outcome) join(a answer) {
	o.Ran = append(o.Ran, a.ran)
	if a.deny && (!o.Deny || o.Failed && !a.failed) {
		o.Deny, o.Failed, o.Reason = true, a.failed, a.reason
	}
	if a.ask && !o.Deny {
		o.Ask, o.Reason = true, a.reason
	}
	if a.args != nil {
		if o.Args != nil && string(o.Args) != string(a.args) {
			o.Conflicts = true
		}
		o.Args = a.args
	}
	if a.context != "" {
		o.Context = append(o.Context, a.context)
	}
	if a.message != "" {
		o.Messages = append(o.Messages, a.message)
	}
	if a.halt && !o.Halt {
		o.Halt, o.HaltWhy = true, a.haltWhy
	}
	if o.Conflicts && !o.Deny {
		o.Deny, o.Reason = true, "two hooks want different arguments for this call"
	}
}

// one runs one hook and reads what it says.
func (h *Hooks) one(ctx context.Context, handler Handler, m Moment, input []byte) (a answer) {
	a.ran = journal.Hook{Event: string(m.Event), Tool: m.Tool, Command: handler.name(), From: handler.From}
	started := time.Now()
	defer func() {
		a.ran.DurationMS = time.Since(started).Milliseconds()
		a.ran.Slow = a.ran.DurationMS > slow
		a.ran.Reason = a.reason
		switch {
		case a.failed:
			a.ran.Verdict = "failed"
		case a.deny:
			a.ran.Verdict = "deny"
		case a.ask:
			a.ran.Verdict = "ask"
		}
	}()
	if handler.Async {
		go h.execute(context.WithoutCancel(ctx), handler, input) // it cannot decide anything, and nobody waits
		a.ran.Verdict = "async"
		return a
	}
	r := h.execute(ctx, handler, input)
	a.ran.Exit, a.ran.Output = r.exit, cut(strings.TrimSpace(r.stdout+"\n"+r.stderr))
	if r.failed != "" {
		return a.fail(handler, r.failed)
	}
	return a.read(handler, m, r)
}

// slow is the time of a hook, in milliseconds, above which people are told.
const slow = 100

// fail is what a hook that could not say anything amounts to.
func (a answer) fail(handler Handler, why string) answer {
	a.failed = true
	a.reason = fmt.Sprintf("the hook `%s` failed: %s", cutLine(handler.name()), why)
	a.message = a.reason
	if handler.Block {
		a.deny = true
		a.reason += "; it decides what may happen, so nothing does (onFailure: continue would go on)"
	}
	return a
}

// said is the JSON that a hook prints.
type said struct {
	Continue *bool  `json:"continue"`
	StopWhy  string `json:"stopReason"`
	Message  string `json:"systemMessage"`
	Decision string `json:"decision"`
	Reason   string `json:"reason"`
	Specific *struct {
		Event       string          `json:"hookEventName"`
		Permission  string          `json:"permissionDecision"`
		Why         string          `json:"permissionDecisionReason"`
		Updated     json.RawMessage `json:"updatedInput"`
		Context     string          `json:"additionalContext"`
		NewDecision *struct {
			Behavior string `json:"behavior"`
			Message  string `json:"message"`
		} `json:"decision"`
	} `json:"hookSpecificOutput"`
}

// read takes exit code and output by the protocol.
func (a answer) read(handler Handler, m Moment, r ran) answer {
	text := strings.TrimSpace(r.stdout)
	isJSON := strings.HasPrefix(text, "{")
	var s said
	bad := error(nil)
	if isJSON {
		bad = json.Unmarshal([]byte(text), &s)
	}
	if isJSON && bad == nil {
		a = a.take(m, s)
	}
	switch {
	case r.exit == 2:
		if why := r.scriptless(); why != "" {
			return a.fail(handler, why)
		}
		if !a.deny || a.reason == "" {
			a.reason = cut(strings.TrimSpace(r.stderr))
		}
		if a.reason == "" {
			a.reason = "the hook `" + cutLine(handler.name()) + "` blocks it and gives no reason"
		}
		if m.Event.blocks() {
			a.deny = true
		} else {
			a.context = join(a.context, a.reason)
		}
	case isJSON && bad != nil:
		return a.fail(handler, "what it printed is no JSON that can be read: "+bad.Error())
	case r.exit != 0 && !isJSON:
		return a.fail(handler, fmt.Sprintf("it ended with exit code %d: %s", r.exit, orNothing(cutLine(strings.TrimSpace(r.stderr)))))
	case !isJSON && (m.Event == UserPromptSubmit || m.Event == SessionStart):
		a.context = join(a.context, cut(text))
	}
	return a
}

// blocks says whether exit code 2 stops what is about to happen; elsewhere its words go to the model.
func (e Event) blocks() bool {
	switch e {
	case PreToolUse, UserPromptSubmit, Stop, SubagentStop, PreCompact:
		return true
	}
	return false
}

func (a answer) take(m Moment, s said) answer {
	a.message = cut(s.Message)
	if s.Continue != nil && !*s.Continue {
		a.halt, a.haltWhy = true, orNothing(cut(s.StopWhy))
	}
	deny := func(why string) {
		a.deny, a.reason = true, cut(why)
		if a.reason == "" {
			a.reason = "a hook denies it and gives no reason"
		}
	}
	if s.Decision == "block" {
		if m.Event.blocks() {
			deny(s.Reason)
		} else {
			a.context = join(a.context, cut(s.Reason))
		}
	}
	x := s.Specific
	if x == nil {
		return a
	}
	a.context = join(a.context, cut(x.Context))
	switch x.Permission {
	case "deny", "defer":
		deny(x.Why)
	case "ask":
		a.ask, a.reason = true, cut(x.Why)
	}
	if x.NewDecision != nil && x.NewDecision.Behavior == "deny" {
		deny(x.NewDecision.Message)
	}
	if len(x.Updated) > 0 && string(x.Updated) != "null" && m.Event == PreToolUse {
		a.args = x.Updated
	}
	return a
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n" + b
}

// cut keeps what a hook says to a bearable size.
func cut(s string) string {
	s = strings.ToValidUTF8(s, "�")
	if len(s) <= maxText {
		return s
	}
	at := maxText
	for !utf8.RuneStart(s[at]) {
		at--
	}
	return fmt.Sprintf("%s\n[%d more bytes]", s[:at], len(s)-at)
}

func cutLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	if len(line) > 200 {
		line = strings.ToValidUTF8(line[:200], "") + "…"
	}
	return line
}

func orNothing(s string) string {
	if s == "" {
		return "(it says nothing)"
	}
	return s
}
