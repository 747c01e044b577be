package serve

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"belay/message"
	"belay/model"
	"belay/model/stream"
	"belay/model/wire"
)

type openaiDialect struct{}

type openaiRequest struct {
	Model         string `json:"model"`
	Stream        bool   `json:"stream"`
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens           *int64 `json:"max_tokens"`
	MaxCompletionTokens *int64 `json:"max_completion_tokens"`
	Tools               []struct {
		Type     string `json:"type"`
		Function *struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		} `json:"function"`
	} `json:"tools"`
	Messages []openaiMessage `json:"messages"`
}

type openaiMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	Refusal    string          `json:"refusal"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string  `json:"name"`
			Arguments *string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

var openaiName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`) })

func (d *openaiDialect) read(_ http.Header, body []byte) (incoming, error) {
	var r openaiRequest
	var in incoming
	if err := json.Unmarshal(body, &r); err != nil {
		return in, invalid("We could not parse the JSON body of your request: %v", err)
	}
	switch {
	case r.Model == "":
		return in, invalid("you must provide a model parameter")
	case len(r.Messages) == 0:
		return in, invalid("Invalid 'messages': empty array. Expected an array with minimum length 1.")
	case r.StreamOptions != nil && !r.Stream:
		return in, invalid("The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	case r.MaxTokens != nil && r.MaxCompletionTokens != nil:
		return in, invalid("Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	}
	in.model, in.stream, in.usage = r.Model, r.Stream, r.StreamOptions != nil && r.StreamOptions.IncludeUsage
	for _, n := range []*int64{r.MaxTokens, r.MaxCompletionTokens} {
		if n == nil {
			continue
		}
		if in.MaxOutput = *n; *n < 1 {
			return in, invalid("Invalid 'max_tokens': integer below minimum value. Expected a value >= 1.")
		}
	}
	names := map[string]bool{}
	for i, t := range r.Tools {
		switch {
		case t.Type == "custom":
			continue
		case t.Type != "function" || t.Function == nil:
			return in, invalid("Invalid value for 'tools[%d].type': expected 'function' or 'custom'.", i)
		case !openaiName().MatchString(t.Function.Name):
			return in, invalid("Invalid 'tools[%d].function.name': string does not match pattern '^[a-zA-Z0-9_-]+$', at most 64 long.", i)
		case names[t.Function.Name]:
			return in, invalid("Invalid 'tools[%d].function.name': %s is there twice.", i, t.Function.Name)
		case len(t.Function.Parameters) > 0 && !objectSchema(t.Function.Parameters):
			return in, invalid("Invalid schema for function '%s': schema must be of type 'object'.", t.Function.Name)
		}
		names[t.Function.Name] = true
		in.Tools = append(in.Tools, model.Tool{Name: t.Function.Name, Description: t.Function.Description, Schema: t.Function.Parameters})
	}
	return in, d.messages(&in, r.Messages)
}

// messages checks roles, order and pairs, and puts tool messages that follow each other into one.
func (d *openaiDialect) messages(in *incoming, list []openaiMessage) error {
	var open []string
	var system []string
	for i, m := range list {
		text, err := textOf(m.Content)
		null := len(m.Content) == 0 || string(m.Content) == "null"
		if err != nil {
			return invalid("Invalid type for 'messages[%d].content': %v.", i, err)
		}
		if m.Role != "tool" && len(open) > 0 {
			return unanswered(open)
		}
		if null && (m.Role != "assistant" || (len(m.ToolCalls) == 0 && m.Refusal == "")) {
			return invalid("Invalid value for 'content': expected a string, got null (messages[%d]).", i)
		}
		switch m.Role {
		case "system", "developer":
			system = append(system, text)
		case "user":
			in.Messages = append(in.Messages, message.Message{Role: message.User, Blocks: parts(m.Content, text)})
		case "assistant":
			said := message.Message{Role: message.Assistant}
			if text != "" {
				said.Blocks = parts(m.Content, text)
			}
			if m.ToolCalls != nil && len(m.ToolCalls) == 0 {
				return invalid("Invalid 'messages[%d].tool_calls': empty array. Expected an array with minimum length 1.", i)
			}
			for k, c := range m.ToolCalls {
				switch {
				case c.ID == "" || len(c.ID) > 40:
					return invalid("Invalid 'messages[%d].tool_calls[%d].id': expected a string of 1 to 40 characters.", i, k)
				case c.Type != "function":
					return invalid("Invalid value for 'messages[%d].tool_calls[%d].type': expected 'function'.", i, k)
				case !openaiName().MatchString(c.Function.Name):
					return invalid("Invalid 'messages[%d].tool_calls[%d].function.name': string does not match pattern '^[a-zA-Z0-9_-]+$'.", i, k)
				case c.Function.Arguments == nil:
					return invalid("Missing required parameter: 'messages[%d].tool_calls[%d].function.arguments'.", i, k)
				}
				open = append(open, c.ID)
				call := message.ToolCall{ID: c.ID, Name: c.Function.Name}
				if call.Args, call.BadArgs = stream.FromHistory(json.RawMessage(*c.Function.Arguments)); call.BadArgs == "" {
					call.Args, call.BadArgs = stream.Args(string(call.Args))
				}
				said.Blocks = append(said.Blocks, message.Block{Kind: message.KindCall, Call: &call})
			}
			in.Messages = append(in.Messages, said)
		case "tool":
			k := -1
			for j, id := range open {
				if id == m.ToolCallID {
					k = j
				}
			}
			if k < 0 {
				return invalid("Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls' (messages[%d]).", i)
			}
			open = append(open[:k:k], open[k+1:]...)
			result := message.Block{Kind: message.KindResult, Result: &message.ToolResult{CallID: m.ToolCallID, Text: text, Error: strings.HasPrefix(text, "Error")}}
			if n := len(in.Messages); n > 0 && list[i-1].Role == "tool" {
				in.Messages[n-1].Blocks = append(in.Messages[n-1].Blocks, result)
			} else {
				in.Messages = append(in.Messages, message.Message{Role: message.User, Blocks: []message.Block{result}})
			}
		default:
			return invalid("Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'developer' and 'tool' (messages[%d].role).", m.Role, i)
		}
	}
	if len(open) > 0 {
		return unanswered(open)
	}
	in.System = strings.Join(system, "\n\n")
	return nil
}

func unanswered(open []string) error {
	return invalid("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", strings.Join(open, ", "))
}

// parts keeps the borders between the texts of one content.
func parts(raw json.RawMessage, text string) []message.Block {
	var list []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &list) != nil {
		return []message.Block{message.Text(text)}
	}
	var blocks []message.Block
	for _, p := range list {
		blocks = append(blocks, message.Text(p.Text))
	}
	return blocks
}

var openaiStops = map[message.StopReason]string{ // pause_turn is how gateways to Anthropic say it
	message.StopEnd: "stop", message.StopToolUse: "tool_calls", message.StopLength: "length", message.StopRefusal: "content_filter", message.StopPause: "pause_turn",
}

func openaiUsage(u message.Usage) map[string]any {
	prompt := u.Input + u.CacheRead + u.CacheWrite
	return map[string]any{"prompt_tokens": prompt, "completion_tokens": u.Output, "total_tokens": prompt + u.Output,
		"prompt_tokens_details": map[string]any{"cached_tokens": u.CacheRead, "cache_write_tokens": u.CacheWrite}}
}

func (d *openaiDialect) whole(in incoming, reply model.Reply, id string) any {
	m := map[string]any{"role": "assistant", "content": nil, "refusal": nil}
	var calls []any
	for _, b := range reply.Blocks {
		switch b.Kind {
		case message.KindThinking:
			m["reasoning_content"] = b.Text
		case message.KindCall:
			calls = append(calls, map[string]any{"id": b.Call.ID, "type": "function", "function": map[string]any{"name": b.Call.Name, "arguments": stream.Raw(*b.Call)}})
		default:
			m["content"] = b.Text
		}
	}
	if calls != nil {
		m["tool_calls"] = calls
	}
	return map[string]any{"id": "chatcmpl-" + id, "object": "chat.completion", "created": 0, "model": in.model, "usage": openaiUsage(reply.Usage),
		"choices": []any{map[string]any{"index": 0, "message": m, "logprobs": nil, "finish_reason": openaiStops[reply.Stop]}}}
}

func (d *openaiDialect) events(in incoming, reply model.Reply, id string) []frame {
	var frames []frame
	chunk := func(choices []any, usage any) {
		c := map[string]any{"id": "chatcmpl-" + id, "object": "chat.completion.chunk", "created": 0, "model": in.model, "choices": choices}
		if in.usage {
			c["usage"] = usage
		}
		frames = append(frames, frame{"", c})
	}
	delta := func(fields map[string]any) {
		chunk([]any{map[string]any{"index": 0, "delta": fields, "logprobs": nil, "finish_reason": nil}}, nil)
	}
	delta(map[string]any{"role": "assistant", "content": ""})
	calls := 0
	for _, b := range reply.Blocks {
		switch b.Kind {
		case message.KindThinking:
			for _, s := range splitText(b.Text) {
				delta(map[string]any{"reasoning_content": s})
			}
		case message.KindCall:
			function := func(fields, f map[string]any) {
				fields["index"], fields["function"] = calls, f
				delta(map[string]any{"tool_calls": []any{fields}})
			}
			function(map[string]any{"id": b.Call.ID, "type": "function"}, map[string]any{"name": b.Call.Name, "arguments": ""})
			for _, s := range splitArgs(stream.Raw(*b.Call)) {
				function(map[string]any{}, map[string]any{"arguments": s})
			}
			calls++
		default:
			for _, s := range splitText(b.Text) {
				delta(map[string]any{"content": s})
			}
		}
	}
	last := len(frames) // a stream that is cut has none of what follows
	chunk([]any{map[string]any{"index": 0, "delta": map[string]any{}, "logprobs": nil, "finish_reason": openaiStops[reply.Stop]}}, nil)
	if in.usage {
		chunk([]any{}, openaiUsage(reply.Usage))
	}
	frames = append(frames, frame{"", "[DONE]"})
	return append(frames[:last:last], frame{"", joined(frames[last:])})
}

// joined makes one piece of the events that end a stream: a client takes a finish reason for its end.
func joined(frames []frame) string {
	var texts []string
	for _, f := range frames {
		if s, ok := f.data.(string); ok {
			texts = append(texts, s)
		} else {
			texts = append(texts, string(encode(f.data)))
		}
	}
	return strings.Join(texts, "\n\ndata: ")
}

func (d *openaiDialect) fault(status int, e *model.Error) any {
	kind, code := "invalid_request_error", any(nil)
	switch {
	case e.Class == model.Script:
		kind = wire.ScriptErrorType
	case e.ContextTooLarge:
		code = "context_length_exceeded"
	case status == 401:
		code = "invalid_api_key"
	case status == 404:
		code = "model_not_found"
	case status == 429:
		kind, code = "requests", "rate_limit_exceeded"
	case status >= 500:
		kind = "server_error"
	}
	return map[string]any{"error": map[string]any{"message": e.Message, "type": kind, "param": nil, "code": code}}
}
