package wire

import (
	"bytes"
	"encoding/json"
	"slices"
)

// closed are the keywords that a strict schema may use at all.
var closed = []string{"$defs", "$ref", "additionalProperties", "anyOf", "const", "description", "enum", "items", "properties", "required", "title", "type"}

// Strict says whether a provider can hold a model to the schema as it is: every object is closed, every property
// required, and no keyword is used that the grammar behind it does not know. Where it is not, the schema is sent as
// advice.
func Strict(schema json.RawMessage) bool {
	dec := json.NewDecoder(bytes.NewReader(schema))
	dec.UseNumber()
	var root map[string]any
	return dec.Decode(&root) == nil && root["type"] == "object" && strict(root, 0)
}

func strict(v any, depth int) bool {
	s, ok := v.(map[string]any)
	if !ok || depth > maxSchemaDepth {
		return false
	}
	for keyword := range s {
		if !slices.Contains(closed, keyword) {
			return false
		}
	}
	if s["type"] == "object" && !closedObject(s, depth) {
		return false
	}
	for _, keyword := range []string{"items"} {
		if inner, has := s[keyword]; has && !strict(inner, depth+1) {
			return false
		}
	}
	if list, has := s["anyOf"]; has {
		choices, _ := list.([]any)
		for _, c := range choices {
			if !strict(c, depth+1) {
				return false
			}
		}
	}
	defs, _ := s["$defs"].(map[string]any)
	for _, d := range defs {
		if !strict(d, depth+1) {
			return false
		}
	}
	return true
}

// closedObject says whether an object takes nothing but its properties, and wants them all.
func closedObject(s map[string]any, depth int) bool {
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	if s["additionalProperties"] != false || len(required) != len(properties) {
		return false
	}
	for name, p := range properties {
		if !slices.Contains(required, any(name)) || !strict(p, depth+1) {
			return false
		}
	}
	return true
}
