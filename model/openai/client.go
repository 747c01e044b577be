// Package openai speaks OpenAI's Chat Completions API, streaming, as OpenAI and the many compatible servers speak it.
package openai

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"belay/message"
	"belay/model"
	"belay/model/wire"
)

// DefaultBaseURL is where OpenAI answers.
const DefaultBaseURL = "https://api.openai.com/v1"

// Config says which model to talk to, and where.
type Config struct {
	Model         string
	BaseURL       string         // "" is DefaultBaseURL; one without a path gets /v1
	Key           func() string  // the API key; nil for servers that want none
	HTTP          *http.Client   // nil is belay's own
	Idle          time.Duration  // longest silence of the connection; 0 is two minutes, ten for a local server
	Content       time.Duration  // longest time with keep-alives only; 0 is ten minutes
	ContextWindow int64          // tokens; 0 is what is known of the model
	Price         *message.Price // nil is what is known of the model
}

// Client is one model behind the Chat Completions API.
type Client struct {
	endpoint wire.Endpoint
	info     model.Info
	quirks   quirks
	said     wire.Memo
}

var (
	_ model.Client  = (*Client)(nil)
	_ model.Encoder = (*Client)(nil)
)

// New makes a client. It does not connect.
func New(cfg Config) *Client {
	c := &Client{info: model.Info{Provider: "openai", Model: cfg.Model}}
	base := baseURL(cfg.BaseURL)
	if base == DefaultBaseURL { // elsewhere, a name says nothing about window and price
		c.info = model.Known("openai", cfg.Model)
	}
	c.quirks = quirksOf(base, cfg.Model)
	c.endpoint = wire.Endpoint{Provider: "openai", Model: cfg.Model, BaseURL: base, Key: cfg.Key, KeyEnv: "OPENAI_API_KEY",
		URLEnv: "OPENAI_BASE_URL", HTTP: cfg.HTTP, Idle: cfg.Idle, Content: cfg.Content}
	if cfg.ContextWindow > 0 {
		c.info.ContextWindow = cfg.ContextWindow
	}
	if cfg.Price != nil {
		c.info.Price = cfg.Price
	}
	return c
}

func baseURL(base string) string {
	base = strings.TrimSuffix(strings.TrimRight(base, "/"), "/chat/completions")
	if base == "" {
		return DefaultBaseURL
	}
	if u, err := url.Parse(base); err == nil && u.Host != "" && u.Path == "" {
		return base + "/v1"
	}
	return base
}

// Info describes the model.
func (c *Client) Info() model.Info { return c.info }

// Stream sends the request and yields the reply.
func (c *Client) Stream(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		body, err := c.Encode(req)
		if err != nil {
			yield(model.Event{}, err)
			return
		}
		resp, err := c.endpoint.Do(ctx, http.MethodPost, "/chat/completions", c.header(req), body)
		if err != nil {
			yield(model.Event{}, err)
			return
		}
		defer func() { _ = resp.Body.Close() }()
		c.Decode(resp, req)(yield)
	}
}

// Decode turns an answer to req into events. Stream does so with what the server sends.
func (c *Client) Decode(resp *http.Response, req model.Request) iter.Seq2[model.Event, error] {
	return c.endpoint.Decode(resp, newDecoder(c, req))
}

func (c *Client) header(req model.Request) http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}}
	if key := c.endpoint.Secret(); key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
	c.endpoint.Place(h, req)
	return h
}

// reasoning says what a server wants to see of earlier thinking.
type reasoning int

const (
	dropThinking   reasoning = iota
	replayThinking           // reasoning_content with every call, else the server refuses the conversation
)

// quirks are what differs between servers and models of this dialect.
type quirks struct {
	host      string // suffix of the base URL's host; "" is any
	name      string // part of the model's name; "" is any
	limit     string // the field for the output limit
	cacheKey  bool   // takes prompt_cache_key
	reasoning reasoning
	callID    func(string) string
	tags      bool // models may mark thinking by tags in the text
	tight     bool // after results only the assistant may speak: what the user's side adds goes behind the last result
}

// servers is the quirk table; the first row that fits counts. State: 2026-11.
var servers = []quirks{
	{host: "api.openai.com", limit: "max_completion_tokens", cacheKey: true, callID: shortID},
	{host: "openai.azure.com", limit: "max_completion_tokens", callID: shortID},
	{host: "mistral.ai", limit: "max_tokens", callID: nineID, tags: true, tight: true},
	{host: "deepseek.com", limit: "max_tokens", reasoning: replayThinking, callID: verbatim},
	{host: "moonshot.ai", limit: "max_tokens", reasoning: replayThinking, callID: verbatim},
	{host: "moonshot.cn", limit: "max_tokens", reasoning: replayThinking, callID: verbatim},
	{name: "mistral", limit: "max_tokens", callID: nineID, tags: true, tight: true}, // local servers take the id rule from the model's template
	{name: "devstral", limit: "max_tokens", callID: nineID, tags: true, tight: true},
	{name: "magistral", limit: "max_tokens", callID: nineID, tags: true, tight: true},
	{limit: "max_tokens", tags: true, callID: verbatim},
}

func quirksOf(base, name string) quirks {
	host, name := "", strings.ToLower(name)
	if u, err := url.Parse(base); err == nil {
		host = u.Hostname()
	}
	for _, q := range servers {
		if (q.host == "" || host == q.host || strings.HasSuffix(host, "."+q.host)) && strings.Contains(name, q.name) {
			return q
		}
	}
	return quirks{}
}
