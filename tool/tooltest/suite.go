package tooltest

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/effect"
	"belay/tool"
)

// Case is one call that a tool must plan and run, in a workspace with these files.
type Case struct {
	Name   string
	Files  map[string]string
	Args   string        // JSON
	Status tool.Status   // what comes out
	Code   tool.Code     // of the error, "" for none
	Kinds  []effect.Kind // kinds that the plan must hold
	Check  func(t *testing.T, e *Env, r tool.Result)
}

// Conform holds a tool to the clauses of the contract and runs the cases.
func Conform(t *testing.T, subject tool.Tool, cases ...Case) {
	t.Helper()
	registry, err := tool.NewRegistry(subject)
	if err != nil {
		t.Fatalf("the declaration: %v", err)
	}
	spec := subject.Spec()
	t.Run("declares itself", func(t *testing.T) { declares(t, spec) })
	t.Run("tells wrong arguments", func(t *testing.T) { wrongArguments(t, registry, spec) })
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) { conform(t, registry, subject, c) })
	}
}

func declares(t *testing.T, spec tool.Spec) {
	for _, part := range []string{"Example", "not"} {
		if !strings.Contains(spec.Description, part) {
			t.Errorf("the description does not say %q: it says what, when, when not, and gives one example", part)
		}
	}
	if strings.TrimSpace(spec.Description) != spec.Description {
		t.Error("the description has blanks around it")
	}
	var schema struct {
		Properties map[string]struct{ Description string }
	}
	if err := json.Unmarshal(spec.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	for name, p := range schema.Properties {
		if p.Description == "" {
			t.Errorf("the argument %s is not described", name)
		}
	}
	for _, keyword := range []string{"$ref", "anyOf", "oneOf", "allOf", "patternProperties", "\"if\""} {
		if strings.Contains(string(spec.Schema), keyword) {
			t.Errorf("the schema uses %s, which not every provider takes", keyword)
		}
	}
}

func wrongArguments(t *testing.T, registry *tool.Registry, spec tool.Spec) {
	for _, args := range []string{`[]`, `null`, `{`, `{"no_such_argument": 1}`} {
		_, _, err := registry.Plan(tool.Place{Workspace: "/w", Dir: "/w"}, tool.Call{ID: "1", Name: spec.Name, Args: json.RawMessage(args)})
		var mistake *tool.Mistake
		if !errors.As(err, &mistake) || mistake.Failure.Code != tool.InvalidArguments || mistake.Failure.Hint == "" {
			t.Errorf("%s gives %v", args, err)
		}
	}
}

func conform(t *testing.T, registry *tool.Registry, subject tool.Tool, c Case) {
	e := NewEnv(t, c.Files)
	call := tool.Call{ID: "1", Name: subject.Spec().Name, Args: json.RawMessage(c.Args)}
	before := tree(t, e.Root)
	_, plan, err := registry.Plan(e.Place(), call)
	var mistake *tool.Mistake
	if errors.As(err, &mistake) {
		if c.Status != tool.Error || mistake.Failure.Code != c.Code {
			t.Fatalf("the plan is refused: %v", mistake)
		}
		if mistake.Failure.Hint == "" {
			t.Error("the refusal does not say what to do")
		}
		if c.Check != nil {
			c.Check(t, e, tool.Fail(mistake.Failure))
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	_, again, err := registry.Plan(e.Place(), call)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plan, again); diff != "" {
		t.Errorf("planning twice differs: %s", diff)
	}
	if diff := cmp.Diff(before, tree(t, e.Root)); diff != "" {
		t.Errorf("planning changed files: %s", diff)
	}
	if plan.Summary == "" || plan.Replay == "" {
		t.Errorf("the plan has no summary or no replay declaration: %+v", plan)
	}
	has := map[effect.Kind]bool{}
	for _, f := range plan.Effects {
		has[f.Kind] = true
		if f.Kind == effect.Read || f.Kind == effect.Write || f.Kind == effect.Delete {
			if f.Target != "" && (!filepath.IsAbs(f.Target) || filepath.Clean(f.Target) != f.Target) {
				t.Errorf("%q is not an absolute clean path", f.Target)
			}
		}
	}
	for _, kind := range c.Kinds {
		if !has[kind] {
			t.Errorf("the plan lacks %s: %v", kind, plan.Effects)
		}
	}
	r, err := subject.Run(context.Background(), e, call)
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	code := tool.Code("")
	if r.Error != nil {
		code = r.Error.Code
	}
	if r.Status != c.Status || code != c.Code {
		t.Fatalf("status %s %s, want %s %s:\n%s", r.Status, code, c.Status, c.Code, r.Text)
	}
	if (r.Status == tool.Error) != (r.Error != nil) {
		t.Errorf("status %s with error %v", r.Status, r.Error)
	}
	if r.Text == "" || r.Summary == "" || strings.Contains(r.Summary, "\n") {
		t.Errorf("text %q, summary %q", r.Text, r.Summary)
	}
	changed := !cmp.Equal(before, tree(t, e.Root))
	if changed && !has[effect.Write] && !has[effect.Delete] && !has[effect.Opaque] {
		t.Errorf("files changed, which the plan did not say: %v", plan.Effects)
	}
	if c.Check != nil {
		c.Check(t, e, r)
	}
	// The same call with nothing granted must be refused to the model, not break the harness.
	if len(plan.Effects) > 0 {
		e.Grant, e.NoRun = effect.Grant{}, true
		r, err := subject.Run(context.Background(), e, call)
		if err != nil {
			t.Errorf("with nothing granted: %v", err)
		} else if r.Error == nil || r.Error.Code != tool.Denied {
			t.Errorf("with nothing granted: %s %+v", r.Status, r.Error)
		}
	}
}

// tree maps the files below a folder to their content.
func tree(t *testing.T, root string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !d.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		files[path] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
