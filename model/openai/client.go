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
	Provider      model.Provider // who answers; the zero value is OpenAI
	BaseURL       string         // "" is the provider's own; one without a path gets /v1
	Key           func() string  // the API key; nil for servers that want none
	Effort        string         // how much to think, in the provider's own words; "" leaves it to the model
	HTTP          *http.Client   // nil is belay's own
	Idle          time.Duration  // longest silence of the connection; 0 is two minutes, ten for a local server
	Content       time.Duration  // longest time with keep-alives only; 0 is ten minutes
	ContextWindow int64          // tokens; 0 is what is known of the model
	Price         *message.Price // nil is what is known of the model
	Images        bool           // the model takes pictures, although nothing is known of it
}

// Client is one model behind the Chat Completions API.
type Client struct {
	endpoint wire.Endpoint
	info     model.Info
	quirks   quirks
	effort   string
	refused  *wire.Refused
	said     wire.Memo
}

var (
	_ model.Client  = (*Client)(nil)
	_ model.Encoder = (*Client)(nil)
)

// New makes a client. It does not connect.
func New(cfg Config) *Client {
	p := cfg.Provider
	if p.Name == "" {
		p, _ = model.ProviderNamed("openai")
	}
	own := p.BaseURL
	if own == "" {
		own = DefaultBaseURL
	}
	base := baseURL(cfg.BaseURL, own)
	c := &Client{info: model.Info{Provider: p.Name, Model: cfg.Model}, effort: cfg.Effort,
		refused: wire.Optional(wire.EarlierReasoning, "stream_options", "parallel_tool_calls", "tool_choice", "response_format", "strict", "prompt_cache_key", "reasoning_effort", "reasoning_details", "reasoning_content")}
	if base == own { // elsewhere, a name says nothing about window and price
		c.info = model.Known(p.Account(), cfg.Model)
		c.info.Provider = p.Name
	}
	c.info.Images = cfg.Images || base == DefaultBaseURL || p.Name == "azure"
	c.quirks = quirksOf(p.Name, base, cfg.Model)
	c.endpoint = wire.Endpoint{Provider: p.Name, Model: cfg.Model, BaseURL: base, Key: cfg.Key, KeyEnv: p.KeyName(),
		URLEnv: p.URLName(), HTTP: cfg.HTTP, Idle: cfg.Idle, Content: cfg.Content}
	c.info = c.info.With(cfg.ContextWindow, cfg.Price)
	return c
}

func baseURL(base, own string) string {
	base = strings.TrimSuffix(strings.TrimSuffix(strings.TrimRight(base, "/"), "/chat/completions"), "/responses")
	if base == "" {
		return own
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
	return c.endpoint.Send(ctx, wire.Exchange{Request: req, Path: "/chat/completions", Header: c.header(req), Refused: c.refused,
		Encode:  func() ([]byte, error) { return c.Encode(req) },
		Dialect: func() wire.Dialect { return newDecoder(c, req) }})
}

// Decode turns an answer to req into events. Stream does so with what the server sends.
func (c *Client) Decode(resp *http.Response, req model.Request) iter.Seq2[model.Event, error] {
	return c.endpoint.Decode(resp, newDecoder(c, req))
}

func (c *Client) header(req model.Request) http.Header { return header(&c.endpoint, c.quirks, req) }

func header(e *wire.Endpoint, q quirks, req model.Request) http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}}
	if key := e.Secret(); key != "" && q.keyHeader != "" {
		h.Set(q.keyHeader, key)
	} else if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
	e.Place(h, req)
	return h
}

// Models asks the server which models it has.
func (c *Client) Models(ctx context.Context) ([]string, error) {
	return c.endpoint.Models(ctx, "/models", c.header(model.Request{}))
}
