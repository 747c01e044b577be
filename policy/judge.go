package policy

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"belay/effect"
)

// Judge says what may happen to an action. It is pure: the same action and situation give the same decision. The worst
// effect decides, and a further effect never makes a decision milder. Rules are asked in the order deny, ask, allow, and the
// first that matches holds; a rule that allows turns a question into a yes and nothing else: no class 5 and no
// circuit breaker.
func Judge(a Action, s Situation) Decision {
	worst := s.decide(effect.ClassRead, "", "it does nothing but read")
	line, own := "", ownClass{}
	if s.Rules != nil {
		line = s.Rules.line(a)
		own = s.Rules.classified(a, s)
	}
	consider := func(d Decision) {
		class := max(worst.Class, d.Class)
		if severity(d.Verdict) > severity(worst.Verdict) || d.Verdict == worst.Verdict && d.Class > worst.Class {
			worst = d
		}
		worst.Class = class
	}
	for _, e := range a.Effects {
		if own.known && e.Kind == effect.Opaque {
			continue // somebody has said what it is
		}
		d, breaker := s.judge(e)
		if a.Tool == "WebFetch" && e.Kind == effect.Fetch {
			consider(s.fetched(e, a, d))
			continue
		}
		if d.Verdict == effect.Ask && !breaker && s.Rules != nil && d.Class < effect.ClassConfiguration {
			if by := s.Rules.covers(e, a, s, line); by != "" {
				d.Verdict, d.Rule, d.Reason = effect.Allow, "allow: "+by, sentence("a rule allows it", d.Class)
			}
		}
		consider(d)
	}
	if s.Mode == Autonomous && recursive(a) {
		consider(Decision{effect.ClassIrreversible, effect.Deny, "delete: unknown target", "What it deletes, with all that is below, is known only when it runs (class 3, irreversible local write). Use an explicit path.", effect.Grant{}})
	}
	if d, ok := s.known(a, own); ok {
		if d.Verdict == effect.Ask && line != "" {
			d.Verdict, d.Rule = effect.Allow, "allow: "+line
		}
		consider(d)
	}
	if own.class != 0 {
		d := s.decide(own.class, "classify: "+own.rule, "a rule gives it this class")
		if d.Verdict == effect.Ask && line != "" && own.class < effect.ClassConfiguration {
			d.Verdict, d.Rule = effect.Allow, "allow: "+line
		}
		if own.missing != "" {
			d.Verdict, d.Reason = effect.Deny, sentence("it needs the argument "+own.missing, own.class)
		}
		consider(d)
	}
	if s.Rules != nil {
		worst = s.ruled(a, worst)
	}
	return s.granted(a, worst)
}

// recursive says that an action deletes folders of which nobody can know which.
func recursive(a Action) bool {
	if !slices.ContainsFunc(a.Effects, func(e effect.Effect) bool { return e.Kind == effect.Delete && !filepath.IsAbs(e.Target) }) {
		return false
	}
	if len(a.Commands) == 0 {
		return true
	}
	return slices.ContainsFunc(a.Commands, func(c effect.Command) bool {
		return slices.ContainsFunc(append([]string{c.Text}, c.Inner...), deletesFolders)
	})
}

// deletesFolders says that a command deletes what lies below its operands.
func deletesFolders(command string) bool {
	words := strings.Fields(command)
	if len(words) == 0 {
		return false
	}
	for _, w := range words[1:] {
		if w[0] == '$' || w[0] == '`' {
			return true // unquoted, it could be an option as well
		}
		w = strings.Trim(w, `"'\`)
		switch {
		case w == "--recursive" || strings.HasPrefix(w, "--r") && strings.HasPrefix("--recursive", w), strings.HasPrefix(w, "--del"), w == "-delete":
			return true
		case len(w) > 1 && w[0] == '-' && w[1] != '-' && path.Base(strings.Trim(words[0], `"'\`)) != "find" && strings.ContainsAny(w, "rRd"):
			return true
		}
	}
	return false
}

// ruled applies the rules that deny and ask.
func (s Situation) ruled(a Action, d Decision) Decision {
	if d.Verdict == effect.Deny {
		return d
	}
	for _, r := range s.Rules.Deny {
		if r.About(a, s) {
			d.Verdict, d.Rule, d.Reason = effect.Deny, "deny: "+r.Text, sentence("a rule denies it", d.Class)+" "+advice(effect.ClassConfiguration)
			return d
		}
	}
	for _, r := range s.Rules.Ask {
		if r.About(a, s) {
			d.Verdict, d.Rule, d.Reason = effect.Ask, "ask: "+r.Text, sentence("a rule asks about it", d.Class)
			if s.Mode == Plan && d.Class > effect.ClassRead {
				d.Verdict = effect.Deny
			}
			return d
		}
	}
	return d
}

// stranded says that no sandbox can be had, and that no person has chosen to go without.
func (s Situation) stranded() bool { return !s.Sandboxed && !s.Off }

func severity(v effect.Verdict) int {
	switch v {
	case effect.Allow:
		return 0
	case effect.Ask:
		return 1
	}
	return 2
}

// grant follows the class, so that a misjudged read fails instead of doing harm. A question is granted what its
// action needs, for the case that a person says yes.
func grant(class effect.Class, v effect.Verdict) effect.Grant {
	switch {
	case v == effect.Deny:
		return effect.Grant{}
	case class <= effect.ClassRead:
		return effect.Grant{Workspace: effect.ReadOnly}
	}
	return effect.Grant{Workspace: effect.ReadWrite}
}

// finding is what is thought of one effect before the mode is asked.
type finding struct {
	class   effect.Class
	rule    string // "" is the default rule of the class
	reason  string
	breaker bool // it holds in every mode
	ask     bool // a person is asked though the class is allowed
}

// judge judges one effect, and says whether a circuit breaker did.
func (s Situation) judge(e effect.Effect) (Decision, bool) {
	f := s.classify(e)
	if s.stranded() && e.Kind == effect.Exec {
		return Decision{f.class, effect.Deny, "no-sandbox", "no sandbox can be had on this machine, so this run reads files and starts no programs. Use the file tools to read; a person can pass --sandbox=off.", effect.Grant{}}, true
	}
	if f.breaker {
		return s.broken(f), true
	}
	d := s.decide(f.class, f.rule, f.reason)
	if f.ask && d.Verdict == effect.Allow {
		d.Verdict, d.Reason = effect.Ask, d.Reason+" A person has to agree to reads outside the workspace."
	}
	return d, false
}

// broken decides what a circuit breaker caught: it is refused where nobody can be asked, and asked otherwise,
// whatever the mode and the rules allow.
func (s Situation) broken(f finding) Decision {
	d := Decision{Class: f.class, Verdict: effect.Ask, Rule: f.rule, Reason: sentence(f.reason, f.class) + " A person decides this every time."}
	if s.Headless || s.Mode == Plan || s.stranded() {
		d.Verdict = effect.Deny
		d.Reason = sentence(f.reason, f.class) + " It is refused in every mode. " + advice(f.class)
	}
	return d
}

// decide applies the mode to a class.
func (s Situation) decide(class effect.Class, rule, reason string) Decision {
	d := Decision{Class: class, Rule: rule, Reason: sentence(reason, class)}
	if d.Rule == "" {
		d.Rule = fmt.Sprintf("defaults.class-%d", class)
	}
	if floor := s.floor(class); floor != "" && !s.stranded() {
		d.Verdict = floor
		if rule == "" {
			d.Reason += " The policy file says so for this class."
		}
		if floor == effect.Deny || s.Mode != Plan {
			return d
		}
	}
	switch {
	case class <= effect.ClassRead:
		d.Verdict = effect.Allow
		return d
	case class >= effect.ClassConfiguration:
		d.Verdict = effect.Deny
	case s.stranded():
		d.Verdict, d.Rule = effect.Deny, "no-sandbox"
		d.Reason += " No sandbox can be had on this machine, so this run is read-only: say what you would change in TaskComplete or ReportBlocker."
		return d
	case s.Mode == Plan:
		d.Verdict, d.Rule = effect.Deny, "modes.plan"
		d.Reason += " Plan mode only reads: describe the change instead of making it."
		return d
	case s.allows(class):
		d.Verdict = effect.Allow
		return d
	case s.Mode == Autonomous, s.Mode == Edit, s.Mode == Manual:
		d.Verdict = effect.Ask
	default:
		d.Verdict, d.Rule = effect.Deny, "modes.unknown"
		d.Reason += fmt.Sprintf(" The mode %q is not known.", s.Mode)
		return d
	}
	d.Reason += " " + advice(class)
	return d
}

// floor is the verdict that the rules give a class in every mode; "" is none.
func (s Situation) floor(class effect.Class) effect.Verdict {
	if s.Rules == nil {
		return ""
	}
	return s.Rules.Floor[class]
}

// allows says that the mode allows a class without a question.
func (s Situation) allows(class effect.Class) bool {
	if s.Rules != nil {
		if own, ok := s.Rules.Modes[s.Mode]; ok {
			return slices.Contains(own, class) && (s.Sandboxed || !s.Rules.SandboxFor[s.Mode])
		}
	}
	return s.Mode == Autonomous && s.Sandboxed && class <= effect.ClassIrreversible || s.Mode == Edit && class <= effect.ClassReversible
}

func sentence(reason string, class effect.Class) string {
	reason = strings.TrimSuffix(reason, ".")
	if reason != "" && reason[0] >= 'a' && reason[0] <= 'z' {
		reason = strings.ToUpper(reason[:1]) + reason[1:]
	}
	return fmt.Sprintf("%s (class %d, %s).", reason, int(class), class)
}

// Why is the reason of a decision for a person: without what it advises the model to do.
func (d Decision) Why() string {
	for c := effect.ClassReversible; c <= effect.ClassConfiguration; c++ {
		d.Reason = strings.TrimSuffix(d.Reason, " "+advice(c))
	}
	return d.Reason
}

// advice says what a model can do instead.
func advice(class effect.Class) string {
	switch class {
	case effect.ClassReversible:
		return "A person has to agree to each change in this mode."
	case effect.ClassIrreversible:
		return "A person has to agree. Without one, work inside the workspace with explicit paths, or say in TaskComplete what is left to do."
	case effect.ClassExternal:
		return "Leave sending to the person: finish the work locally and say in TaskComplete what is to be sent."
	case effect.ClassConfiguration:
		return "Do not look for a way around it: do the task without it, or call ReportBlocker and say what is needed."
	}
	return ""
}

// classify says what one effect costs if it is wrong.
func (s Situation) classify(e effect.Effect) finding {
	what := e.Why
	if filepath.IsAbs(e.Target) {
		e.Target = filepath.Clean(e.Target)
	}
	named := func(verb string) string {
		text := verb + " " + s.short(e.Target)
		if what != "" {
			text += ": " + what
		}
		return text
	}
	switch e.Kind {
	case effect.Read:
		return s.classifyRead(e, named("it reads"))
	case effect.Write:
		return s.classifyWrite(e, named("it writes"))
	case effect.Delete:
		return s.classifyWrite(e, named("it deletes"))
	case effect.Exec:
		return finding{class: effect.ClassRead, reason: named("it starts")}
	case effect.Fetch:
		return s.classifyFetch(e)
	case effect.Connect:
		reason := "it sends to another machine"
		if e.Target != "" {
			reason = "it sends to " + e.Target
		}
		if what != "" {
			reason += ": " + what
		}
		return finding{class: effect.ClassExternal, reason: reason}
	case effect.Configure:
		if filepath.IsAbs(e.Target) {
			return finding{class: effect.ClassConfiguration, reason: named("it configures")}
		}
		reason := what
		if reason == "" {
			reason = named("it runs")
		}
		return finding{class: effect.ClassConfiguration, rule: "breaker: privilege and machine", reason: reason, breaker: true}
	case effect.Opaque:
		reason := what
		if reason == "" {
			reason = "it could do anything"
		}
		if s.Sandboxed {
			return finding{class: effect.ClassReversible, reason: reason + "; the sandbox bounds it to the workspace"}
		}
		return finding{class: effect.ClassIrreversible, reason: reason + "; nothing bounds what it does"}
	}
	return finding{class: effect.ClassConfiguration, rule: "unknown effect", reason: fmt.Sprintf("the effect %q is not known", e.Kind)}
}

func (s Situation) short(path string) string {
	switch {
	case path == "":
		return "a path that is known only when it runs"
	case s.Workspace != "" && path == s.Workspace:
		return "the workspace"
	case s.Workspace != "" && inside(path, s.Workspace):
		return path[len(strings.TrimSuffix(s.Workspace, "/"))+1:]
	case s.Home != "" && inside(path, s.Home) && path != s.Home:
		return "~" + path[len(strings.TrimSuffix(s.Home, "/")):]
	}
	return path
}
