package stream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"belay/message"
)

// invalidKey wraps arguments that were no object where a provider's history must hold one.
const invalidKey = "_invalid_arguments"

const notObject = "not a JSON object"

// Args judges the arguments of a call whose reply has properly ended. Nothing at all and null are a call without
// arguments. JSON that only lacks the escape of a control character or of a backslash is repaired, an object that
// was encoded twice or put alone into a list is unwrapped once. Everything else is kept as it is, or as a JSON
// string where it is no JSON, and bad says why it must not be executed.
func Args(raw string) (args json.RawMessage, bad string) {
	given := strings.ToValidUTF8(raw, "\uFFFD")
	raw = strings.TrimSpace(given)
	if raw == "" || raw == "null" {
		return json.RawMessage("{}"), ""
	}
	if json.Valid([]byte(raw)) {
		if o, ok := object(raw); ok {
			return o, ""
		}
		var b bytes.Buffer
		_ = json.Compact(&b, []byte(raw)) // valid, as just seen
		return b.Bytes(), notObject
	}
	if fixed := repair(raw); fixed != raw && json.Valid([]byte(fixed)) {
		if o, ok := object(fixed); ok {
			return o, ""
		}
	}
	var any any
	return quote(given), fmt.Sprintf("not valid JSON: %v", json.Unmarshal([]byte(given), &any))
}

// object returns the object that valid JSON is, or wraps.
func object(valid string) (json.RawMessage, bool) {
	switch valid[0] {
	case '{':
		return json.RawMessage(valid), true
	case '"':
		var inner string
		if json.Unmarshal([]byte(valid), &inner) != nil {
			return nil, false
		}
		inner = strings.TrimSpace(inner)
		return json.RawMessage(inner), strings.HasPrefix(inner, "{") && json.Valid([]byte(inner))
	case '[':
		var list []json.RawMessage
		if json.Unmarshal([]byte(valid), &list) != nil || len(list) != 1 {
			return nil, false
		}
		return list[0], bytes.HasPrefix(list[0], []byte("{"))
	}
	return nil, false
}

// repair escapes control characters and lone backslashes inside strings, and touches nothing else.
func repair(raw string) string {
	var b strings.Builder
	inside := false
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case c == '"':
			inside = !inside
			b.WriteByte(c)
		case !inside:
			b.WriteByte(c)
		case c == '\\':
			b.WriteByte(c)
			if i+1 < len(raw) && escapes(raw[i+1:]) {
				i++
				b.WriteByte(raw[i])
			} else {
				b.WriteByte('\\')
			}
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\r':
			b.WriteString(`\r`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < 0x20:
			fmt.Fprintf(&b, `\u%04x`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// escapes says whether s, which follows a backslash, makes an escape with it.
func escapes(s string) bool {
	if s[0] == 'u' {
		return len(s) >= 5 && strings.Trim(s[1:5], "0123456789abcdefABCDEF") == ""
	}
	return strings.IndexByte(`"\/bfnrt`, s[0]) >= 0
}

// Raw is the text that Args judged: its inverse for a call that Args made.
func Raw(c message.ToolCall) string {
	var s string
	if c.BadArgs != "" && c.BadArgs != notObject && json.Unmarshal(c.Args, &s) == nil {
		return s
	}
	return string(c.Args)
}

// History is a call's arguments as an earlier reply's must be sent: always an object, since servers parse them
// again. Bad ones are shown to the model inside of one.
func History(c message.ToolCall) json.RawMessage {
	if c.BadArgs == "" && len(c.Args) > 0 {
		return c.Args
	}
	if c.BadArgs == "" {
		return json.RawMessage("{}")
	}
	return json.RawMessage(`{"` + invalidKey + `":` + string(quote(Raw(c))) + `}`)
}

// FromHistory undoes History.
func FromHistory(args json.RawMessage) (json.RawMessage, string) {
	var wrapped map[string]json.RawMessage
	if bytes.Contains(args, []byte(invalidKey)) && json.Unmarshal(args, &wrapped) == nil && len(wrapped) == 1 {
		var raw string
		if json.Unmarshal(wrapped[invalidKey], &raw) == nil {
			return Args(raw)
		}
	}
	return args, ""
}
