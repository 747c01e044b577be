package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"belay/message"
	"belay/model"
	"belay/model/stream"
)

// stops is what a finish_reason means, also those of servers that translate from other dialects. An unknown one
// is no success.
var stops = map[string]message.StopReason{
	"stop":             message.StopEnd,
	"eos":              message.StopEnd,
	"end_turn":         message.StopEnd,
	"stop_sequence":    message.StopEnd,
	"tool_calls":       message.StopToolUse,
	"tool_use":         message.StopToolUse,
	"function_call":    message.StopToolUse,
	"length":           message.StopLength,
	"max_tokens":       message.StopLength,
	"content_filter":   message.StopRefusal,
	"refusal":          message.StopRefusal,
	"sensitive":        message.StopRefusal,
	"pause_turn":       message.StopPause,
	"error":            message.StopError,
	"network_error":    message.StopError,
	"abort":            message.StopError,
	"server_error":     message.StopError,
	"engine_overload":  message.StopError,
	"cancelled":        message.StopError,
	"malformed":        message.StopError,
	"invalid_response": message.StopError,

	"insufficient_system_resource": message.StopError,
	"safety":                       message.StopRefusal,
	"recitation":                   message.StopRefusal,
	"prohibited_content":           message.StopRefusal,
	"eos_token":                    message.StopEnd,
	"complete":                     message.StopEnd,
	"completed":                    message.StopEnd,
}

type chunk struct {
	Object  string          `json:"object"`
	Error   json.RawMessage `json:"error"`
	Choices []choice        `json:"choices"`
	Usage   *usage          `json:"usage"`
	Groq    struct {
		Usage *usage `json:"usage"`
	} `json:"x_groq"`
}

type choice struct {
	Index   int             `json:"index"`
	Delta   *delta          `json:"delta"`
	Message *delta          `json:"message"` // instead of Delta where nothing is streamed
	Finish  string          `json:"finish_reason"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type delta struct {
	Content          content         `json:"content"`
	Refusal          stream.Fragment `json:"refusal"`
	ReasoningContent loose           `json:"reasoning_content"`
	Reasoning        loose           `json:"reasoning"`
	Details          details         `json:"reasoning_details"`
	ToolCalls        []calledTool    `json:"tool_calls"`
	FunctionCall     *called         `json:"function_call"`
}

// details are OpenRouter's: what they say, and the whole of them for the way back.
type details struct {
	said []detail
	raw  []json.RawMessage
}

type detail struct {
	Text    loose `json:"text"`
	Summary loose `json:"summary"`
}

func (d *details) UnmarshalJSON(b []byte) error {
	*d = details{}
	if json.Unmarshal(b, &d.raw) != nil {
		return nil // not the list that is meant
	}
	for _, raw := range d.raw {
		var one detail
		_ = json.Unmarshal(raw, &one) // what cannot be read says nothing
		d.said = append(d.said, one)
	}
	return nil
}

type calledTool struct {
	Index    *int            `json:"index"`
	ID       loose           `json:"id"`
	Function *called         `json:"function"`
	Extra    json.RawMessage `json:"extra_content"`
}

type called struct {
	Name      loose     `json:"name"`
	Arguments arguments `json:"arguments"`
}

// loose is a string; anything else counts as absent, since some servers put objects there.
type loose []byte

func (l *loose) UnmarshalJSON(b []byte) error {
	*l = nil
	if b[0] == '"' {
		return (*stream.Fragment)(l).UnmarshalJSON(b)
	}
	return nil
}

// arguments are a piece of JSON text, or the value itself.
type arguments []byte

func (a *arguments) UnmarshalJSON(b []byte) error {
	if b[0] == '"' || b[0] == 'n' {
		return (*stream.Fragment)(a).UnmarshalJSON(b)
	}
	*a = bytes.Clone(b)
	return nil
}

// content is a string, or a list of parts of which some think.
type content struct{ text, thinking []byte }

func (c *content) UnmarshalJSON(b []byte) error {
	*c = content{}
	if b[0] != '[' {
		return (*loose)(&c.text).UnmarshalJSON(b)
	}
	var parts []struct {
		Type     string          `json:"type"`
		Text     loose           `json:"text"`
		Thinking json.RawMessage `json:"thinking"`
	}
	if err := json.Unmarshal(b, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		c.text = append(c.text, p.Text...)
		if len(p.Thinking) > 0 {
			var inner content
			if err := inner.UnmarshalJSON(p.Thinking); err != nil {
				return err
			}
			c.thinking = append(c.thinking, inner.text...)
		}
	}
	return nil
}

type usage struct {
	Prompt     *int64 `json:"prompt_tokens"`
	Completion int64  `json:"completion_tokens"`
	Total      int64  `json:"total_tokens"`
	Cached     int64  `json:"cached_tokens"`
	CacheHit   int64  `json:"prompt_cache_hit_tokens"`
	Details    struct {
		Cached int64 `json:"cached_tokens"`
		Write  int64 `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	Out struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// neutral splits the prompt into what was cached and the rest. Some servers count reasoning in the total only.
func (u usage) neutral() message.Usage {
	prompt := max(*u.Prompt, 0)
	read := min(max(u.Details.Cached, u.Cached, u.CacheHit, 0), prompt)
	write := min(max(u.Details.Write, 0), prompt-read)
	return message.Usage{Input: prompt - read - write, Output: max(u.Completion, u.Total-prompt, 0), CacheRead: read, CacheWrite: write, Reasoning: max(u.Out.Reasoning, 0)}
}

// Keys of the blocks of a reply that are no calls.
const (
	thinkingKey = iota
	textKey
)

type decoder struct {
	client  *Client
	reply   *stream.Reply
	finish  string
	refused bool
	some    bool // a choice has arrived
	tags    tags
	details []json.RawMessage
	parted  []byte // thinking that came as parts of content
}

func newDecoder(c *Client, req model.Request) *decoder {
	d := &decoder{client: c, reply: stream.NewReply(req)}
	if !c.quirks.tags {
		d.tags.state = after
	}
	return d
}

// Event takes one chunk. None is terminal: usage comes after the finish reason, and [DONE] after both.
func (d *decoder) Event(data []byte) ([]model.Event, bool, error) {
	events, err := d.take(data)
	return events, false, err
}

// Whole takes a completion that was not streamed.
func (d *decoder) Whole(data []byte) ([]model.Event, error) {
	events, err := d.take(data)
	if err != nil {
		return nil, err
	}
	if !d.some {
		return nil, d.client.endpoint.Classify(200, nil, data)
	}
	more, err := d.End(true)
	return append(events, more...), err
}

// Ended says that a finish reason has come: servers exist that then send nothing more, and keep the connection.
func (d *decoder) Ended() bool { return d.finish != "" }

// End takes [DONE], or the end of the stream: both end a reply that has a finish reason; [DONE] alone ends one of
// text only.
func (d *decoder) End(sentinel bool) ([]model.Event, error) {
	held, err := d.say(d.tags.end())
	if err != nil {
		return nil, err
	}
	if d.finish == "" {
		if !sentinel || d.reply.Empty() || d.reply.HasCalls() {
			return nil, stream.Truncated(nil)
		}
		d.finish = "stop"
	}
	stop := stops[d.finish]
	switch {
	case strings.HasPrefix(d.finish, "malformed"), strings.HasPrefix(d.finish, "function_call_filter"), d.finish == "unexpected_tool_call": // Google's, translated
		return nil, &model.Error{Class: model.Transient, Kind: model.MalformedCall, Code: d.finish, Message: d.client.endpoint.Provider + ": the model wrote a tool call that cannot be read: " + d.finish}
	case d.finish == "model_context_window_exceeded":
		return nil, &model.Error{Class: model.Validation, Kind: model.ContextOverflow, ContextTooLarge: true, Message: d.client.endpoint.Provider + ": the reply filled the context window"}
	case stop == message.StopError:
		return nil, &model.Error{Class: model.Transient, Kind: model.Server, Code: d.finish, Message: d.client.endpoint.Provider + ": the server broke the reply off: " + d.finish}
	case stop == message.StopEnd && d.refused:
		stop = message.StopRefusal
	}
	if err := d.keep(); err != nil {
		return nil, err
	}
	if d.reply.Empty() && d.reply.Counted() == nil && stop == message.StopEnd { // what some servers do with a prompt that does not fit
		return nil, &model.Error{Class: model.Transient, Kind: model.Server, Code: "empty_response", Message: d.client.endpoint.Provider + ": the server ended the reply before it began"}
	}
	if err := d.silentlyCut(); err != nil {
		return nil, err
	}
	events, err := d.reply.Finish(d.finish, stop)
	return append(held, events...), err
}

// Bounds within which a prompt is taken to have been cut: no text has so many bytes a token, and below so many tokens
// a server may have counted only what was not in its cache.
const (
	mostPerToken = 9
	leastCounted = 1024
)

// silentlyCut says that the server has dropped the front of the prompt, instructions and tools first, and answered
// all the same.
func (d *decoder) silentlyCut() error {
	u := d.reply.Counted()
	if !d.client.quirks.silentCut || u == nil {
		return nil
	}
	read, sent := u.Input+u.CacheRead+u.CacheWrite, d.reply.Asked()
	if read < leastCounted || sent/read < mostPerToken {
		return nil
	}
	return &model.Error{Class: model.Environment, Kind: model.ContextOverflow, Message: fmt.Sprintf(
		"%s: the server read only %d tokens of a prompt of %d bytes: it drops what does not fit its context, the instructions first; start it with a larger one (OLLAMA_CONTEXT_LENGTH=65536)",
		d.client.endpoint.Provider, read, sent)}
}

// keep puts beside the thinking what the server wants to have back with it.
func (d *decoder) keep() error {
	var v any
	switch {
	case d.client.quirks.reasoning == replayDetails && len(d.details) > 0:
		v = d.details
	case d.client.quirks.reasoning == replayParts && len(d.parted) > 0:
		v = map[string]any{"type": "thinking", "thinking": []textPart{{"text", stream.Join(d.parted)}}}
	default:
		return nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	d.reply.Open(thinkingKey, message.KindThinking)
	d.reply.Put(thinkingKey, d.own(raw))
	return nil
}

// own labels bytes of the server's. What they are bound to is the model, not what came before.
func (d *decoder) own(raw []byte) *message.Opaque {
	o := d.reply.Own(raw, d.client.info.Provider, d.client.info.Model)
	o.Prefix = ""
	return o
}

func (d *decoder) take(data []byte) ([]model.Event, error) {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		var shape *json.UnmarshalTypeError
		if errors.As(err, &shape) && len(c.Choices) == 0 { // an object of another kind, maybe an error
			return nil, d.client.endpoint.Classify(200, nil, data)
		}
		return nil, stream.Truncated(err)
	}
	if present(c.Error) || c.Object == "error" {
		return nil, d.client.endpoint.Classify(200, nil, data)
	}
	for _, u := range []*usage{c.Groq.Usage, c.Usage} { // the last one counts, they are cumulative
		d.count(u)
	}
	var events []model.Event
	for _, ch := range c.Choices {
		if ch.Index != 0 {
			continue // only one was asked for
		}
		d.some = true
		d.count(ch.Usage)
		if present(ch.Error) {
			return nil, d.client.endpoint.Classify(200, nil, []byte(`{"error":`+string(ch.Error)+`}`))
		}
		if d.finish == "" {
			d.finish = strings.ToLower(ch.Finish) // the first one that says something
		}
		for _, x := range []*delta{ch.Delta, ch.Message} {
			if x == nil {
				continue
			}
			more, err := d.delta(x)
			if err != nil {
				return nil, err
			}
			events = append(events, more...)
		}
	}
	return events, nil
}

func present(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func (d *decoder) count(u *usage) {
	if u != nil && u.Prompt != nil {
		d.reply.Usage(u.neutral())
	}
}

func (d *decoder) delta(x *delta) ([]model.Event, error) {
	var events []model.Event
	add := func(more []model.Event, err error) error {
		events = append(events, more...)
		return err
	}
	if t := x.reasoning(); len(t) > 0 {
		if err := add(d.reply.Text(thinkingKey, message.KindThinking, t)); err != nil {
			return nil, err
		}
	}
	d.details = append(d.details, x.Details.raw...)
	d.parted = append(d.parted, x.Content.thinking...)
	marked, text := d.tags.split(x.Content.text)
	if err := add(d.say(marked, text)); err != nil {
		return nil, err
	}
	if err := add(d.say(nil, x.Refusal)); err != nil {
		return nil, err
	}
	d.refused = d.refused || len(x.Refusal) > 0
	for _, t := range x.ToolCalls {
		if t.Function == nil {
			t.Function = &called{}
		}
		if len(t.ID)+len(t.Function.Name)+len(t.Function.Arguments) == 0 {
			continue // an empty call is none
		}
		delta := stream.CallDelta{Index: t.Index, ID: stream.Join(t.ID), Name: stream.Join(t.Function.Name), Args: t.Function.Arguments}
		if present(t.Extra) {
			delta.Opaque = d.own(t.Extra)
		}
		if err := add(d.reply.Call(delta)); err != nil {
			return nil, err
		}
	}
	if f := x.FunctionCall; f != nil && len(f.Name)+len(f.Arguments) > 0 {
		if err := add(d.reply.Call(stream.CallDelta{Name: stream.Join(f.Name), Args: f.Arguments})); err != nil {
			return nil, err
		}
	}
	return events, nil
}

// say adds thinking and text, where there is any.
func (d *decoder) say(thinking, text []byte) ([]model.Event, error) {
	var events []model.Event
	if len(thinking) > 0 {
		more, err := d.reply.Text(thinkingKey, message.KindThinking, thinking)
		if err != nil {
			return nil, err
		}
		events = more
	}
	if len(text) > 0 {
		more, err := d.reply.Text(textKey, message.KindText, text)
		return append(events, more...), err
	}
	return events, nil
}

// reasoning is the same text under up to three names: the first that has any.
func (x *delta) reasoning() stream.Fragment {
	switch {
	case len(x.ReasoningContent) > 0:
		return stream.Fragment(x.ReasoningContent)
	case len(x.Reasoning) > 0:
		return stream.Fragment(x.Reasoning)
	case len(x.Content.thinking) > 0:
		return x.Content.thinking
	}
	var t []byte
	for _, d := range x.Details.said {
		t = append(append(t, d.Text...), d.Summary...)
	}
	return t
}

// Seen is what is known of a reply that fails.
func (d *decoder) Seen() (*message.Usage, string) { return d.reply.Counted(), d.finish }
