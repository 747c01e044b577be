package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// The keywords of OpenAPI's schema that Gemini knows. Anything else makes it refuse the whole request.
var openAPI = map[string]bool{"type": true, "format": true, "title": true, "description": true, "nullable": true, "enum": true, "items": true,
	"minItems": true, "maxItems": true, "properties": true, "required": true, "propertyOrdering": true, "minProperties": true, "maxProperties": true,
	"minimum": true, "maximum": true, "minLength": true, "maxLength": true, "pattern": true, "default": true, "example": true, "anyOf": true}

// formats are the values of format that Gemini knows.
var formats = map[string]bool{"int32": true, "int64": true, "float": true, "double": true, "date-time": true, "enum": true}

// maxSchemaDepth bounds how deep a schema may nest, references followed.
const maxSchemaDepth = 32

// OpenAPISchema reduces a tool's JSON Schema to the subset of OpenAPI 3.0 that Gemini takes: references are followed,
// and what cannot be said is left out: constraints, properties that need not be there and whose shape is not known. An
// object without properties becomes nil: there the field must be absent. Keys come out sorted.
func OpenAPISchema(schema json.RawMessage) (json.RawMessage, error) {
	if len(schema) == 0 {
		return nil, nil
	}
	dec := json.NewDecoder(bytes.NewReader(schema))
	dec.UseNumber()
	var root map[string]any
	if err := dec.Decode(&root); err != nil {
		return nil, fmt.Errorf("the schema is no JSON object: %w", err)
	}
	r := reducer{root: root, within: map[string]bool{}}
	out := r.reduce(root, 0)
	if properties, _ := out["properties"].(map[string]any); out["type"] == "object" && len(properties) == 0 {
		return nil, nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		return nil, fmt.Errorf("encode the schema: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

type reducer struct {
	root   map[string]any
	within map[string]bool // references that are being followed
}

func (r reducer) reduce(s map[string]any, depth int) map[string]any {
	out := map[string]any{}
	if depth > maxSchemaDepth {
		out["type"] = "object"
		return out
	}
	if ref, ok := s["$ref"].(string); ok {
		target := r.find(ref)
		if r.within[ref] { // a schema that contains itself
			target = nil
		}
		if !r.within[ref] {
			r.within[ref] = true
			defer delete(r.within, ref)
		}
		merged := map[string]any{}
		for k, v := range target {
			merged[k] = v
		}
		for k, v := range s {
			if k != "$ref" {
				merged[k] = v
			}
		}
		if target == nil {
			merged["type"] = "object"
		}
		return r.reduce(merged, depth+1)
	}
	s = r.merged(s, depth)
	for k, v := range s {
		if !openAPI[k] {
			continue
		}
		switch k {
		case "type":
			r.types(out, v)
		case "properties":
			properties, _ := v.(map[string]any)
			kept := map[string]any{}
			for name, p := range properties {
				kept[name] = r.schema(p, depth)
				if shapeless(kept[name]) && !requires(s, name) {
					delete(kept, name)
				}
			}
			for name := range kept {
				kept[name] = asText(kept[name])
			}
			if len(kept) > 0 {
				out[k] = kept
			}
		case "items":
			out[k] = asText(r.schema(v, depth))
		case "anyOf":
			r.choices(out, v, depth)
		case "enum":
			if list, ok := v.([]any); ok {
				out[k] = list
			}
		case "format":
			if f, _ := v.(string); formats[f] {
				out[k] = v
			}
		default:
			out[k] = v
		}
	}
	if c, ok := s["const"].(string); ok && out["enum"] == nil {
		out["enum"] = []any{c}
	}
	if v, ok := s["oneOf"]; ok && out["anyOf"] == nil {
		r.choices(out, v, depth)
	}
	r.tidy(out)
	return out
}

// merged lays the schemas of allOf over what stands beside them.
func (r reducer) merged(s map[string]any, depth int) map[string]any {
	list, ok := s["allOf"].([]any)
	if !ok || depth > maxSchemaDepth {
		return s
	}
	all := map[string]any{}
	properties := map[string]any{}
	var required []any
	for _, v := range append(append([]any{}, list...), any(s)) {
		one, _ := v.(map[string]any)
		if ref, ok := one["$ref"].(string); ok {
			one = r.find(ref)
		}
		for k, v := range one {
			switch k {
			case "allOf":
			case "properties":
				if p, ok := v.(map[string]any); ok {
					for name, x := range p {
						properties[name] = x
					}
				}
			case "required":
				if l, ok := v.([]any); ok {
					required = append(required, l...)
				}
			default:
				all[k] = v
			}
		}
	}
	if len(properties) > 0 {
		all["properties"] = properties
	}
	if len(required) > 0 {
		all["required"] = required
	}
	return all
}

// schema reduces a schema that stands inside of another; true and the like take anything.
func (r reducer) schema(v any, depth int) any {
	if s, ok := v.(map[string]any); ok {
		return r.reduce(s, depth+1)
	}
	return map[string]any{"type": "string"}
}

// types takes one type, or a list of them of which null is one or more are left.
func (r reducer) types(out map[string]any, v any) {
	list, ok := v.([]any)
	if !ok {
		if v == "null" {
			out["type"], out["nullable"] = "string", true
			return
		}
		out["type"] = v
		return
	}
	var rest []any
	for _, t := range list {
		if t == "null" {
			out["nullable"] = true
		} else {
			rest = append(rest, t)
		}
	}
	switch len(rest) {
	case 0:
		out["type"] = "string"
	case 1:
		out["type"] = rest[0]
	default:
		var choices []any
		for _, t := range rest {
			one := map[string]any{"type": t}
			r.tidy(one)
			choices = append(choices, one)
		}
		out["anyOf"] = choices
	}
}

func (r reducer) choices(out map[string]any, v any, depth int) {
	list, _ := v.([]any)
	var kept []any
	for _, x := range list {
		s, _ := x.(map[string]any)
		if s["type"] == "null" {
			out["nullable"] = true
			continue
		}
		kept = append(kept, asText(r.schema(x, depth)))
	}
	switch {
	case len(kept) == 1:
		only, _ := kept[0].(map[string]any)
		for k, x := range only {
			if _, there := out[k]; !there {
				out[k] = x
			}
		}
	case len(kept) > 1:
		out["anyOf"] = kept
	}
}

// tidy makes what was kept sound: a list has items, enums are texts, what is required exists.
func (r reducer) tidy(out map[string]any) {
	if out["type"] == nil && out["anyOf"] == nil {
		switch {
		case out["properties"] != nil:
			out["type"] = "object"
		case out["items"] != nil:
			out["type"] = "array"
		default:
			out["type"] = "string"
			if n, ok := out["minimum"].(json.Number); ok && n != "" {
				out["type"] = "number"
			}
		}
	}
	if out["type"] == "array" && out["items"] == nil {
		out["items"] = map[string]any{"type": "string"}
	}
	if list, ok := out["enum"].([]any); ok {
		for _, v := range list {
			if _, text := v.(string); !text || out["type"] != "string" { // only texts can be enumerated
				delete(out, "enum")
				break
			}
		}
	}
	if list, ok := out["required"].([]any); ok {
		properties, _ := out["properties"].(map[string]any)
		var kept []any
		for _, v := range list {
			if name, _ := v.(string); properties[name] != nil {
				kept = append(kept, v)
			}
		}
		if delete(out, "required"); len(kept) > 0 {
			out["required"] = kept
		}
	}
}

// shapeless says whether a schema is an object of which nothing more is known: inside of another schema it is refused.
func shapeless(v any) bool {
	s, _ := v.(map[string]any)
	properties, _ := s["properties"].(map[string]any)
	return s["type"] == "object" && len(properties) == 0
}

// asText asks for a shapeless object as a text, since there is no other way to ask for it.
func asText(v any) any {
	if !shapeless(v) {
		return v
	}
	s, _ := v.(map[string]any)
	out := map[string]any{"type": "string", "description": "A JSON object, as a text."}
	if text, ok := s["description"].(string); ok {
		out["description"] = text + " (A JSON object, as a text.)"
	}
	return out
}

func requires(s map[string]any, name string) bool {
	list, _ := s["required"].([]any)
	for _, v := range list {
		if v == name {
			return true
		}
	}
	return false
}

// find follows a reference within the schema: "#/$defs/Name".
func (r reducer) find(ref string) map[string]any {
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil
	}
	at := r.root
	for _, key := range strings.Split(path, "/") {
		key = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
		if at, ok = at[key].(map[string]any); !ok {
			return nil
		}
	}
	return at
}
