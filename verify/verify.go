// Package verify is the meeting point with verifiers: what says whether work is done, and the evidence it leaves.
package verify

import (
	"context"
	"time"
)

// Verifier checks a tree. It runs in its own process, out of the agent's reach, and leaves the tree as it was.
type Verifier interface {
	Name() string // "go test ./..."
	// Named says that a person chose it (a flag, project configuration, an approved plan). A verifier that
	// belay detected by itself proves only what was red before and is green now.
	Named() bool
	Verify(ctx context.Context) (Report, error)
}

// Report is the outcome of one verifier on one tree. The error of Verify is the harness's own; a
// verifier that could not be started is not OK.
type Report struct {
	Verifier string        `json:"verifier"`
	OK       bool          `json:"ok"`
	Exit     int           `json:"exit"`
	Summary  string        `json:"summary"`  // one line
	Output   string        `json:"output"`   // all of it, stdout and stderr as they came
	LogHash  string        `json:"log_hash"` // SHA-256 of Output, hex
	Duration time.Duration `json:"-"`
	Sandbox  string        `json:"sandbox"` // the isolation it ran in

	Runner  string   `json:"runner,omitempty"`  // "go test", where the output is a known one
	Tests   *Tests   `json:"tests,omitempty"`   // what it executed; nil where nobody can tell
	Failure *Failure `json:"failure,omitempty"` // the first one, where the output says so
}

// Standing is how much a finished run may claim.
type Standing string

const (
	Proved       Standing = "proved"        // a named verifier passed, or a detected one was red before and is green now
	NoRegression Standing = "no regression" // a detected verifier was green before and after
	Unverified   Standing = "unverified"    // nothing checked it
	JudgedOnly   Standing = "judged"        // a model's opinion by a rubric, and nothing stronger
)

// Tree is what the files under verification were at one moment.
type Tree struct {
	Digest string            // of every file's path, kind, mode and content
	Stamp  string            // of every file's size and times: another one where a change was undone
	Tests  map[string]string // the files that decide what passes: path -> SHA-256 of the content, hex
}
