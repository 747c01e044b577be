package harness

import (
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"

	"belay/message"
	"belay/model"
	"belay/model/anthropic"
	"belay/model/gemini"
	"belay/model/openai"
)

// Codec is one dialect's wire: it encodes requests and decodes answers, and connects to nobody.
type Codec interface {
	model.Client
	model.Encoder
	Decode(resp *http.Response, req model.Request) iter.Seq2[model.Event, error]
}

// CodecOf makes the codec of a dialect for a model of a provider; "" is the dialect's own provider.
func CodecOf(d model.Dialect, provider, name string) (Codec, error) {
	var p model.Provider
	if provider != "" {
		known, ok := model.ProviderNamed(provider)
		if !ok {
			return nil, &UsageError{fmt.Errorf("no provider is called %q; `belay model ls` lists them", provider)}
		}
		p = known
	}
	switch d {
	case model.Anthropic:
		return anthropic.New(anthropic.Config{Model: name}), nil
	case model.OpenAIChat:
		base := p.BaseURL
		if base == "" {
			base = "http://127.0.0.1/v1" // a compatible server of which nothing is known
		}
		return openai.New(openai.Config{Model: name, Provider: p, BaseURL: base}), nil
	case model.OpenAIResponses:
		return openai.NewResponses(openai.Config{Model: name, Provider: p}), nil
	case model.Gemini:
		return gemini.New(gemini.Config{Model: name, Provider: p}), nil
	}
	return nil, &UsageError{fmt.Errorf("no dialect is called %q: there are %v", d, model.Dialects)}
}

// RawBlocks returns the blocks of a reply as the dialect sends them back with the next request: content blocks,
// items, parts, or the message of Chat Completions.
func RawBlocks(c Codec, d model.Dialect, blocks []message.Block) ([]json.RawMessage, error) {
	body, err := c.Encode(model.Request{Messages: []message.Message{message.UserText("-"), {Role: message.Assistant, Blocks: blocks}, message.UserText("-")}})
	if err != nil {
		return nil, err
	}
	var sent struct {
		Messages []json.RawMessage `json:"messages"` // Anthropic and Chat Completions
		Input    []json.RawMessage `json:"input"`    // Responses
		Contents []json.RawMessage `json:"contents"` // Gemini
	}
	if err := json.Unmarshal(body, &sent); err != nil {
		return nil, fmt.Errorf("read the encoded request: %w", err)
	}
	raw := []json.RawMessage{}
	for _, m := range slices.Concat(sent.Messages, sent.Input, sent.Contents) {
		var one struct {
			Type    string            `json:"type"`
			Role    string            `json:"role"`
			Content json.RawMessage   `json:"content"`
			Parts   []json.RawMessage `json:"parts"`
		}
		if err := json.Unmarshal(m, &one); err != nil {
			return nil, fmt.Errorf("read the encoded request: %w", err)
		}
		switch {
		case d == model.OpenAIResponses && one.Role != "user" && !strings.HasSuffix(one.Type, "_output"):
			raw = append(raw, m)
		case d == model.OpenAIChat && one.Role == "assistant":
			raw = append(raw, m)
		case d == model.Anthropic && one.Role == "assistant":
			var content []json.RawMessage
			if err := json.Unmarshal(one.Content, &content); err != nil {
				return nil, fmt.Errorf("read the encoded request: %w", err)
			}
			raw = append(raw, content...)
		case d == model.Gemini && one.Role == "model":
			raw = append(raw, one.Parts...)
		}
	}
	return raw, nil
}
