package policy

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"belay/effect"
)

// Action is what is judged: a call of a tool, with what it would do.
type Action struct {
	Tool     string           // "Bash", "Edit", "mcp__server__tool"; "" where only the effects count
	Args     json.RawMessage  // the call's arguments, for rules that name one; may be empty
	Commands []effect.Command // of a command line
	Effects  effect.Set
}

// Rules are what people have written down, merged. Every list says in its rules where each comes from. The zero Rules
// say nothing.
type Rules struct {
	Deny, Ask, Allow []Rule
	Classify         []Classification
	Floor            map[effect.Class]effect.Verdict // verdicts that hold in every mode, stricter than its own
	Modes            map[Mode][]effect.Class         // the classes that a mode allows, where not the built-in ones
	SandboxFor       map[Mode]bool                   // modes that need a sandbox
	JudgeOff         map[Mode]bool                   // modes in which no model judges
	Prose            Prose                           // what such a model is told
	Protect          []Rule                          // paths that no tool writes
	Network          []Rule                          // hosts that may be reached
	Ports            []uint16                        // of theirs; none is the usual ones
	Inject           []Injection                     // headers that are added to requests to them
}

// Injection adds a header, with a secret of belay's environment, to the requests to a host.
type Injection struct {
	Host    string
	Header  string
	Prefix  string // stands before the secret: "Bearer "
	FromEnv string // the variable that holds it
	From    string // FILE:LINE
}

// Host is a rule that lets a host be reached.
func Host(name, from string) Rule {
	return Rule{Tool: "WebFetch", Spec: "domain:" + name, Text: name, From: from}
}

// Rule is one rule, in the syntax that people know from other agents: Tool or Tool(specifier).
type Rule struct {
	Tool string // may hold * in rules that deny or ask
	Spec string // "" is every call
	Text string // as it is written
	From string // FILE:LINE
	Base string // the folder that a path /x starts at
}

// Classification gives calls a class of their own.
type Classification struct {
	Rule
	Class   effect.Class
	Unless  []Exception
	Require []string // arguments that the call must have
	Tighten bool     // it may give a worse class than the effects do, but no better one
}

// Exception gives another class where a path is touched.
type Exception struct {
	Path  Rule
	Class effect.Class
}

// readers and editors are the tools that Read and Edit rules speak of.
var pathTools = map[string]string{"Write": "Edit", "MultiEdit": "Edit", "NotebookEdit": "Edit", "Glob": "Read", "Grep": "Read", "LS": "Read"}

// ParseRule reads a rule. Kind is "deny", "ask" or "allow": only the first two take a * in a tool's name, or an argument.
func ParseRule(kind, text, from, base string) (Rule, error) {
	r := Rule{Text: text, From: from, Base: base}
	name, rest, has := strings.Cut(text, "(")
	r.Tool = name
	if has {
		if !strings.HasSuffix(rest, ")") {
			return r, fmt.Errorf("the rule %q has no closing parenthesis at its end", text)
		}
		if r.Spec = strings.TrimSuffix(rest, ")"); r.Spec == "" {
			return r, fmt.Errorf("the rule %q has nothing in its parentheses: write %s for every call", text, name)
		}
		if r.Spec == "*" {
			r.Spec = ""
		}
	}
	if r.Tool == "Task" {
		r.Tool = "Agent"
	}
	switch {
	case r.Tool == "" || strings.Trim(r.Tool, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-*") != "":
		return r, fmt.Errorf("the rule %q does not begin with a tool's name: write Tool or Tool(specifier), such as Bash(npm test) or Edit(/src/**)", text)
	case kind == "allow" && strings.Contains(r.Tool, "*") && !(strings.HasPrefix(r.Tool, "mcp__") && strings.Contains(strings.TrimPrefix(r.Tool, "mcp__"), "__") && strings.Index(r.Tool, "*") > strings.LastIndex(r.Tool, "__")):
		return r, fmt.Errorf("the rule %q would allow tools that nobody has named: name the tool, or write mcp__server__*", text)
	case r.Spec != "" && pathTools[r.Tool] != "":
		return r, fmt.Errorf("the rule %q is never asked for: %s(%s) speaks of all tools that do so", text, pathTools[r.Tool], r.Spec)
	case r.Spec == "" || r.Tool == "Bash" || r.Tool == "Read" || r.Tool == "Edit":
	case r.Tool == "WebFetch":
		if !strings.HasPrefix(r.Spec, "domain:") || r.Spec == "domain:" {
			return r, fmt.Errorf("the rule %q must name a domain, as in WebFetch(domain:example.com)", text)
		}
	case kind == "allow" || !strings.Contains(r.Spec, ":"):
		return r, fmt.Errorf("the rule %q has a specifier that is not known for %s: only deny and ask take %s(argument:value)", text, r.Tool, r.Tool)
	}
	return r, nil
}

// names says that the rule is about a tool.
func (r Rule) names(tool string) bool {
	if r.Tool == tool {
		return true
	}
	if strings.HasPrefix(r.Tool, "mcp__") && !strings.Contains(r.Tool, "*") {
		return strings.HasPrefix(tool, r.Tool+"__") && strings.Count(r.Tool, "__") == 1
	}
	return strings.Contains(r.Tool, "*") && wild(r.Tool, tool)
}

// wild matches a text with a pattern in which * stands for any text.
func wild(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	if !strings.HasPrefix(text, parts[0]) {
		return false
	}
	text = text[len(parts[0]):]
	for _, p := range parts[1 : len(parts)-1] {
		at := strings.Index(text, p)
		if at < 0 {
			return false
		}
		text = text[at+len(p):]
	}
	return strings.HasSuffix(text, parts[len(parts)-1])
}

// command matches the specifier of a Bash rule with a command.
func (r Rule) command(text string) bool {
	pattern := r.Spec
	if strings.HasSuffix(pattern, ":*") {
		pattern = strings.TrimSuffix(pattern, ":*") + " *"
	}
	if wild(pattern, text) {
		return true
	}
	return strings.HasSuffix(pattern, " *") && strings.Count(pattern, "*") == 1 && text == strings.TrimSuffix(pattern, " *")
}

// strips are the wrappers behind which a rule that allows still speaks of the command inside.
var strips = map[string]bool{"timeout": true, "time": true, "nice": true, "nohup": true, "stdbuf": true, "command": true, "builtin": true}

// runners start what is among their arguments, so that no prefix of them says what runs.
var runners = map[string]bool{"watch": true, "setsid": true, "ionice": true, "flock": true, "xargs": true, "env": true, "sudo": true, "bash": true, "sh": true, "zsh": true, "dash": true, "eval": true, "exec": true, "script": true, "strace": true, "parallel": true, "entr": true}

// allows says that a rule allows one command of a line.
func (r Rule) allows(c effect.Command) bool {
	if r.Tool != "Bash" {
		return false
	}
	if r.Spec == "" {
		return true
	}
	first, rest, _ := strings.Cut(c.Text, " ")
	runner := runners[first] || first == "find" && (strings.Contains(rest, "-exec") || strings.Contains(rest, "-delete") || strings.Contains(rest, "-ok"))
	if r.command(c.Text) && (!runner || !strings.Contains(r.Spec, "*")) {
		return true
	}
	return strips[first] && len(c.Inner) == 1 && r.command(c.Inner[0]) && !runners[firstWord(c.Inner[0])]
}

func firstWord(s string) string {
	w, _, _ := strings.Cut(s, " ")
	return w
}

// touches says that a rule that denies or asks is about one command of a line, or about one that it starts.
func (r Rule) touches(c effect.Command) bool {
	if r.command(c.Text) {
		return true
	}
	return slices.ContainsFunc(c.Inner, r.command)
}

// path matches the specifier of a Read or Edit rule with a path. Tight rules, which deny or ask, take a folder of one name at any depth.
func (r Rule) path(s Situation, p string, tight bool) bool {
	if p == "" {
		return false
	}
	spec, from := r.Spec, s.Workspace
	switch {
	case strings.HasPrefix(spec, "//"):
		spec, from = spec[1:], "/"
	case strings.HasPrefix(spec, "~/"):
		spec, from = spec[2:], s.Home
	case strings.HasPrefix(spec, "/"):
		from = r.Base
		if from == "" {
			from = s.Workspace
		}
	}
	spec = strings.TrimPrefix(strings.TrimPrefix(spec, "./"), "/")
	anyDepth := !strings.HasPrefix(r.Spec, "/") && !strings.HasPrefix(r.Spec, "~/") && !strings.HasPrefix(r.Spec, "./") &&
		(!strings.Contains(strings.TrimSuffix(spec, "/"), "/") || tight && strings.Count(spec, "/") == 1 && strings.HasSuffix(spec, "/**"))
	if from == "" || !inside(p, from) {
		return false
	}
	rel := strings.TrimPrefix(strings.TrimPrefix(p, strings.TrimSuffix(from, "/")), "/")
	segments := strings.Split(strings.TrimSuffix(spec, "/"), "/")
	if anyDepth {
		segments = append([]string{"**"}, segments...)
	}
	return segmentsMatch(segments, strings.Split(rel, "/"))
}

// segmentsMatch matches a path with a pattern by segments; what lies below a match matches too. A segment of the path that is a
// pattern itself matches what it could stand for.
func segmentsMatch(pattern, segments []string) bool {
	for len(pattern) > 0 {
		if pattern[0] == "**" {
			if len(pattern) == 1 {
				return len(segments) > 0
			}
			for i := range segments {
				if segmentsMatch(pattern[1:], segments[i:]) {
					return true
				}
			}
			return false
		}
		if len(segments) == 0 {
			return false
		}
		ok, err := path.Match(pattern[0], segments[0])
		if err != nil || !ok {
			other, err := path.Match(segments[0], pattern[0])
			if err != nil || !other || !strings.ContainsAny(segments[0], "*?[") {
				return false
			}
		}
		pattern, segments = pattern[1:], segments[1:]
	}
	return true
}

// HostMatches matches the pattern of WebFetch(domain:…), or of a host that may be reached, with HOST or HOST:PORT.
func HostMatches(pattern, host string) bool {
	if name, _, ok := strings.Cut(host, ":"); ok {
		host = name
	}
	host, pattern = strings.TrimSuffix(strings.ToLower(host), "."), strings.TrimSuffix(strings.ToLower(pattern), ".")
	if pattern == "*" {
		return true
	}
	if rest, ok := strings.CutPrefix(pattern, "*."); ok {
		return strings.HasSuffix(host, "."+rest)
	}
	ok, err := path.Match(strings.ReplaceAll(pattern, ".", "/"), strings.ReplaceAll(host, ".", "/"))
	return err == nil && ok
}

// About says that a rule that denies or asks is about an action.
func (r Rule) About(a Action, s Situation) bool {
	if r.Spec == "" {
		if r.names(a.Tool) {
			return true
		}
		return r.Tool == pathTools[a.Tool] && r.Tool != ""
	}
	switch r.Tool {
	case "Bash":
		return a.Tool == "Bash" && slices.ContainsFunc(a.Commands, r.touches)
	case "Read", "Edit":
		return slices.ContainsFunc(a.Effects, func(e effect.Effect) bool {
			if r.Tool == "Edit" && e.Kind != effect.Write && e.Kind != effect.Delete {
				return false
			}
			return (e.Kind == effect.Read || e.Kind == effect.Write || e.Kind == effect.Delete) && r.path(s, e.Target, true)
		})
	case "WebFetch":
		return a.Tool == "WebFetch" && slices.ContainsFunc(a.Effects, func(e effect.Effect) bool {
			return (e.Kind == effect.Connect || e.Kind == effect.Fetch) && HostMatches(strings.TrimPrefix(r.Spec, "domain:"), e.Target)
		})
	}
	if !r.names(a.Tool) {
		return false
	}
	name, value, _ := strings.Cut(r.Spec, ":")
	var args map[string]any
	if json.Unmarshal(a.Args, &args) != nil {
		return false
	}
	switch got := args[name].(type) {
	case string:
		return wild(value, got)
	case bool, float64:
		return wild(value, fmt.Sprint(got))
	}
	return false
}

// covers says that the rules allow one effect of an action, and by which rule.
func (rs *Rules) covers(e effect.Effect, a Action, s Situation, line string) string {
	redirected := strings.HasPrefix(e.Why, "a redirection")
	if line != "" && !redirected {
		return line
	}
	for _, r := range rs.Allow {
		switch {
		case r.Tool == "Edit" && r.Spec != "" && (e.Kind == effect.Read || e.Kind == effect.Write || e.Kind == effect.Delete), r.Tool == "Read" && r.Spec != "" && e.Kind == effect.Read:
			if r.path(s, e.Target, false) {
				return r.Text
			}
		case a.Tool == "Bash":
		case a.Tool == "WebFetch" && e.Kind == effect.Fetch && r.Spec == "": // it names no host
		case r.Spec == "" && (r.names(a.Tool) || r.Tool == pathTools[a.Tool] && r.Tool != ""):
			return r.Text
		case r.Tool == "WebFetch" && a.Tool == "WebFetch" && (e.Kind == effect.Connect || e.Kind == effect.Fetch) && HostMatches(strings.TrimPrefix(r.Spec, "domain:"), e.Target):
			return r.Text
		}
	}
	return ""
}

// line returns the rules that together allow every command of a line; "" where one is left over.
func (rs *Rules) line(a Action) string {
	if a.Tool != "Bash" || len(a.Commands) == 0 {
		return ""
	}
	var texts []string
	for _, c := range a.Commands {
		i := slices.IndexFunc(rs.Allow, func(r Rule) bool { return r.allows(c) })
		if i < 0 {
			return ""
		}
		if t := rs.Allow[i].Text; !slices.Contains(texts, t) {
			texts = append(texts, t)
		}
	}
	return strings.Join(texts, ", ")
}

// ownClass is what the rules say about the class of an action; the zero value is nothing.
type ownClass struct {
	class   effect.Class
	rule    string
	missing string // an argument that the call lacks
	known   bool   // the rule says what the unknown effects are
}

// classified asks the rules for the class of an action. Of the rules that say what it is, the first holds; those that only
// tighten all do.
func (rs *Rules) classified(a Action, s Situation) (own ownClass) {
	var args map[string]any
	for _, c := range rs.Classify {
		hit := c.Rule.Spec == "" && c.Rule.names(a.Tool) || c.Rule.Spec != "" && c.Rule.About(a, s)
		if !hit || own.known && !c.Tighten {
			continue
		}
		class := c.Class
		for _, x := range c.Unless {
			if slices.ContainsFunc(a.Effects, func(e effect.Effect) bool { return x.Path.path(s, e.Target, true) }) {
				class = max(class, x.Class)
			}
		}
		// A rule about one command says nothing of the others in the line.
		if !c.Tighten && (a.Tool != "Bash" || len(a.Commands) == 1) {
			own.known = true
		}
		if class > own.class {
			own.class, own.rule = class, c.Text
		}
		if len(c.Require) > 0 && args == nil {
			_ = json.Unmarshal(a.Args, &args) // no arguments have none of them
		}
		for _, name := range c.Require {
			if v, ok := args[name]; !ok || v == "" {
				own.missing = name
			}
		}
	}
	return own
}
