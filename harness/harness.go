// Package harness builds a working agent from a Config: the one place that knows every part, and what an embedder calls.
package harness

import (
	"context"

	"belay/journal"
	"belay/loop"
	"belay/model"
	"belay/policy"
	"belay/tool"
)

// Config says what to run. Task is needed; everything else has a default.
type Config struct {
	Task      string
	Workspace string         // folder to work in; "" is the current one
	AllowWide bool           // let Workspace be / or the home directory
	Home      string         // belay's state; "" is DefaultHome()
	Model     string         // "rehearsal:FILE"
	Client    model.Client   // used instead of Model where it is set
	Verify    []string       // shell commands that must pass; none means: detect
	Mode      policy.Mode    // "" is policy.Edit
	Bounds    journal.Bounds // zero fields take DefaultBounds
	Tools     []tool.Tool    // in addition to the standard ones
	Version   string         // of the program, for the journal

	Observe  func(journal.Event) // each event, once it is stored
	Delta    func(model.Event)   // pieces of a reply as they arrive
	Progress func(string)        // what takes long right now
}

// Result is a run's outcome and where to read about it.
type Result struct {
	RunID     string `json:"run_id"`
	Dir       string `json:"dir"` // of the run, absolute
	Workspace string `json:"workspace"`
	loop.Outcome
}

// UsageError is a mistake in what the caller asked for: nothing was started.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Run works on the task until it is proved, given up or out of bounds. An error means that there is no
// outcome: a *UsageError before anything started, else the harness's own fault.
func Run(ctx context.Context, cfg Config) (Result, error) {
	panic("building")
}

// DefaultHome is where belay keeps its state: $BELAY_HOME, else $XDG_STATE_HOME/belay, else
// ~/.local/state/belay.
func DefaultHome() (string, error) {
	panic("building")
}
