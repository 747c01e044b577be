package verify

import (
	"context"
	"fmt"
	"strings"
)

// Level is what kind of evidence a verifier gives: the lower, the less it is anybody's opinion.
type Level int

const (
	Deterministic Level = 1 // a command, a compiler, tests, a schema, a bounded diff
	Property      Level = 2 // an invariant, or two runs that must agree
	Judged        Level = 3 // a model's opinion by a written rubric: shown as "judged", never as "proved"
	Person        Level = 4 // somebody looked
)

func (l Level) String() string {
	switch l {
	case 0, Deterministic:
		return "deterministic"
	case Property:
		return "property"
	case Judged:
		return "judge"
	case Person:
		return "person"
	}
	return fmt.Sprintf("level %d", int(l))
}

// Levelled is a Verifier of another level than Deterministic.
type Levelled interface{ Level() Level }

// LevelOf is the level of a verifier.
func LevelOf(v Verifier) Level {
	if l, ok := v.(Levelled); ok && l.Level() != 0 {
		return l.Level()
	}
	return Deterministic
}

// Tests counts what a known runner executed.
type Tests struct {
	Run     int `json:"run"` // executed: passed and failed, not skipped
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"` // also those that were expected to fail
}

// Failure is the first thing that a verifier found wrong, as far as its output says.
type Failure struct {
	Test     string `json:"test,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"` // from 1; 0 is unknown
	Message  string `json:"message,omitempty"`
	Expected string `json:"expected,omitempty"`
	Got      string `json:"got,omitempty"`
}

// String says it in a few lines.
func (f Failure) String() string {
	var parts []string
	where := f.File
	if f.Line > 0 {
		where += fmt.Sprintf(":%d", f.Line)
	}
	for _, p := range []struct{ name, text string }{{"", f.Test}, {"at ", where}, {"", f.Message}, {"expected ", f.Expected}, {"got ", f.Got}} {
		if p.text != "" {
			parts = append(parts, p.name+p.text)
		}
	}
	return strings.Join(parts, "\n")
}

// Counting is a Verifier whose report says how many tests it executed. It is run on the tree before any change too.
type Counting interface{ Counts() bool }

// Counts says whether a verifier counts tests.
func Counts(v Verifier) bool {
	c, ok := v.(Counting)
	return ok && c.Counts()
}

// Over is what lies over the tree for one verification; the tree itself stays as it is. Paths are relative to the
// workspace, with slashes.
type Over struct {
	Put    map[string][]byte
	Remove []string
}

// Overlaid is a Verifier that can look at the tree with other files over it: at the tests as they were before the run.
// One that turns out not to be able to returns errors.ErrUnsupported.
type Overlaid interface {
	VerifyOver(context.Context, Over) (Report, error)
}
