package journal

import (
	"encoding/json"

	"belay/effect"
)

// Question is put to a person. It is open until there is an answer with its id.
type Question struct {
	ID        string   `json:"id"`
	Kind      string   `json:"kind"`              // permission, plan, question, outcome
	CallID    string   `json:"call_id,omitempty"` // of the call that waits for it
	Text      string   `json:"text"`
	Options   []Option `json:"options"`
	Default   string   `json:"default,omitempty"`    // id of an option
	TimeoutMS int64    `json:"timeout_ms,omitempty"` // 0 waits for ever
	OnTimeout string   `json:"on_timeout,omitempty"` // pause or default

	// Of a permission: what is asked about.
	Tool    string          `json:"tool,omitempty"`
	Summary string          `json:"summary,omitempty"` // the exact command, or what the call does
	Args    json.RawMessage `json:"args,omitempty"`
	Effects effect.Set      `json:"effects,omitempty"`
	Class   effect.Class    `json:"class,omitempty"`
	Rule    string          `json:"rule,omitempty"`
	Why     string          `json:"why,omitempty"`
	Undo    string          `json:"undo,omitempty"`  // what can be undone
	Rules   []string        `json:"rules,omitempty"` // what "always" would save, where it is offered

	Runs  string `json:"runs,omitempty"`  // of a command line: all of the text that would run
	Parts []Part `json:"parts,omitempty"` // its commands, each by itself

	Explanation *Explanation `json:"explanation,omitempty"` // where a person asked for one
}

// Part is one command of a line, judged by itself.
type Part struct {
	Text    string       `json:"text"`
	Class   effect.Class `json:"class"`
	Effects effect.Set   `json:"effects,omitempty"`
}

// Option is one answer that can be given.
type Option struct {
	ID    string `json:"id"`
	Label string `json:"label"`
}

// Answer is what a person, or the clock in a person's place, chose.
type Answer struct {
	ID     string `json:"id"`            // of the question
	Choice string `json:"choice"`        // id of an option, or words of the person's own
	By     string `json:"by"`            // user, timeout, notify
	Who    string `json:"who,omitempty"` // the account of the person
	Reason string `json:"reason,omitempty"`
}

// Permitted is the last word on a call that was asked about.
type Permitted struct {
	CallID  string         `json:"call_id"`
	Verdict effect.Verdict `json:"verdict"`
	By      string         `json:"by"` // user, hook, judge, timeout, notify
	Who     string         `json:"who,omitempty"`
	Reason  string         `json:"reason,omitempty"`
	For     string         `json:"for,omitempty"`   // once, run, always
	Rules   []string       `json:"rules,omitempty"` // that were remembered, for the run or for always
}
