// Package message is the vocabulary of what is said between a person, a model and its tools: roles, blocks, tool calls, results, stop reasons, usage and cost, in no vendor's types.
package message

import "encoding/json"

// Role says who speaks. The system prompt is not a message: it is a field of a request.
type Role string

const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one turn of speech. Tool results travel in a User message, as every provider wants them.
type Message struct {
	Role   Role    `json:"role"`
	Blocks []Block `json:"blocks"`
}

// Kind says which field of a Block is set.
type Kind string

const (
	KindText     Kind = "text"
	KindThinking Kind = "thinking"
	KindCall     Kind = "call"
	KindResult   Kind = "result"
	KindOpaque   Kind = "opaque"
	KindImage    Kind = "image"
)

// Block is one part of a message. Exactly the field that Kind names is set.
type Block struct {
	Kind   Kind        `json:"kind"`
	Text   string      `json:"text,omitempty"` // for text and thinking
	Call   *ToolCall   `json:"call,omitempty"`
	Result *ToolResult `json:"result,omitempty"`
	Opaque *Opaque     `json:"opaque,omitempty"` // beside Text or Call for what a provider signed
	Image  *Image      `json:"image,omitempty"`
}

// ToolCall is the model's request that a tool be run. ID is unique in a run. Args holds the bytes the model
// produced; it is a JSON object unless BadArgs says why it is not, in which case it is never executed.
type ToolCall struct {
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Args    json.RawMessage `json:"args"`
	BadArgs string          `json:"bad_args,omitempty"`
}

// ToolResult is what the model reads about one call.
type ToolResult struct {
	CallID string `json:"call_id"`
	Text   string `json:"text"`
	Error  bool   `json:"error,omitempty"`
	// Images are shown beside the text, to models that take them.
	Images []Image `json:"images,omitempty"`
}

// Image is a picture that a model is shown.
type Image struct {
	MediaType string `json:"media_type"` // image/png, image/jpeg, image/gif or image/webp
	Data      []byte `json:"data"`       // the file, in base64 in JSON
	Name      string `json:"name,omitempty"`
}

// Opaque is a provider's own bytes (a thinking signature, encrypted reasoning), replayed unchanged to the
// provider and model that made them and to nobody else.
type Opaque struct {
	Provider string          `json:"provider"`
	Model    string          `json:"model"`
	Prefix   string          `json:"prefix,omitempty"` // prefix hash of the request that it answered
	Raw      json.RawMessage `json:"raw"`
}

// StopReason says why a reply ended.
type StopReason string

const (
	StopEnd     StopReason = "end"      // the model has said what it wanted to say
	StopToolUse StopReason = "tool_use" // it waits for results
	StopLength  StopReason = "length"   // cut by the output limit: nothing in it may be executed
	StopRefusal StopReason = "refusal"  // it declined
	StopPause   StopReason = "pause"    // the provider wants the same content again
	StopError   StopReason = "error"    // the stream broke
)

// Known says whether it is one of the reasons above.
func (s StopReason) Known() bool {
	switch s {
	case StopEnd, StopToolUse, StopLength, StopRefusal, StopPause, StopError:
		return true
	}
	return false
}

// Text makes a text block.
func Text(s string) Block { return Block{Kind: KindText, Text: s} }

// UserText makes a user message of one text block.
func UserText(s string) Message { return Message{Role: User, Blocks: []Block{Text(s)}} }

// Calls returns the tool calls among the blocks, in order.
func Calls(blocks []Block) []ToolCall {
	var calls []ToolCall
	for _, b := range blocks {
		if b.Kind == KindCall && b.Call != nil {
			calls = append(calls, *b.Call)
		}
	}
	return calls
}

// PlainText returns the text blocks joined by newlines.
func PlainText(blocks []Block) string {
	var s string
	for _, b := range blocks {
		if b.Kind != KindText || b.Text == "" {
			continue
		}
		if s != "" {
			s += "\n"
		}
		s += b.Text
	}
	return s
}
