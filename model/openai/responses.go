package openai

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"strings"

	"belay/message"
	"belay/model"
	"belay/model/stream"
	"belay/model/wire"
)

// Responses is one model behind the Responses API, spoken without state on the server: all of a conversation is
// sent each time, encrypted reasoning among it.
type Responses struct {
	endpoint wire.Endpoint
	info     model.Info
	quirks   quirks
	effort   string
	refused  *wire.Refused
}

var (
	_ model.Client  = (*Responses)(nil)
	_ model.Encoder = (*Responses)(nil)
)

// NewResponses makes a client. It does not connect.
func NewResponses(cfg Config) *Responses {
	c := New(cfg) // the same places, names and limits
	c.endpoint.BaseURL = strings.TrimSuffix(c.endpoint.BaseURL, "/responses")
	return &Responses{endpoint: c.endpoint, info: c.info, quirks: c.quirks, effort: cfg.Effort,
		refused: wire.Optional(wire.EarlierReasoning, "reasoning.encrypted_content", "include", "prompt_cache_key", "tool_choice", "parallel_tool_calls", "text", "reasoning.summary", "reasoning", "strict", "store")}
}

// Info describes the model.
func (c *Responses) Info() model.Info { return c.info }

// Codec names the encoding.
func (c *Responses) Codec() string { return "openai-responses/1" + c.refused.Suffix() }

// Stream sends the request and yields the reply.
func (c *Responses) Stream(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	return c.endpoint.Send(ctx, wire.Exchange{Request: req, Path: "/responses", Header: c.header(req), Refused: c.refused,
		Encode:  func() ([]byte, error) { return c.Encode(req) },
		Dialect: func() wire.Dialect { return newItems(c, req) }})
}

// Decode turns an answer to req into events. Stream does so with what the server sends.
func (c *Responses) Decode(resp *http.Response, req model.Request) iter.Seq2[model.Event, error] {
	return c.endpoint.Decode(resp, newItems(c, req))
}

func (c *Responses) header(req model.Request) http.Header { return header(&c.endpoint, c.quirks, req) }

// The body, in the order in which it is sent: what never changes first, so that one request begins with the
// bytes of the one before it.
type responsesBody struct {
	Model           string          `json:"model"`
	Stream          bool            `json:"stream"`
	Store           *bool           `json:"store,omitempty"`
	Include         []string        `json:"include,omitempty"`
	MaxOutputTokens int64           `json:"max_output_tokens,omitempty"`
	PromptCacheKey  string          `json:"prompt_cache_key,omitempty"`
	Reasoning       *reasoningField `json:"reasoning,omitempty"`
	Instructions    string          `json:"instructions,omitempty"`
	Text            *textFormat     `json:"text,omitempty"`
	Tools           []flatTool      `json:"tools,omitempty"`
	Choice          any             `json:"tool_choice,omitempty"`
	Parallel        *bool           `json:"parallel_tool_calls,omitempty"`
	Input           []any           `json:"input"` // of the items below, or the provider's own bytes
}

type reasoningField struct {
	Effort  string `json:"effort,omitempty"`
	Summary string `json:"summary,omitempty"`
}

type flatTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict,omitempty"` // without it, OpenAI takes strict for granted
}

type textFormat struct {
	Format flatFormat `json:"format"`
}

type flatFormat struct {
	Type   string          `json:"type"`
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
	Strict bool            `json:"strict"`
}

type flatName struct {
	Type string `json:"type"`
	Name string `json:"name"`
}

type messageItem struct {
	Type    string `json:"type"`
	Role    string `json:"role"`
	Content []any  `json:"content"` // textPart or flatImage
}

type flatImage struct {
	Type string `json:"type"`
	URL  string `json:"image_url"`
}

type callItem struct {
	Type      string `json:"type"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type outputItem struct {
	Type   string `json:"type"`
	CallID string `json:"call_id"`
	Output any    `json:"output"` // its text, or parts with images
}

// encrypted is what asks for reasoning that can be sent back.
const encrypted = "reasoning.encrypted_content"

// Encode returns the body that Stream sends.
func (c *Responses) Encode(req model.Request) ([]byte, error) {
	no := false
	b := responsesBody{Model: c.info.Model, Stream: true, MaxOutputTokens: req.MaxOutput, Input: []any{}}
	if strings.TrimSpace(req.System) != "" {
		b.Instructions = req.System
	}
	if b.MaxOutputTokens > 0 {
		b.MaxOutputTokens = max(b.MaxOutputTokens, 16) // less is refused
	}
	if !c.refused.Has("store") {
		b.Store = &no
	}
	if !c.refused.Has("include") && !c.refused.Has(encrypted) {
		b.Include = []string{encrypted}
	}
	if c.quirks.cacheKey && len(req.PrefixHash) >= 32 && !c.refused.Has("prompt_cache_key") {
		b.PromptCacheKey = req.PrefixHash[:32]
	}
	if !c.refused.Has("reasoning") {
		r := reasoningField{Effort: c.effort}
		if c.quirks.summaries && reasons(c.info.Model) && !c.refused.Has("reasoning.summary") {
			r.Summary = "auto"
		}
		if r != (reasoningField{}) {
			b.Reasoning = &r
		}
	}
	for _, t := range req.Tools {
		tool := flatTool{Type: "function", Name: t.Name, Description: t.Description, Parameters: parameters(t.Schema)}
		if !c.refused.Has("strict") {
			strict := t.Strict && wire.Strict(t.Schema)
			tool.Strict = &strict
		}
		b.Tools = append(b.Tools, tool)
	}
	if req.Answer != nil && !c.refused.Has("text") {
		b.Text = &textFormat{flatFormat{"json_schema", "answer", req.Answer, wire.Strict(req.Answer)}}
	}
	if len(b.Tools) > 0 && !c.refused.Has("tool_choice") {
		switch name := req.Choice.Named(); {
		case name != "":
			b.Choice = flatName{"function", name}
		case req.Choice == model.ChooseNone:
			b.Choice = "none"
		case req.Choice == model.ChooseSome:
			b.Choice = "required"
		}
	}
	if len(b.Tools) > 0 && req.OneCall && !c.refused.Has("parallel_tool_calls") {
		b.Parallel = &no
	}
	keep := func(p message.Block) bool {
		switch p.Kind {
		case message.KindThinking, message.KindOpaque: // without its encrypted content the server knows nothing of it
			return wire.Bound(p.Opaque, c.info.Provider, c.info.Model, req.PrefixHash) && !c.refused.Stale(p.Opaque)
		}
		return true
	}
	custom := map[string]bool{} // calls whose input is no JSON
	for _, m := range wire.ArrangeInOrder(req.Messages, keep) {
		b.Input = append(b.Input, c.items(m, custom)...)
	}
	return encode(b)
}

// reasons says whether a model of OpenAI's thinks, and takes the fields for it.
func reasons(name string) bool {
	return !strings.HasPrefix(name, "gpt-4") && !strings.HasPrefix(name, "gpt-3")
}

// items makes an item of each call and result, and one of the texts between them.
func (c *Responses) items(m message.Message, custom map[string]bool) []any {
	var items []any
	kind := "input_text"
	if m.Role == message.Assistant {
		kind = "output_text"
	}
	say := func(part any) {
		if n := len(items); n > 0 {
			if last, ok := items[n-1].(*messageItem); ok {
				last.Content = append(last.Content, part)
				return
			}
		}
		items = append(items, &messageItem{"message", string(m.Role), []any{part}})
	}
	for i, p := range m.Blocks {
		own := wire.Bound(p.Opaque, c.info.Provider, c.info.Model, "")
		switch {
		case p.Kind == message.KindThinking || p.Kind == message.KindOpaque:
			if last := i == len(m.Blocks)-1; !last || p.Kind == message.KindOpaque { // reasoning without what it led to is refused
				items = append(items, p.Opaque.Raw)
			}
		case p.Call != nil && own:
			custom[p.Call.ID] = true
			items = append(items, p.Opaque.Raw)
		case p.Call != nil:
			items = append(items, callItem{"function_call", itemID(p.Call.ID), p.Call.Name, string(stream.History(*p.Call))})
		case p.Result != nil:
			text, images := wire.Shown(p.Result, c.info.Images)
			if p.Result.Error && !strings.HasPrefix(strings.ToLower(text), "error") { // there is no field for it
				text = "Error: " + text
			}
			out := outputItem{"function_call_output", itemID(p.Result.CallID), text}
			if len(images) > 0 {
				parts := []any{textPart{"input_text", text}}
				for _, img := range images {
					parts = append(parts, flatImage{"input_image", wire.DataURL(img)})
				}
				out.Output = parts
			}
			if custom[p.Result.CallID] {
				out.Type, out.CallID = "custom_tool_call_output", p.Result.CallID
			}
			items = append(items, out)
		case own:
			items = append(items, p.Opaque.Raw)
		case p.Image != nil:
			if why := wire.Unshown(*p.Image, c.info.Images); why != "" {
				say(textPart{kind, why})
			} else {
				say(flatImage{"input_image", wire.DataURL(*p.Image)})
			}
		default:
			say(textPart{kind, p.Text})
		}
	}
	return items
}

// itemID keeps to the 64 characters that OpenAI takes here.
func itemID(id string) string { return short(id, 64) }

func parameters(schema json.RawMessage) json.RawMessage {
	if len(schema) == 0 {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return schema
}
