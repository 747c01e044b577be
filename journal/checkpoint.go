package journal

// Checkpoints, going back to them, and effects that do not go back.
const (
	TypeCheckpoint  Type = "checkpoint"
	TypeRewind      Type = "rewind"
	TypeExternal    Type = "effect.external"
	TypeCompensated Type = "effect.compensated"
)

// Checkpoint says that the files of the workspace are kept as they are now. The position in the journal is the
// event's own number.
type Checkpoint struct {
	ID        string      `json:"id"`
	Tree      string      `json:"tree"` // object id of the tree in the store
	Base      string      `json:"base_commit,omitempty"`
	Reason    string      `json:"reason"`          // in words: "user message", "before `make`"
	Green     bool        `json:"green,omitempty"` // the verifiers pass on this tree
	Files     int         `json:"files"`           // that are covered
	Bytes     int64       `json:"bytes"`           // of them
	Uncovered []Uncovered `json:"uncovered,omitempty"`
	Effects   []string    `json:"effects_since,omitempty"` // keys of the external effects since the run's start
	PlanHash  string      `json:"plan_hash,omitempty"`
	Agent     []string    `json:"agent,omitempty"` // paths that the agent changed since the checkpoint before, at most MaxChanged
	User      []string    `json:"user,omitempty"`  // paths that somebody else changed since then, at most MaxChanged
}

// MaxChanged is how many changed paths an event names; the trees hold them all.
const MaxChanged = 1000

// Uncovered is a path that no checkpoint restores.
type Uncovered struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"` // at least
	Why   string `json:"why"`
}

// Rewind says that the run went back. It is written when the files are as they were: it and the files are one act.
type Rewind struct {
	ID         string     `json:"id"`
	Checkpoint string     `json:"checkpoint"` // the files' new state
	Before     string     `json:"before"`     // checkpoint of what was there, for --undo
	ToSeq      int64      `json:"to_seq"`     // the context is as it was after this event
	Files      bool       `json:"files"`
	Context    bool       `json:"context"`
	Restored   []string   `json:"restored,omitempty"` // paths, at most MaxChanged
	Effects    []External `json:"effects,omitempty"`  // that stay
	Undo       string     `json:"undo,omitempty"`     // the rewind that this one takes back
	By         string     `json:"by"`                 // user, harness
	Told       string     `json:"told"`               // what the model reads of it, as the next message
}

// External is an effect of class 4, which nothing takes back. It stands before the result of its call.
type External struct {
	Key          string `json:"key"`
	CallID       string `json:"call_id"`
	Target       string `json:"target"`
	Summary      string `json:"summary"`
	Compensation string `json:"compensation,omitempty"` // a shell line that makes up for it
}

// Compensated says that a compensation was run for an external effect.
type Compensated struct {
	Key     string `json:"key"`
	Command string `json:"command"`
	OK      bool   `json:"ok"`
	Exit    int    `json:"exit"`
	Output  string `json:"output,omitempty"`
}

// PreImage is a file as it was before a call that changes it. A path without an ID was not there.
type PreImage struct {
	Path string `json:"path"`           // relative to the workspace, with slashes
	ID   string `json:"id,omitempty"`   // object in the checkpoint store
	Mode uint32 `json:"mode,omitempty"` // as git writes it: 0o100000 and the permissions, or 0o120000
}
