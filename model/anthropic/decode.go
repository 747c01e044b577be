package anthropic

import (
	"bytes"
	"encoding/json"

	"belay/message"
	"belay/model"
	"belay/model/stream"
)

// stops is what a stop_reason means. An unknown one is no success.
var stops = map[string]message.StopReason{
	"end_turn":      message.StopEnd,
	"stop_sequence": message.StopEnd,
	"tool_use":      message.StopToolUse,
	"max_tokens":    message.StopLength,
	"pause_turn":    message.StopPause,
	"refusal":       message.StopRefusal,
}

type event struct {
	Type    string          `json:"type"`
	Index   int             `json:"index"`
	Message *whole          `json:"message"`
	Block   json.RawMessage `json:"content_block"`
	Delta   delta           `json:"delta"`
	Usage   *usage          `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type whole struct {
	Content     []json.RawMessage `json:"content"`
	StopReason  string            `json:"stop_reason"`
	StopDetails *stopDetails      `json:"stop_details"`
	Usage       *usage            `json:"usage"`
	Error       json.RawMessage   `json:"error"`
	Type        string            `json:"type"`
}

type delta struct {
	Type        string          `json:"type"`
	Text        stream.Fragment `json:"text"`
	Thinking    stream.Fragment `json:"thinking"`
	PartialJSON stream.Fragment `json:"partial_json"`
	Signature   stream.Fragment `json:"signature"`
	StopReason  string          `json:"stop_reason"`
	StopDetails *stopDetails    `json:"stop_details"`
}

type stopDetails struct {
	Explanation string `json:"explanation"`
}

// usage is cumulative: a field that a later report leaves out keeps its value.
type usage struct {
	Input      *int64 `json:"input_tokens"`
	Output     *int64 `json:"output_tokens"`
	CacheRead  *int64 `json:"cache_read_input_tokens"`
	CacheWrite *int64 `json:"cache_creation_input_tokens"`
	Written    struct {
		Hour *int64 `json:"ephemeral_1h_input_tokens"`
	} `json:"cache_creation"`
	Details struct {
		Thinking *int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

// opening is the start of a block.
type opening struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	Text      stream.Fragment `json:"text"`
	Thinking  stream.Fragment `json:"thinking"`
	Signature stream.Fragment `json:"signature"`
}

// started is what the decoder remembers of one block.
type started struct {
	kind      string
	raw       []byte // of a block that is only kept
	input     []byte // given at the start, used unless deltas follow
	deltas    bool
	partial   []byte // deltas of the input of a block that is only kept
	signature []byte
}

type decoder struct {
	client      *Client
	reply       *stream.Reply
	blocks      map[int]*started
	order       []int
	usage       message.Usage
	counted     bool
	stop        string
	explanation string
}

func newDecoder(c *Client, req model.Request) *decoder {
	return &decoder{client: c, reply: stream.NewReply(req), blocks: map[int]*started{}}
}

// Event takes one event; message_stop is the terminal one.
func (d *decoder) Event(data []byte) ([]model.Event, bool, error) {
	var ev event
	if err := json.Unmarshal(data, &ev); err != nil {
		return nil, false, stream.Truncated(err)
	}
	switch {
	case ev.Type == "error" || (len(ev.Error) > 0 && string(ev.Error) != "null"):
		return nil, false, d.client.endpoint.Classify(200, nil, data)
	case ev.Type == "message_start" && ev.Message != nil:
		d.count(ev.Message.Usage)
	case ev.Type == "content_block_start":
		events, err := d.open(ev.Index, ev.Block)
		return events, false, err
	case ev.Type == "content_block_delta":
		events, err := d.delta(ev.Index, ev.Delta)
		return events, false, err
	case ev.Type == "message_delta":
		d.count(ev.Usage)
		d.ended(ev.Delta.StopReason, ev.Delta.StopDetails)
	case ev.Type == "message_stop":
		events, err := d.finish()
		return events, true, err
	}
	return nil, false, nil // ping, content_block_stop, and what newer versions add
}

// Whole takes a message that was not streamed.
func (d *decoder) Whole(data []byte) ([]model.Event, error) {
	var m whole
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, d.client.endpoint.Classify(200, nil, data)
	}
	if m.Type == "error" || len(m.Error) > 0 || m.Content == nil {
		return nil, d.client.endpoint.Classify(200, nil, data)
	}
	var events []model.Event
	for i, raw := range m.Content {
		more, err := d.open(i, raw)
		if err != nil {
			return nil, err
		}
		events = append(events, more...)
	}
	d.count(m.Usage)
	d.ended(m.StopReason, m.StopDetails)
	more, err := d.finish()
	return append(events, more...), err
}

// Ended is known with message_stop only.
func (d *decoder) Ended() bool { return false }

// End is always too early: message_stop comes before it.
func (d *decoder) End(bool) ([]model.Event, error) { return nil, stream.Truncated(nil) }

func (d *decoder) ended(reason string, details *stopDetails) {
	if reason != "" {
		d.stop = reason
	}
	if details != nil {
		d.explanation = details.Explanation
	}
}

func (d *decoder) count(u *usage) {
	if u == nil {
		return
	}
	d.counted = true
	for _, f := range []struct {
		from *int64
		to   *int64
	}{{u.Input, &d.usage.Input}, {u.Output, &d.usage.Output}, {u.CacheRead, &d.usage.CacheRead}, {u.CacheWrite, &d.usage.CacheWrite}, {u.Written.Hour, &d.usage.CacheHour}, {u.Details.Thinking, &d.usage.Reasoning}} {
		if f.from != nil {
			*f.to = max(*f.from, 0)
		}
	}
}

func (d *decoder) open(index int, raw json.RawMessage) ([]model.Event, error) {
	var o opening
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, stream.Truncated(err)
	}
	b := d.blocks[index]
	if b == nil {
		b = &started{}
		d.blocks[index], d.order = b, append(d.order, index)
	}
	b.kind = o.Type
	switch o.Type {
	case "text":
		return d.reply.Text(index, message.KindText, o.Text)
	case "thinking":
		d.reply.Open(index, message.KindThinking)
		b.signature = o.Signature
		return d.reply.Text(index, message.KindThinking, o.Thinking)
	case "tool_use":
		if s := string(bytes.TrimSpace(o.Input)); s != "" && s != "null" && s != "{}" {
			b.input = o.Input
		}
		return d.reply.Call(stream.CallDelta{Index: &index, ID: o.ID, Name: o.Name})
	}
	b.raw = bytes.Clone(raw)
	return nil, d.keep(index, b.raw)
}

func (d *decoder) delta(index int, x delta) ([]model.Event, error) {
	b := d.blocks[index]
	if b == nil {
		return nil, stream.Truncated(nil) // a start is missing: something was lost
	}
	switch {
	case x.Type == "text_delta" && b.kind == "text":
		return d.reply.Text(index, message.KindText, x.Text)
	case x.Type == "thinking_delta" && b.kind == "thinking":
		return d.reply.Text(index, message.KindThinking, x.Thinking)
	case x.Type == "signature_delta" && b.kind == "thinking":
		b.signature = append(b.signature, x.Signature...)
	case x.Type == "input_json_delta" && b.kind == "tool_use":
		b.deltas = b.deltas || len(x.PartialJSON) > 0
		return d.reply.Call(stream.CallDelta{Index: &index, Args: x.PartialJSON})
	case x.Type == "input_json_delta":
		if b.partial = append(b.partial, x.PartialJSON...); len(b.partial) > stream.MaxReply {
			return nil, stream.Truncated(stream.ErrTooLong)
		}
	}
	return nil, nil
}

// finish puts together what needs all of a block, and ends the reply.
func (d *decoder) finish() ([]model.Event, error) {
	if d.stop == "model_context_window_exceeded" {
		return nil, &model.Error{Class: model.Validation, Kind: model.ContextOverflow, ContextTooLarge: true, Message: "anthropic: the reply filled the context window"}
	}
	var events []model.Event
	for _, i := range d.order {
		b := d.blocks[i]
		switch {
		case b.kind == "tool_use" && b.input != nil && !b.deltas:
			more, err := d.reply.Call(stream.CallDelta{Index: &i, Args: b.input})
			if err != nil {
				return nil, err
			}
			events = append(events, more...)
		case b.kind == "thinking" && len(b.signature) > 0:
			raw, err := marshal(struct {
				Type      string `json:"type"`
				Thinking  string `json:"thinking"`
				Signature string `json:"signature"`
			}{"thinking", d.reply.TextOf(i), stream.Join(b.signature)})
			if err != nil {
				return nil, err
			}
			d.reply.Sign(i, raw, d.client.info.Provider, d.client.info.Model)
		case b.raw != nil && len(b.partial) > 0:
			var fields map[string]json.RawMessage
			if json.Unmarshal(b.raw, &fields) != nil || !json.Valid(b.partial) {
				continue
			}
			fields["input"] = b.partial
			raw, err := marshal(fields)
			if err != nil {
				return nil, err
			}
			if err := d.keep(i, raw); err != nil {
				return nil, err
			}
		}
	}
	if d.stop == "refusal" && d.explanation != "" && d.reply.Empty() {
		more, err := d.reply.Text(0, message.KindText, stream.Fragment(d.explanation))
		if err != nil {
			return nil, err
		}
		events = append(events, more...)
	}
	if d.counted {
		d.reply.Usage(d.usage)
	}
	more, err := d.reply.Finish(d.stop, stops[d.stop])
	return append(events, more...), err
}

func (d *decoder) keep(index int, raw []byte) error {
	return d.reply.Opaque(index, raw, d.client.info.Provider, d.client.info.Model)
}

func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// Seen is what is known of a reply that fails.
func (d *decoder) Seen() (*message.Usage, string) {
	if !d.counted {
		return nil, d.stop
	}
	return &d.usage, d.stop
}
