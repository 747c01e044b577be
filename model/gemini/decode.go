package gemini

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"belay/message"
	"belay/model"
	"belay/model/stream"
)

// stops is what a finishReason means. An unknown one is no success.
var stops = map[string]message.StopReason{
	"STOP":                     message.StopEnd,
	"MAX_TOKENS":               message.StopLength,
	"CONTINUATION":             message.StopPause,
	"SAFETY":                   message.StopRefusal,
	"RECITATION":               message.StopRefusal,
	"LANGUAGE":                 message.StopRefusal,
	"BLOCKLIST":                message.StopRefusal,
	"PROHIBITED_CONTENT":       message.StopRefusal,
	"SPII":                     message.StopRefusal,
	"MODEL_ARMOR":              message.StopRefusal,
	"IMAGE_SAFETY":             message.StopRefusal,
	"IMAGE_PROHIBITED_CONTENT": message.StopRefusal,
	"IMAGE_RECITATION":         message.StopRefusal,
}

// malformed are the finish reasons of a reply whose call the server itself could not read.
var malformed = map[string]bool{"MALFORMED_FUNCTION_CALL": true, "UNEXPECTED_TOOL_CALL": true, "TOO_MANY_TOOL_CALLS": true,
	"MISSING_THOUGHT_SIGNATURE": true, "MALFORMED_RESPONSE": true}

type chunk struct {
	Error      json.RawMessage `json:"error"`
	Candidates []candidate     `json:"candidates"`
	Feedback   *struct {
		Reason  string `json:"blockReason"`
		Message string `json:"blockReasonMessage"`
	} `json:"promptFeedback"`
	Usage    *usage `json:"usageMetadata"`
	Response *chunk `json:"response"` // how some gateways wrap it
}

type candidate struct {
	Index   int `json:"index"`
	Content *struct {
		Parts []part `json:"parts"`
	} `json:"content"`
	Finish  string `json:"finishReason"`
	Message string `json:"finishMessage"`
}

type part struct {
	Text      *stream.Fragment `json:"text"`
	Thought   bool             `json:"thought"`
	Signature string           `json:"thoughtSignature"`
	Call      *struct {
		ID      string          `json:"id"`
		Name    string          `json:"name"`
		Args    json.RawMessage `json:"args"`
		Partial json.RawMessage `json:"partialArgs"`
	} `json:"functionCall"`
}

type usage struct {
	Prompt    *int64 `json:"promptTokenCount"`
	Cached    int64  `json:"cachedContentTokenCount"`
	Write     int64  `json:"cacheWriteTokenCount"` // of rehearsals and gateways: Google has none
	Candidate int64  `json:"candidatesTokenCount"`
	Thoughts  int64  `json:"thoughtsTokenCount"`
	ToolUse   int64  `json:"toolUsePromptTokenCount"`
}

// neutral counts thoughts as output, as they are paid.
func (u usage) neutral() message.Usage {
	prompt := max(*u.Prompt, 0) + max(u.ToolUse, 0)
	read := min(max(u.Cached, 0), prompt)
	write := min(max(u.Write, 0), prompt-read)
	thoughts := max(u.Thoughts, 0)
	return message.Usage{Input: prompt - read - write, CacheWrite: write, Output: max(u.Candidate, 0) + thoughts, CacheRead: read, Reasoning: thoughts}
}

type decoder struct {
	client *Client
	reply  *stream.Reply
	key    int // of the block in the making
	kind   message.Kind
	calls  int
	finish string
	said   string // with the finish reason
	some   bool   // something that a server of this dialect says
}

func newDecoder(c *Client, req model.Request) *decoder {
	r := stream.NewReply(req)
	r.InOrder = true
	return &decoder{client: c, reply: r}
}

// Event takes one chunk. None is terminal: usage may follow the finish reason, and nothing announces the end.
func (d *decoder) Event(data []byte) ([]model.Event, bool, error) {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, false, stream.Truncated(err)
	}
	events, err := d.take(&c, data)
	return events, false, err
}

// Whole takes an answer that was not streamed, or a stream as one JSON list.
func (d *decoder) Whole(data []byte) ([]model.Event, error) {
	list := []json.RawMessage{data}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		if err := json.Unmarshal(data, &list); err != nil {
			return nil, stream.Truncated(err)
		}
	}
	var events []model.Event
	for _, raw := range list {
		more, _, err := d.Event(raw)
		if err != nil {
			return nil, err
		}
		events = append(events, more...)
	}
	if !d.some {
		return nil, d.client.endpoint.Classify(200, nil, data)
	}
	more, err := d.End(true)
	return append(events, more...), err
}

// Ended says that a finish reason has come.
func (d *decoder) Ended() bool { return d.finish != "" }

// End takes the end of the stream, which ends a reply that has a finish reason.
func (d *decoder) End(bool) ([]model.Event, error) {
	switch {
	case d.finish == "":
		return nil, stream.Truncated(nil)
	case malformed[d.finish]:
		text := d.client.endpoint.Provider + ": the model wrote a tool call that cannot be read (" + d.finish + ")"
		if d.said != "" {
			text += ": " + d.said
		}
		return nil, &model.Error{Class: model.Transient, Kind: model.MalformedCall, Code: d.finish, Message: text}
	}
	events, err := d.reply.Finish(d.finish, stops[d.finish])
	return events, err
}

func (d *decoder) take(c *chunk, data []byte) ([]model.Event, error) {
	if c.Response != nil {
		c = c.Response
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return nil, d.client.endpoint.Classify(200, nil, data)
	}
	d.some = d.some || c.Candidates != nil || c.Feedback != nil || c.Usage != nil
	if c.Usage != nil && c.Usage.Prompt != nil { // cumulative: the last one counts
		d.reply.Usage(c.Usage.neutral())
	}
	var events []model.Event
	if f := c.Feedback; f != nil && f.Reason != "" && f.Reason != "BLOCK_REASON_UNSPECIFIED" && len(c.Candidates) == 0 {
		if d.finish == "" {
			d.finish = "PROHIBITED_CONTENT"
		}
		text := f.Message
		if text == "" {
			text = "The provider blocks the prompt: " + f.Reason + "."
		}
		more, err := d.text(message.KindText, stream.Fragment(text))
		if err != nil {
			return nil, err
		}
		events = more
	}
	for i, x := range c.Candidates {
		if x.Index != 0 {
			continue // only one was asked for
		}
		if x.Content != nil {
			var raws []json.RawMessage // read a second time, but only where one of them must be kept as it is
			if slices.ContainsFunc(x.Content.Parts, part.kept) {
				raws = rawParts(data, i)
			}
			for k, p := range x.Content.Parts {
				var raw json.RawMessage
				if k < len(raws) {
					raw = raws[k]
				}
				more, err := d.part(p, raw)
				if err != nil {
					return nil, err
				}
				events = append(events, more...)
			}
		}
		if d.finish == "" && x.Finish != "" && x.Finish != "FINISH_REASON_UNSPECIFIED" {
			d.finish, d.said = strings.ToUpper(x.Finish), x.Message
		}
	}
	return events, nil
}

// text goes on with the block in the making, or begins one of another kind.
func (d *decoder) text(kind message.Kind, text stream.Fragment) ([]model.Event, error) {
	if d.kind != kind {
		d.next()
		d.kind = kind
	}
	return d.reply.Text(d.key, kind, text)
}

func (d *decoder) next() { d.key, d.kind = d.key+1, "" }

// kept says that a part goes back as it came.
func (p part) kept() bool { return p.Call == nil && (p.Signature != "" || p.Text == nil) }

// rawParts returns the bytes of the parts of a chunk's candidate.
func rawParts(data []byte, candidate int) []json.RawMessage {
	type candidates []struct {
		Content struct {
			Parts []json.RawMessage `json:"parts"`
		} `json:"content"`
	}
	var c struct {
		Candidates candidates `json:"candidates"`
		Response   struct {
			Candidates candidates `json:"candidates"`
		} `json:"response"`
	}
	if json.Unmarshal(data, &c) != nil { // it was read before
		return nil
	}
	if c.Response.Candidates != nil {
		c.Candidates = c.Response.Candidates
	}
	if candidate >= len(c.Candidates) {
		return nil
	}
	return c.Candidates[candidate].Content.Parts
}

func (d *decoder) part(p part, raw json.RawMessage) ([]model.Event, error) {
	if p.kept() && len(raw) == 0 {
		return nil, stream.Truncated(nil)
	}
	switch {
	case p.Call != nil:
		return d.call(p)
	case p.Text != nil:
		kind := message.KindText
		if p.Thought {
			kind = message.KindThinking
		}
		if p.Signature == "" {
			return d.text(kind, *p.Text)
		}
		// A signed part stays a part of its own.
		d.next()
		if len(*p.Text) == 0 {
			return nil, d.reply.Keep(d.key, bytes.Clone(raw), d.own(raw))
		}
		events, err := d.text(kind, *p.Text)
		d.reply.Put(d.key, d.own(raw))
		d.next()
		return events, err
	}
	if s := string(bytes.TrimSpace(raw)); s == "{}" || s == "null" || s == "" {
		return nil, nil
	}
	d.next()
	return nil, d.reply.Keep(d.key, bytes.Clone(raw), d.own(raw))
}

func (d *decoder) call(p part) ([]model.Event, error) {
	if len(p.Call.Partial) > 0 && string(p.Call.Partial) != "null" {
		return nil, &model.Error{Class: model.Transient, Kind: model.MalformedCall, Calls: []string{p.Call.Name},
			Message: d.client.endpoint.Provider + ": the server streams the arguments of calls in pieces, which was not asked for"}
	}
	d.next()
	i := d.calls
	d.calls++
	delta := stream.CallDelta{Index: &i, ID: p.Call.ID, Name: p.Call.Name, Args: p.Call.Args}
	var text stream.Fragment
	if len(p.Call.Args) > 0 && p.Call.Args[0] == '"' && text.UnmarshalJSON(p.Call.Args) == nil { // JSON as a text
		delta.Args = text
	}
	if p.Signature != "" {
		raw, err := json.Marshal(map[string]string{"thoughtSignature": p.Signature})
		if err != nil {
			return nil, err
		}
		delta.Opaque = d.own(raw)
	}
	return d.reply.Call(delta)
}

// own labels a part's bytes. They are bound to model and part, not to what came before.
func (d *decoder) own(raw []byte) *message.Opaque {
	o := d.reply.Own(bytes.Clone(raw), d.client.info.Provider, d.client.info.Model)
	o.Prefix = ""
	return o
}

// Seen is what is known of a reply that fails.
func (d *decoder) Seen() (*message.Usage, string) { return d.reply.Counted(), d.finish }
