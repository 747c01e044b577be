package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"belay/message"
	"belay/model"
	"belay/model/stream"
	"belay/model/wire"
)

// Codec names the encoding.
func (c *Client) Codec() string { return "openai-chat/1" + c.refused.Suffix() }

// The body, in the order in which it is sent: what never changes first, so that one request begins with the
// bytes of the one before it.
type body struct {
	Model               string          `json:"model"`
	Stream              bool            `json:"stream"`
	StreamOptions       *streamOptions  `json:"stream_options,omitempty"`
	MaxTokens           int64           `json:"max_tokens,omitempty"`
	MaxCompletionTokens int64           `json:"max_completion_tokens,omitempty"`
	PromptCacheKey      string          `json:"prompt_cache_key,omitempty"`
	ReasoningEffort     string          `json:"reasoning_effort,omitempty"`
	Reasoning           *reasoningField `json:"reasoning,omitempty"`
	Format              *answerFormat   `json:"response_format,omitempty"`
	Tools               []toolSpec      `json:"tools,omitempty"`
	Choice              any             `json:"tool_choice,omitempty"`
	Parallel            *bool           `json:"parallel_tool_calls,omitempty"`
	Messages            []turn          `json:"messages"` // last, so that they can be added to the encoding
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type toolSpec struct {
	Type     string   `json:"type"`
	Function function `json:"function"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict,omitempty"`
}

type answerFormat struct {
	Type   string       `json:"type"`
	Schema answerSchema `json:"json_schema"`
}

type answerSchema struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
	Strict bool            `json:"strict,omitempty"`
}

type namedFunction struct {
	Type     string       `json:"type"`
	Function functionName `json:"function"`
}

type functionName struct {
	Name string `json:"name"`
}

type turn struct {
	Role       string          `json:"role"`
	Content    any             `json:"content"` // string, []textPart, or null beside calls
	Reasoning  *string         `json:"reasoning_content,omitempty"`
	Details    json.RawMessage `json:"reasoning_details,omitempty"`
	ToolCalls  []toolCall      `json:"tool_calls,omitempty"`
	ToolCallID string          `json:"tool_call_id,omitempty"`
}

type textPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type imagePart struct {
	Type  string   `json:"type"`
	Image imageURL `json:"image_url"`
}

type imageURL struct {
	URL string `json:"url"`
}

type toolCall struct {
	ID       string          `json:"id"`
	Type     string          `json:"type"`
	Function calledByName    `json:"function"`
	Extra    json.RawMessage `json:"extra_content,omitempty"` // Google's thought signature
}

type calledByName struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Encode returns the body that Stream sends.
func (c *Client) Encode(req model.Request) ([]byte, error) {
	b := body{Model: c.info.Model, Stream: true, Messages: []turn{}}
	if !c.quirks.noUsage && !c.refused.Has("stream_options") {
		b.StreamOptions = &streamOptions{true}
	}
	switch {
	case c.effort == "" || c.quirks.effort == "-" || c.refused.Has("reasoning_effort"):
	case c.quirks.effort == "reasoning.effort":
		b.Reasoning = &reasoningField{Effort: c.effort}
	default:
		b.ReasoningEffort = c.effort
	}
	switch c.quirks.limit {
	case "max_completion_tokens":
		b.MaxCompletionTokens = req.MaxOutput
	default:
		b.MaxTokens = req.MaxOutput
	}
	if c.quirks.cacheKey && len(req.PrefixHash) >= 32 && !c.refused.Has("prompt_cache_key") {
		b.PromptCacheKey = req.PrefixHash[:32]
	}
	for _, t := range req.Tools {
		strict := t.Strict && !c.refused.Has("strict") && wire.Strict(t.Schema)
		b.Tools = append(b.Tools, toolSpec{"function", function{t.Name, t.Description, parameters(t.Schema), strict}})
	}
	if req.Answer != nil && !c.refused.Has("response_format") {
		b.Format = &answerFormat{"json_schema", answerSchema{"answer", req.Answer, wire.Strict(req.Answer)}}
	}
	if len(b.Tools) > 0 && !c.refused.Has("tool_choice") {
		switch name := req.Choice.Named(); {
		case name != "":
			b.Choice = namedFunction{"function", functionName{name}}
		case req.Choice == model.ChooseNone:
			b.Choice = "none"
		case req.Choice == model.ChooseSome:
			b.Choice = "required"
		}
	}
	if len(b.Tools) > 0 && req.OneCall && !c.refused.Has("parallel_tool_calls") {
		b.Parallel = new(bool)
	}
	if strings.TrimSpace(req.System) != "" {
		b.Messages = append(b.Messages, turn{Role: "system", Content: req.System})
	}
	keep := func(p message.Block) bool { // this dialect has no place for opaque blocks, only for what a few servers add to others
		switch {
		case p.Kind == message.KindOpaque:
			return false
		case p.Kind != message.KindThinking || c.quirks.reasoning == replayThinking:
			return true
		case c.quirks.reasoning == echoThinking:
			return !c.refused.Has("reasoning_content")
		}
		return c.quirks.reasoning != dropThinking && c.own(p)
	}
	out, err := encode(b)
	if err != nil {
		return nil, err
	}
	const end = "]}"
	out = bytes.TrimSuffix(out, []byte(end))
	started := len(b.Messages) > 0
	if started {
		out = append(out, ',')
	}
	before := len(out)
	out, err = c.said.Append(out, c.refused.State(), req.Messages, keep, c.encodeTurns)
	if err != nil {
		return nil, err
	}
	if started && len(out) == before {
		out = out[:before-1]
	}
	return append(out, end...), nil
}

// own says whether a block carries what this provider and model have added to it.
func (c *Client) own(p message.Block) bool {
	return wire.Bound(p.Opaque, c.info.Provider, c.info.Model, "") && !c.refused.Stale(p.Opaque)
}

func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode the request for openai: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// encodeTurns encodes what a message becomes, as elements of a list.
func (c *Client) encodeTurns(m message.Message) ([]byte, error) {
	turns := c.turns(m)
	if len(turns) == 0 {
		return nil, nil
	}
	list, err := encode(turns)
	if err != nil {
		return nil, err
	}
	return list[1 : len(list)-1], nil
}

// turns makes a tool message of each result, and one message of the rest.
func (c *Client) turns(m message.Message) []turn {
	var turns []turn
	var texts []string
	var thinking string
	var details json.RawMessage
	var parts, images []any
	var calls []toolCall
	for _, p := range m.Blocks {
		switch {
		case p.Result != nil:
			text, shown := wire.Shown(p.Result, c.info.Images)
			for _, img := range shown { // a tool's message holds text only
				images = append(images, imagePart{"image_url", imageURL{wire.DataURL(img)}})
			}
			if p.Result.Error && !strings.HasPrefix(strings.ToLower(text), "error") { // there is no field for it
				text = "Error: " + text
			}
			turns = append(turns, turn{Role: "tool", Content: text, ToolCallID: c.quirks.callID(p.Result.CallID)})
		case p.Call != nil:
			call := toolCall{ID: c.quirks.callID(p.Call.ID), Type: "function", Function: calledByName{p.Call.Name, string(stream.History(*p.Call))}}
			if c.own(p) {
				call.Extra = p.Opaque.Raw
			}
			calls = append(calls, call)
		case p.Kind == message.KindThinking && c.quirks.reasoning == replayDetails:
			if !c.refused.Has("reasoning_details") {
				details = p.Opaque.Raw
			}
		case p.Kind == message.KindThinking && c.quirks.reasoning == replayParts:
			parts = append(parts, p.Opaque.Raw)
		case p.Kind == message.KindThinking:
			thinking += p.Text
		case p.Image != nil:
			if why := wire.Unshown(*p.Image, c.info.Images); why != "" {
				texts = append(texts, why)
			} else {
				images = append(images, imagePart{"image_url", imageURL{wire.DataURL(*p.Image)}})
			}
		default:
			texts = append(texts, p.Text)
		}
	}
	if n := len(turns); c.quirks.tight && n > 0 && len(texts) > 0 {
		turns[n-1].Content = strings.Join(append([]string{turns[n-1].Content.(string)}, texts...), "\n\n")
		return turns
	}
	if len(images) > 0 && m.Role == message.User {
		for _, s := range texts {
			parts = append(parts, textPart{"text", s})
		}
		return append(turns, turn{Role: string(m.Role), Content: append(parts, images...)})
	}
	if len(texts) == 0 && len(calls) == 0 {
		return turns // only results, or only thinking, which is no answer
	}
	t := turn{Role: string(m.Role), Content: contentOf(m.Role, texts), ToolCalls: calls, Details: details}
	if len(parts) > 0 {
		for _, s := range texts {
			parts = append(parts, textPart{"text", s})
		}
		t.Content = parts
	}
	if m.Role == message.Assistant && (c.quirks.reasoning == replayThinking || thinking != "") {
		t.Reasoning = &thinking
	}
	return append(turns, t)
}

// contentOf is one text as a string and several as parts: strict servers want one message for each side's turn.
// Few servers take parts from the assistant.
func contentOf(role message.Role, texts []string) any {
	switch {
	case len(texts) == 0:
		return nil
	case len(texts) == 1:
		return texts[0]
	case role == message.Assistant:
		return strings.Join(texts, "\n")
	}
	parts := make([]textPart, len(texts))
	for i, s := range texts {
		parts[i] = textPart{"text", s}
	}
	return parts
}
