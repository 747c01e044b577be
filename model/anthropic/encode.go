package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"

	"belay/message"
	"belay/model"
	"belay/model/stream"
	"belay/model/wire"
)

// Codec names the encoding.
func (c *Client) Codec() string { return "anthropic/1" }

// The body, in the order in which it is sent: what never changes first, so that one request begins with the
// bytes of the one before it, but for the cache marks.
type body struct {
	Model     string          `json:"model"`
	MaxTokens int64           `json:"max_tokens"`
	Stream    bool            `json:"stream"`
	Thinking  json.RawMessage `json:"thinking,omitempty"`
	Tools     []toolSpec      `json:"tools,omitempty"`
	System    []any           `json:"system,omitempty"`
	Messages  []turn          `json:"messages"`
}

type toolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"input_schema"`
	Cache       *cacheControl   `json:"cache_control,omitempty"`
}

type turn struct {
	Role    message.Role `json:"role"`
	Content []any        `json:"content"` // *block, or the provider's own bytes
}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   string          `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
	Cache     *cacheControl   `json:"cache_control,omitempty"`
}

type cacheControl struct {
	Type string `json:"type"`
}

var ephemeral = &cacheControl{Type: "ephemeral"}

// Encode returns the body that Stream sends.
func (c *Client) Encode(req model.Request) ([]byte, error) {
	b := body{Model: c.info.Model, MaxTokens: req.MaxOutput, Stream: true, Messages: []turn{}}
	if b.MaxTokens <= 0 {
		b.MaxTokens = c.quirks.maxOutput
	}
	if c.quirks.thinking != "" {
		b.Thinking = json.RawMessage(c.quirks.thinking)
	}
	for _, t := range req.Tools {
		schema := t.Schema
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		b.Tools = append(b.Tools, toolSpec{Name: t.Name, Description: t.Description, Schema: schema})
	}
	if strings.TrimSpace(req.System) != "" {
		b.System = []any{&block{Type: "text", Text: req.System, Cache: ephemeral}}
	} else if n := len(b.Tools); n > 0 {
		b.Tools[n-1].Cache = ephemeral
	}
	keep := func(o message.Block) bool {
		switch o.Kind {
		case message.KindThinking, message.KindOpaque: // unsigned thinking is refused
			return wire.Bound(o.Opaque, c.info.Provider, c.info.Model, req.PrefixHash)
		}
		return true
	}
	for _, m := range wire.Arrange(req.Messages, keep) {
		t := turn{Role: m.Role}
		for _, p := range m.Blocks {
			t.Content = append(t.Content, part(p))
		}
		b.Messages = append(b.Messages, t)
	}
	if n := len(b.Messages); n > 0 && b.Messages[n-1].Role == message.Assistant {
		content := b.Messages[n-1].Content
		if last, ok := content[len(content)-1].(*block); ok && last.Type == "text" { // refused with white space at its end
			last.Text = strings.TrimRight(last.Text, " \t\r\n")
		}
	}
	mark(b.Messages)
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(b); err != nil {
		return nil, fmt.Errorf("encode the request for anthropic: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

func part(p message.Block) any {
	switch {
	case p.Opaque != nil:
		return p.Opaque.Raw
	case p.Call != nil:
		return &block{Type: "tool_use", ID: wireID(p.Call.ID), Name: p.Call.Name, Input: stream.History(*p.Call)}
	case p.Result != nil:
		return &block{Type: "tool_result", ToolUseID: wireID(p.Result.CallID), Content: p.Result.Text, IsError: p.Result.Error}
	}
	return &block{Type: "text", Text: p.Text}
}

// stride is the distance of cache marks, in blocks: the server looks back twenty from each.
const stride = 15

// mark puts cache breakpoints on the last block and on up to two blocks at fixed positions before it; with the one
// behind the system prompt that makes the four that a request may have.
func mark(turns []turn) {
	var flat []any
	for _, t := range turns {
		flat = append(flat, t.Content...)
	}
	at := func(i int) bool { // not on the provider's own blocks
		b, ok := flat[i].(*block)
		if !ok || b.Cache != nil || (b.Type == "text" && b.Text == "") {
			return false
		}
		b.Cache = ephemeral
		return true
	}
	last := len(flat) - 1
	for last >= 0 && !at(last) {
		last--
	}
	marks := 0
	for i := (last - 1) / stride * stride; i > 0 && marks < 2; i -= stride {
		if at(i) {
			marks++
		}
	}
}

// wireID makes an id of another provider fit for this one, which takes letters, digits, _ and - only.
func wireID(id string) string {
	fit := func(r rune) rune {
		if r == '_' || r == '-' || (r >= '0' && r <= '9') || (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z') {
			return r
		}
		return '_'
	}
	clean := strings.Map(fit, id)
	if clean == id && id != "" {
		return id
	}
	h := fnv.New32a()
	h.Write([]byte(id))
	return fmt.Sprintf("%s_%08x", clean, h.Sum32()) // two ids must not become one
}
