package journal

import "belay/message"

const (
	TypeAgentStart Type = "agent.start"
	TypeAgentEnd   Type = "agent.end"
)

// AgentStart says that a run of its own begins on behalf of this one. It is durable before that run exists.
type AgentStart struct {
	Run     string `json:"run"` // the child's id
	Task    string `json:"task"`
	Feature string `json:"feature,omitempty"` // of an outer loop
	Attempt int    `json:"attempt,omitempty"` // from 1
	Bounds  Bounds `json:"bounds"`            // its share
	Head    string `json:"head,omitempty"`    // the commit that it begins on
}

// AgentEnd is what became of it.
type AgentEnd struct {
	Run      string        `json:"run"`
	Feature  string        `json:"feature,omitempty"`
	Exit     int           `json:"exit"`
	Standing string        `json:"standing,omitempty"`
	Reason   string        `json:"reason"`
	Commit   string        `json:"commit,omitempty"` // that holds its work
	Undone   bool          `json:"undone,omitempty"` // its changes were taken back
	Turns    int           `json:"turns"`
	Usage    message.Usage `json:"usage"`
	Cost     message.Cost  `json:"cost_usd"`
}
