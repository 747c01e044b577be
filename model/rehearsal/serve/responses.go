package serve

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"belay/message"
	"belay/model"
	"belay/model/stream"
)

type responsesDialect struct {
	signed  bool
	include bool // the request asked for encrypted reasoning
}

type responsesRequest struct {
	Model              string          `json:"model"`
	Stream             bool            `json:"stream"`
	Store              *bool           `json:"store"`
	Include            []string        `json:"include"`
	Instructions       string          `json:"instructions"`
	Input              json.RawMessage `json:"input"`
	MaxOutputTokens    *int64          `json:"max_output_tokens"`
	PreviousResponseID string          `json:"previous_response_id"`
	Conversation       json.RawMessage `json:"conversation"`
	Tools              []struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
		Strict      *bool           `json:"strict"`
	} `json:"tools"`
}

// responsesFields are those that a request may have.
var responsesFields = []string{"model", "stream", "store", "include", "instructions", "input", "max_output_tokens", "previous_response_id", "conversation",
	"tools", "tool_choice", "parallel_tool_calls", "reasoning", "text", "truncation", "context_management", "prompt_cache_key", "prompt_cache_options",
	"prompt_cache_retention", "stream_options", "background", "metadata", "service_tier", "safety_identifier", "user", "temperature", "top_p",
	"max_tool_calls", "top_logprobs", "prompt", "client_metadata"}

type responsesItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ID        string          `json:"id"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments *string         `json:"arguments"`
	Output    json.RawMessage `json:"output"`
	Encrypted string          `json:"encrypted_content"`
	Summary   []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	} `json:"summary"`
}

func (d *responsesDialect) read(_ http.Header, body []byte) (incoming, error) {
	var r responsesRequest
	var in incoming
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return in, invalid("We could not parse the JSON body of your request: %v", err)
	}
	for name := range fields {
		if !slices.Contains(responsesFields, name) {
			return in, invalid("Unknown parameter: '%s'.", name)
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return in, invalid("%v", err)
	}
	switch {
	case r.Model == "":
		return in, invalid("Missing required parameter: 'model'.")
	case len(r.Input) == 0:
		return in, invalid("Missing required parameter: 'input'.")
	case r.PreviousResponseID != "" || len(r.Conversation) > 0:
		return in, invalid("Previous response with id '%s' not found: a rehearsal keeps none.", r.PreviousResponseID)
	case r.MaxOutputTokens != nil && *r.MaxOutputTokens < 16:
		return in, invalid("Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16.")
	}
	if r.MaxOutputTokens != nil {
		in.MaxOutput = *r.MaxOutputTokens
	}
	in.model, in.stream, in.System = r.Model, r.Stream, r.Instructions
	d.include = slices.Contains(r.Include, "reasoning.encrypted_content")
	names := map[string]bool{}
	for i, t := range r.Tools {
		switch {
		case t.Type != "function":
			continue // a tool of the provider's
		case !openaiName().MatchString(t.Name):
			return in, invalid("Invalid 'tools[%d].name': string does not match pattern '^[a-zA-Z0-9_-]+$', at most 64 long.", i)
		case names[t.Name]:
			return in, invalid("Invalid 'tools[%d].name': %s is there twice.", i, t.Name)
		case len(t.Parameters) > 0 && !objectSchema(t.Parameters):
			return in, invalid("Invalid schema for function '%s': schema must be of type 'object'.", t.Name)
		case (t.Strict == nil || *t.Strict) && !strictSchema(t.Parameters):
			return in, invalid("Invalid schema for function '%s': 'additionalProperties' is required to be supplied and to be false, and 'required' to include every key in properties.", t.Name)
		}
		names[t.Name] = true
		in.Tools = append(in.Tools, model.Tool{Name: t.Name, Description: t.Description, Schema: t.Parameters})
	}
	var text string
	if json.Unmarshal(r.Input, &text) == nil {
		in.Messages = []message.Message{message.UserText(text)}
		return in, nil
	}
	var items []responsesItem
	if err := json.Unmarshal(r.Input, &items); err != nil {
		return in, invalid("Invalid type for 'input': expected one of an array of objects or a string.")
	}
	if len(items) == 0 {
		return in, invalid("Invalid 'input': empty array.")
	}
	return in, d.items(&in, items)
}

// strictSchema says whether a schema keeps to what strict function calling takes, on its first level.
func strictSchema(raw json.RawMessage) bool {
	var s struct {
		Additional *bool                      `json:"additionalProperties"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	return json.Unmarshal(raw, &s) == nil && s.Additional != nil && !*s.Additional && len(s.Required) == len(s.Properties)
}

// items checks the items and makes messages of them: one for what follows each other from one side.
func (d *responsesDialect) items(in *incoming, list []responsesItem) error {
	say := func(role message.Role, apart bool, blocks ...message.Block) {
		if n := len(in.Messages); n > 0 && in.Messages[n-1].Role == role && !apart {
			in.Messages[n-1].Blocks = append(in.Messages[n-1].Blocks, blocks...)
			return
		}
		in.Messages = append(in.Messages, message.Message{Role: role, Blocks: blocks})
	}
	var open []string
	calls := map[string]bool{}
	before := ""
	for i, it := range list {
		if it.Type == "" && it.Role != "" {
			it.Type = "message"
		}
		kind := it.Type
		apart := kind == "message" && before == "message" && it.Role == "assistant" // two messages, not one with two texts
		switch kind {
		case "message":
			text, err := d.content(i, it)
			if err != nil {
				return err
			}
			switch it.Role {
			case "system", "developer":
				in.System = strings.TrimPrefix(in.System+"\n\n"+text, "\n\n")
			case "user":
				say(message.User, false, parts(it.Content, text)...)
			case "assistant":
				say(message.Assistant, apart, parts(it.Content, text)...)
			default:
				return invalid("Invalid value: '%s'. Supported values are: 'assistant', 'system', 'developer', and 'user' (input[%d].role).", it.Role, i)
			}
		case "reasoning":
			if i+1 == len(list) || !follows(list[i+1]) {
				return invalid("Item '%s' of type 'reasoning' was provided without its required following item.", it.ID)
			}
			if it.Encrypted == "" {
				return invalid("Item with id '%s' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.", it.ID)
			}
			var texts []string
			for _, p := range it.Summary {
				texts = append(texts, p.Text)
			}
			thinking := strings.Join(texts, "\n\n")
			if it.Encrypted != seal(thinking) {
				e := invalid("The encrypted content for item %s could not be verified.", it.ID).(*model.Error)
				e.Code = "invalid_encrypted_content"
				return e
			}
			say(message.Assistant, false, message.Block{Kind: message.KindThinking, Text: thinking})
		case "function_call":
			switch {
			case it.CallID == "" || len(it.CallID) > 64:
				return invalid("Invalid 'input[%d].call_id': expected a string of 1 to 64 characters.", i)
			case !openaiName().MatchString(it.Name):
				return invalid("Invalid 'input[%d].name': string does not match pattern '^[a-zA-Z0-9_-]+$'.", i)
			case it.Arguments == nil:
				return invalid("Missing required parameter: 'input[%d].arguments'.", i)
			case calls[it.CallID]:
				return invalid("Duplicate function call id %s (input[%d]).", it.CallID, i)
			}
			calls[it.CallID] = true
			open = append(open, it.CallID)
			call := message.ToolCall{ID: it.CallID, Name: it.Name}
			if call.Args, call.BadArgs = stream.FromHistory(json.RawMessage(*it.Arguments)); call.BadArgs == "" {
				call.Args, call.BadArgs = stream.Args(string(call.Args))
			}
			say(message.Assistant, false, message.Block{Kind: message.KindCall, Call: &call})
		case "function_call_output":
			text, err := textOf(it.Output)
			k := slices.Index(open, it.CallID)
			switch {
			case len(it.Output) == 0:
				return invalid("Missing required parameter: 'input[%d].output'.", i)
			case err != nil:
				return invalid("Invalid 'input[%d].output': %v.", i, err)
			case k < 0:
				return invalid("No tool call found for function call output with call_id %s.", it.CallID)
			}
			open = slices.Delete(open, k, k+1)
			say(message.User, false, message.Block{Kind: message.KindResult, Result: &message.ToolResult{CallID: it.CallID, Text: text, Error: strings.HasPrefix(text, "Error")}})
		default:
			return invalid("Invalid value: '%s' (input[%d].type).", kind, i)
		}
		before = kind
	}
	if len(open) > 0 {
		return invalid("No tool output found for function call %s.", open[0])
	}
	return nil
}

// follows says whether an item may stand behind reasoning.
func follows(it responsesItem) bool {
	switch it.Type {
	case "function_call", "reasoning", "custom_tool_call":
		return true
	}
	return (it.Type == "message" || it.Type == "") && it.Role == "assistant"
}

func (d *responsesDialect) content(i int, it responsesItem) (string, error) {
	var list []struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(it.Content, &list) == nil {
		want := []string{"input_text", "input_image", "input_file"}
		if it.Role == "assistant" {
			want = []string{"output_text", "refusal"}
		}
		for k, p := range list {
			if !slices.Contains(want, p.Type) {
				return "", invalid("Invalid value: '%s'. Supported values are: '%s' (input[%d].content[%d]).", p.Type, strings.Join(want, "' and '"), i, k)
			}
		}
	}
	text, err := textOf(it.Content)
	if err != nil || len(it.Content) == 0 || string(it.Content) == "null" {
		return "", invalid("Invalid type for 'input[%d].content': expected a string or a list of parts.", i)
	}
	return text, nil
}

// seal is a stand-in for encrypted reasoning: it depends on every byte of the summary.
func seal(thinking string) string {
	h := sha256.Sum256([]byte("rehearsal, sealed\n" + thinking))
	return base64.StdEncoding.EncodeToString(h[:])
}

func responsesUsage(u message.Usage) map[string]any {
	input := u.Input + u.CacheRead + u.CacheWrite
	return map[string]any{"input_tokens": input, "output_tokens": u.Output, "total_tokens": input + u.Output,
		"input_tokens_details":  map[string]any{"cached_tokens": u.CacheRead, "cache_write_tokens": u.CacheWrite},
		"output_tokens_details": map[string]any{"reasoning_tokens": u.Reasoning}}
}

// item is a block as an item, finished or as it begins.
func (d *responsesDialect) item(b message.Block, id string, i int, done bool) map[string]any {
	status := "in_progress"
	if done {
		status = "completed"
	}
	switch b.Kind {
	case message.KindThinking:
		it := map[string]any{"type": "reasoning", "id": fmt.Sprintf("rs_%s_%d", id, i), "summary": []any{}}
		if done {
			it["summary"] = []any{map[string]any{"type": "summary_text", "text": b.Text}}
			if d.signed && d.include {
				it["encrypted_content"] = seal(b.Text)
			}
		}
		return it
	case message.KindCall:
		it := map[string]any{"type": "function_call", "id": fmt.Sprintf("fc_%s_%d", id, i), "call_id": b.Call.ID, "name": b.Call.Name, "arguments": "", "status": status}
		if done {
			it["arguments"] = stream.Raw(*b.Call)
		}
		return it
	}
	it := map[string]any{"type": "message", "id": fmt.Sprintf("msg_%s_%d", id, i), "role": "assistant", "content": []any{}, "status": status}
	if done {
		it["content"] = []any{map[string]any{"type": "output_text", "text": b.Text, "annotations": []any{}}}
	}
	return it
}

// responsesIncomplete are the reasons of a response that is not complete. The last is how gateways to Anthropic say it.
var responsesIncomplete = map[message.StopReason]string{
	message.StopLength: "max_output_tokens", message.StopRefusal: "content_filter", message.StopPause: "pause_turn",
}

func (d *responsesDialect) response(in incoming, id, status string) map[string]any {
	return map[string]any{"id": "resp_" + id, "object": "response", "created_at": 0, "model": in.model, "status": status, "output": []any{},
		"error": nil, "incomplete_details": nil, "usage": nil}
}

func (d *responsesDialect) whole(in incoming, reply model.Reply, id string) any {
	r := d.response(in, id, "completed")
	if reason := responsesIncomplete[reply.Stop]; reason != "" {
		r["status"], r["incomplete_details"] = "incomplete", map[string]any{"reason": reason}
	}
	output := []any{}
	for i, b := range reply.Blocks {
		output = append(output, d.item(b, id, i, true))
	}
	r["output"], r["usage"] = output, responsesUsage(reply.Usage)
	return r
}

func (d *responsesDialect) events(in incoming, reply model.Reply, id string) []frame {
	var frames []frame
	event := func(kind string, fields map[string]any) {
		fields["type"], fields["sequence_number"] = kind, len(frames)
		frames = append(frames, frame{kind, fields})
	}
	event("response.created", map[string]any{"response": d.response(in, id, "in_progress")})
	event("response.in_progress", map[string]any{"response": d.response(in, id, "in_progress")})
	for i, b := range reply.Blocks {
		first := d.item(b, id, i, false)
		at := func(fields map[string]any) map[string]any {
			fields["item_id"], fields["output_index"] = first["id"], i
			return fields
		}
		event("response.output_item.added", map[string]any{"output_index": i, "item": first})
		switch b.Kind {
		case message.KindThinking:
			part := func(text string) map[string]any {
				return at(map[string]any{"summary_index": 0, "part": map[string]any{"type": "summary_text", "text": text}})
			}
			event("response.reasoning_summary_part.added", part(""))
			for _, s := range splitText(b.Text) {
				event("response.reasoning_summary_text.delta", at(map[string]any{"summary_index": 0, "delta": s}))
			}
			event("response.reasoning_summary_text.done", at(map[string]any{"summary_index": 0, "text": b.Text}))
			event("response.reasoning_summary_part.done", part(b.Text))
		case message.KindCall:
			for _, s := range splitArgs(stream.Raw(*b.Call)) {
				event("response.function_call_arguments.delta", at(map[string]any{"delta": s}))
			}
			event("response.function_call_arguments.done", at(map[string]any{"arguments": stream.Raw(*b.Call)}))
		default:
			part := func(text string) map[string]any {
				return at(map[string]any{"content_index": 0, "part": map[string]any{"type": "output_text", "text": text, "annotations": []any{}}})
			}
			event("response.content_part.added", part(""))
			for _, s := range splitText(b.Text) {
				event("response.output_text.delta", at(map[string]any{"content_index": 0, "delta": s}))
			}
			event("response.output_text.done", at(map[string]any{"content_index": 0, "text": b.Text}))
			event("response.content_part.done", part(b.Text))
		}
		event("response.output_item.done", map[string]any{"output_index": i, "item": d.item(b, id, i, true)})
	}
	last, _ := d.whole(in, reply, id).(map[string]any)
	event(fmt.Sprintf("response.%s", last["status"]), map[string]any{"response": last})
	return frames
}

func (d *responsesDialect) fault(status int, e *model.Error) any {
	body := (&openaiDialect{}).fault(status, e).(map[string]any)
	if inner, ok := body["error"].(map[string]any); ok && e.Code != "" && e.Class != model.Script {
		inner["code"] = e.Code
	}
	return body
}

func (d *responsesDialect) broken(e *model.Error) any {
	return map[string]any{"type": "error", "code": "server_is_overloaded", "message": e.Message, "param": nil}
}
