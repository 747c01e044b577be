package serve

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"

	"belay/message"
	"belay/model"
	"belay/model/stream"
	"belay/model/wire"
)

type geminiDialect struct {
	signed bool
	model  string
	method string
	list   bool // a stream that was not asked for as events is one JSON list
}

// newGeminiDialect reads what this API has in the path: the model, what is to be done, and how to stream it.
func newGeminiDialect(r *http.Request, signed bool) dialect {
	name, method, _ := strings.Cut(r.PathValue("call"), ":")
	return &geminiDialect{signed: signed, model: name, method: method, list: r.URL.Query().Get("alt") != "sse"}
}

type geminiContent struct {
	Role  string       `json:"role"`
	Parts []geminiPart `json:"parts"`
}

type geminiPart struct {
	Text      *string `json:"text"`
	Thought   bool    `json:"thought"`
	Signature string  `json:"thoughtSignature"`
	Call      *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
	Response *struct {
		ID       string          `json:"id"`
		Name     string          `json:"name"`
		Response json.RawMessage `json:"response"`
	} `json:"functionResponse"`
	Inline json.RawMessage `json:"inlineData"`
	File   json.RawMessage `json:"fileData"`
}

type geminiRequest struct {
	Contents []geminiContent `json:"contents"`
	System   *geminiContent  `json:"systemInstruction"`
	Tools    []struct {
		Declarations []struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
			JSONSchema  json.RawMessage `json:"parametersJsonSchema"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
	Generation struct {
		MaxOutputTokens *int64 `json:"maxOutputTokens"`
	} `json:"generationConfig"`
}

var (
	geminiFields = []string{"contents", "systemInstruction", "tools", "toolConfig", "generationConfig", "safetySettings", "cachedContent", "labels", "model", "store"}
	geminiSchema = []string{"type", "format", "title", "description", "nullable", "enum", "items", "minItems", "maxItems", "properties", "required",
		"propertyOrdering", "minProperties", "maxProperties", "minimum", "maximum", "minLength", "maxLength", "pattern", "default", "example", "anyOf"}
	geminiName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$`) })
)

func (d *geminiDialect) read(_ http.Header, body []byte) (incoming, error) {
	var r geminiRequest
	var in incoming
	if d.method != "streamGenerateContent" && d.method != "generateContent" {
		e := invalid("a rehearsal answers :generateContent and :streamGenerateContent, not :%s", d.method).(*model.Error)
		e.Status = http.StatusNotFound
		return in, e
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return in, invalid("Invalid JSON payload received. %v", err)
	}
	for name := range fields {
		if !slices.Contains(geminiFields, name) {
			return in, invalid("Invalid JSON payload received. Unknown name \"%s\": Cannot find field.", name)
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return in, invalid("Invalid JSON payload received. %v", err)
	}
	if len(r.Contents) == 0 {
		return in, invalid("* GenerateContentRequest.contents: contents is not specified")
	}
	in.model, in.stream = d.model, d.method == "streamGenerateContent"
	if n := r.Generation.MaxOutputTokens; n != nil {
		if in.MaxOutput = *n; *n < 1 {
			return in, invalid("* GenerateContentRequest.generation_config.max_output_tokens: max_output_tokens must be positive.")
		}
	}
	if r.System != nil {
		for _, p := range r.System.Parts {
			if p.Text == nil {
				return in, invalid("* GenerateContentRequest.system_instruction.parts: only text is supported")
			}
			in.System = strings.TrimPrefix(in.System+"\n\n"+*p.Text, "\n\n")
		}
	}
	names := map[string]bool{}
	for i, t := range r.Tools {
		for k, f := range t.Declarations {
			at := fmt.Sprintf("tools[%d].function_declarations[%d]", i, k)
			switch {
			case !geminiName().MatchString(f.Name):
				return in, invalid("* GenerateContentRequest.%s.name: Invalid function name. Must start with a letter or an underscore, at most 128 long.", at)
			case names[f.Name]:
				return in, invalid("Duplicate function declaration found: %s", f.Name)
			case len(f.Parameters) > 0 && len(f.JSONSchema) > 0:
				return in, invalid("* GenerateContentRequest.%s: only one of parameters and parametersJsonSchema may be set", at)
			}
			if len(f.Parameters) > 0 {
				if err := checkGeminiSchema(at+".parameters", f.Parameters); err != nil {
					return in, err
				}
			}
			names[f.Name] = true
			in.Tools = append(in.Tools, model.Tool{Name: f.Name, Description: f.Description, Schema: append(f.Parameters, f.JSONSchema...)})
		}
	}
	return in, d.contents(&in, r.Contents)
}

// checkGeminiSchema refuses what the API's own message type has no field for, and what it calls incomplete.
func checkGeminiSchema(at string, raw json.RawMessage) error {
	var s map[string]json.RawMessage
	if err := json.Unmarshal(raw, &s); err != nil {
		return invalid("Invalid value at '%s': %v", at, err)
	}
	for name := range s {
		if !slices.Contains(geminiSchema, name) {
			return invalid("Invalid JSON payload received. Unknown name \"%s\" at '%s': Cannot find field.", name, at)
		}
	}
	var kind string
	_ = json.Unmarshal(s["type"], &kind) // checked below
	var properties map[string]json.RawMessage
	if len(s["properties"]) > 0 {
		if err := json.Unmarshal(s["properties"], &properties); err != nil {
			return invalid("Invalid value at '%s.properties': %v", at, err)
		}
	}
	var required []string
	if len(s["required"]) > 0 && json.Unmarshal(s["required"], &required) != nil {
		return invalid("Invalid value at '%s.required'", at)
	}
	switch {
	case kind == "" && s["anyOf"] == nil:
		return invalid("* GenerateContentRequest.%s.type: must be specified", at)
	case strings.EqualFold(kind, "array") && s["items"] == nil:
		return invalid("* GenerateContentRequest.%s.items: missing field.", at)
	case strings.EqualFold(kind, "object") && len(properties) == 0:
		return invalid("* GenerateContentRequest.%s.properties: should be non-empty for OBJECT type", at)
	}
	for _, name := range required {
		if properties[name] == nil {
			return invalid("* GenerateContentRequest.%s.required: property is not defined: %s", at, name)
		}
	}
	if len(s["enum"]) > 0 {
		var texts []string
		if json.Unmarshal(s["enum"], &texts) != nil || !strings.EqualFold(kind, "string") {
			return invalid("Invalid value at '%s.enum' (TYPE_STRING)", at)
		}
	}
	for name, p := range properties {
		if err := checkGeminiSchema(at+".properties."+name, p); err != nil {
			return err
		}
	}
	if s["items"] != nil {
		if err := checkGeminiSchema(at+".items", s["items"]); err != nil {
			return err
		}
	}
	var choices []json.RawMessage
	if s["anyOf"] != nil && json.Unmarshal(s["anyOf"], &choices) != nil {
		return invalid("Invalid value at '%s.anyOf'", at)
	}
	for _, c := range choices {
		if err := checkGeminiSchema(at+".any_of", c); err != nil {
			return err
		}
	}
	return nil
}

// contents checks order, pairs and signatures, and finds the calls that results belong to: by id, else by order.
func (d *geminiDialect) contents(in *incoming, list []geminiContent) error {
	type asked struct{ id, wire, name string }
	var open []asked
	calls := 0
	turn := 0 // where the current turn begins: behind the last user's content that is not only results
	for i, c := range list {
		for _, p := range c.Parts {
			if c.Role != "model" && p.Text != nil {
				turn = i
			}
		}
	}
	for i, c := range list {
		role := message.User
		switch c.Role {
		case "model":
			role = message.Assistant
		case "user", "function", "":
		default:
			return invalid("Please use a valid role: user, model.")
		}
		if i == 0 && role != message.User {
			return invalid("Please ensure that multiturn requests begin with a user turn.")
		}
		if len(c.Parts) == 0 {
			return invalid("* GenerateContentRequest.contents[%d].parts: contents.parts must not be empty.", i)
		}
		m := message.Message{Role: role}
		results, firstCall := 0, true
		for k, p := range c.Parts {
			at := fmt.Sprintf("contents[%d].parts[%d]", i, k)
			switch {
			case p.Call != nil:
				var args map[string]json.RawMessage
				switch {
				case role != message.Assistant:
					return invalid("Please ensure that function call turn comes immediately after a user turn or after a function response turn.")
				case !geminiName().MatchString(p.Call.Name):
					return invalid("* GenerateContentRequest.%s.function_call.name: Invalid function name.", at)
				case len(p.Call.Args) > 0 && json.Unmarshal(p.Call.Args, &args) != nil:
					return invalid("Invalid value at '%s.function_call.args' (type.googleapis.com/google.protobuf.Struct)", at)
				case d.signed && firstCall && i > turn && p.Signature == "":
					return invalid("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly. Function call `default_api:%s`, position %d.", p.Call.Name, i)
				case d.signed && p.Signature != "" && p.Signature != geminiSign(p.Call.Name) && p.Signature != "skip_thought_signature_validator":
					return invalid("Corrupted thought signature.")
				}
				firstCall = false
				calls++
				a := asked{id: p.Call.ID, wire: p.Call.ID, name: p.Call.Name}
				if a.id == "" {
					a.id = fmt.Sprintf("gemini_%d", calls)
				}
				open = append(open, a)
				call := message.ToolCall{ID: a.id, Name: p.Call.Name}
				call.Args, call.BadArgs = json.RawMessage("{}"), ""
				if len(p.Call.Args) > 0 {
					call.Args, call.BadArgs = stream.FromHistory(p.Call.Args)
				}
				m.Blocks = append(m.Blocks, message.Block{Kind: message.KindCall, Call: &call})
			case p.Response != nil:
				var r map[string]json.RawMessage
				if json.Unmarshal(p.Response.Response, &r) != nil || r == nil {
					return invalid("Invalid value at '%s.function_response.response' (type.googleapis.com/google.protobuf.Struct)", at)
				}
				k := slices.IndexFunc(open, func(a asked) bool { return a.name == p.Response.Name && a.wire == p.Response.ID })
				if k < 0 {
					return invalid("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.")
				}
				results++
				result := message.ToolResult{CallID: open[k].id, Text: geminiText(r["output"])}
				if r["error"] != nil {
					result.Text, result.Error = geminiText(r["error"]), true
				}
				open = slices.Delete(open, k, k+1)
				m.Blocks = append(m.Blocks, message.Block{Kind: message.KindResult, Result: &result})
			case p.Text != nil:
				kind := message.KindText
				if p.Thought {
					kind = message.KindThinking
				}
				if *p.Text == "" && p.Signature == "" {
					return invalid("Unable to submit request because it has an empty text parameter (%s). Add a value to the parameter and try again.", at)
				}
				m.Blocks = append(m.Blocks, message.Block{Kind: kind, Text: *p.Text})
			case p.Inline != nil || p.File != nil:
				m.Blocks = append(m.Blocks, message.Text("[image]"))
			default:
				return invalid("* GenerateContentRequest.%s.data: required oneof field 'data' must have one initialized field", at)
			}
		}
		if role == message.User && len(open) > 0 {
			return invalid("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.")
		}
		if role == message.Assistant && i > 0 && len(open) > 0 && list[i-1].Role == "model" {
			return invalid("Please ensure that function call turn comes immediately after a user turn or after a function response turn.")
		}
		in.Messages = append(in.Messages, m)
	}
	if len(open) > 0 {
		return invalid("Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.")
	}
	return nil
}

// geminiText is a text, or the JSON of what else a result holds.
func geminiText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

func geminiSign(name string) string {
	h := sha256.Sum256([]byte("rehearsal, thought of\n" + name))
	return base64.StdEncoding.EncodeToString(h[:])
}

var geminiStops = map[message.StopReason]string{
	message.StopEnd: "STOP", message.StopToolUse: "STOP", message.StopLength: "MAX_TOKENS", message.StopRefusal: "SAFETY", message.StopPause: "CONTINUATION",
}

func geminiUsage(u message.Usage) map[string]any {
	prompt := u.Input + u.CacheRead + u.CacheWrite
	m := map[string]any{"promptTokenCount": prompt, "cachedContentTokenCount": u.CacheRead, "candidatesTokenCount": u.Output - u.Reasoning,
		"thoughtsTokenCount": u.Reasoning, "totalTokenCount": prompt + u.Output}
	if u.CacheWrite > 0 { // Google has none; a script may
		m["cacheWriteTokenCount"] = u.CacheWrite
	}
	return m
}

func (d *geminiDialect) response(in incoming, reply model.Reply, id string, parts []any, finish string) map[string]any {
	candidate := map[string]any{"index": 0}
	if parts != nil {
		candidate["content"] = map[string]any{"role": "model", "parts": parts}
	}
	if finish != "" {
		candidate["finishReason"] = finish
	}
	return map[string]any{"candidates": []any{candidate}, "usageMetadata": geminiUsage(reply.Usage), "modelVersion": in.model, "responseId": id}
}

// part is a call; arguments that are no object, which the API has no form for, are a text.
func (d *geminiDialect) part(b message.Block, first bool) map[string]any {
	call := map[string]any{"id": b.Call.ID, "name": b.Call.Name}
	switch {
	case b.Call.BadArgs != "":
		call["args"] = stream.Raw(*b.Call)
	case string(b.Call.Args) != "{}": // no arguments are left out
		call["args"] = b.Call.Args
	}
	p := map[string]any{"functionCall": call}
	if d.signed && first {
		p["thoughtSignature"] = geminiSign(b.Call.Name)
	}
	return p
}

func (d *geminiDialect) parts(reply model.Reply, split func(string) []string) []any {
	var parts []any
	first := true
	for _, b := range reply.Blocks {
		if b.Kind == message.KindCall {
			parts = append(parts, d.part(b, first))
			first = false
			continue
		}
		for _, s := range split(b.Text) {
			p := map[string]any{"text": s}
			if b.Kind == message.KindThinking {
				p["thought"] = true
			}
			parts = append(parts, p)
		}
	}
	return parts
}

func (d *geminiDialect) whole(in incoming, reply model.Reply, id string) any {
	return d.response(in, reply, id, d.parts(reply, func(s string) []string { return []string{s} }), geminiStops[reply.Stop])
}

func (d *geminiDialect) events(in incoming, reply model.Reply, id string) []frame {
	var frames []frame
	for _, p := range d.parts(reply, splitText) {
		frames = append(frames, frame{"", d.response(in, reply, id, []any{p}, "")})
	}
	return append(frames, frame{"", d.response(in, reply, id, nil, geminiStops[reply.Stop])})
}

var geminiErrors = map[int]string{
	400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 409: "ABORTED", 429: "RESOURCE_EXHAUSTED",
	500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}

func (d *geminiDialect) fault(status int, e *model.Error) any {
	kind, text := geminiErrors[status], e.Message
	switch {
	case e.Class == model.Script:
		kind = wire.ScriptErrorType
	case e.ContextTooLarge && status != 413:
		text = "The input token count exceeds the maximum number of tokens allowed. " + text
	case kind == "" && status >= 500:
		kind = "UNAVAILABLE"
	case kind == "":
		kind = "FAILED_PRECONDITION"
	}
	body := map[string]any{"code": status, "message": text, "status": kind}
	if e.RetryAfter > 0 {
		body["details"] = []any{map[string]any{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": fmt.Sprintf("%gs", e.RetryAfter.Seconds())}}
	}
	return map[string]any{"error": body}
}

func (d *geminiDialect) broken(e *model.Error) any { return d.fault(http.StatusServiceUnavailable, e) }
