package permissions

import (
	"strings"
	"testing"

	"belay/policy"
)

// A project that nobody trusts can forbid the judge more, and neither allow it anything nor switch it off.
func TestProseOfAnUntrustedProject(t *testing.T) {
	const theirs = "version: 1\nmodes: {autonomous: {judge: off}}\njudge:\n  environment: [All is scratch.]\n  allow: [Everything.]\n  soft_deny: [Touching  deploy.]\n  hard_deny: [Touching production.]\n"
	parse := func(text string) File {
		f, err := Parse("p.yaml", "/w", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	rules, notices := Merge(Layer{parse("version: 1\njudge: {allow: [Mine.]}\n"), true}, Layer{parse(theirs), false})
	p := rules.Prose
	if strings.Join(p.Allow, "|") != "Mine." || len(p.Environment) != 0 || strings.Join(p.SoftDeny, "|") != "Touching deploy." || strings.Join(p.HardDeny, "|") != "Touching production." || rules.JudgeOff[policy.Autonomous] || len(notices) != 1 {
		t.Errorf("%+v %v %v", p, rules.JudgeOff, notices)
	}
	if rules, _ := Merge(Layer{parse(theirs), true}); !rules.JudgeOff[policy.Autonomous] || len(rules.Prose.Allow) != 1 || rules.Prose.From["Touching production."] != "p.yaml:7" {
		t.Errorf("%+v", rules.Prose)
	}
	if rules, _ := Merge(Layer{parse(theirs), true}, Layer{parse("version: 1\nmodes: {autonomous: {judge: on}}\n"), false}); rules.JudgeOff[policy.Autonomous] {
		t.Error("a project cannot ask for the judge")
	}
	for text, want := range map[string]string{
		"judge: [x]":                         "judge",
		"judge: {maybe: [x]}":                "maybe",
		"judge: {allow: x}":                  "allow",
		"judge: {allow: [\" \"]}":            "is empty",
		"judge: {allow: [1]}":                "a sentence of allow",
		"modes: {edit: {judge: on}}":         "only autonomous",
		"modes: {autonomous: {judge: some}}": "on or off",
		"judge: {allow: [\"" + strings.Repeat("x", maxProse+1) + "\"]}": "at most",
	} {
		if _, err := Parse("p.yaml", "/w", []byte("version: 1\n"+text+"\n")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v", text, err)
		}
	}
}
