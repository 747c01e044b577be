package serve

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"belay/message"
	"belay/model"
	"belay/model/stream"
	"belay/model/wire"
)

type anthropicDialect struct {
	signed   bool
	counting bool // max_tokens is not needed
}

type anthropicRequest struct {
	Model     string            `json:"model"`
	MaxTokens *int64            `json:"max_tokens"`
	Stream    bool              `json:"stream"`
	System    json.RawMessage   `json:"system"`
	Tools     []json.RawMessage `json:"tools"`
	Messages  []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Temperature json.RawMessage `json:"temperature"`
	TopP        json.RawMessage `json:"top_p"`
	TopK        json.RawMessage `json:"top_k"`
}

type anthropicBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
	Cache     json.RawMessage `json:"cache_control"`
}

// anthropicFields are those that a request may have.
var anthropicFields = []string{"model", "max_tokens", "stream", "system", "tools", "messages", "temperature", "top_p", "top_k",
	"tool_choice", "thinking", "output_config", "cache_control", "diagnostics", "container", "context_management", "compaction", "mcp_servers",
	"fallbacks", "thread", "speed", "service_tier", "inference_geo", "metadata", "stop_sequences", "betas"}

var (
	anthropicName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`) })
	anthropicID   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_-]+$`) })
)

func (d *anthropicDialect) read(header http.Header, body []byte) (incoming, error) {
	var r anthropicRequest
	var in incoming
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return in, invalid("The request body is not valid JSON: %v", err)
	}
	for name := range fields {
		if !slices.Contains(anthropicFields, name) {
			return in, invalid("%s: Extra inputs are not permitted", name)
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return in, invalid("%v", err)
	}
	version := header.Get("Anthropic-Version")
	switch {
	case version == "":
		return in, invalid("anthropic-version: header is required")
	case r.Model == "":
		return in, invalid("model: Field required")
	case !d.counting && r.MaxTokens == nil:
		return in, invalid("max_tokens: Field required")
	case r.MaxTokens != nil && *r.MaxTokens < 0:
		return in, invalid("max_tokens: Input should be greater than or equal to 0")
	case len(r.Messages) == 0:
		return in, invalid("messages: at least one message is required")
	case version >= "2026-10-21" && (r.Temperature != nil || r.TopP != nil || r.TopK != nil):
		return in, invalid("temperature, top_p and top_k are not supported in this version")
	}
	in.model, in.stream, in.MaxOutput = r.Model, r.Stream, 0
	if r.MaxTokens != nil {
		in.MaxOutput = *r.MaxTokens
	}
	c := anthropicCheck{signed: d.signed, ids: map[string]bool{}}
	var err error
	if in.System, err = c.system(r.System); err != nil {
		return in, err
	}
	if in.Tools, err = c.tools(r.Tools); err != nil {
		return in, err
	}
	for i, m := range r.Messages {
		if m.Role != "user" && m.Role != "assistant" {
			return in, invalid("messages.%d.role: Input should be 'user' or 'assistant'", i)
		}
		blocks, err := c.blocks(i, m.Role, m.Content, i == len(r.Messages)-1)
		if err != nil {
			return in, err
		}
		in.Messages = append(in.Messages, message.Message{Role: message.Role(m.Role), Blocks: blocks})
	}
	if c.marks > 4 {
		return in, invalid("A maximum of 4 blocks with cache_control may be provided. Found %d.", c.marks)
	}
	return in, c.pairs(in.Messages)
}

// anthropicCheck is what the check of a request keeps in mind.
type anthropicCheck struct {
	signed bool
	ids    map[string]bool
	marks  int
}

func (c *anthropicCheck) mark(raw json.RawMessage) {
	if len(raw) > 0 && string(raw) != "null" {
		c.marks++
	}
}

func (c *anthropicCheck) system(raw json.RawMessage) (string, error) {
	var s string
	if len(raw) == 0 || json.Unmarshal(raw, &s) == nil {
		return s, nil
	}
	var blocks []anthropicBlock
	if err := json.Unmarshal(raw, &blocks); err != nil {
		return "", invalid("system: Input should be a string or a list of text blocks")
	}
	var texts []string
	for i, b := range blocks {
		if b.Type != "text" || strings.TrimSpace(b.Text) == "" {
			return "", invalid("system.%d: text content blocks must be non-empty", i)
		}
		c.mark(b.Cache)
		texts = append(texts, b.Text)
	}
	return strings.Join(texts, "\n\n"), nil
}

func (c *anthropicCheck) tools(raws []json.RawMessage) ([]model.Tool, error) {
	var tools []model.Tool
	names := map[string]bool{}
	for i, raw := range raws {
		var t struct {
			Type        string          `json:"type"`
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Schema      json.RawMessage `json:"input_schema"`
			Cache       json.RawMessage `json:"cache_control"`
		}
		if err := json.Unmarshal(raw, &t); err != nil {
			return nil, invalid("tools.%d: %v", i, err)
		}
		c.mark(t.Cache)
		switch {
		case t.Type != "" && t.Type != "custom": // a tool of the provider's
			continue
		case !anthropicName().MatchString(t.Name):
			return nil, invalid("tools.%d.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", i)
		case names[t.Name]:
			return nil, invalid("tools: Tool names must be unique.")
		case !objectSchema(t.Schema):
			return nil, invalid("tools.%d.custom.input_schema.type: Field required, and must be 'object'", i)
		}
		names[t.Name] = true
		tools = append(tools, model.Tool{Name: t.Name, Description: t.Description, Schema: t.Schema})
	}
	return tools, nil
}

// objectSchema says whether a tool's schema describes an object.
func objectSchema(raw json.RawMessage) bool {
	var schema struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(raw, &schema) == nil && schema.Type == "object"
}

func (c *anthropicCheck) blocks(i int, role string, raw json.RawMessage, last bool) ([]message.Block, error) {
	var s string
	var list []anthropicBlock
	if json.Unmarshal(raw, &s) == nil && len(raw) > 0 {
		list = []anthropicBlock{{Type: "text", Text: s}}
	} else if err := json.Unmarshal(raw, &list); err != nil {
		return nil, invalid("messages.%d.content: Input should be a string or a list of content blocks", i)
	}
	if len(list) == 0 && (role != "assistant" || !last) {
		return nil, invalid("messages.%d: all messages must have non-empty content except for the optional final assistant message", i)
	}
	var out []message.Block
	called := false
	for k, b := range list {
		at := fmt.Sprintf("messages.%d.content.%d", i, k)
		c.mark(b.Cache)
		switch b.Type {
		case "text":
			if strings.TrimSpace(b.Text) == "" {
				return nil, invalid("messages: text content blocks must be non-empty (%s)", at)
			}
			if called {
				return nil, invalid("%s: text follows tool_use within one assistant message", at)
			}
			out = append(out, message.Text(b.Text))
		case "thinking":
			if role != "assistant" {
				return nil, invalid("%s: thinking blocks may only be in assistant messages", at)
			}
			if len(b.Cache) > 0 {
				return nil, invalid("%s.thinking.cache_control: Extra inputs are not permitted", at)
			}
			if b.Signature != c.sign(b.Thinking) {
				return nil, invalid("%s: Invalid `signature` in `thinking` block", at)
			}
			out = append(out, message.Block{Kind: message.KindThinking, Text: b.Thinking})
		case "redacted_thinking":
		case "tool_use":
			var input map[string]json.RawMessage
			switch {
			case role != "assistant":
				return nil, invalid("%s: `tool_use` blocks can only be in `assistant` messages", at)
			case !anthropicID().MatchString(b.ID):
				return nil, invalid("%s.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", at)
			case c.ids[b.ID]:
				return nil, invalid("messages: `tool_use` ids must be unique (%s)", b.ID)
			case !anthropicName().MatchString(b.Name):
				return nil, invalid("%s.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", at)
			case json.Unmarshal(b.Input, &input) != nil || input == nil:
				return nil, invalid("%s.tool_use.input: Input should be a valid dictionary", at)
			}
			c.ids[b.ID], called = true, true
			call := message.ToolCall{ID: b.ID, Name: b.Name}
			call.Args, call.BadArgs = stream.FromHistory(b.Input)
			out = append(out, message.Block{Kind: message.KindCall, Call: &call})
		case "tool_result":
			if role != "user" {
				return nil, invalid("%s: `tool_result` blocks can only be in `user` messages", at)
			}
			text, err := textOf(b.Content)
			if err != nil {
				return nil, invalid("%s.tool_result.content: %v", at, err)
			}
			out = append(out, message.Block{Kind: message.KindResult, Result: &message.ToolResult{CallID: b.ToolUseID, Text: text, Error: b.IsError}})
		case "image", "document", "search_result":
			out = append(out, message.Text("["+b.Type+"]"))
		default:
			return nil, invalid("%s: Input tag '%s' found using 'type' does not match any of the expected tags", at, b.Type)
		}
	}
	if n := len(list); last && role == "assistant" && n > 0 && list[n-1].Type == "text" && strings.TrimRight(list[n-1].Text, " \t\r\n") != list[n-1].Text {
		return nil, invalid("messages: final assistant content cannot end with trailing whitespace")
	}
	return out, nil
}

// textOf reads a content that is a string or a list of text parts.
func textOf(raw json.RawMessage) (string, error) {
	var s string
	if len(raw) == 0 || json.Unmarshal(raw, &s) == nil {
		return s, nil
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil {
		return "", fmt.Errorf("input should be a string or a list of content blocks")
	}
	var texts []string
	for _, p := range parts {
		if p.Type == "" {
			return "", fmt.Errorf("a content block has no type")
		}
		texts = append(texts, p.Text)
	}
	return strings.Join(texts, "\n"), nil
}

// pairs checks that calls and results stand where they must, in turns as the server merges them.
func (c *anthropicCheck) pairs(messages []message.Message) error {
	if messages[0].Role != message.User {
		return invalid("messages: first message must use the \"user\" role")
	}
	var open []string // calls that wait for results
	var before message.Role
	for i, m := range messages {
		var first = m.Role != before // of its merged turn
		before = m.Role
		texts := false
		for _, b := range m.Blocks {
			switch {
			case b.Call != nil:
				open = append(open, b.Call.ID)
			case b.Result != nil && texts && first:
				return invalid("messages.%d: `tool_result` blocks must come first in their message", i)
			case b.Result != nil:
				k := slices.Index(open, b.Result.CallID)
				if k < 0 {
					return invalid("messages.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", i, b.Result.CallID)
				}
				open = slices.Delete(open, k, k+1)
			default:
				texts = true
			}
		}
		if next := i + 1; len(open) > 0 && m.Role == message.User && (next == len(messages) || messages[next].Role != message.User) {
			return invalid("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", i, strings.Join(open, ", "))
		}
	}
	if len(open) > 0 {
		return invalid("messages: `tool_use` ids were found without `tool_result` blocks immediately after: %s.", strings.Join(open, ", "))
	}
	return nil
}

// sign is a stand-in for a provider's signature: it depends on every byte of the thinking.
func (c *anthropicCheck) sign(thinking string) string {
	if !c.signed {
		return ""
	}
	h := sha256.Sum256([]byte("rehearsal\n" + thinking))
	return base64.StdEncoding.EncodeToString(h[:])
}

var anthropicStops = map[message.StopReason]string{
	message.StopEnd: "end_turn", message.StopToolUse: "tool_use", message.StopLength: "max_tokens", message.StopRefusal: "refusal", message.StopPause: "pause_turn",
}

func anthropicUsage(u message.Usage) map[string]any {
	return map[string]any{"input_tokens": u.Input, "output_tokens": u.Output, "cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": u.CacheWrite}
}

func (d *anthropicDialect) message(in incoming, id string) map[string]any {
	return map[string]any{"id": "msg_" + id, "type": "message", "role": "assistant", "model": in.model, "content": []any{}, "stop_reason": nil, "stop_sequence": nil}
}

func (d *anthropicDialect) whole(in incoming, reply model.Reply, id string) any {
	c := anthropicCheck{signed: d.signed}
	content := []any{}
	for _, b := range reply.Blocks {
		switch b.Kind {
		case message.KindThinking:
			content = append(content, map[string]any{"type": "thinking", "thinking": b.Text, "signature": c.sign(b.Text)})
		case message.KindCall: // bad arguments are no JSON, which only a stream can carry: here they are a string
			var input any = b.Call.Args
			if b.Call.BadArgs != "" {
				input = stream.Raw(*b.Call)
			}
			content = append(content, map[string]any{"type": "tool_use", "id": b.Call.ID, "name": b.Call.Name, "input": input})
		default:
			content = append(content, map[string]any{"type": "text", "text": b.Text})
		}
	}
	m := d.message(in, id)
	m["content"], m["stop_reason"], m["usage"] = content, anthropicStops[reply.Stop], anthropicUsage(reply.Usage)
	return m
}

func (d *anthropicDialect) events(in incoming, reply model.Reply, id string) []frame {
	c := anthropicCheck{signed: d.signed}
	event := func(kind string, fields map[string]any) frame {
		fields["type"] = kind
		return frame{kind, fields}
	}
	first := d.message(in, id)
	start := reply.Usage
	start.Output = min(start.Output, 1) // the rest is counted at the end
	first["usage"] = anthropicUsage(start)
	frames := []frame{event("message_start", map[string]any{"message": first}), event("ping", map[string]any{})}
	for i, b := range reply.Blocks {
		delta := func(kind, field, text string) {
			frames = append(frames, event("content_block_delta", map[string]any{"index": i, "delta": map[string]any{"type": kind, field: text}}))
		}
		open := func(block map[string]any) {
			frames = append(frames, event("content_block_start", map[string]any{"index": i, "content_block": block}))
		}
		switch b.Kind {
		case message.KindThinking:
			open(map[string]any{"type": "thinking", "thinking": "", "signature": ""})
			for _, s := range splitText(b.Text) {
				delta("thinking_delta", "thinking", s)
			}
			if s := c.sign(b.Text); s != "" {
				delta("signature_delta", "signature", s)
			}
		case message.KindCall:
			open(map[string]any{"type": "tool_use", "id": b.Call.ID, "name": b.Call.Name, "input": map[string]any{}})
			delta("input_json_delta", "partial_json", "")
			for _, s := range splitArgs(stream.Raw(*b.Call)) {
				delta("input_json_delta", "partial_json", s)
			}
		default:
			open(map[string]any{"type": "text", "text": ""})
			for _, s := range splitText(b.Text) {
				delta("text_delta", "text", s)
			}
		}
		frames = append(frames, event("content_block_stop", map[string]any{"index": i}))
	}
	return append(frames,
		event("message_delta", map[string]any{"delta": map[string]any{"stop_reason": anthropicStops[reply.Stop], "stop_sequence": nil}, "usage": map[string]any{"output_tokens": reply.Usage.Output}}),
		event("message_stop", map[string]any{}))
}

var anthropicErrors = map[int]string{
	401: "authentication_error", 402: "billing_error", 403: "permission_error", 404: "not_found_error", 409: "conflict_error",
	413: "request_too_large", 429: "rate_limit_error", 504: "timeout_error", 529: "overloaded_error",
}

func (d *anthropicDialect) fault(status int, e *model.Error) any {
	kind, text := anthropicErrors[status], e.Message
	switch {
	case e.Class == model.Script:
		kind = wire.ScriptErrorType
	case e.ContextTooLarge && status != 413 && !strings.Contains(text, "prompt is too long"):
		text = "prompt is too long: " + text
	case kind == "" && status >= 500:
		kind = "api_error"
	}
	if kind == "" {
		kind = "invalid_request_error"
	}
	return map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": text}, "request_id": "req_rehearsal"}
}
