// Package gemini speaks Google's Gemini generateContent API, streaming, as AI Studio and Vertex AI speak it.
package gemini

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

// DefaultBaseURL is where Google answers.
const DefaultBaseURL = "https://generativelanguage.googleapis.com/v1beta"

// Config says which model to talk to, and where.
type Config struct {
	Model         string
	Provider      model.Provider // who answers; the zero value is Google
	BaseURL       string         // "" is DefaultBaseURL; one without a path gets /v1beta
	Key           func() string  // the API key; nil for servers that want none
	Effort        string         // how much to think: minimal, low, medium, high; "" leaves it to the model
	HTTP          *http.Client   // nil is belay's own
	Idle          time.Duration  // longest silence of the connection; 0 is two minutes, ten for a local server
	Content       time.Duration  // longest time with keep-alives only; 0 is ten minutes
	ContextWindow int64          // tokens; 0 is what is known of the model
	Price         *message.Price // nil is what is known of the model
}

// Client is one model behind the generateContent API.
type Client struct {
	endpoint wire.Endpoint
	info     model.Info
	quirks   quirks
	effort   string
	refused  *wire.Refused
}

var (
	_ model.Client  = (*Client)(nil)
	_ model.Encoder = (*Client)(nil)
)

// New makes a client. It does not connect.
func New(cfg Config) *Client {
	p := cfg.Provider
	if p.Name == "" {
		p, _ = model.ProviderNamed("gemini")
	}
	own := p.BaseURL
	if own == "" {
		own = DefaultBaseURL
	}
	base := strings.TrimRight(cfg.BaseURL, "/")
	if u, err := url.Parse(base); err == nil && u.Host != "" && u.Path == "" {
		base += "/v1beta"
	}
	if base == "" {
		base = own
	}
	name := strings.TrimPrefix(cfg.Model, "models/")
	c := &Client{info: model.Info{Provider: p.Name, Model: name}, quirks: quirksOf(name), effort: cfg.Effort,
		refused: wire.Optional(wire.EarlierReasoning, "toolConfig", "responseSchema", "thinkingConfig", "includeThoughts", "thinkingLevel", "thinkingBudget")}
	defer func() { c.info.Images = true }()
	if base == own {
		c.info = model.Known(p.Account(), name)
		c.info.Provider = p.Name
	}
	c.endpoint = wire.Endpoint{Provider: p.Name, Model: name, BaseURL: base, Key: cfg.Key, KeyEnv: p.KeyName(),
		URLEnv: p.URLName(), HTTP: cfg.HTTP, Idle: cfg.Idle, Content: cfg.Content}
	c.info = c.info.With(cfg.ContextWindow, cfg.Price)
	return c
}

// Info describes the model.
func (c *Client) Info() model.Info { return c.info }

// Codec names the encoding.
func (c *Client) Codec() string { return "gemini/1" + c.refused.Suffix() }

// Stream sends the request and yields the reply.
func (c *Client) Stream(ctx context.Context, req model.Request) iter.Seq2[model.Event, error] {
	return c.endpoint.Send(ctx, wire.Exchange{Request: req, Path: "/models/" + url.PathEscape(c.info.Model) + ":streamGenerateContent?alt=sse", Header: c.header(req), Refused: c.refused,
		Encode:  func() ([]byte, error) { return c.Encode(req) },
		Dialect: func() wire.Dialect { return newDecoder(c, req) }})
}

// Decode turns an answer to req into events. Stream does so with what the server sends.
func (c *Client) Decode(resp *http.Response, req model.Request) iter.Seq2[model.Event, error] {
	return c.endpoint.Decode(resp, newDecoder(c, req))
}

func (c *Client) header(req model.Request) http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}}
	if key := c.endpoint.Secret(); key != "" {
		h.Set("X-Goog-Api-Key", key)
	}
	c.endpoint.Place(h, req)
	return h
}

// quirks are what differs between models of this dialect.
type quirks struct {
	prefix  string // of the model's name
	thinks  bool   // takes thinkingConfig
	signed  bool   // refuses a tool loop whose calls carry no thought signature
	budgets bool   // wants thinkingBudget, in tokens, where later models want thinkingLevel
}

// models is the quirk table; the first row whose prefix fits counts. State: 2026-11.
var models = []quirks{
	{prefix: "gemini-1"},
	{prefix: "gemini-2.0"},
	{prefix: "gemini-2", thinks: true, budgets: true},
	{prefix: "gemini-", thinks: true, signed: true},
	{prefix: ""},
}

func quirksOf(name string) quirks {
	for _, q := range models {
		if strings.HasPrefix(strings.ToLower(name), q.prefix) {
			return q
		}
	}
	return quirks{}
}

// Models asks the server which models it has.
func (c *Client) Models(ctx context.Context) ([]string, error) {
	return c.endpoint.Models(ctx, "/models?pageSize=1000", c.header(model.Request{}))
}
