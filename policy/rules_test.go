package policy

import (
	"encoding/json"
	"strings"
	"testing"

	"belay/effect"
)

func rule(t *testing.T, kind, text string) Rule {
	t.Helper()
	r, err := ParseRule(kind, text, "f:1", "/home/me/ws")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCommandPatterns(t *testing.T) {
	for _, c := range []struct {
		rule, command string
		want          bool
	}{
		{"Bash(npm run test)", "npm run test", true}, {"Bash(npm run test)", "npm run test x", false},
		{"Bash(ls *)", "ls", true}, {"Bash(ls *)", "ls -la", true}, {"Bash(ls *)", "lsof", false}, {"Bash(ls*)", "lsof", true},
		{"Bash(git:*)", "git push", true}, {"Bash(git:*)", "git", true}, {"Bash(git:*)", "gitk", false},
		{"Bash(* --help *)", "npm --help", false}, {"Bash(* --help *)", "npm --help x", true}, {"Bash(git * main)", "git push origin main", true}, {"Bash(git * main)", "git push origin mainly", false},
	} {
		if got := rule(t, "allow", c.rule).command(c.command); got != c.want {
			t.Errorf("%s and %q: %v", c.rule, c.command, got)
		}
	}
}

func TestRulesThatAllow(t *testing.T) {
	cmd := func(text string, inner ...string) effect.Command { return effect.Command{Text: text, Inner: inner} }
	for _, c := range []struct {
		rule    string
		command effect.Command
		want    bool
	}{
		{"Bash", cmd("anything"), true}, {"Bash(*)", cmd("anything"), true},
		{"Bash(make *)", cmd("timeout 5 make x", "make x"), true}, {"Bash(make *)", cmd("env make x", "make x"), false}, {"Bash(make *)", cmd("sudo make x", "make x"), false},
		{"Bash(find *)", cmd("find . -name x"), true}, {"Bash(find *)", cmd("find . -exec rm {} ;", "rm"), false}, {"Bash(find . -delete)", cmd("find . -delete"), true}, {"Bash(find *)", cmd("find . -delete"), false},
		{"Bash(watch *)", cmd("watch rm x", "rm x"), false}, {"Bash(xargs *)", cmd("xargs rm", "rm"), false}, {"Bash(bash *)", cmd("bash -c 'rm x'", "rm x"), false}, {"Bash(timeout *)", cmd("timeout 5 bash x", "bash x"), true},
		{"Read(/x)", cmd("cat x"), false},
	} {
		if got := rule(t, "allow", c.rule).allows(c.command); got != c.want {
			t.Errorf("%s and %v: %v", c.rule, c.command, got)
		}
	}
	if !rule(t, "deny", "Bash(rm *)").touches(cmd("bash -c 'ls; rm x'", "ls", "rm x")) {
		t.Error("a rule that denies does not see the command inside")
	}
}

func TestPathRules(t *testing.T) {
	s := at(Edit)
	const ws = "/home/me/ws"
	for _, c := range []struct {
		rule, path  string
		tight, want bool
	}{
		{"Read(./.env)", ws + "/.env", true, true}, {"Read(./.env)", ws + "/sub/.env", true, false}, {"Read(.env)", ws + "/sub/.env", true, true}, {"Read(.env)", "/home/me/.env", true, false},
		{"Edit(/src/**)", ws + "/src/a/b.go", false, true}, {"Edit(/src/**)", ws + "/x/src/a", false, false}, {"Edit(/src/*)", ws + "/src/a", false, true}, {"Edit(/src)", ws + "/src/a", false, true}, {"Edit(/src)", ws + "/srcs", false, false},
		{"Edit(src/**)", ws + "/x/src/a", false, false}, {"Edit(src/**)", ws + "/x/src/a", true, true}, {"Edit(src/**)", ws + "/src/a", false, true},
		{"Read(~/.zshrc)", "/home/me/.zshrc", true, true}, {"Read(//etc/x)", "/etc/x", true, true}, {"Read(//etc/**)", "/etc/a/b", true, true}, {"Read(/etc/x)", "/etc/x", true, false},
		{"Edit(**/*.go)", ws + "/a/b.go", false, true}, {"Edit(*.go)", ws + "/a/b.go", false, true}, {"Edit(a/*.go)", ws + "/a/b/c.go", false, false},
		{"Read(./.env)", ws + "/.e*", true, true}, {"Read(./.env)", "", true, false},
	} {
		if got := rule(t, "deny", c.rule).path(s, c.path, c.tight); got != c.want {
			t.Errorf("%s and %s (tight %v): %v", c.rule, c.path, c.tight, got)
		}
	}
}

func TestBadRules(t *testing.T) {
	for _, c := range []struct{ kind, rule, says string }{
		{"allow", "", "tool's name"}, {"allow", "Bash(", "parenthesis"}, {"allow", "Bash()", "nothing in its"}, {"allow", "*", "nobody has named"}, {"allow", "mcp__*", "nobody has named"}, {"allow", "B*", "nobody has named"},
		{"deny", "Write(x)", "Edit(x)"}, {"deny", "Glob(x)", "Read(x)"}, {"deny", "WebFetch(example.com)", "domain"}, {"allow", "Agent(x)", "specifier"}, {"allow", "Bash(x) y", "parenthesis"}, {"deny", "a b", "tool's name"},
	} {
		if _, err := ParseRule(c.kind, c.rule, "", ""); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %q: %v", c.kind, c.rule, err)
		}
	}
	for _, text := range []string{"mcp__srv", "mcp__srv__*", "mcp__srv__tool", "Bash", "Bash(a)", "Read(~/x)", "WebFetch(domain:*.x.com)"} {
		if _, err := ParseRule("allow", text, "", ""); err != nil {
			t.Error(err)
		}
	}
}

func TestJudgeWithRules(t *testing.T) {
	const ws = "/home/me/ws"
	bash := func(text string, effects ...effect.Effect) Action {
		return Action{Tool: "Bash", Commands: []effect.Command{{Text: text}}, Effects: effects}
	}
	outside := effect.Effect{Kind: effect.Write, Target: "/home/me/o", Why: "a redirection"}
	for _, c := range []struct {
		name             string
		deny, ask, allow []string
		action           Action
		class            effect.Class
		verdict          effect.Verdict
	}{
		{"nothing said", nil, nil, nil, bash("git push", eff(effect.Connect, "h")), 4, effect.Ask},
		{"allowed", nil, nil, []string{"Bash(git push)"}, bash("git push", eff(effect.Connect, "h")), 4, effect.Allow},
		{"ask before allow", nil, []string{"Bash(git *)"}, []string{"Bash(git push)"}, bash("git push", eff(effect.Connect, "h")), 4, effect.Ask},
		{"deny before all", []string{"Bash(git:*)"}, []string{"Bash"}, []string{"Bash"}, bash("git push", eff(effect.Connect, "h")), 4, effect.Deny},
		{"ask about a read", nil, []string{"Bash(cat *)"}, nil, bash("cat x", eff(effect.Read, ws+"/x")), 1, effect.Ask},
		{"deny a path in a line", []string{"Read(./x)"}, nil, []string{"Bash"}, bash("cat x", eff(effect.Read, ws+"/x")), 1, effect.Deny},
		{"a redirection is not the command", nil, nil, []string{"Bash(echo *)"}, bash("echo x", outside), 3, effect.Ask},
		{"a redirection by a rule of its own", nil, nil, []string{"Bash(echo *)", "Edit(~/o)"}, bash("echo x", outside), 3, effect.Allow},
		{"every command", nil, nil, []string{"Bash(a)"}, Action{Tool: "Bash", Commands: []effect.Command{{Text: "a"}, {Text: "b"}}, Effects: effect.Set{eff(effect.Connect, "h")}}, 4, effect.Ask},
		{"no breaker", nil, nil, []string{"Bash"}, bash("sudo x", eff(effect.Configure, "sudo")), 5, effect.Deny},
		{"no secret", nil, nil, []string{"Bash", "Read"}, bash("cat ~/.ssh/id_rsa", eff(effect.Read, "/home/me/.ssh/id_rsa")), 5, effect.Deny},
		{"no hook", nil, nil, []string{"Edit", "Edit(/**)"}, Action{Tool: "Edit", Effects: effect.Set{eff(effect.Write, ws+"/.git/hooks/x")}}, 5, effect.Deny},
		{"a tool", nil, nil, []string{"mcp__s"}, Action{Tool: "mcp__s__t", Effects: effect.Set{eff(effect.Connect, "h")}}, 4, effect.Allow},
		{"another server", nil, nil, []string{"mcp__s"}, Action{Tool: "mcp__ss__t", Effects: effect.Set{eff(effect.Connect, "h")}}, 4, effect.Ask},
		{"an argument", []string{"Weather(city:Os*)"}, nil, nil, Action{Tool: "Weather", Args: json.RawMessage(`{"city":"Oslo"}`)}, 1, effect.Deny},
		{"another argument", []string{"Weather(city:Os*)"}, nil, nil, Action{Tool: "Weather", Args: json.RawMessage(`{"town":"Oslo"}`)}, 1, effect.Allow},
		{"a domain", nil, nil, []string{"WebFetch(domain:*.x.com)"}, Action{Tool: "WebFetch", Effects: effect.Set{eff(effect.Connect, "a.X.com:443")}}, 4, effect.Allow},
		{"no other domain", nil, nil, []string{"WebFetch(domain:*.x.com)"}, Action{Tool: "WebFetch", Effects: effect.Set{eff(effect.Connect, "x.com")}}, 4, effect.Ask},
		{"a pattern of tools", []string{"mcp__*"}, nil, nil, Action{Tool: "mcp__a__b"}, 1, effect.Deny},
		{"reads of all tools", []string{"Read"}, nil, nil, Action{Tool: "Grep"}, 1, effect.Deny},
	} {
		s := at(Edit)
		s.Rules = &Rules{}
		for _, text := range c.deny {
			s.Rules.Deny = append(s.Rules.Deny, rule(t, "deny", text))
		}
		for _, text := range c.ask {
			s.Rules.Ask = append(s.Rules.Ask, rule(t, "ask", text))
		}
		for _, text := range c.allow {
			s.Rules.Allow = append(s.Rules.Allow, rule(t, "allow", text))
		}
		if d := Judge(c.action, s); d.Class != c.class || d.Verdict != c.verdict {
			t.Errorf("%s: %+v", c.name, d)
		}
	}
}

func TestClassifications(t *testing.T) {
	s := at(Edit)
	compose := rule(t, "ask", "Bash(docker compose up *)")
	lint := rule(t, "ask", "Bash(make lint)")
	s.Rules = &Rules{Classify: []Classification{
		{Rule: compose, Class: 3}, {Rule: lint, Class: 1},
		{Rule: rule(t, "ask", "Edit"), Class: 2, Unless: []Exception{{Path: Rule{Tool: "Edit", Spec: "docs/**"}, Class: 3}}},
		{Rule: rule(t, "ask", "Ticket"), Class: 4, Require: []string{"idempotency_key"}},
	}}
	opaque := effect.Set{eff(effect.Opaque, "x")}
	for _, c := range []struct {
		name    string
		action  Action
		class   effect.Class
		verdict effect.Verdict
	}{
		{"worse", Action{Tool: "Bash", Commands: []effect.Command{{Text: "docker compose up -d"}}, Effects: opaque}, 3, effect.Ask},
		{"better", Action{Tool: "Bash", Commands: []effect.Command{{Text: "make lint"}}, Effects: opaque}, 1, effect.Allow},
		{"not with another command", Action{Tool: "Bash", Commands: []effect.Command{{Text: "make lint"}, {Text: "make"}}, Effects: opaque}, 2, effect.Allow},
		{"not what is known", Action{Tool: "Bash", Commands: []effect.Command{{Text: "make lint"}}, Effects: effect.Set{eff(effect.Connect, "h")}}, 4, effect.Ask},
		{"a path", Action{Tool: "Edit", Effects: effect.Set{eff(effect.Write, "/home/me/ws/docs/a")}}, 3, effect.Ask},
		{"another path", Action{Tool: "Edit", Effects: effect.Set{eff(effect.Write, "/home/me/ws/a")}}, 2, effect.Allow},
		{"without its key", Action{Tool: "Ticket", Args: json.RawMessage(`{}`)}, 4, effect.Deny},
		{"with its key", Action{Tool: "Ticket", Args: json.RawMessage(`{"idempotency_key":"k"}`)}, 4, effect.Ask},
	} {
		if d := Judge(c.action, s); d.Class != c.class || d.Verdict != c.verdict {
			t.Errorf("%s: %+v", c.name, d)
		}
	}
	s.Rules.Classify[1].Tighten = true
	if d := Judge(Action{Tool: "Bash", Commands: []effect.Command{{Text: "make lint"}}, Effects: opaque}, s); d.Class != 2 {
		t.Errorf("a rule that only tightens gives a better class: %+v", d)
	}
}

func TestFloorAndModes(t *testing.T) {
	s := at(Autonomous)
	s.Rules = &Rules{Floor: map[effect.Class]effect.Verdict{2: effect.Ask, 3: effect.Deny}, Modes: map[Mode][]effect.Class{Manual: {1, 2}, Edit: {1}}}
	write, out := eff(effect.Write, "/home/me/ws/a"), eff(effect.Write, "/home/me/o")
	if d := Judge(Action{Effects: effect.Set{write}}, s); d.Verdict != effect.Ask {
		t.Errorf("class 2: %+v", d)
	}
	if d := Judge(Action{Effects: effect.Set{out}}, s); d.Verdict != effect.Deny {
		t.Errorf("class 3: %+v", d)
	}
	s.Rules.Floor = nil
	s.Mode = Manual
	if d := Judge(Action{Effects: effect.Set{write}}, s); d.Verdict != effect.Allow {
		t.Errorf("manual: %+v", d)
	}
	s.Mode = Edit
	if d := Judge(Action{Effects: effect.Set{write}}, s); d.Verdict != effect.Ask {
		t.Errorf("edit: %+v", d)
	}
}

func TestAPersonWithoutASandbox(t *testing.T) {
	s := at(Edit)
	s.Sandboxed, s.Off = false, true
	for _, c := range []struct {
		e       effect.Effect
		class   effect.Class
		verdict effect.Verdict
	}{
		{eff(effect.Exec, "ls"), 1, effect.Allow}, {eff(effect.Opaque, "make"), 3, effect.Ask}, {eff(effect.Write, "/home/me/ws/a"), 2, effect.Allow}, {eff(effect.Read, ""), 1, effect.Ask}, {eff(effect.Read, "/tmp/x"), 1, effect.Ask},
	} {
		if d := Judge(Action{Effects: effect.Set{c.e}}, s); d.Class != c.class || d.Verdict != c.verdict {
			t.Errorf("%v: %+v", c.e, d)
		}
	}
	s.Mode = Autonomous
	if d := Judge(Action{Effects: effect.Set{eff(effect.Opaque, "make")}}, s); d.Verdict != effect.Ask {
		t.Errorf("autonomous without a sandbox: %+v", d)
	}
}
