package permissions

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/effect"
	"belay/internal/yaml"
	"belay/policy"
)

const whole = `version: 1
defaults: {1: allow, 2: allow_with_checkpoint, 3: deny, 4: ask_with_idempotency, 5: deny}
deny: ["Read(./.env)", "Bash(terraform destroy *)"]
ask: ["Bash(git push *)"]
allow: ["Bash(make test)"]
classify:
  - {tool: Edit, class: 2, unless: [{path: ".github/**", class: 3}]}
  - {tool: Bash, match: "docker compose up *", class: 3}
  - {tool: "mcp__jira__create_ticket", class: 4, require: [idempotency_key]}
modes:
  plan: {max_class: 1}
  manual: {allow: [1]}
  edit: {allow: [1, 2]}
  autonomous: {allow: [1, 2], sandbox_required: true, judge: "off"}
protect: ["tests/golden/**"]
network: {allow: ["packages.example.com", "*.cdn.example.com"]}
tests:
  - {bash: "git log | head", class: 1}
  - {write: x, mode: plan, verdict: deny}
audit: every_decision
`

func TestParse(t *testing.T) {
	f, err := Parse("p.yaml", "/ws", []byte(whole))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[effect.Class]effect.Verdict{3: effect.Deny}, f.Rules.Floor); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]policy.Rule{{Tool: "Read", Spec: "./.env", Text: "Read(./.env)", From: "p.yaml:3", Base: "/ws"}, {Tool: "Bash", Spec: "terraform destroy *", Text: "Bash(terraform destroy *)", From: "p.yaml:3", Base: "/ws"}}, f.Rules.Deny); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]effect.Class{1, 2}, f.Rules.Modes[policy.Autonomous]); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]Test{{Bash: "git log | head", Tool: "Bash", Class: 1, Line: 18}, {Tool: "Write", Path: "x", Mode: policy.Plan, Verdict: effect.Deny, Line: 19}}, f.Tests); diff != "" {
		t.Error(diff)
	}
	if len(f.Rules.Classify) != 3 || len(f.Rules.Network) != 2 || len(f.Rules.Protect) != 1 {
		t.Errorf("%+v", f.Rules)
	}
}

func TestMistakesHaveTheirPlace(t *testing.T) {
	for text, says := range map[string]string{
		"":                                 "empty",
		"allow: []":                        "version",
		"version: 2":                       "p.yaml:1:10",
		"version: 1\nalow: []":             "p.yaml:2:1",
		"version: 1\nallow: [Bash(]":       "p.yaml:2",
		"version: 1\nallow: ['*']":         "nobody has named",
		"version: 1\nallow: ['Write(x)']":  "Edit(x)",
		"version: 1\ndeny: Bash":           "a list",
		"version: 1\ndefaults: {3: allow}": "never allow by default",
		"version: 1\ndefaults: {4: allow}": "never allow by default",
		"version: 1\ndefaults: {6: deny}":  "class from 1 to 5",
		"version: 1\ndefaults: {1: allow_with_checkpoint}":           "allow, ask or deny",
		"version: 1\nmodes: {edit: {allow: [4]}}":                    "from 1 to 3",
		"version: 1\nmodes: {plan: {allow: [2]}}":                    "plan only reads",
		"version: 1\nmodes: {yolo: {allow: [1]}}":                    "unknown key",
		"version: 1\nmodes: {autonomous: {sandbox_required: false}}": "needs a sandbox",
		"version: 1\nnetwork: {allow: ['*']}":                        "a host is a name",
		"version: 1\nnetwork: {allow: ['http://x']}":                 "a host is a name",
		"version: 1\nclassify: [{tool: Bash}]":                       "tool and class",
		"version: 1\ntests: [{bash: ls}]":                            "what is expected",
		"version: 1\ntests: [{class: 1}]":                            "what is tried",
		"version: 1\naudit: never":                                   "every_decision",
		"version: 1\nversion: 1":                                     "already defined",
	} {
		_, err := Parse("p.yaml", "/ws", []byte(text))
		var located *yaml.Error
		if !errors.As(err, &located) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", text, err, says)
		}
	}
}

func TestAnUntrustedProjectOnlyTightens(t *testing.T) {
	user, err := Parse("/u/permissions.yaml", "/u", []byte("version: 1\nmodes: {edit: {allow: [1, 2]}, manual: {allow: [1]}}\nallow: ['Bash(ls)']\n"))
	if err != nil {
		t.Fatal(err)
	}
	project, err := Parse("/ws/.belay/permissions.yaml", "/ws", []byte(`version: 1
defaults: {3: deny}
deny: ["Bash(a)"]
ask: ["Bash(b)"]
allow: ["Bash"]
protect: [x]
network: {allow: [h]}
classify: [{tool: Bash, match: make, class: 1}]
modes: {edit: {allow: [1]}, manual: {allow: [1, 2, 3]}, autonomous: {allow: [1]}}
`))
	if err != nil {
		t.Fatal(err)
	}
	rules, notices := Merge(Layer{user, true}, Layer{project, false})
	if len(rules.Deny) != 1 || len(rules.Ask) != 1 || len(rules.Protect) != 1 || rules.Floor[3] != effect.Deny {
		t.Errorf("it cannot tighten: %+v", rules)
	}
	if len(rules.Allow) != 1 || len(rules.Network) != 0 || !rules.Classify[0].Tighten {
		t.Errorf("it widens: %+v", rules)
	}
	want := map[policy.Mode][]effect.Class{policy.Edit: {1}, policy.Manual: {1}, policy.Autonomous: {1}}
	if diff := cmp.Diff(want, rules.Modes); diff != "" {
		t.Error(diff)
	}
	if len(notices) != 1 || !strings.Contains(notices[0], "2 rules") {
		t.Errorf("notices %q", notices)
	}
	rules, notices = Merge(Layer{user, true}, Layer{project, true})
	if len(rules.Allow) != 2 || len(rules.Network) != 1 || len(notices) != 0 || !cmp.Equal(rules.Modes[policy.Manual], []effect.Class{1, 2, 3}) {
		t.Errorf("a trusted project: %+v, %q", rules, notices)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	if layers, err := Load(Sources{Managed: filepath.Join(dir, "none"), UserDir: dir, Workspace: dir}); err != nil || len(layers) != 0 {
		t.Errorf("%v, %v", layers, err)
	}
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte("version: 1\nask: [Bash]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	layers, err := Load(Sources{Managed: filepath.Join(dir, "none"), UserDir: dir, Workspace: dir, Project: []byte("version: 1\ndeny: [Bash]\n")})
	if err != nil || len(layers) != 2 || layers[1].Trusted {
		t.Errorf("%+v, %v", layers, err)
	}
	if _, err := Load(Sources{Managed: filepath.Join(dir, "none"), Workspace: dir, Project: []byte{}}); err == nil {
		t.Error("an empty file passes")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := Parse("p.yaml", "/ws", data)
		if err != nil {
			return
		}
		rules, _ := Merge(Layer{file, false})
		if len(rules.Allow) > 0 || len(rules.Network) > 0 {
			t.Errorf("an untrusted file widens: %+v", rules)
		}
	})
}
