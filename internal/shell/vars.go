package shell

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// value is what is known of a variable that the line sets.
type value struct {
	alts    []string // all it can be; nil when that is not known
	pattern bool     // it comes from file names that the alts match, so it may hold blanks
	number  bool     // digits and nothing else
	tame    bool     // see word.tame
}

func (v value) equal(o value) bool {
	return v.pattern == o.pattern && v.number == o.number && v.tame == o.tame && (v.alts == nil) == (o.alts == nil) && slices.Equal(v.alts, o.alts)
}

// vars are the variables of a shell. A *vars is never changed, so that a subshell can keep the one it started with.
type vars struct{ of map[string]value }

func (a *analysis) get(name string) (value, bool) {
	if a.vars == nil {
		return value{}, false
	}
	v, ok := a.vars.of[name]
	return v, ok
}

func (a *analysis) set(name string, v value) {
	next := map[string]value{}
	if a.vars != nil {
		if next = maps.Clone(a.vars.of); len(next) > maxVars {
			a.steps = maxSteps + 1 // the line is refused
			return
		}
	}
	next[name] = v
	a.vars = &vars{next}
}

// inSubshell runs what cannot change this shell's variables.
func (a *analysis) inSubshell(run func()) {
	was, conditional := a.vars, a.conditional
	a.conditional = true
	run()
	a.vars, a.conditional = was, conditional
}

// maybe runs what may not happen: afterwards a variable is known only where both ways agree.
func (a *analysis) maybe(run func()) {
	was, conditional := a.vars, a.conditional
	a.conditional = true
	run()
	a.conditional = conditional
	a.vars = join(was, a.vars)
}

func join(x, y *vars) *vars {
	if x == y {
		return x
	}
	next := map[string]value{}
	of := func(v *vars, name string) value {
		if v == nil {
			return value{}
		}
		return v.of[name]
	}
	for _, v := range []*vars{x, y} {
		if v == nil {
			continue
		}
		for name := range v.of {
			p, q := of(x, name), of(y, name)
			if p.equal(q) {
				next[name] = p
			} else {
				next[name] = value{number: p.number && q.number, tame: p.tame && q.tame}
			}
		}
	}
	return &vars{next}
}

// forget makes every variable unknown that a part of the line which may run again can set.
func (a *analysis) forget(node syntax.Node) {
	lost := map[string]bool{} // name -> it stays a number
	note := func(name string, number bool) {
		was, seen := lost[name]
		lost[name] = number && (was || !seen)
	}
	visit := func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name != nil {
				number := n.Value != nil && !n.Append && n.Index == nil && len(n.Value.Parts) == 1
				if number {
					_, arithmetic := n.Value.Parts[0].(*syntax.ArithmExp)
					lit := n.Value.Lit()
					number = arithmetic || lit != "" && strings.Trim(lit, "0123456789") == ""
				}
				note(n.Name.Value, number)
			}
		case *syntax.WordIter:
			note(n.Name.Value, false)
		case *syntax.ParamExp:
			if n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) && n.Param != nil {
				note(n.Param.Value, false)
			}
		case *syntax.BinaryArithm:
			if w, ok := n.X.(*syntax.Word); ok && w.Lit() != "" {
				note(w.Lit(), true)
			}
		case *syntax.UnaryArithm:
			if w, ok := n.X.(*syntax.Word); ok && w.Lit() != "" {
				note(w.Lit(), true)
			}
		case *syntax.CallExpr:
			if len(n.Args) > 0 {
				switch n.Args[0].Lit() {
				case "read", "mapfile", "readarray", "getopts", "unset", "printf":
					for _, w := range n.Args[1:] {
						note(w.Lit(), false)
					}
				}
			}
		}
		return true
	}
	syntax.Walk(node, visit)
	for _, f := range a.funcs {
		syntax.Walk(f, visit)
	}
	for name, number := range lost {
		if was, ok := a.get(name); ok || name != "" {
			a.set(name, value{number: number && was.number})
		}
	}
}

// generic are the words of which a variable's name in capitals may consist: no program reads such a name to decide
// what it runs. Names in small letters belong to the shell's user but for a few.
const generic = `A B C D E F G H I J K L M N O P Q R S T U V W X Y Z FILE FILES DIR DIRS DIRECTORY FOLDER NAME NAMES COUNT TOTAL ROOT BASE SRC SOURCE DST DEST OUT OUTPUT INPUT LINE VERSION
	COMMIT BRANCH PKG PACKAGE REPO TARGET TEST TESTS PROJECT WORKSPACE WORK START END FROM TO MAX MIN NUM NUMBER INDEX RESULT RESULTS STATUS CODE LOG LOGS PATTERN QUERY PREFIX SUFFIX EXT KEY VALUE DATA
	JSON YAML RED GREEN YELLOW BLUE BOLD RESET NC SHA HASH TAG REV HEAD BEFORE AFTER OLD NEW LEFT RIGHT FIRST LAST SIZE ITEM ITEMS LIST MODULE MODULES CLASS FUNC FUNCTION APP API SERVICE LIMIT STEP TODAY DATE DAY TMP TEMP MATCH MATCHES ERR RC RET`

// harmless says that no program decides by a variable of this name what it runs or where it sends.
func harmless(name string) bool {
	switch {
	case name == "" || name == "_":
		return false
	case strings.ToLower(name) == name:
		return !strings.HasSuffix(name, "_proxy") && !strings.HasPrefix(name, "npm_") && !strings.HasPrefix(name, "bash_") && name != "histchars" && name != "auto_resume"
	case strings.ToUpper(name) != name:
		// ALL other spellings: camelCase is somebody's own.
		return name[0] >= 'a' && name[0] <= 'z' && !strings.HasPrefix(name, "npm_")
	}
	for _, part := range strings.Split(name, "_") {
		if !words(generic)[strings.TrimRight(part, "0123456789")] {
			return false
		}
	}
	return true
}

// constants are settings before a command that only make it quieter, with the values that do so ("" is any plain value).
var constants = sync.OnceValue(func() map[string]string {
	return map[string]string{"LANG": "", "LANGUAGE": "", "NO_COLOR": "", "FORCE_COLOR": "", "CLICOLOR": "", "TERM": "", "COLUMNS": "", "LINES": "", "LC_ALL": "", "LC_COLLATE": "", "LC_CTYPE": "", "LC_NUMERIC": "", "LC_TIME": "", "LC_MESSAGES": "", "CI": "", "TZ": "",
		"GIT_PAGER": "cat", "PAGER": "cat", "MANPAGER": "cat", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "none", "GOTOOLCHAIN": "local", "GOPROXY": "off",
		"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INDEX": "1", "CHECKPOINT_DISABLE": "1", "npm_config_logs_max": "0", "npm_config_update_notifier": "false", "PYTHONDONTWRITEBYTECODE": "1"}
})

// constant says that name=text may stand before a command.
func constant(name, text string) bool {
	want, ok := constants()[name]
	if !ok {
		return false
	}
	if want == "" {
		return !strings.ContainsAny(text, "/$`") && (name != "TZ" || !strings.HasPrefix(text, ":"))
	}
	return text == want
}

// assign reads one assignment: before a command, or by itself.
func (a *analysis) assign(as *syntax.Assign, prefix, read bool, dirs []string) {
	if as.Name == nil {
		a.opaque("", "an assignment to a name that is known only when it runs")
		if as.Value != nil {
			a.word(as.Value, dirs)
		}
		return
	}
	name := as.Name.Value
	var v value
	if as.Value != nil {
		w, number := a.expand(as.Value, dirs, true)
		v.number, v.tame = number, w.tame
		if w.known {
			v.alts = []string{w.text}
		} else if w.alts != nil {
			v.alts = w.alts
		}
		if prefix && w.known && constant(name, w.text) || read && name == "IFS" {
			return
		}
	} else if !as.Naked && as.Array == nil {
		v.alts = []string{""}
		if prefix && constant(name, "") || read && name == "IFS" {
			return
		}
	}
	if as.Array != nil {
		v = a.array(as.Array, dirs)
	}
	if as.Index != nil {
		a.subscript(as.Index, dirs)
		v = value{}
	}
	if as.Append {
		v = value{}
	}
	if !harmless(name) {
		a.opaque(name, "the assignment to %s can change what runs", name)
		return
	}
	if !prefix && !as.Naked {
		a.set(name, v)
	}
}

// array reads the elements of an array; what it can be is the union of them.
func (a *analysis) array(arr *syntax.ArrayExpr, dirs []string) value {
	v := value{alts: []string{}}
	for _, e := range arr.Elems {
		if e.Index != nil {
			a.subscript(e.Index, dirs)
		}
		if e.Value == nil {
			v.alts = nil
			continue
		}
		w := a.word(e.Value, dirs)
		switch {
		case v.alts == nil:
		case w.known:
			v.alts = append(v.alts, w.text)
			v.pattern = v.pattern || w.glob
		case w.alts != nil:
			v.alts = append(v.alts, w.alts...)
			v.pattern = true
		default:
			v.alts = nil
		}
	}
	if len(v.alts) == 0 || len(v.alts) > maxAlts {
		v.alts = nil
	}
	return v
}
