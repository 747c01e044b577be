package openai

import (
	"bytes"
	"encoding/json"
	"errors"
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
	Details          []detail        `json:"reasoning_details"`
	ToolCalls        []calledTool    `json:"tool_calls"`
	FunctionCall     *called         `json:"function_call"`
}

type detail struct {
	Text    loose `json:"text"`
	Summary loose `json:"summary"`
}

type calledTool struct {
	Index    *int    `json:"index"`
	ID       loose   `json:"id"`
	Function *called `json:"function"`
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
}

// neutral splits the prompt into what was cached and the rest. Some servers count reasoning in the total only.
func (u usage) neutral() message.Usage {
	prompt := max(*u.Prompt, 0)
	read := min(max(u.Details.Cached, u.Cached, u.CacheHit, 0), prompt)
	write := min(max(u.Details.Write, 0), prompt-read)
	return message.Usage{Input: prompt - read - write, Output: max(u.Completion, u.Total-prompt, 0), CacheRead: read, CacheWrite: write}
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
	case d.finish == "model_context_window_exceeded":
		return nil, &model.Error{Class: model.Validation, ContextTooLarge: true, Message: "openai: the reply filled the context window"}
	case stop == message.StopError:
		return nil, &model.Error{Class: model.Transient, Message: "openai: the server broke the reply off: " + d.finish}
	case stop == message.StopEnd && d.refused:
		stop = message.StopRefusal
	}
	events, err := d.reply.Finish(d.finish, stop)
	return append(held, events...), err
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
		if err := add(d.reply.Call(stream.CallDelta{Index: t.Index, ID: stream.Join(t.ID), Name: stream.Join(t.Function.Name), Args: t.Function.Arguments})); err != nil {
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
	for _, d := range x.Details {
		t = append(append(t, d.Text...), d.Summary...)
	}
	return t
}
