package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
)

// Registry is the set of tools that a run may use, with their schemas resolved. It is safe for concurrent use.
type Registry struct {
	order []string
	tools map[string]entry
}

type entry struct {
	tool   Tool
	spec   Spec
	schema *jsonschema.Resolved
}

var toolName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`) })

// NewRegistry checks the tools' declarations: names are unique and such as every provider takes, each has a
// description and a replay declaration, each schema is an object that names all its arguments.
func NewRegistry(tools ...Tool) (*Registry, error) {
	r := &Registry{tools: make(map[string]entry, len(tools))}
	for _, t := range tools {
		spec := t.Spec()
		resolved, err := checkSpec(spec)
		if err != nil {
			return nil, fmt.Errorf("tool %q: %w", spec.Name, err)
		}
		if _, taken := r.tools[spec.Name]; taken {
			return nil, fmt.Errorf("tool %q is registered twice", spec.Name)
		}
		r.order = append(r.order, spec.Name)
		r.tools[spec.Name] = entry{t, spec, resolved}
	}
	return r, nil
}

func checkSpec(spec Spec) (*jsonschema.Resolved, error) {
	if !toolName().MatchString(spec.Name) {
		return nil, errors.New("a tool's name is a letter and then letters, digits, _ and -, at most 64 in all")
	}
	if strings.TrimSpace(spec.Description) == "" {
		return nil, errors.New("no description: the model would not know when to use it")
	}
	switch spec.Replay {
	case Pure, Reversible, OpaqueCall, External:
	default:
		return nil, fmt.Errorf("replay declaration %q is not one of pure, reversible, opaque, external", spec.Replay)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(spec.Schema, &schema); err != nil {
		return nil, fmt.Errorf("reading its schema: %w", err)
	}
	if schema.Type != "object" {
		return nil, fmt.Errorf("its schema has type %q; arguments are an object", schema.Type)
	}
	if !isFalse(schema.AdditionalProperties) {
		return nil, errors.New(`its schema must say "additionalProperties": false, so that a misspelt argument is told to the model`)
	}
	for _, name := range schema.Required {
		if schema.Properties[name] == nil {
			return nil, fmt.Errorf("its schema requires %q but does not describe it", name)
		}
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("resolving its schema: %w", err)
	}
	return resolved, nil
}

// isFalse recognises the schema `false`, which the library reads as {"not": {}}.
func isFalse(s *jsonschema.Schema) bool {
	if s == nil {
		return false
	}
	b, err := json.Marshal(s)
	return err == nil && string(b) == "false"
}

// Lookup returns the tool with that name.
func (r *Registry) Lookup(name string) (Tool, bool) {
	e, ok := r.tools[name]
	return e.tool, ok
}

// Specs returns the declarations in the order in which the tools were given.
func (r *Registry) Specs() []Spec {
	specs := make([]Spec, len(r.order))
	for i, name := range r.order {
		specs[i] = r.tools[name].spec
	}
	return specs
}

// Plan finds the tool of a call, validates the arguments against its schema and lets it say what the call would
// do. The model's mistake is a *Mistake; any other error is the harness's own.
func (r *Registry) Plan(place Place, call Call) (Tool, Plan, error) {
	e, ok := r.tools[call.Name]
	if !ok {
		return nil, Plan{}, r.unknown(call.Name)
	}
	if err := e.validate(call.Args); err != nil {
		return e.tool, Plan{}, err
	}
	plan, err := e.tool.Plan(place, call)
	if err != nil {
		var mistake *Mistake
		if errors.As(err, &mistake) {
			return e.tool, Plan{}, mistake
		}
		return e.tool, Plan{}, fmt.Errorf("planning %s: %w", call.Name, err)
	}
	if plan.Replay == "" {
		plan.Replay = e.spec.Replay
	}
	return e.tool, plan, nil
}

func (r *Registry) unknown(name string) *Mistake {
	hint := "The tools are: " + strings.Join(r.order, ", ") + "."
	if near := nearest(name, r.order); near != "" {
		hint = fmt.Sprintf("Did you mean %s? %s", near, hint)
	}
	return Mistakef(UnknownTool, hint, "there is no tool named %q", name)
}

// validate says in the schema's own words what is wrong with the arguments. What a model gets wrong most (a
// missing, misspelt or mistyped argument) is worded here; the rest is the schema library's.
func (e entry) validate(raw json.RawMessage) error {
	hint := e.signature()
	bad := func(format string, args ...any) error { return Mistakef(InvalidArguments, hint, format, args...) }

	args, err := decodeObject(raw)
	if err != nil {
		return bad("the arguments of %s are not a JSON object: %v", e.spec.Name, err)
	}
	schema := e.schema.Schema()
	names := argumentNames(schema)
	var wrong []string
	for _, name := range sortedKeys(args) {
		property := schema.Properties[name]
		if property == nil {
			msg := fmt.Sprintf("%q is not an argument of %s", name, e.spec.Name)
			if near := nearest(name, names); near != "" {
				msg += fmt.Sprintf(" (did you mean %q?)", near)
			}
			wrong = append(wrong, msg)
			continue
		}
		if got := jsonType(args[name]); !typeFits(property, got, args[name]) {
			wrong = append(wrong, fmt.Sprintf("%s: expected %s, got %s", name, expected(property), got))
		}
	}
	for _, name := range schema.Required {
		if _, ok := args[name]; !ok {
			wrong = append(wrong, fmt.Sprintf("%s is missing: expected %s", name, expected(schema.Properties[name])))
		}
	}
	if len(wrong) > 0 {
		return bad("%s", strings.Join(wrong, "; "))
	}
	if err := e.schema.Validate(args); err != nil {
		return bad("%s", plainSchemaError(err))
	}
	return nil
}

// signature lists the arguments: "Read takes file_path (string, required), limit (integer, at least 1)."
func (e entry) signature() string {
	schema := e.schema.Schema()
	var parts []string
	for _, name := range argumentNames(schema) {
		part := name + " (" + expected(schema.Properties[name])
		if slices.Contains(schema.Required, name) {
			part += ", required"
		}
		parts = append(parts, part+")")
	}
	if len(parts) == 0 {
		return e.spec.Name + " takes no arguments."
	}
	return e.spec.Name + " takes " + strings.Join(parts, ", ") + "."
}

// argumentNames returns the required arguments in the schema's order, then the others by name.
func argumentNames(schema *jsonschema.Schema) []string {
	names := slices.Clone(schema.Required)
	for _, name := range sortedKeys(schema.Properties) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

func expected(s *jsonschema.Schema) string {
	what := s.Type
	if what == "" {
		what = strings.Join(s.Types, " or ")
	}
	if what == "" {
		what = "a value"
	}
	if len(s.Enum) > 0 {
		var values []string
		for _, v := range s.Enum {
			b, _ := json.Marshal(v)
			values = append(values, string(b))
		}
		what += " out of " + strings.Join(values, ", ")
	}
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		what += fmt.Sprintf(" %v..%v", *s.Minimum, *s.Maximum)
	case s.Minimum != nil:
		what += fmt.Sprintf(", at least %v", *s.Minimum)
	case s.Maximum != nil:
		what += fmt.Sprintf(", at most %v", *s.Maximum)
	}
	if s.MinLength != nil && *s.MinLength > 0 {
		what += ", not empty"
	}
	return what
}

func typeFits(s *jsonschema.Schema, got string, value any) bool {
	types := s.Types
	if s.Type != "" {
		types = []string{s.Type}
	}
	if len(types) == 0 {
		return true
	}
	kind, _, _ := strings.Cut(got, " ")
	for _, t := range types {
		if t == kind || t == "number" && kind == "integer" {
			return true
		}
	}
	return false
}

// jsonType names the type of a decoded value, with the value where it is short: `string "all"`.
func jsonType(v any) string {
	b, _ := json.Marshal(v)
	short := ""
	if len(b) <= 40 {
		short = " " + string(b)
	}
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean" + short
	case string:
		return "string" + short
	case float64:
		if v == float64(int64(v)) {
			return "integer" + short
		}
		return "number" + short
	case []any:
		return "array" + short
	}
	return "object" + short
}

var validating = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`validating (root|/[^:]*): `) })

// plainSchemaError takes the library's own prefixes off, keeping the argument's name.
func plainSchemaError(err error) string {
	msg := strings.ReplaceAll(err.Error(), "/properties/", "/")
	return validating().ReplaceAllStringFunc(msg, func(m string) string {
		where := strings.TrimPrefix(validating().FindStringSubmatch(m)[1], "/")
		if where == "root" {
			return ""
		}
		return where + ": "
	})
}

// decodeObject reads a JSON object and refuses a key that stands in it twice: two readers could take
// different ones.
func decodeObject(raw json.RawMessage) (map[string]any, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return map[string]any{}, nil
	}
	var args map[string]any
	if err := json.Unmarshal(raw, &args); err != nil {
		return nil, err
	}
	if args == nil {
		return nil, errors.New("it is null")
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := key.(string)
		if seen[name] {
			return nil, fmt.Errorf("%q is given twice", name)
		}
		seen[name] = true
		var skip json.RawMessage
		if err := dec.Decode(&skip); err != nil {
			return nil, err
		}
	}
	return args, nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
