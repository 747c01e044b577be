// Package anthropic speaks the Anthropic Messages API, streaming.
package anthropic

import (
	"context"
	"iter"
	"net/http"
	"strings"
	"time"

	"belay/message"
	"belay/model"
	"belay/model/wire"
)

// The API's home, and its version. Compatible servers know only the older version.
const (
	DefaultBaseURL    = "https://api.anthropic.com"
	version           = "2026-10-21"
	compatibleVersion = "2023-06-01"
)

// Config says which model to talk to, and where.
type Config struct {
	Model         string
	BaseURL       string         // "" is DefaultBaseURL; a path that ends in /v1 is taken as well
	Key           func() string  // the API key; nil for servers that want none
	Version       string         // of the API; "" is the newest there, the oldest for compatible servers
	HTTP          *http.Client   // nil is belay's own
	Idle          time.Duration  // longest silence of the connection; 0 is two minutes, ten for a local server
	Content       time.Duration  // longest time with keep-alives only; 0 is ten minutes
	ContextWindow int64          // tokens; 0 is what is known of the model
	Price         *message.Price // nil is what is known of the model
}

// Client is one model behind the Messages API.
type Client struct {
	endpoint wire.Endpoint
	version  string
	info     model.Info
	quirks   quirks
}

var (
	_ model.Client  = (*Client)(nil)
	_ model.Encoder = (*Client)(nil)
)

// New makes a client. It does not connect.
func New(cfg Config) *Client {
	base := strings.TrimSuffix(strings.TrimRight(cfg.BaseURL, "/"), "/v1")
	if base == "" {
		base = DefaultBaseURL
	}
	c := &Client{version: cfg.Version, quirks: quirksOf(cfg.Model)}
	if c.version == "" {
		c.version = compatibleVersion
		if base == DefaultBaseURL {
			c.version = version
		}
	}
	c.endpoint = wire.Endpoint{Provider: "anthropic", Model: cfg.Model, BaseURL: base, Key: cfg.Key, KeyEnv: "ANTHROPIC_API_KEY",
		URLEnv: "ANTHROPIC_BASE_URL", HTTP: cfg.HTTP, Idle: cfg.Idle, Content: cfg.Content}
	c.info = model.Known("anthropic", cfg.Model)
	if cfg.ContextWindow > 0 {
		c.info.ContextWindow = cfg.ContextWindow
	}
	if cfg.Price != nil {
		c.info.Price = cfg.Price
	}
	return c
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
		resp, err := c.endpoint.Do(ctx, http.MethodPost, "/v1/messages", c.header(req), body)
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
	h.Set("Anthropic-Version", c.version)
	if key := c.endpoint.Secret(); key != "" {
		h.Set("X-Api-Key", key)
	}
	c.endpoint.Place(h, req)
	return h
}

// quirks are what differs between models of this dialect.
type quirks struct {
	prefix    string // of the model's name
	maxOutput int64  // tokens asked for where the request does not say; max_tokens is mandatory
	thinking  string // the thinking field: newer models talk between calls only inside of thinking, silent unless summarized
}

const summarized = `{"type":"adaptive","display":"summarized"}`

// models is the quirk table; the first row whose prefix fits counts. State: 2026-11.
var models = []quirks{
	{"claude-fable-5", 64_000, summarized},
	{"claude-mythos-5", 64_000, summarized},
	{"claude-opus-5", 64_000, summarized},
	{"claude-sonnet-5", 64_000, summarized},
	{"claude-haiku-5", 64_000, summarized},
	{"claude-haiku-4-5", 32_000, ""},
	{"claude-sonnet-4", 32_000, ""},
	{"claude-opus-4", 32_000, ""},
	{"", 8_192, ""},
}

func quirksOf(name string) quirks {
	for _, q := range models {
		if strings.HasPrefix(name, q.prefix) {
			return q
		}
	}
	return quirks{}
}
