// Package eval measures an agent: it runs tasks in trials, grades what is left of each in another process, and says how reliable that was.
package eval

import (
	"time"
)

// Task is one thing to be done, with what decides whether it was. The file format is described in docs/evals.md.
type Task struct {
	ID       string
	File     string // where it was read from, absolute
	Dir      string // the folder of File: paths in a task are relative to it
	Hash     string // SHA-256, hex, over the paths and contents of all that the task consists of
	Source   Source
	Category string
	About    string // what it is for, for people

	Workspace Workspace
	Prompt    string
	Budget    Budget
	Setup     []string // shell lines, run in a sandbox in the workspace before the first trial
	Artifacts []string // what of the agent's tree is graded, as globs; none is all of it
	Graders   []Grader
	Oracle    *Control
	Cheats    []Control
	Trials    int // 0 leaves it to the caller

	// Paths are places that the task's own files name, by what they stand for: workspace, tests or logs. They are replaced by
	// the real ones when the files are laid in, and in the prompt.
	Paths map[string]string
	// Shims are what stands in for something that the task would have downloaded: text for reports.
	Shims []string
}

// Source says where a task comes from.
type Source struct {
	Kind    string `json:"kind,omitempty"` // production, handwritten, harbor, terminal-bench, swe-bench, exercism
	Run     string `json:"run,omitempty"`
	URL     string `json:"url,omitempty"`
	License string `json:"license,omitempty"`
}

// Workspace is the tree that a trial begins with: one of Dir, Git and Empty.
type Workspace struct {
	Dir        string // absolute
	Git        string // URL or folder of a repository
	Commit     string
	Empty      bool
	Repository bool // make it a git repository with one commit
}

// Budget bounds one trial; 0 takes the agent's own default.
type Budget struct {
	Turns  int
	Tokens int64
	USD    float64
	Wall   time.Duration
}

// Grader decides about one aspect of a trial. All of a task's graders must pass.
type Grader struct {
	Name string
	Type string // code, property, transcript or model
	Line int    // of the task's file

	// code and property
	Run     string            // a shell line; exit 0 passes
	Files   []Laid            // hidden from the agent, laid in when it is dead
	Cwd     string            // relative to the workspace
	Env     map[string]string // additions
	Timeout time.Duration     // 0 is DefaultGraderTimeout
	Reward  string            // "exit" (the default) or "file": $BELAY_REWARD_DIR/reward.txt or reward.json
	Min     float64           // with "file": what each reward must reach; 0 is 1

	// Verdict decides instead of Run, on what Run printed and left. It is another shell line in another box, in a folder that holds
	// nothing but VerdictFiles: no code of the agent's runs where it does.
	Verdict      string
	VerdictFiles []Laid

	// transcript
	Forbid, Require []Rule

	// model
	Rubric       string // file, absolute
	Calibration  string // file, absolute
	MinAgreement float64
}

// DefaultGraderTimeout is how long a grader may take.
const DefaultGraderTimeout = 2 * time.Minute

// Laid is a file or folder of the task and where it goes.
type Laid struct {
	From string // absolute
	To   string // relative to the grader's Cwd; a folder's contents go into it; an absolute one is one of Task.Paths
}

// Control is a way to bring the workspace to a state of which the score is known. One of its fields is set.
type Control struct {
	Name      string
	Patch     string // file, absolute, as of git diff
	Files     []Laid // to be copied over the workspace
	Run       string // a shell line, with the files of Lay beside it
	Lay       []Laid
	Rehearsal string // script of a model that the agent plays, file, absolute
}

// direct says that no agent is needed.
func (c Control) direct() bool { return c.Rehearsal == "" }
