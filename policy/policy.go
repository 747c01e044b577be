// Package policy is contract 3: a pure function from the effects of an action and a mode to its class, the verdict, the rule that said so, and the grant.
package policy

import "belay/effect"

// Mode is how much a run may do without asking.
type Mode string

const (
	Plan       Mode = "plan"       // class 1 only; everything else is denied
	Manual     Mode = "manual"     // class 1 is allowed; everything else asks
	Edit       Mode = "edit"       // classes 1 and 2 are allowed (the default)
	Autonomous Mode = "autonomous" // classes 1 to 3, in a sandbox only
)

// Situation is what a judgement depends on besides the effects.
type Situation struct {
	Mode      Mode
	Workspace string // absolute, symlinks resolved
	Home      string // the person's home; "" where there is none
	StateDir  string // belay's own state, never touched by an agent
	Sandboxed bool   // whether a sandbox bounds what the action can do
	Off       bool   // a person chose to run without a sandbox
	Headless  bool   // nobody can be asked
	Rules     *Rules // what people have written down; nil is nothing
	// Covered says whether a checkpoint holds what lies at an absolute path; nil is that all of the workspace is held.
	Covered func(path string) bool
}

// Decision is a judgement.
type Decision struct {
	Class   effect.Class
	Verdict effect.Verdict
	Rule    string // which rule said so: "defaults.class-2", "breaker: rm of a home directory"
	Reason  string // why, in words that a model and a person can act on
	Grant   effect.Grant
}
