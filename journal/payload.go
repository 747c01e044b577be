package journal

import (
	"encoding/json"

	"belay/effect"
	"belay/message"
)

// WriterOpen says who writes from here on.
type WriterOpen struct {
	Host   string `json:"host"`
	PID    int    `json:"pid"`
	BootID string `json:"boot_id,omitempty"` // of the machine's start, since which PID means something
	Epoch  int64  `json:"epoch"`             // higher with each writer of the run
}

// Fork is the first event of a run that goes on from another: the events of Parent up to Seq are its own too,
// by reference.
type Fork struct {
	Parent string `json:"parent"`
	Seq    int64  `json:"seq"`
	Sum    string `json:"sum"` // of that event
}

// SessionStart records everything that shapes the contexts of a session. System and Tools are always blobs.
type SessionStart struct {
	Version    string          `json:"version"` // of belay
	Workspace  string          `json:"workspace"`
	Head       string          `json:"head,omitempty"` // commit of the workspace's repository
	Model      ModelInfo       `json:"model"`
	Mode       string          `json:"mode"`
	Sandbox    string          `json:"sandbox"` // the isolation obtained
	Projection string          `json:"projection"`
	System     string          `json:"system"`
	Tools      json.RawMessage `json:"tools"`
	MaxOutput  int64           `json:"max_output,omitempty"`
	// Instructions are the files of the repository whose words stand in System.
	Instructions []Instruction `json:"instructions,omitempty"`
	Verify       []string      `json:"verify,omitempty"` // verifiers by name
	Named        bool          `json:"named,omitempty"`  // whether a person chose them
	Bounds       Bounds        `json:"bounds"`
	Protect      []string      `json:"protect,omitempty"` // paths of the workspace that nothing changes, besides the built-in ones
	// Context is the context policy: always a blob. Fresh says that the context begins anew with this session.
	Context json.RawMessage `json:"context_policy,omitempty"`
	Fresh   bool            `json:"fresh,omitempty"`

	OnAsk    string    `json:"on_ask,omitempty"`  // pause: a run without a person waits for one; else what needs one is refused
	Approve  string    `json:"approve,omitempty"` // plan: a person agrees to the plan before the first change
	Trifecta *Trifecta `json:"trifecta,omitempty"`
}

// BlobFields are stored as blobs whatever their size.
func (SessionStart) BlobFields() []string { return []string{"system", "tools", "context_policy"} }

// Instruction is a file that speaks to agents, as it was when the session began.
type Instruction struct {
	File string `json:"file"` // relative to the workspace
	Hash string `json:"hash"` // SHA-256 of its content, hex
}

// ModelInfo names the model of a session.
type ModelInfo struct {
	ID            string         `json:"id"`             // "provider:model"
	Spec          string         `json:"spec,omitempty"` // what the person asked for
	Effort        string         `json:"effort,omitempty"`
	Light         string         `json:"light,omitempty"`    // spec of the model for summaries, where it is another
	Judge         string         `json:"judge,omitempty"`    // spec of the model that judges, where it is another
	Fallback      []string       `json:"fallback,omitempty"` // specs of those that stand in for it
	ContextWindow int64          `json:"context_window,omitempty"`
	Price         *message.Price `json:"price,omitempty"`
	Scripted      bool           `json:"scripted,omitempty"`
}

// Bounds are the limits of a run; 0 is no limit.
type Bounds struct {
	Turns  int          `json:"turns,omitempty"` // per session
	Tokens int64        `json:"tokens,omitempty"`
	Money  message.Cost `json:"usd,omitempty"`
	WallMS int64        `json:"wall_ms,omitempty"`
	MiB    int64        `json:"mib,omitempty"` // that the journal and its blobs may take on the disk
}

// SessionEnd says how a session ended and what may be claimed for it.
type SessionEnd struct {
	Reason   string        `json:"reason"`
	Exit     int           `json:"exit"`     // exit code of the run
	Standing string        `json:"standing"` // "proved", "no regression", "unverified", or "" where nothing is claimed
	Summary  string        `json:"summary,omitempty"`
	Proof    []Proof       `json:"proof,omitempty"`
	Turns    int           `json:"turns"`
	Usage    message.Usage `json:"usage"`
	Cost     message.Cost  `json:"cost_usd"`
	Handoff  string        `json:"handoff,omitempty"` // the note for the next reader, a file in the run's directory
}

// Proof is one verifier's pass over the tree that the run ended with. A later edit voids it: then the
// tree's digest is another.
type Proof struct {
	Command    string `json:"command"`
	Exit       int    `json:"exit"`
	Tree       string `json:"tree"`
	LogHash    string `json:"log_hash"`
	DurationMS int64  `json:"duration_ms"`
	Seq        int64  `json:"seq"` // the verify event
	RedBefore  bool   `json:"red_before,omitempty"`
	// TestsChanged lists files that decide what passes and that the run has changed, removed or added.
	TestsChanged []string `json:"tests_changed,omitempty"`

	Level      int         `json:"level,omitempty"` // 1 deterministic, 2 property, 3 judged, 4 a person; 0 is 1
	Tests      *TestCounts `json:"tests,omitempty"`
	TestsAsWas bool        `json:"tests_as_was,omitempty"` // it also passed with TestsChanged as they were before the run
	GitTree    string      `json:"git_tree,omitempty"`     // id of the tree that git would commit
	Inputs     []Input     `json:"inputs,omitempty"`       // what the verifier could read beside that tree
}

// UserMessage is what a person says, or what the harness says in a person's place.
type UserMessage struct {
	Text string `json:"text"`
	By   string `json:"by,omitempty"` // "" is a person; "harness" is a nudge

	Images []message.Image `json:"images,omitempty"`
}

// ModelCall is written before a request is sent.
type ModelCall struct {
	Model      string `json:"model"`
	Purpose    string `json:"purpose,omitempty"` // "" is the main loop
	CtxHash    string `json:"ctx_hash"`
	PrefixHash string `json:"prefix_hash"`
	WireHash   string `json:"wire_hash,omitempty"` // SHA-256 of the body as sent; none where there is no wire
	Codec      string `json:"codec,omitempty"`
	Messages   int    `json:"messages"`
	Bytes      int64  `json:"bytes"`    // of the neutral request
	Estimate   int64  `json:"estimate"` // tokens
}

// ModelReply is a whole answer, or why there was none.
type ModelReply struct {
	Purpose    string             `json:"purpose,omitempty"`
	Blocks     []message.Block    `json:"blocks"`
	Stop       message.StopReason `json:"stop"`
	Usage      message.Usage      `json:"usage"`
	Wasted     *message.Usage     `json:"wasted,omitempty"` // what attempts cost of which nothing came
	Cost       message.Cost       `json:"cost_usd"`
	DurationMS int64              `json:"duration_ms"`
	Attempts   int                `json:"attempts"`
	Error      string             `json:"error,omitempty"` // with stop "error": what failed
}

// ToolRequest is written, with its verdict, before a call runs.
type ToolRequest struct {
	CallID     string          `json:"call_id"`
	Tool       string          `json:"tool"`
	Args       json.RawMessage `json:"args"`
	Summary    string          `json:"summary,omitempty"`
	Effects    effect.Set      `json:"effects,omitempty"`
	Class      effect.Class    `json:"class"`
	Key        string          `json:"key,omitempty"`
	Replay     string          `json:"replay,omitempty"`
	Permission Permission      `json:"permission"`
	Grant      effect.Grant    `json:"grant"`
	// Tree and Tests stand in the first call that may change the workspace, and say what it was before: its
	// digest, and the files that decide what passes, each with the SHA-256 of its content.
	Tree  string            `json:"tree,omitempty"`
	Tests map[string]string `json:"tests,omitempty"`
	// Before are the files that a reversible call will change, as they were.
	Before []PreImage `json:"before,omitempty"`
}

// Permission is a verdict and where it came from.
type Permission struct {
	Verdict effect.Verdict `json:"verdict"`
	Rule    string         `json:"rule"`
	By      string         `json:"by"` // policy, user, hook, judge, timeout, harness
	Reason  string         `json:"reason,omitempty"`
}

// ToolResult is the one outcome of a call.
type ToolResult struct {
	Images     []message.Image `json:"images,omitempty"` // the model is shown
	CallID     string          `json:"call_id"`
	Status     string          `json:"status"`
	Code       string          `json:"code,omitempty"`
	Summary    string          `json:"summary,omitempty"`
	Text       string          `json:"text"`          // what the model reads
	Raw        *Ref            `json:"raw,omitempty"` // the whole output, where Text is a cut of it
	Size       int64           `json:"size"`          // bytes of the whole output
	Truncated  bool            `json:"truncated,omitempty"`
	DurationMS int64           `json:"duration_ms"`
	Exit       *int            `json:"exit,omitempty"`
	Denied     []string        `json:"denied,omitempty"`
	Read       []string        `json:"read,omitempty"`
	Wrote      []string        `json:"wrote,omitempty"`

	Hashes map[string]string `json:"hashes,omitempty"` // path -> what Read and Wrote are after the call: SHA-256, its first 32 hex characters
}

// Verify is one verifier's report.
type Verify struct {
	Verifier   string `json:"verifier"`
	Named      bool   `json:"named"`
	Base       bool   `json:"base,omitempty"` // on the tree as it was before the run changed it
	OK         bool   `json:"ok"`
	Exit       int    `json:"exit"`
	Summary    string `json:"summary"`
	Output     string `json:"output"`
	LogHash    string `json:"log_hash"`
	Tree       string `json:"tree"`
	Sandbox    string `json:"sandbox"`
	DurationMS int64  `json:"duration_ms"`

	Level      int         `json:"level,omitempty"` // see Proof
	Runner     string      `json:"runner,omitempty"`
	Tests      *TestCounts `json:"tests,omitempty"`
	Failure    *FailedAt   `json:"failure,omitempty"`
	Flaky      bool        `json:"flaky,omitempty"`        // it failed on this very tree just before
	TestsAsWas bool        `json:"tests_as_was,omitempty"` // with the tests as they were before the run
}

// Guard says that a bound was reached.
type Guard struct {
	Bound string  `json:"bound"` // turns, tokens, usd, time, repetition, errors, stall, completions
	Value float64 `json:"value"`
	Limit float64 `json:"limit"`
	Hard  bool    `json:"hard"`
	Note  string  `json:"note,omitempty"`
}

// Resume says what is not as it was when the run stopped. It follows a session.start that goes on with a run.
type Resume struct {
	Changes []Change `json:"changes"`
}

// Change is one thing that is another than it was.
type Change struct {
	What string `json:"what"` // head, repository, model, system, tool, file, belay
	Name string `json:"name,omitempty"`
	Was  string `json:"was"` // "" is nothing
	Is   string `json:"is"`
}

// Degraded announces a weaker mode.
type Degraded struct {
	Component string `json:"component"`
	Loss      string `json:"loss"`
}
