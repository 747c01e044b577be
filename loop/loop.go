// Package loop calls a model until its task is proved, refused or out of bounds: the inner loop of turns, the only path from a call to an effect, and the guards.
package loop

import (
	"context"
	"time"

	"belay/effect"
	"belay/handoff"
	"belay/internal/projection"
	"belay/journal"
	"belay/message"
	"belay/model"
	"belay/policy"
	"belay/tool"
	"belay/verify"
)

// Config is everything a loop works with. The functions at its end may be nil.
type Config struct {
	Log       journal.Log
	Client    model.Client
	Light     model.Client   // for summaries and explanations; nil is Client
	Judging   model.Client   // for judgements; nil is Client
	Fallback  []model.Client // asked in turn, each where those before it cannot be reached
	Tools     *tool.Registry
	Place     tool.Place
	Judge     func(policy.Action) policy.Decision
	Env       func(effect.Grant) tool.Env
	Verifiers []verify.Verifier
	Tree      func(context.Context) (verify.Tree, error) // the workspace as it is now
	Bounds    journal.Bounds
	Context   projection.Policy // zero is the preset for the model's window
	// StepVerifier makes a verifier of what a plan's step says about itself; nil where that is no command that may run.
	StepVerifier func(line string) verify.Verifier
	Evidence     Evidence // what the tree was, and what lies beside it
	Refusals     int      // completions refused that end the run; 0 is 3

	// Ask puts a question to a person and waits for the answer; nil is a run without one. PauseToAsk stops such a run where a
	// person is needed, instead of refusing. Remember saves rules for always; nil does not offer that.
	Ask         func(context.Context, journal.Question) (journal.Answer, error)
	PauseToAsk  bool
	ApprovePlan bool // a person approves the plan before anything is changed; without one the run waits
	Remember    func(rules []string) error
	// Left is an answer that was left for a question while nobody waited. Notify tells a person who is not there of a question,
	// and may bring an answer.
	Left   func(journal.Question) (journal.Answer, bool, error)
	Notify func(context.Context, journal.Question) (journal.Answer, bool)

	Auto Auto // judges calls of class 3 that nobody is asked about; nil is none

	Inbox       func() []string // what the person has said since, told at the next turn
	Checkpoints Checkpoints     // keeps the files; nil keeps none
	RewindAfter int             // failed verifications after which the files go back to the last green checkpoint; 0 is never

	// Connections are those that commands asked for since it was last called; nil is nobody who knows.
	Connections func() []journal.Connection

	Hooks    func(context.Context, HookInput) HookOutcome     // people's commands at fixed moments
	Hash     func(path string) string                         // of a file as it is now, "" where there is none
	Handoff  func(handoff.Note) (file string, err error)      // keeps the note for the next reader, at every end
	Plan     func(journal.Plan) error                         // keeps the plan where people look for it
	Nested   func(paths []string) []string                    // what instruction files near these files say that was not said before
	Observe  func(journal.Event)                              // each event, once it is stored
	Delta    func(model.Event)                                // pieces of a reply as they arrive; never journalled
	Progress func(what string)                                // long work between events, in words
	Sleep    func(ctx context.Context, d time.Duration) error // between attempts; nil sleeps
}

// Exit is the exit code of a run. Zero always means a proof.
type Exit int

const (
	ExitProved      Exit = 0
	ExitFault       Exit = 1   // the harness's own fault
	ExitUsage       Exit = 2   // usage or configuration
	ExitUnverified  Exit = 3   // finished, but nothing proves it
	ExitFailed      Exit = 4   // verification failed, or a blocker was reported
	ExitBound       Exit = 5   // a bound was reached
	ExitWaiting     Exit = 6   // a person has to decide
	ExitEnvironment Exit = 7   // key, network, quota, disk
	ExitInterrupted Exit = 130 // Ctrl-C
)

// Outcome is how a run ended.
type Outcome struct {
	Exit     Exit            `json:"exit"`
	Reason   string          `json:"reason"`   // one sentence
	Standing verify.Standing `json:"standing"` // "" where nothing is claimed
	Summary  string          `json:"summary"`  // the model's own words about what it did
	Proof    []journal.Proof `json:"proof,omitempty"`
	Question string          `json:"question,omitempty"`      // id of the one that waits for a person
	Asked    int             `json:"interruptions,omitempty"` // how often a person was asked
	Drift    []string        `json:"drift,omitempty"`         // files that were changed and that the plan does not name
	Attempts []string        `json:"attempts,omitempty"`      // at what no agent may touch, class 5
	// Circumvention is what the run did to the files that judge it.
	Circumvention []journal.Evasion `json:"circumvention,omitempty"`

	Turns int           `json:"turns"`
	Usage message.Usage `json:"usage"`
	Cost  message.Cost  `json:"cost_usd"`
}
