// Package tool is contract 2: what a tool declares, plans and returns, and the bounded environment in which it runs.
package tool

import (
	"context"
	"encoding/json"

	"belay/effect"
)

// Call is one request to a tool. Args is a JSON object that the tool's schema accepts.
type Call struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
	Key  string          `json:"key,omitempty"` // idempotency key, for class 3 and 4
}

// Tool is something a model can ask for. It never asks for permission itself: Plan says what the call would
// do, the policy judges that, and Run gets an Env in which only the granted part is possible.
type Tool interface {
	Spec() Spec
	// Plan validates the call and says what it would do, without doing it. A model's mistake is a *Mistake.
	Plan(place Place, call Call) (Plan, error)
	// Run does it. The model's mistake is a Result with an Error; a Go error is the harness's own fault
	// and stops the run.
	Run(ctx context.Context, env Env, call Call) (Result, error)
}

// Place is where a call is planned: what a tool may know before anything is allowed.
type Place struct {
	Workspace string // absolute, symlinks resolved
	Dir       string // current directory, absolute, inside the workspace
	Home      string // the person's home, to recognise paths that point there
}

// Plan is what a call would do.
type Plan struct {
	Effects effect.Set
	Replay  Replay // the declaration for this very call; empty takes the tool's own
	Summary string // one line for a person: "go test ./...", "edit add.go (+1 -1)"
	// Commands are those of a command line, for rules that speak of commands; no other tool has any.
	Commands []effect.Command
	Runs     string // of a command line: the text that runs in its place
	// Compensation is a shell line that makes up for an external effect, where there is one: "gh issue close 7".
	Compensation string
}

// Replay is the tool's declaration of what to do when a call was allowed but no result was recorded.
type Replay string

const (
	Pure       Replay = "pure"       // run again
	Reversible Replay = "reversible" // restore what was saved before it, run again
	OpaqueCall Replay = "opaque"     // never run again: the outcome is unknown
	External   Replay = "external"   // never run again, and a person is asked
)

// Spec is what a tool declares once.
type Spec struct {
	Name        string          // what the model calls it
	Description string          // what it does, when to use it, when not, one example
	Schema      json.RawMessage // JSON Schema of the arguments, an object, in the subset all providers take
	Budget      int             // tokens of a result that the model gets to read; 0 is DefaultBudget
	Cut         Cut             // which part of a longer result is kept
	Replay      Replay          // see Replay
	NeedsKey    bool            // whether a write needs an idempotency key
	Classes     []effect.Class  // that its calls can have, the lowest first; for who looks at the tools, not for the policy
	Signal      Signal          // what the call means to the loop, for tools that act on the run and not on the world
}

// DefaultBudget is how many tokens of a result the model reads where a tool does not say.
const DefaultBudget = 4000

// Cut says which part of a result that is over its budget stays. Lines that look like errors always stay.
type Cut string

const (
	CutBoth Cut = "both" // head and tail (the default)
	CutHead Cut = "head" // the head stays
	CutTail Cut = "tail" // the tail stays
)

// Signal is a request to the loop.
type Signal string

const (
	NoSignal Signal = ""
	Complete Signal = "complete" // "I am done": the harness verifies
	Question Signal = "question" // "a person must say": the answer is the result
	Planning Signal = "plan"     // "this is my plan": the harness keeps it
	Blocker  Signal = "blocker"  // "I cannot go on": the run ends and a person is told
)

// Env is the only way in which a tool touches files and processes. What the grant does not hold fails with
// an error that wraps ErrDenied. Paths are absolute or relative to Dir.
type Env interface {
	Place() Place
	ReadFile(path string) ([]byte, error)
	Stat(path string) (FileInfo, error)
	ReadDir(path string) ([]FileInfo, error)
	// WriteFile replaces the file atomically, keeps its mode and owner, and creates it as 0644 with its
	// missing parent directories.
	WriteFile(path string, data []byte) error
	Remove(path string) error
	// Exec runs a program in the sandbox and returns when it has ended and its whole process tree is gone.
	// A cancelled context ends the tree. Err is the harness's fault, never the program's.
	Exec(ctx context.Context, cmd Command) (Exit, error)
}
