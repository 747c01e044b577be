package journal

// Hook says that a person's command ran at a fixed moment, and what it decided.
type Hook struct {
	Event      string `json:"event"` // PreToolUse, Stop and so on
	CallID     string `json:"call_id,omitempty"`
	Tool       string `json:"tool,omitempty"`
	Command    string `json:"command"`
	From       string `json:"from,omitempty"`    // the file that names it
	Verdict    string `json:"verdict,omitempty"` // deny, ask, failed, async, or "" where it decided nothing
	Reason     string `json:"reason,omitempty"`
	Rewrote    bool   `json:"rewrote,omitempty"` // the call's arguments
	Exit       int    `json:"exit"`
	DurationMS int64  `json:"duration_ms"`
	Slow       bool   `json:"slow,omitempty"` // above 100 ms
	Output     string `json:"output,omitempty"`
}
