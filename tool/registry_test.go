package tool

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"belay/effect"
)

// fake is a tool that does nothing.
type fake struct {
	spec Spec
	err  error
}

func (f fake) Spec() Spec { return f.spec }
func (f fake) Plan(Place, Call) (Plan, error) {
	return Plan{Effects: effect.Set{{Kind: effect.Read, Target: "/x"}}}, f.err
}
func (f fake) Run(context.Context, Env, Call) (Result, error) { return Result{}, nil }

func good(name string) Spec {
	return Spec{Name: name, Description: "d", Replay: Pure, Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["path"],"properties":{
		"path":{"type":"string","minLength":1},"limit":{"type":"integer","minimum":1,"maximum":50},"mode":{"type":"string","enum":["a","b"]},"all":{"type":"boolean"},"lines":{"type":"array","items":{"type":"integer"}}}}`)}
}

func TestNewRegistryRefuses(t *testing.T) {
	change := func(f func(*Spec)) Spec { s := good("A"); f(&s); return s }
	for want, specs := range map[string][]Spec{
		"registered twice":     {good("A"), good("A")},
		"a tool's name":        {change(func(s *Spec) { s.Name = "a b" })},
		"no description":       {change(func(s *Spec) { s.Description = " " })},
		"replay declaration":   {change(func(s *Spec) { s.Replay = "" })},
		"reading its schema":   {change(func(s *Spec) { s.Schema = nil })},
		"type \"array\"":       {change(func(s *Spec) { s.Schema = json.RawMessage(`{"type":"array","additionalProperties":false}`) })},
		"additionalProperties": {change(func(s *Spec) { s.Schema = json.RawMessage(`{"type":"object"}`) })},
		"does not describe": {change(func(s *Spec) {
			s.Schema = json.RawMessage(`{"type":"object","additionalProperties":false,"required":["x"]}`)
		})},
	} {
		var tools []Tool
		for _, s := range specs {
			tools = append(tools, fake{spec: s})
		}
		if _, err := NewRegistry(tools...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func TestRegistryPlan(t *testing.T) {
	r, err := NewRegistry(fake{spec: good("Read")}, fake{spec: good("UpdatePlan")})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, args string
		code       Code
		want       []string
	}{
		{"Read", `{"path":"x"}`, "", nil},
		{"Read", `{"path":"x","limit":50.0,"mode":"a","all":true,"lines":[1]}`, "", nil},
		{"read", `{}`, UnknownTool, []string{`no tool named "read"`, "Did you mean Read?", "Read, UpdatePlan"}},
		{"update_plan", `{}`, UnknownTool, []string{"Did you mean UpdatePlan?"}},
		{"Zzz", `{}`, UnknownTool, []string{"The tools are: Read, UpdatePlan."}},
		{"Read", ``, InvalidArguments, []string{"path is missing: expected string, not empty", "limit (integer 1..50)"}},
		{"Read", `{"path":1}`, InvalidArguments, []string{"path: expected string, not empty, got integer 1"}},
		{"Read", `{"path":null}`, InvalidArguments, []string{"got null"}},
		{"Read", `{"path":"x","limit":"all"}`, InvalidArguments, []string{`limit: expected integer 1..50, got string "all"`}},
		{"Read", `{"path":"x","limit":1.5}`, InvalidArguments, []string{"limit: expected integer 1..50, got number 1.5"}},
		{"Read", `{"path":"x","limit":51}`, InvalidArguments, []string{"limit: ", "maximum"}},
		{"Read", `{"path":"x","mode":"c"}`, InvalidArguments, []string{"mode: ", `"a", "b"`}},
		{"Read", `{"path":"x","lines":["a"]}`, InvalidArguments, []string{"lines"}},
		{"Read", `{"Path":"x"}`, InvalidArguments, []string{`"Path" is not an argument of Read (did you mean "path"?)`, "path is missing"}},
		{"Read", `{"path":"x","path":"y"}`, InvalidArguments, []string{`"path" is given twice`}},
		{"Read", `["x"]`, InvalidArguments, []string{"not a JSON object"}},
		{"Read", `null`, InvalidArguments, []string{"not a JSON object"}},
		{"Read", `{"path":"x"`, InvalidArguments, []string{"not a JSON object"}},
		{"Read", `{"path":"x"} {}`, InvalidArguments, []string{"not a JSON object"}},
	} {
		_, plan, err := r.Plan(Place{}, Call{Name: c.name, Args: json.RawMessage(c.args)})
		if c.code == "" {
			if err != nil || plan.Replay != Pure {
				t.Errorf("%s %s: %+v, %v", c.name, c.args, plan, err)
			}
			continue
		}
		var mistake *Mistake
		if !errors.As(err, &mistake) || mistake.Failure.Code != c.code {
			t.Errorf("%s %s: %v", c.name, c.args, err)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(mistake.Failure.Text(), part) {
				t.Errorf("%s %s: the text lacks %q:\n%s", c.name, c.args, part, mistake.Failure.Text())
			}
		}
	}
}

func TestRegistryKeepsTwoKindsOfFailureApart(t *testing.T) {
	fault := errors.New("disk")
	r, err := NewRegistry(fake{spec: good("A"), err: fault}, fake{spec: good("B"), err: Mistakef(Conflict, "h", "m")})
	if err != nil {
		t.Fatal(err)
	}
	var mistake *Mistake
	if _, _, err := r.Plan(Place{}, Call{Name: "A", Args: json.RawMessage(`{"path":"x"}`)}); !errors.Is(err, fault) || errors.As(err, &mistake) {
		t.Errorf("a fault comes out as %v", err)
	}
	if _, _, err := r.Plan(Place{}, Call{Name: "B", Args: json.RawMessage(`{"path":"x"}`)}); !errors.As(err, &mistake) {
		t.Errorf("a mistake comes out as %v", err)
	}
}

func FuzzPlan(f *testing.F) {
	f.Add(`{"path":"x","limit":1}`)
	f.Add(`{"path":{"a":[1,2]}}`)
	r, err := NewRegistry(fake{spec: good("A")})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, args string) {
		_, _, err := r.Plan(Place{}, Call{Name: "A", Args: json.RawMessage(args)})
		var mistake *Mistake
		if err != nil && !errors.As(err, &mistake) {
			t.Fatal(err)
		}
	})
}
