// Package anthropic speaks the Anthropic Messages API, streaming.
package anthropic

import (
	"context"
	"encoding/json"
	"fmt"
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
	Effort        string         // how much to think: low, medium, high, xhigh, max; "" leaves it to the model
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
	effort   string
	hourly   bool // the server keeps a prefix for an hour on request
	refused  *wire.Refused
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
	c := &Client{version: cfg.Version, quirks: quirksOf(cfg.Model), effort: cfg.Effort,
		refused: wire.Optional(wire.EarlierReasoning, "tool_choice", "strict", "ttl", "format", "output_config", "thinking", "cache_control")}
	c.hourly = base == DefaultBaseURL
	if c.version == "" {
		c.version = compatibleVersion
		if base == DefaultBaseURL {
			c.version = version
		}
	}
	c.endpoint = wire.Endpoint{Provider: "anthropic", Model: cfg.Model, BaseURL: base, Key: cfg.Key, KeyEnv: "ANTHROPIC_API_KEY",
		URLEnv: "ANTHROPIC_BASE_URL", HTTP: cfg.HTTP, Idle: cfg.Idle, Content: cfg.Content}
	c.info = model.Known("anthropic", cfg.Model)
	c.info.Images = true
	c.info = c.info.With(cfg.ContextWindow, cfg.Price)
	return c
}

// Info describes the model.
func (c *Client) Info() model.Info { return c.info }

// Stream sends the request and yields the reply.
func (c *Client) Stream(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	return c.endpoint.Send(ctx, wire.Exchange{Request: req, Path: "/v1/messages", Header: c.header(req), Refused: c.refused,
		Encode:  func() ([]byte, error) { return c.Encode(req) },
		Dialect: func() wire.Dialect { return newDecoder(c, req) }})
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
	effort    effort // how to say how much to think
}

// effort is how a model is told how much to think.
type effort int

const (
	noEffort     effort = iota
	outputEffort        // output_config.effort, beside adaptive thinking
	budgetEffort        // thinking.budget_tokens, in tokens
)

const summarized = `{"type":"adaptive","display":"summarized"}`

// models is the quirk table; the first row whose prefix fits counts. State: 2026-11.
var models = []quirks{
	{"claude-fable-5", 64_000, summarized, outputEffort},
	{"claude-mythos-5", 64_000, summarized, outputEffort},
	{"claude-opus-5", 64_000, summarized, outputEffort},
	{"claude-sonnet-5", 64_000, summarized, outputEffort},
	{"claude-haiku-5", 64_000, summarized, outputEffort},
	{"claude-opus-4-6", 32_000, "", outputEffort},
	{"claude-opus-4-7", 32_000, "", outputEffort},
	{"claude-opus-4-8", 32_000, "", outputEffort},
	{"claude-sonnet-4-6", 32_000, "", outputEffort},
	{"claude-haiku-4-5", 32_000, "", budgetEffort},
	{"claude-sonnet-4-5", 32_000, "", budgetEffort},
	{"claude-opus-4-5", 32_000, "", budgetEffort},
	{"claude-sonnet-4", 32_000, "", noEffort},
	{"claude-opus-4", 32_000, "", noEffort},
	{"", 8_192, "", noEffort},
}

// budgets are what the levels of effort are in tokens, for models that want those.
var budgets = map[string]int64{"minimal": 1024, "low": 2048, "medium": 8192, "high": 16384, "xhigh": 24576, "max": 31_000}

// thought fills in how a request asks for thinking.
func (c *Client) thought(b *body) {
	if c.quirks.thinking != "" {
		b.Thinking = json.RawMessage(c.quirks.thinking)
	}
	if c.refused.Has("thinking") {
		b.Thinking = nil
		return
	}
	switch {
	case c.effort == "":
	case c.quirks.effort == outputEffort && !c.refused.Has("output_config"):
		b.Thinking = json.RawMessage(summarized)
		b.Output = &outputConfig{Effort: c.effort}
		if c.effort == "none" || c.effort == "minimal" { // which this dialect has no words for
			b.Output.Effort = "low"
		}
	case c.quirks.effort == budgetEffort:
		if budget := min(budgets[c.effort], b.MaxTokens-1); budget >= 1024 { // less is refused
			b.Thinking = json.RawMessage(fmt.Sprintf(`{"type":"enabled","budget_tokens":%d}`, budget))
		}
	}
}

func quirksOf(name string) quirks {
	for _, q := range models {
		if strings.HasPrefix(name, q.prefix) {
			return q
		}
	}
	return quirks{}
}

// Models asks the server which models it has.
func (c *Client) Models(ctx context.Context) ([]string, error) {
	return c.endpoint.Models(ctx, "/v1/models?limit=1000", c.header(model.Request{}))
}
