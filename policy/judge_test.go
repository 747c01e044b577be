package policy

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/effect"
)

func at(mode Mode) Situation {
	return Situation{Mode: mode, Workspace: "/home/me/ws", Home: "/home/me", StateDir: "/home/me/.local/state/belay", Sandboxed: true, Headless: true}
}

func eff(kind effect.Kind, target string) effect.Effect {
	return effect.Effect{Kind: kind, Target: target}
}

func TestJudge(t *testing.T) {
	const ws = "/home/me/ws"
	for _, c := range []struct {
		name    string
		effect  effect.Effect
		class   effect.Class
		verdict effect.Verdict // in edit mode, sandboxed, headless
		rule    string
	}{
		{"read a file", eff(effect.Read, ws+"/a.go"), 1, effect.Allow, "defaults.class-1"},
		{"read the workspace", eff(effect.Read, ws), 1, effect.Allow, "defaults.class-1"},
		{"read a sibling with the same prefix", eff(effect.Read, ws+"2/a"), 1, effect.Ask, "read: outside the workspace"},
		{"read a toolchain", eff(effect.Read, "/home/me/go/pkg/mod/x"), 1, effect.Allow, "defaults.class-1"},
		{"read the system", eff(effect.Read, "/usr/include/stdio.h"), 1, effect.Allow, "defaults.class-1"},
		{"read another project", eff(effect.Read, "/home/me/other/a"), 1, effect.Ask, "read: outside the workspace"},
		{"read a key", eff(effect.Read, "/home/me/.ssh/id_rsa"), 5, effect.Deny, "protect: secrets"},
		{"read .env", eff(effect.Read, ws+"/.env"), 5, effect.Deny, "protect: secrets"},
		{"read .env.production", eff(effect.Read, ws+"/sub/.env.production"), 5, effect.Deny, "protect: secrets"},
		{"read .env.example", eff(effect.Read, ws+"/.env.example"), 1, effect.Allow, "defaults.class-1"},
		{"read by pattern", eff(effect.Read, ws+"/.e*"), 5, effect.Deny, "protect: secrets"},
		{"read any name", eff(effect.Read, ws+"/*"), 1, effect.Allow, "defaults.class-1"},
		{"read shadow", eff(effect.Read, "/etc/shadow"), 5, effect.Deny, "protect: secrets"},
		{"read an environment", eff(effect.Read, "/proc/1/environ"), 5, effect.Deny, "protect: secrets"},
		{"read the journal", eff(effect.Read, "/home/me/.local/state/belay/runs/x"), 5, effect.Deny, "protect: belay's own state"},
		{"read the policy", eff(effect.Read, ws+"/.belay/permissions.yaml"), 5, effect.Deny, "protect: belay's own state"},
		{"read an unknown path", eff(effect.Read, ""), 1, effect.Allow, "defaults.class-1"},
		{"write a file", eff(effect.Write, ws+"/a.go"), 2, effect.Allow, "defaults.class-2"},
		{"delete a file", eff(effect.Delete, ws+"/a.go"), 2, effect.Allow, "defaults.class-2"},
		{"write a hook", eff(effect.Write, ws+"/.git/hooks/pre-commit"), 5, effect.Deny, "protect: what git runs"},
		{"write a hook in another case", eff(effect.Write, ws+"/.GIT/Hooks/x"), 5, effect.Deny, "protect: what git runs"},
		{"write git's configuration", eff(effect.Write, ws+"/.git/config"), 5, effect.Deny, "protect: what git runs"},
		{"write a nested one", eff(effect.Write, ws+"/sub/.git/config.worktree"), 5, effect.Deny, "protect: what git runs"},
		{"write .git itself", eff(effect.Delete, ws+"/.git"), 5, effect.Deny, "protect: the repository itself"},
		{"write an index", eff(effect.Delete, ws+"/.git/index.lock"), 3, effect.Ask, "protect: the repository's own data, which no checkpoint covers"},
		{"write the policy", eff(effect.Write, ws+"/.belay/permissions.yaml"), 5, effect.Deny, "protect: belay's own state"},
		{"write agent settings", eff(effect.Write, ws+"/.claude/settings.json"), 5, effect.Deny, "protect: settings of an agent"},
		{"write editor settings", eff(effect.Write, ws+"/.vscode/tasks.json"), 5, effect.Deny, "protect: settings of an editor"},
		{"write a workflow", eff(effect.Write, ws+"/.github/workflows/x.yml"), 3, effect.Ask, "protect: what runs on a build machine"},
		{"write .gitignore", eff(effect.Write, ws+"/.gitignore"), 2, effect.Allow, "defaults.class-2"},
		{"write outside", eff(effect.Write, "/home/me/other/a"), 3, effect.Ask, "write: outside the workspace"},
		{"write a start file", eff(effect.Write, "/home/me/.bashrc"), 5, effect.Deny, "protect: start files"},
		{"write a key", eff(effect.Write, "/home/me/.ssh/authorized_keys"), 5, effect.Deny, "protect: secrets"},
		{"write the system", eff(effect.Write, "/etc/passwd"), 3, effect.Deny, "breaker: system paths"},
		{"write a device", eff(effect.Write, "/dev/sda"), 3, effect.Deny, "breaker: system paths"},
		{"write a temporary file", eff(effect.Write, "/tmp/x"), 2, effect.Allow, "defaults.class-2"},
		{"write an unknown path", eff(effect.Write, ""), 3, effect.Ask, "write: unknown path"},
		{"delete the root", eff(effect.Delete, "/"), 3, effect.Deny, "breaker: rm of the root"},
		{"delete a home", eff(effect.Delete, "/home/me"), 3, effect.Deny, "breaker: rm of a home directory"},
		{"delete a home's parent", eff(effect.Delete, "/home"), 3, effect.Deny, "breaker: rm of a home directory"},
		{"delete the workspace", eff(effect.Delete, ws), 3, effect.Deny, "breaker: rm of the workspace or a parent"},
		{"delete the state", eff(effect.Delete, "/home/me/.local"), 5, effect.Deny, "protect: belay's own state"},
		{"start a program", eff(effect.Exec, "ls"), 1, effect.Allow, "defaults.class-1"},
		{"send", eff(effect.Connect, "example.com"), 4, effect.Ask, "defaults.class-4"},
		{"escalate", eff(effect.Configure, "sudo"), 5, effect.Deny, "breaker: privilege and machine"},
		{"configure", eff(effect.Configure, ws+"/x"), 5, effect.Deny, "defaults.class-5"},
		{"anything", eff(effect.Opaque, "make"), 2, effect.Allow, "defaults.class-2"},
		{"an unknown kind", eff("teleport", "x"), 5, effect.Deny, "unknown effect"},
	} {
		d := Judge(Action{Effects: effect.Set{c.effect}}, at(Edit))
		got := Decision{Class: d.Class, Verdict: d.Verdict, Rule: d.Rule}
		if diff := cmp.Diff(Decision{Class: c.class, Verdict: c.verdict, Rule: c.rule}, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if !strings.HasSuffix(d.Reason, ".") || !strings.Contains(d.Reason, "class") {
			t.Errorf("%s: reason %q", c.name, d.Reason)
		}
	}
}

func TestModes(t *testing.T) {
	byClass := map[effect.Class]effect.Effect{
		1: eff(effect.Read, "/home/me/ws/a"), 2: eff(effect.Write, "/home/me/ws/a"), 3: eff(effect.Write, "/home/me/o"), 4: eff(effect.Connect, "h"), 5: eff(effect.Write, "/home/me/ws/.git/config"),
	}
	for mode, want := range map[Mode]string{
		Plan: "allow deny deny deny deny", Manual: "allow ask ask ask deny", Edit: "allow allow ask ask deny", Autonomous: "allow allow allow ask deny", "yolo": "allow deny deny deny deny",
	} {
		var got []string
		for class := effect.Class(1); class <= 5; class++ {
			d := Judge(Action{Effects: effect.Set{byClass[class]}}, at(mode))
			if d.Class != class {
				t.Errorf("%v has class %d, want %d", byClass[class], d.Class, class)
			}
			got = append(got, string(d.Verdict))
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("mode %s: %s", mode, diff)
		}
	}
}

func TestBreakersAskPersonsInEveryMode(t *testing.T) {
	for _, e := range []effect.Effect{eff(effect.Delete, "/"), eff(effect.Configure, "sudo"), eff(effect.Write, "/etc/x")} {
		for _, mode := range []Mode{Manual, Edit, Autonomous} {
			s := at(mode)
			if d := Judge(Action{Effects: effect.Set{e}}, s); d.Verdict != effect.Deny || d.Grant.Workspace != "" {
				t.Errorf("%v headless in %s: %+v", e, mode, d)
			}
			s.Headless = false
			if d := Judge(Action{Effects: effect.Set{e}}, s); d.Verdict != effect.Ask {
				t.Errorf("%v with a person in %s: %+v", e, mode, d)
			}
		}
	}
}

func TestWithoutSandboxOnlyFilesAreRead(t *testing.T) {
	for _, mode := range []Mode{Plan, Manual, Edit, Autonomous} {
		s := at(mode)
		s.Sandboxed = false
		if d := Judge(Action{Effects: effect.Set{eff(effect.Read, "/home/me/ws/a")}}, s); d.Verdict != effect.Allow || d.Grant.Workspace != effect.ReadOnly {
			t.Errorf("%s: a read: %+v", mode, d)
		}
		for _, e := range []effect.Effect{eff(effect.Exec, "ls"), eff(effect.Write, "/home/me/ws/a"), eff(effect.Opaque, "make"), eff(effect.Connect, "h"), eff(effect.Configure, "sudo"), eff(effect.Delete, "/")} {
			if d := Judge(Action{Effects: effect.Set{e}}, s); d.Verdict != effect.Deny || d.Reason == "" {
				t.Errorf("%s: %v: %+v", mode, e, d)
			}
		}
	}
	s := at(Edit)
	s.Sandboxed = false
	if d := Judge(Action{Effects: effect.Set{eff(effect.Opaque, "make")}}, s); d.Class != 3 {
		t.Errorf("an opaque effect without a sandbox has class %d", d.Class)
	}
}

func TestEmptySetReads(t *testing.T) {
	d := Judge(Action{}, at(Plan))
	if d.Class != 1 || d.Verdict != effect.Allow || d.Grant.Workspace != effect.ReadOnly {
		t.Errorf("%+v", d)
	}
}

// TestMonotone: a further effect never lowers the class nor softens the verdict, the order does not matter, and the
// same question has the same answer.
func TestMonotone(t *testing.T) {
	kinds := []effect.Kind{effect.Read, effect.Write, effect.Delete, effect.Exec, effect.Connect, effect.Configure, effect.Opaque, "odd"}
	targets := []string{"", "/", "/home/me", "/home/me/ws", "/home/me/ws/a", "/home/me/ws/.git/config", "/home/me/ws/.env", "/home/me/o", "/etc/x", "/tmp/x", "host", "/home/me/.local/state/belay/x"}
	modes := []Mode{Plan, Manual, Edit, Autonomous, "odd"}
	rng := rand.New(rand.NewPCG(1, 2))
	pick := func() effect.Effect {
		return eff(kinds[rng.IntN(len(kinds))], targets[rng.IntN(len(targets))])
	}
	for range 20000 {
		s := at(modes[rng.IntN(len(modes))])
		s.Sandboxed, s.Headless = rng.IntN(2) == 0, rng.IntN(2) == 0
		var set effect.Set
		for range rng.IntN(4) {
			set = append(set, pick())
		}
		before := Judge(Action{Effects: set}, s)
		if again := Judge(Action{Effects: set}, s); !cmp.Equal(again, before) {
			t.Fatalf("not deterministic: %+v and %+v", before, again)
		}
		more := pick()
		after := Judge(Action{Effects: append(set[:len(set):len(set)], more)}, s)
		first := Judge(Action{Effects: append(effect.Set{more}, set...)}, s)
		if after.Class < before.Class || severity(after.Verdict) < severity(before.Verdict) {
			t.Fatalf("%v and then %v in %+v: %+v became %+v", set, more, s, before, after)
		}
		if first.Class != after.Class || first.Verdict != after.Verdict {
			t.Fatalf("the order matters for %v and %v in %+v: %+v and %+v", set, more, s, first, after)
		}
		if after.Class == 1 && after.Grant.Workspace == effect.ReadWrite || len(after.Grant.Network) > 0 || after.Verdict == effect.Deny && after.Grant.Workspace != "" {
			t.Fatalf("the grant is too wide: %+v", after)
		}
	}
}
