// Package effect is the vocabulary of what an action would do to the world, what it costs if it is wrong (its class), what was decided about it (the verdict) and what the sandbox then makes possible (the grant).
package effect

import "fmt"

// Kind is one way of touching the world.
type Kind string

const (
	Read      Kind = "read"
	Write     Kind = "write"
	Delete    Kind = "delete"
	Exec      Kind = "exec"      // starts a program whose own effects are known and listed beside it
	Connect   Kind = "connect"   // sends to another machine
	Fetch     Kind = "fetch"     // gets from another machine, and sends what asking takes
	Configure Kind = "configure" // changes policy, hooks, verifiers, secrets or the harness
	Opaque    Kind = "opaque"    // could do anything that the sandbox leaves possible
)

// Effect is one thing that an action would do.
type Effect struct {
	Kind   Kind   `json:"kind"`
	Target string `json:"target,omitempty"` // an absolute clean path, a host[:port], or a program
	Why    string `json:"why,omitempty"`    // what in the action says so, in words for a person
}

// Command is one simple command of a command line, for rules that speak of commands.
type Command struct {
	Text  string   `json:"text"`            // as it is written, without assignments and redirections
	Inner []string `json:"inner,omitempty"` // the commands that it starts, as in timeout 5 make: "make"
}

// Set is everything that an action would do. The empty set does nothing.
type Set []Effect

// Class is what an effect costs if it is wrong.
type Class int

const (
	ClassRead          Class = 1 // reads
	ClassReversible    Class = 2 // writes that a checkpoint covers
	ClassIrreversible  Class = 3 // local writes that nothing restores
	ClassExternal      Class = 4 // emissions to the outside
	ClassConfiguration Class = 5 // policy, hooks, verifiers, secrets, the harness itself
)

func (c Class) String() string {
	switch c {
	case ClassRead:
		return "read"
	case ClassReversible:
		return "reversible write"
	case ClassIrreversible:
		return "irreversible local write"
	case ClassExternal:
		return "external emission"
	case ClassConfiguration:
		return "configuration"
	}
	return fmt.Sprintf("class %d", int(c))
}

// Verdict is what was decided about an action.
type Verdict string

const (
	Allow Verdict = "allow"
	Ask   Verdict = "ask" // a person decides; where there is none, the action is refused
	Deny  Verdict = "deny"
)

// Access is how much of the workspace an action may touch.
type Access string

const (
	NoAccess  Access = "none"
	ReadOnly  Access = "read"
	ReadWrite Access = "write"
	// Discard lets an action write to a view of the workspace that is thrown away with it.
	Discard Access = "discard"
)

// Grant is what the sandbox makes possible for one action, and no more. The zero Grant gives nothing.
type Grant struct {
	Workspace Access   `json:"workspace"`
	Network   []string `json:"network,omitempty"` // allowed hosts; empty is no network at all
}
