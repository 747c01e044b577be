package policy

import "belay/effect"

// Prose is what people say in words to a model that judges. HardDeny is never lifted; SoftDeny is by an exception in Allow, or
// by the person's own words.
type Prose struct {
	Environment []string
	Allow       []string
	SoftDeny    []string
	HardDeny    []string
	From        map[string]string // sentence to FILE:LINE
}

// Empty says that nobody has said anything.
func (p Prose) Empty() bool {
	return len(p.Environment)+len(p.Allow)+len(p.SoftDeny)+len(p.HardDeny) == 0
}

// Case is what a judge is shown of a call, and all of it: never what the model says about it, nor what any tool has returned.
type Case struct {
	Said      []string // by the person
	Earlier   []Act    // calls that ran before, the oldest first
	Candidate Act
}

// Act is a call as it would run.
type Act struct {
	Tool    string       `json:"tool"`
	Runs    string       `json:"runs"` // the re-printed command line, or the arguments
	Effects []string     `json:"effects,omitempty"`
	Class   effect.Class `json:"class,omitempty"`
}
