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
func (c *Client) Codec() string { return "anthropic/1" + c.refused.Suffix() }

// The body, in the order in which it is sent: what never changes first, so that one request begins with the
// bytes of the one before it, but for the cache marks.
type body struct {
	Model     string          `json:"model"`
	MaxTokens int64           `json:"max_tokens"`
	Stream    bool            `json:"stream"`
	Thinking  json.RawMessage `json:"thinking,omitempty"`
	Output    *outputConfig   `json:"output_config,omitempty"`
	Tools     []toolSpec      `json:"tools,omitempty"`
	Choice    *toolChoice     `json:"tool_choice,omitempty"`
	System    []any           `json:"system,omitempty"`
	Messages  []turn          `json:"messages"`
}

type outputConfig struct {
	Effort string        `json:"effort,omitempty"`
	Format *outputFormat `json:"format,omitempty"`
}

type outputFormat struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

type toolChoice struct {
	Type    string `json:"type"`
	Name    string `json:"name,omitempty"`
	OneCall bool   `json:"disable_parallel_tool_use,omitempty"`
}

type toolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"input_schema"`
	Strict      bool            `json:"strict,omitempty"`
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
	Content   any             `json:"content,omitempty"` // of a result: its text, or []*block with images
	Source    *source         `json:"source,omitempty"`  // of an image
	IsError   bool            `json:"is_error,omitempty"`
	Cache     *cacheControl   `json:"cache_control,omitempty"`
}

type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"`
}

type cacheControl struct {
	Type string `json:"type"`
	TTL  string `json:"ttl,omitempty"`
}

// What stands before the conversation is kept for an hour, so that a run that waited for a person, or was resumed,
// finds it: it is written once. The conversation itself grows each turn, and five minutes are enough.
var (
	ephemeral = &cacheControl{Type: "ephemeral"}
	hourly    = &cacheControl{Type: "ephemeral", TTL: "1h"}
)

// Encode returns the body that Stream sends.
func (c *Client) Encode(req model.Request) ([]byte, error) {
	b := body{Model: c.info.Model, MaxTokens: req.MaxOutput, Stream: true, Messages: []turn{}}
	if b.MaxTokens <= 0 {
		b.MaxTokens = c.quirks.maxOutput
	}
	c.thought(&b)
	for _, t := range req.Tools {
		schema := t.Schema
		if len(schema) == 0 {
			schema = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		strict := t.Strict && !c.refused.Has("strict") && wire.Strict(schema)
		b.Tools = append(b.Tools, toolSpec{Name: t.Name, Description: t.Description, Schema: schema, Strict: strict})
	}
	c.choose(&b, req)
	cache, prefix := ephemeral, ephemeral
	if c.hourly && !c.refused.Has("ttl") {
		prefix = hourly
	}
	if c.refused.Has("cache_control") {
		cache, prefix = nil, nil
	}
	if strings.TrimSpace(req.System) != "" {
		b.System = []any{&block{Type: "text", Text: req.System, Cache: prefix}}
	} else if n := len(b.Tools); n > 0 {
		b.Tools[n-1].Cache = prefix
	}
	keep := func(o message.Block) bool {
		switch o.Kind {
		case message.KindThinking, message.KindOpaque: // unsigned thinking is refused
			return wire.Bound(o.Opaque, c.info.Provider, c.info.Model, req.PrefixHash) && !c.refused.Stale(o.Opaque)
		}
		return true
	}
	for _, m := range wire.Arrange(req.Messages, keep) {
		t := turn{Role: m.Role}
		for _, p := range m.Blocks {
			t.Content = append(t.Content, c.part(p))
		}
		b.Messages = append(b.Messages, t)
	}
	if n := len(b.Messages); n > 0 && b.Messages[n-1].Role == message.Assistant {
		content := b.Messages[n-1].Content
		if last, ok := content[len(content)-1].(*block); ok && last.Type == "text" { // refused with white space at its end
			last.Text = strings.TrimRight(last.Text, " \t\r\n")
		}
	}
	if cache != nil {
		mark(b.Messages)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(b); err != nil {
		return nil, fmt.Errorf("encode the request for anthropic: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// choose says what kind of reply is asked for. Forcing a call is refused beside thinking, and by models that always think.
func (c *Client) choose(b *body, req model.Request) {
	if req.Answer != nil && !c.refused.Has("format") && !c.refused.Has("output_config") {
		if b.Output == nil {
			b.Output = &outputConfig{}
		}
		b.Output.Format = &outputFormat{"json_schema", req.Answer}
	}
	if len(b.Tools) == 0 || c.refused.Has("tool_choice") {
		return
	}
	choice := toolChoice{Type: "auto", OneCall: req.OneCall}
	forced := b.Thinking == nil && c.quirks.effort != outputEffort
	switch name := req.Choice.Named(); {
	case req.Choice == model.ChooseNone:
		choice = toolChoice{Type: "none"}
	case name != "" && forced:
		choice.Type, choice.Name = "tool", name
	case req.Choice == model.ChooseSome && forced:
		choice.Type = "any"
	}
	if choice != (toolChoice{Type: "auto"}) {
		b.Choice = &choice
	}
}

// image is a picture as this dialect takes it, or the text that stands in its place.
func (c *Client) image(img message.Image) *block {
	if why := wire.Unshown(img, c.info.Images); why != "" {
		return &block{Type: "text", Text: why}
	}
	return &block{Type: "image", Source: &source{"base64", img.MediaType, img.Data}}
}

func (c *Client) part(p message.Block) any {
	switch {
	case p.Opaque != nil && (p.Kind == message.KindThinking || p.Kind == message.KindOpaque): // beside others it is another provider's
		return p.Opaque.Raw
	case p.Call != nil:
		return &block{Type: "tool_use", ID: wireID(p.Call.ID), Name: p.Call.Name, Input: stream.History(*p.Call)}
	case p.Result != nil:
		out := &block{Type: "tool_result", ToolUseID: wireID(p.Result.CallID), IsError: p.Result.Error}
		text, images := wire.Shown(p.Result, c.info.Images)
		if len(images) == 0 && text != "" {
			out.Content = text
		}
		if len(images) > 0 {
			var parts []*block
			if strings.TrimSpace(text) != "" {
				parts = append(parts, &block{Type: "text", Text: text})
			}
			for _, img := range images {
				parts = append(parts, c.image(img))
			}
			out.Content = parts
		}
		return out
	case p.Image != nil:
		return c.image(*p.Image)
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
