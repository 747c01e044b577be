package openai

import (
	"bytes"
	"encoding/json"
	"strings"

	"belay/message"
	"belay/model"
	"belay/model/stream"
)

// itemEvent is one event of a Responses stream.
type itemEvent struct {
	Type         string          `json:"type"`
	OutputIndex  *int            `json:"output_index"`
	ItemID       string          `json:"item_id"`
	SummaryIndex int             `json:"summary_index"`
	Item         json.RawMessage `json:"item"`
	Delta        loose           `json:"delta"`
	Text         loose           `json:"text"`
	Error        json.RawMessage `json:"error"`
	Response     *response       `json:"response"`
}

type response struct {
	Object     string            `json:"object"`
	Status     string            `json:"status"`
	Output     []json.RawMessage `json:"output"`
	Usage      *itemUsage        `json:"usage"`
	Error      json.RawMessage   `json:"error"`
	Incomplete *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
}

type itemUsage struct {
	Input        *int64 `json:"input_tokens"`
	Output       int64  `json:"output_tokens"`
	InputDetails struct {
		Cached int64 `json:"cached_tokens"`
		Write  int64 `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	OutputDetails struct {
		Reasoning int64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

func (u itemUsage) neutral() message.Usage {
	input := max(*u.Input, 0)
	read := min(max(u.InputDetails.Cached, 0), input)
	write := min(max(u.InputDetails.Write, 0), input-read)
	return message.Usage{Input: input - read - write, Output: max(u.Output, 0), CacheRead: read, CacheWrite: write, Reasoning: max(u.OutputDetails.Reasoning, 0)}
}

// item is a part of a response.
type item struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	CallID    loose           `json:"call_id"`
	Name      loose           `json:"name"`
	Arguments arguments       `json:"arguments"`
	Input     loose           `json:"input"`
	Phase     json.RawMessage `json:"phase"`
	Encrypted string          `json:"encrypted_content"`
	Content   []itemPart      `json:"content"`
	Summary   []itemPart      `json:"summary"`
}

type itemPart struct {
	Type    string          `json:"type"`
	Text    stream.Fragment `json:"text"`
	Refusal stream.Fragment `json:"refusal"`
}

// seen is what was learnt of one item.
type seen struct {
	kind     string
	size     int // bytes of text or arguments that came as deltas
	summary  int // of the last delta
	done     bool
	begun    bool
	argument []byte // as it came in deltas
}

type items struct {
	client  *Responses
	reply   *stream.Reply
	byIndex map[int]*seen
	indexOf map[string]int
	last    int
	refused bool
	ended   bool
	raw     string // stop reason
}

func newItems(c *Responses, req model.Request) *items {
	r := stream.NewReply(req)
	r.InOrder = true
	return &items{client: c, reply: r, byIndex: map[int]*seen{}, indexOf: map[string]int{}, last: -1}
}

// Event takes one event; completed, incomplete and failed are the terminal ones.
func (d *items) Event(data []byte) ([]model.Event, bool, error) {
	var ev itemEvent
	if err := json.Unmarshal(data, &ev); err != nil {
		return nil, false, stream.Truncated(err)
	}
	switch {
	case ev.Type == "error" || ev.Type == "" && present(ev.Error):
		return nil, false, d.client.endpoint.Classify(200, nil, data)
	case ev.Type == "response.completed", ev.Type == "response.incomplete", ev.Type == "response.failed", ev.Type == "response.done":
		if ev.Response == nil {
			return nil, false, stream.Truncated(nil)
		}
		if ev.Response.Status == "" {
			ev.Response.Status = strings.TrimPrefix(ev.Type, "response.")
		}
		events, err := d.finish(ev.Response)
		return events, true, err
	case ev.Type == "response.output_item.added":
		events, err := d.item(d.index(ev), ev.Item, false)
		return events, false, err
	case ev.Type == "response.output_item.done":
		events, err := d.item(d.index(ev), ev.Item, true)
		return events, false, err
	}
	events, err := d.delta(ev)
	return events, false, err
}

// index is the position of the item that an event is about, also where a gateway leaves it out.
func (d *items) index(ev itemEvent) int {
	var it struct {
		ID string `json:"id"`
	}
	if ev.Item != nil {
		_ = json.Unmarshal(ev.Item, &it) // what cannot be read has no id
	}
	id := ev.ItemID + it.ID
	i := d.last
	switch known, ok := d.indexOf[id]; {
	case ev.OutputIndex != nil:
		i = *ev.OutputIndex
	case ok && id != "":
		i = known
	case ev.Type == "response.output_item.added" || i < 0:
		for i = max(i, 0); d.byIndex[i] != nil; {
			i++
		}
	}
	if id != "" {
		d.indexOf[id] = i
	}
	d.last = i
	return i
}

func (d *items) at(i int) *seen {
	s := d.byIndex[i]
	if s == nil {
		s = &seen{}
		d.byIndex[i] = s
	}
	return s
}

func (d *items) delta(ev itemEvent) ([]model.Event, error) {
	if len(ev.Delta) == 0 {
		return nil, nil // the other events repeat what deltas and items say
	}
	switch ev.Type {
	case "response.output_text.delta", "response.refusal.delta":
		i := d.index(ev)
		d.refused = d.refused || ev.Type == "response.refusal.delta"
		s := d.at(i)
		s.kind, s.size = "message", s.size+len(ev.Delta)
		return d.reply.Text(i, message.KindText, stream.Fragment(ev.Delta))
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta", "response.reasoning_summary.delta":
		i := d.index(ev)
		s := d.at(i)
		s.kind = "reasoning"
		var events []model.Event
		if s.size > 0 && ev.SummaryIndex != s.summary {
			more, err := d.reply.Text(i, message.KindThinking, stream.Fragment("\n\n"))
			if err != nil {
				return nil, err
			}
			events = more
		}
		s.summary, s.size = ev.SummaryIndex, s.size+len(ev.Delta)
		more, err := d.reply.Text(i, message.KindThinking, stream.Fragment(ev.Delta))
		return append(events, more...), err
	case "response.function_call_arguments.delta":
		i := d.index(ev)
		s := d.at(i)
		s.kind, s.size = "function_call", s.size+len(ev.Delta)
		s.argument = append(s.argument, ev.Delta...)
		return d.reply.Call(stream.CallDelta{Index: &i, Args: ev.Delta})
	}
	return nil, nil
}

// item takes an item at its start or its end. What deltas have said is not taken again.
func (d *items) item(i int, raw json.RawMessage, done bool) ([]model.Event, error) {
	var it item
	if err := json.Unmarshal(raw, &it); err != nil {
		return nil, stream.Truncated(err)
	}
	s := d.at(i)
	if s.done {
		return nil, nil
	}
	s.kind, s.done = it.Type, done
	switch it.Type {
	case "message":
		var text []byte
		for _, p := range it.Content {
			text = append(append(text, p.Text...), p.Refusal...)
			d.refused = d.refused || len(p.Refusal) > 0
		}
		d.reply.Open(i, message.KindText)
		events, err := d.rest(i, message.KindText, text, done)
		if done && present(it.Phase) { // what a message of this API has beyond its text must go back with it
			d.sign(i, raw)
		}
		return events, err
	case "reasoning":
		d.reply.Open(i, message.KindThinking)
		events, err := d.rest(i, message.KindThinking, it.thinking(), done)
		if done && it.Encrypted != "" {
			d.sign(i, raw)
		}
		return events, err
	case "function_call":
		delta := stream.CallDelta{Index: &i, ID: stream.Join(it.CallID), Name: stream.Join(it.Name)}
		if delta.ID == "" {
			delta.ID = it.ID
		}
		switch {
		case s.begun:
			delta.ID, delta.Name = "", ""
			if !done || len(it.Arguments) == 0 {
				return nil, nil
			}
		case len(it.Arguments) > 0:
		default:
			s.begun = true
			return d.reply.Call(delta)
		}
		s.begun = true
		switch {
		case s.size == 0:
			s.size, delta.Args = len(it.Arguments), it.Arguments
		case done && s.argument != nil && stream.Join(s.argument) != stream.Join(it.Arguments): // a piece was lost, or came twice
			return nil, &model.Error{Class: model.Transient, Kind: model.MalformedCall, Calls: []string{stream.Join(it.Name)},
				Message: d.client.endpoint.Provider + ": the pieces of a call's arguments do not make up the whole that the server reports"}
		}
		return d.reply.Call(delta)
	case "custom_tool_call":
		if !done {
			return nil, nil
		}
		input, err := json.Marshal(map[string]string{"input": stream.Join(it.Input)})
		if err != nil {
			return nil, stream.Truncated(err)
		}
		own := d.own(raw)
		return d.reply.Call(stream.CallDelta{Index: &i, ID: stream.Join(it.CallID), Name: stream.Join(it.Name), Args: input, Opaque: own})
	}
	if !done {
		d.reply.Open(i, message.KindOpaque)
		return nil, nil
	}
	return nil, d.reply.Keep(i, bytes.Clone(raw), d.own(raw))
}

// rest adds the text of a finished item that had no deltas.
func (d *items) rest(i int, kind message.Kind, text []byte, done bool) ([]model.Event, error) {
	s := d.at(i)
	if !done || s.size > 0 || len(text) == 0 {
		return nil, nil
	}
	s.size = len(text)
	return d.reply.Text(i, kind, text)
}

func (it item) thinking() []byte {
	parts := it.Summary
	if len(parts) == 0 {
		parts = it.Content
	}
	var texts [][]byte
	for _, p := range parts {
		texts = append(texts, p.Text)
	}
	return bytes.Join(texts, []byte("\n\n"))
}

// own labels an item's bytes. They are bound to model and organisation, not to what came before.
func (d *items) own(raw json.RawMessage) *message.Opaque {
	o := d.reply.Own(bytes.Clone(raw), d.client.info.Provider, d.client.info.Model)
	o.Prefix = ""
	return o
}

func (d *items) sign(i int, raw json.RawMessage) {
	d.reply.Open(i, d.kindOf(i))
	d.reply.Put(i, d.own(raw))
}

func (d *items) kindOf(i int) message.Kind {
	if d.at(i).kind == "reasoning" {
		return message.KindThinking
	}
	return message.KindText
}

// Whole takes a response that was not streamed.
func (d *items) Whole(data []byte) ([]model.Event, error) {
	var r response
	if err := json.Unmarshal(data, &r); err != nil || (r.Object != "response" && r.Output == nil) {
		return nil, d.client.endpoint.Classify(200, nil, data)
	}
	return d.finish(&r)
}

// Ended is known with the terminal event only.
func (d *items) Ended() bool { return d.ended }

// End is always too early: the terminal event comes before it.
func (d *items) End(bool) ([]model.Event, error) { return nil, stream.Truncated(nil) }

// declines are the codes of responses that fail because of what they are about.
var declines = map[string]bool{"bio_policy": true, "cyber_policy": true, "misalignment_policy_violation": true, "content_filter": true}

// finish ends the reply: with the items of the whole response where none were streamed.
func (d *items) finish(r *response) ([]model.Event, error) {
	var events []model.Event
	d.raw = r.Status
	if r.Incomplete != nil && r.Incomplete.Reason != "" {
		d.raw = r.Incomplete.Reason
	}
	if r.Usage != nil && r.Usage.Input != nil {
		d.reply.Usage(r.Usage.neutral())
	}
	if r.Status == "failed" || r.Status == "" && present(r.Error) {
		var e struct {
			Code    string `json:"code"`
			Message string `json:"message"`
		}
		_ = json.Unmarshal(r.Error, &e) // what cannot be read stays empty
		if !declines[e.Code] {
			body := append(append([]byte(`{"error":`), orNull(r.Error)...), '}')
			return nil, d.client.endpoint.Classify(200, nil, body)
		}
		if d.reply.Empty() && e.Message != "" {
			more, err := d.reply.Text(0, message.KindText, stream.Fragment(e.Message))
			if err != nil {
				return nil, err
			}
			events = more
		}
		more, err := d.reply.Finish(e.Code, message.StopRefusal)
		return append(events, more...), err
	}
	for i, raw := range r.Output {
		if s := d.byIndex[i]; s != nil && s.done {
			continue
		}
		more, err := d.item(i, raw, true)
		if err != nil {
			return nil, err
		}
		events = append(events, more...)
	}
	stop := message.StopReason("")
	switch r.Status {
	case "completed", "done":
		if stop = message.StopEnd; d.refused {
			stop = message.StopRefusal
		}
	case "incomplete":
		stop = incompletes[d.raw]
		if stop == "" { // not complete, whatever the reason: nothing in it may be executed
			stop = message.StopLength
		}
	case "cancelled":
		return nil, &model.Error{Class: model.Transient, Kind: model.Server, Message: d.client.endpoint.Provider + ": the server cancelled the response"}
	}
	d.ended = true
	more, err := d.reply.Finish(d.raw, stop)
	return append(events, more...), err
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// incompletes are the reasons of an incomplete response. The last is how gateways to Anthropic say it.
var incompletes = map[string]message.StopReason{
	"max_output_tokens": message.StopLength,
	"content_filter":    message.StopRefusal,
	"max_messages":      message.StopPause,
	"steered":           message.StopPause,
	"pause_turn":        message.StopPause,
}

// Seen is what is known of a reply that fails.
func (d *items) Seen() (*message.Usage, string) { return d.reply.Counted(), d.raw }
