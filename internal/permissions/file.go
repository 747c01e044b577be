// Package permissions reads the policy file, .belay/permissions.yaml, strictly, and merges what a machine, a user and a project say in theirs.
package permissions

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"belay/effect"
	"belay/internal/yaml"
	"belay/policy"
)

// FileName is the name of a policy file, in a project's .belay and in the user's folder.
const FileName = "permissions.yaml"

// File is one policy file.
type File struct {
	Path  string
	Rules policy.Rules
	Tests []Test
	Judge map[policy.Mode]bool // modes for which the file says whether a model judges
}

// Test is one of the file's own tests. Class and Verdict are zero where the test does not speak of them.
type Test struct {
	Bash    string // a command line
	Tool    string // or a tool with
	Path    string // the path that it reads or writes
	Mode    policy.Mode
	Class   effect.Class
	Verdict effect.Verdict
	Line    int
}

// builtIn are the verdicts of the classes where a mode does not allow them.
var builtIn = map[effect.Class]effect.Verdict{1: effect.Allow, 2: effect.Allow, 3: effect.Ask, 4: effect.Ask, 5: effect.Deny}

// verdicts are the words for them, and for which class each is.
var verdicts = map[string]effect.Verdict{"allow": effect.Allow, "allow_with_checkpoint": effect.Allow, "ask": effect.Ask, "ask_with_idempotency": effect.Ask, "deny": effect.Deny}

// Parse reads a policy file. Base is the folder at which its rules' paths /x start. Every mistake is an error with its place.
func Parse(path, base string, data []byte) (File, error) {
	f := File{Path: path}
	root, err := yaml.Parse(path, "the policy file", data)
	if err != nil {
		return f, err
	}
	if root.Empty() {
		return f, root.Errorf("the policy file is empty: it begins with version: 1")
	}
	fields, err := root.Fields("the policy file", "version", "defaults", "deny", "ask", "allow", "classify", "modes", "protect", "network", "judge", "tests", "audit")
	if err != nil {
		return f, err
	}
	r := reader{file: &f, base: base}
	version := false
	for _, field := range fields {
		n := field.Value
		switch field.Name {
		case "version":
			_, err = n.Int("version", 1, 1)
			version = true
		case "defaults":
			err = r.defaults(n)
		case "deny":
			f.Rules.Deny, err = r.rules("deny", n)
		case "ask":
			f.Rules.Ask, err = r.rules("ask", n)
		case "allow":
			f.Rules.Allow, err = r.rules("allow", n)
		case "classify":
			err = r.classify(n)
		case "modes":
			err = r.modes(n)
		case "protect":
			f.Rules.Protect, err = r.paths("protect", n)
		case "network":
			err = r.network(n)
		case "judge":
			err = r.prose(n)
		case "tests":
			err = r.tests(n)
		case "audit":
			err = oneOf(n, "audit", "every_decision")
		}
		if err != nil {
			return f, err
		}
	}
	if !version {
		return f, root.Errorf("the policy file does not say its version: write version: 1")
	}
	return f, nil
}

type reader struct {
	file *File
	base string
}

func oneOf(n yaml.Node, what string, allowed ...string) error {
	s, err := n.Text(what)
	if err == nil && !slices.Contains(allowed, s) {
		return n.Errorf("%s must be %s, not %q", what, strings.Join(allowed, " or "), s)
	}
	return err
}

func (r reader) from(n yaml.Node) string { return fmt.Sprintf("%s:%d", r.file.Path, n.Line()) }

func class(n yaml.Node, what string) (effect.Class, error) {
	i, err := n.Int(what, 1, 5)
	return effect.Class(i), err
}

func (r reader) rule(kind string, n yaml.Node) (policy.Rule, error) {
	text, err := n.Text("a rule")
	if err != nil {
		return policy.Rule{}, err
	}
	rule, err := policy.ParseRule(kind, text, r.from(n), r.base)
	if err != nil {
		return rule, n.Errorf("%v", err)
	}
	return rule, nil
}

func (r reader) rules(kind string, n yaml.Node) ([]policy.Rule, error) {
	list, err := n.List(kind)
	if err != nil {
		return nil, err
	}
	var out []policy.Rule
	for _, n := range list {
		rule, err := r.rule(kind, n)
		if err != nil {
			return nil, err
		}
		out = append(out, rule)
	}
	return out, nil
}

// path reads a path in the syntax of Read and Edit rules.
func (r reader) path(what string, n yaml.Node) (policy.Rule, error) {
	text, err := n.Text(what)
	if err == nil && text == "" {
		err = n.Errorf("%s must name a path", what)
	}
	return policy.Rule{Tool: "Edit", Spec: text, Text: text, From: r.from(n), Base: r.base}, err
}

func (r reader) paths(what string, n yaml.Node) ([]policy.Rule, error) {
	list, err := n.List(what)
	var out []policy.Rule
	for _, n := range list {
		p, err := r.path("a path of "+what, n)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	return out, err
}

func (r reader) defaults(n yaml.Node) error {
	fields, err := n.NumberedPairs("defaults")
	if err != nil {
		return err
	}
	r.file.Rules.Floor = map[effect.Class]effect.Verdict{}
	for _, f := range fields {
		number, err := strconv.Atoi(f.Name)
		if err != nil || number < 1 || number > 5 {
			return f.Value.Errorf("a key of defaults is a class from 1 to 5, not %q", f.Name)
		}
		c := effect.Class(number)
		word, err := f.Value.Text("the verdict of a class")
		if err != nil {
			return err
		}
		v, ok := verdicts[word]
		switch {
		case !ok, word == "allow_with_checkpoint" && c != 2, word == "ask_with_idempotency" && c != 4:
			return f.Value.Errorf("the verdict of class %d must be %s, not %q", c, words(c), word)
		case rank(v) < rank(builtIn[c]):
			return f.Value.Errorf("class %d is never %s by default: allow single calls with a rule under allow, or the class under modes", c, word)
		case rank(v) > rank(builtIn[c]):
			r.file.Rules.Floor[c] = v
		}
	}
	return nil
}

func words(c effect.Class) string {
	switch c {
	case 2:
		return "allow, allow_with_checkpoint, ask or deny"
	case 4:
		return "ask, ask_with_idempotency or deny"
	}
	return "allow, ask or deny"
}

func rank(v effect.Verdict) int {
	return slices.Index([]effect.Verdict{effect.Allow, effect.Ask, effect.Deny}, v)
}

func (r reader) classify(n yaml.Node) error {
	list, err := n.List("classify")
	if err != nil {
		return err
	}
	for _, n := range list {
		fields, err := n.Fields("a classification", "tool", "match", "class", "unless", "require")
		if err != nil {
			return err
		}
		var c policy.Classification
		tool, match := "", ""
		for _, f := range fields {
			switch f.Name {
			case "tool":
				tool, err = f.Value.Text("tool")
			case "match":
				match, err = f.Value.Text("match")
			case "class":
				c.Class, err = class(f.Value, "class")
			case "unless":
				c.Unless, err = r.unless(f.Value)
			case "require":
				var names []yaml.Node
				if names, err = f.Value.List("require"); err == nil {
					for _, name := range names {
						text, err := name.Text("an argument's name")
						if err != nil {
							return err
						}
						c.Require = append(c.Require, text)
					}
				}
			}
			if err != nil {
				return err
			}
		}
		if tool == "" || c.Class == 0 {
			return n.Errorf("a classification needs tool and class")
		}
		text := tool
		if match != "" {
			text += "(" + match + ")"
		}
		rule, err := policy.ParseRule("ask", text, r.from(n), r.base)
		if err != nil {
			return n.Errorf("%v", err)
		}
		c.Rule = rule
		r.file.Rules.Classify = append(r.file.Rules.Classify, c)
	}
	return nil
}

func (r reader) unless(n yaml.Node) ([]policy.Exception, error) {
	list, err := n.List("unless")
	var out []policy.Exception
	for _, n := range list {
		fields, err := n.Fields("an exception", "path", "class")
		if err != nil {
			return nil, err
		}
		var x policy.Exception
		for _, f := range fields {
			if f.Name == "path" {
				x.Path, err = r.path("path", f.Value)
			} else {
				x.Class, err = class(f.Value, "class")
			}
			if err != nil {
				return nil, err
			}
		}
		if x.Path.Spec == "" || x.Class == 0 {
			return nil, n.Errorf("an exception needs path and class")
		}
		out = append(out, x)
	}
	return out, err
}

func (r reader) modes(n yaml.Node) error {
	fields, err := n.Fields("modes", "plan", "manual", "edit", "autonomous")
	if err != nil {
		return err
	}
	r.file.Rules.Modes, r.file.Rules.SandboxFor = map[policy.Mode][]effect.Class{}, map[policy.Mode]bool{policy.Autonomous: true}
	for _, f := range fields {
		mode := policy.Mode(f.Name)
		settings, err := f.Value.Fields("a mode", "max_class", "allow", "sandbox_required", "judge")
		if err != nil {
			return err
		}
		for _, s := range settings {
			switch s.Name {
			case "max_class":
				top, err := s.Value.Int("max_class", 1, 3)
				if err != nil {
					return err
				}
				for c := effect.Class(1); c <= effect.Class(top); c++ {
					r.file.Rules.Modes[mode] = append(r.file.Rules.Modes[mode], c)
				}
				if mode == policy.Plan && top > 1 {
					return s.Value.Errorf("plan only reads: its max_class is 1")
				}
			case "allow":
				list, err := s.Value.List("allow")
				if err != nil {
					return err
				}
				r.file.Rules.Modes[mode] = []effect.Class{}
				for _, n := range list {
					c, err := n.Int("a class that a mode allows (class 4 always asks, class 5 is always refused)", 1, 3)
					if err != nil {
						return err
					}
					if mode == policy.Plan && c > 1 {
						return n.Errorf("plan only reads: it allows class 1")
					}
					r.file.Rules.Modes[mode] = append(r.file.Rules.Modes[mode], effect.Class(c))
				}
			case "sandbox_required":
				need, err := s.Value.Bool("sandbox_required")
				if err != nil {
					return err
				}
				if mode == policy.Autonomous && !need {
					return s.Value.Errorf("autonomous always needs a sandbox")
				}
				r.file.Rules.SandboxFor[mode] = need
			case "judge":
				word, ok := s.Value.Literal()
				if !ok || word != "on" && word != "off" && word != "true" && word != "false" {
					return s.Value.Errorf("judge must be on or off")
				}
				on := word == "on" || word == "true"
				if on && mode != policy.Autonomous {
					return s.Value.Errorf("only autonomous has a judge: in %s, what it would judge is asked or refused", mode)
				}
				if r.file.Judge == nil {
					r.file.Judge = map[policy.Mode]bool{}
				}
				r.file.Judge[mode] = on
			}
		}
	}
	return nil
}

// maxProse bounds one sentence to the judge, in bytes, and maxSentences each list: all of them stand in every request.
const (
	maxProse     = 2000
	maxSentences = 100
)

// prose reads what a model that judges is told, in words.
func (r reader) prose(n yaml.Node) error {
	fields, err := n.Fields("judge", "environment", "allow", "soft_deny", "hard_deny")
	if err != nil {
		return err
	}
	p := &r.file.Rules.Prose
	into := map[string]*[]string{"environment": &p.Environment, "allow": &p.Allow, "soft_deny": &p.SoftDeny, "hard_deny": &p.HardDeny}
	for _, f := range fields {
		list, err := f.Value.List(f.Name)
		if err != nil {
			return err
		}
		if len(list) > maxSentences {
			return f.Value.Errorf("%s has %d sentences; at most %d are read", f.Name, len(list), maxSentences)
		}
		for _, n := range list {
			text, err := n.Text("a sentence of " + f.Name)
			switch {
			case err != nil:
				return err
			case strings.TrimSpace(text) == "":
				return n.Errorf("a sentence of %s is empty", f.Name)
			case len(text) > maxProse:
				return n.Errorf("a sentence of %s has %d bytes; at most %d are read", f.Name, len(text), maxProse)
			}
			text = strings.Join(strings.Fields(text), " ")
			*into[f.Name] = append(*into[f.Name], text)
			if p.From == nil {
				p.From = map[string]string{}
			}
			p.From[text] = r.from(n)
		}
	}
	return nil
}

func (r reader) network(n yaml.Node) error {
	fields, err := n.Fields("network", "allow", "ports", "inject")
	if err != nil {
		return err
	}
	for _, f := range fields {
		switch f.Name {
		case "ports":
			if err := r.ports(f.Value); err != nil {
				return err
			}
			continue
		case "inject":
			if err := r.inject(f.Value); err != nil {
				return err
			}
			continue
		}
		list, err := f.Value.List("allow")
		if err != nil {
			return err
		}
		for _, n := range list {
			host, err := n.Text("a host")
			if err == nil && !hostPattern(host) {
				err = n.Errorf("a host is a name such as packages.example.com or *.cdn.example.com, not %q", host)
			}
			if err != nil {
				return err
			}
			r.file.Rules.Network = append(r.file.Rules.Network, policy.Host(host, r.from(n)))
		}
	}
	return nil
}

func (r reader) tests(n yaml.Node) error {
	list, err := n.List("tests")
	if err != nil {
		return err
	}
	for _, n := range list {
		fields, err := n.Fields("a test", "bash", "read", "write", "mode", "class", "verdict")
		if err != nil {
			return err
		}
		t := Test{Line: n.Line()}
		for _, f := range fields {
			switch f.Name {
			case "bash":
				t.Tool = "Bash"
				t.Bash, err = f.Value.Text("bash")
			case "read":
				t.Tool = "Read"
				t.Path, err = f.Value.Text("read")
			case "write":
				t.Tool = "Write"
				t.Path, err = f.Value.Text("write")
			case "mode":
				if err = oneOf(f.Value, "mode", "plan", "manual", "edit", "autonomous"); err == nil {
					text, _ := f.Value.Literal()
					t.Mode = policy.Mode(text)
				}
			case "class":
				t.Class, err = class(f.Value, "class")
			case "verdict":
				if err = oneOf(f.Value, "verdict", "allow", "ask", "deny"); err == nil {
					text, _ := f.Value.Literal()
					t.Verdict = effect.Verdict(text)
				}
			}
			if err != nil {
				return err
			}
		}
		if t.Bash == "" && t.Path == "" || t.Class == 0 && t.Verdict == "" {
			return n.Errorf("a test says what is tried (bash, read or write) and what is expected (class, verdict or both)")
		}
		r.file.Tests = append(r.file.Tests, t)
	}
	return nil
}

// Layer is one file, and whether what it widens counts.
type Layer struct {
	File    File
	Trusted bool
}

// Merge joins files, the most general first. Lists add up. A file that is not trusted can only tighten: what it would widen is
// left out, and told in the notices.
func Merge(layers ...Layer) (rules policy.Rules, notices []string) {
	rules.Floor, rules.Modes, rules.SandboxFor = map[effect.Class]effect.Verdict{}, map[policy.Mode][]effect.Class{}, map[policy.Mode]bool{policy.Autonomous: true}
	rules.JudgeOff = map[policy.Mode]bool{}
	for _, l := range layers {
		from := l.File.Rules
		rules.Deny = append(rules.Deny, from.Deny...)
		rules.Ask = append(rules.Ask, from.Ask...)
		rules.Protect = append(rules.Protect, from.Protect...)
		for c, v := range from.Floor {
			if rank(v) > rank(rules.Floor[c]) {
				rules.Floor[c] = v
			}
		}
		for mode, need := range from.SandboxFor {
			rules.SandboxFor[mode] = rules.SandboxFor[mode] || need
		}
		for sentence, place := range from.Prose.From {
			if rules.Prose.From == nil {
				rules.Prose.From = map[string]string{}
			}
			rules.Prose.From[sentence] = place
		}
		rules.Prose.SoftDeny = append(rules.Prose.SoftDeny, from.Prose.SoftDeny...)
		rules.Prose.HardDeny = append(rules.Prose.HardDeny, from.Prose.HardDeny...)
		ignored := 0
		if l.Trusted {
			rules.Allow = append(rules.Allow, from.Allow...)
			rules.Network = append(rules.Network, from.Network...)
			rules.Ports = append(rules.Ports, from.Ports...)
			rules.Inject = append(rules.Inject, from.Inject...)
			rules.Prose.Allow = append(rules.Prose.Allow, from.Prose.Allow...)
			rules.Prose.Environment = append(rules.Prose.Environment, from.Prose.Environment...)
		} else {
			ignored = len(from.Allow) + len(from.Network) + len(from.Ports) + len(from.Inject) + len(from.Prose.Allow) + len(from.Prose.Environment)
		}
		for mode, on := range l.File.Judge {
			switch {
			case on:
				rules.JudgeOff[mode] = false
			case l.Trusted && !judged(layers, mode):
				rules.JudgeOff[mode] = true
			case !l.Trusted:
				ignored++
			}
		}
		for _, c := range from.Classify {
			c.Tighten = !l.Trusted
			rules.Classify = append(rules.Classify, c)
		}
		for mode, classes := range from.Modes {
			have, ok := rules.Modes[mode]
			if !ok {
				have = builtInMode(mode)
			}
			if l.Trusted && !managed(layers, mode) {
				rules.Modes[mode] = classes
				continue
			}
			var both []effect.Class
			for _, c := range have {
				if slices.Contains(classes, c) {
					both = append(both, c)
				}
			}
			rules.Modes[mode] = both
		}
		if ignored > 0 {
			notices = append(notices, fmt.Sprintf("%s: %d rules that allow are ignored, since nobody has said that this project is trusted; `belay trust` says so", l.File.Path, ignored))
		}
	}
	return rules, notices
}

// managed says that the machine's own file sets a mode, which no other then widens.
func managed(layers []Layer, mode policy.Mode) bool {
	for _, l := range layers {
		if _, ok := l.File.Rules.Modes[mode]; ok && filepath.Dir(l.File.Path) == managedDir {
			return true
		}
	}
	return false
}

// judged says that the machine's own file has a model judge in a mode, which no other then switches off.
func judged(layers []Layer, mode policy.Mode) bool {
	for _, l := range layers {
		if l.File.Judge[mode] && filepath.Dir(l.File.Path) == managedDir {
			return true
		}
	}
	return false
}

func builtInMode(mode policy.Mode) []effect.Class {
	switch mode {
	case policy.Edit:
		return []effect.Class{1, 2}
	case policy.Autonomous:
		return []effect.Class{1, 2, 3}
	}
	return []effect.Class{1}
}
