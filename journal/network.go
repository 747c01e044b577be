package journal

import "belay/effect"

// TypeConnection is one connection that a call asked for.
const TypeConnection Type = "connection"

// Connection is what became of a connection to another machine. It stands before the result of its call.
type Connection struct {
	CallID     string         `json:"call_id,omitempty"` // of the call; none where several ran side by side
	Host       string         `json:"host"`              // as it was asked for
	Port       uint16         `json:"port,omitempty"`
	Address    string         `json:"address,omitempty"`  // that was connected to
	Verdict    effect.Verdict `json:"verdict"`            // allow or deny
	Reason     string         `json:"reason,omitempty"`   // why it was refused, or failed
	Injected   string         `json:"injected,omitempty"` // the header that was added on the way out
	Sent       int64          `json:"sent"`               // bytes
	Received   int64          `json:"received"`           // bytes
	DurationMS int64          `json:"duration_ms"`
	Count      int            `json:"count,omitempty"` // how many alike, where more than one
}
