package shell

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"belay/effect"
	"belay/tool"
)

// analysis collects the effects of one line. The rule everywhere is: what is not positively known becomes opaque.
type analysis struct {
	place    tool.Place
	effects  effect.Set
	injected bool // the tree was changed: see gitRead
	depth    int  // of lines inside lines, as in sh -c '…'
	inner    bool // reading a line inside a line: its tree is not what will be printed
	flat     bool // a walk visits what is nested, so that a word need not
}

// flow says in which folders a command leaves the shell, when it succeeds and when it fails. More than one folder
// means: one of them.
type flow struct{ ok, fail []string }

func same(dirs []string) flow { return flow{dirs, dirs} }

func (f flow) any() []string { return union(f.ok, f.fail) }

func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, d := range b {
		if !slices.Contains(out, d) {
			out = append(out, d)
		}
	}
	return out
}

func (a *analysis) add(kind effect.Kind, target, why string) {
	e := effect.Effect{Kind: kind, Target: target, Why: why}
	if !slices.ContainsFunc(a.effects, func(x effect.Effect) bool {
		return x.Kind == kind && x.Target == target && (kind != effect.Opaque || x.Why == why)
	}) {
		a.effects = append(a.effects, e)
	}
}

func (a *analysis) opaque(target, format string, args ...any) {
	a.add(effect.Opaque, target, fmt.Sprintf(format, args...))
}

// path adds an effect on a path for every folder in which the command may run. A pattern stands for all it
// could match. A word that is not known gives an effect without a target: the worst case.
func (a *analysis) path(kind effect.Kind, w word, dirs []string, why string) {
	if !w.known {
		if kind == effect.Read {
			a.opaque("", "%s: it reads a path that is known only when it runs", why)
		} else {
			a.add(kind, "", why+": the path is known only when it runs")
		}
		return
	}
	for _, dir := range dirs {
		p := w.text
		if !filepath.IsAbs(p) {
			p = filepath.Join(dir, p)
		}
		a.add(kind, tool.ResolveLinks(filepath.Clean(p)), why)
	}
}

func (a *analysis) stmts(list []*syntax.Stmt, dirs []string) flow {
	f := same(dirs)
	for _, s := range list {
		f = a.stmt(s, f.any())
		if len(f.any()) > 8 {
			a.opaque("cd", "the line changes folders in more ways than are followed here")
			f = same(f.any()[:8])
		}
	}
	return f
}

func (a *analysis) stmt(s *syntax.Stmt, dirs []string) flow {
	if s.Background || s.Coprocess || s.Disown {
		a.opaque("&", "it leaves a process in the background")
	}
	for _, r := range s.Redirs {
		a.redirect(r, dirs)
	}
	f := a.command(s.Cmd, dirs)
	if s.Negated {
		f.ok, f.fail = f.fail, f.ok
	}
	return f
}

func (a *analysis) command(cmd syntax.Command, dirs []string) flow {
	switch c := cmd.(type) {
	case nil:
		return same(dirs)
	case *syntax.CallExpr:
		return a.call(c, dirs)
	case *syntax.BinaryCmd:
		switch c.Op {
		case syntax.AndStmt:
			x := a.stmt(c.X, dirs)
			y := a.stmt(c.Y, x.ok)
			return flow{y.ok, union(x.fail, y.fail)}
		case syntax.OrStmt:
			x := a.stmt(c.X, dirs)
			y := a.stmt(c.Y, x.fail)
			return flow{union(x.ok, y.ok), y.fail}
		case syntax.Pipe, syntax.PipeAll:
			if downloads(c.X) && interprets(c.Y) {
				a.add(effect.Configure, "sh", "it pipes a download into an interpreter")
			}
			a.stmt(c.X, dirs)
			a.stmt(c.Y, dirs)
			return same(dirs)
		}
	case *syntax.Subshell:
		a.stmts(c.Stmts, dirs)
		return same(dirs)
	case *syntax.Block:
		return a.stmts(c.Stmts, dirs)
	case *syntax.IfClause:
		return same(a.ifClause(c, dirs))
	case *syntax.TimeClause:
		if c.Stmt == nil {
			return same(dirs)
		}
		return a.stmt(c.Stmt, dirs)
	}
	a.opaque("", "%s: not followed here", nodeName(cmd))
	a.nested(cmd, dirs)
	return same(dirs)
}

func (a *analysis) ifClause(c *syntax.IfClause, dirs []string) []string {
	cond := a.stmts(c.Cond, dirs)
	out := a.stmts(c.Then, cond.any()).any()
	switch {
	case c.Else == nil:
		return union(out, cond.any())
	case len(c.Else.Cond) == 0:
		return union(out, a.stmts(c.Else.Then, cond.any()).any())
	}
	return union(out, a.ifClause(c.Else, cond.any()))
}

// nested looks for recognised effects inside a part that is opaque as a whole: a push in a loop is still a push.
func (a *analysis) nested(node syntax.Node, dirs []string) {
	if a.flat {
		return
	}
	a.flat = true
	defer func() { a.flat = false }()
	syntax.Walk(node, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			a.call(n, dirs)
		case *syntax.Redirect:
			a.redirect(n, dirs)
		case *syntax.BinaryCmd:
			if (n.Op == syntax.Pipe || n.Op == syntax.PipeAll) && downloads(n.X) && interprets(n.Y) {
				a.add(effect.Configure, "sh", "it pipes a download into an interpreter")
			}
		}
		return true
	})
}

func (a *analysis) reader(dirs []string) reader {
	r := reader{home: a.place.Home}
	if len(dirs) == 1 {
		r.pwd = dirs[0]
	}
	return r
}

// word reads one word; a part that can change what runs makes the line opaque and is searched.
func (a *analysis) word(w *syntax.Word, dirs []string) word {
	out := a.reader(dirs).word(w)
	if out.why != "" {
		a.opaque("", "%s", out.why)
		a.nested(w, dirs)
	}
	return out
}

func (a *analysis) call(c *syntax.CallExpr, dirs []string) flow {
	for _, as := range c.Assigns {
		a.assign(as, len(c.Args) > 0, dirs)
	}
	if len(c.Args) == 0 {
		return same(dirs)
	}
	words := make([]word, len(c.Args))
	for i, w := range c.Args {
		words[i] = a.word(w, dirs)
	}
	if downloadsInside(c) && len(words) > 0 && words[0].known && interpreters[commandName(words[0].text)] {
		a.add(effect.Configure, "sh", "it hands a download to an interpreter")
	}
	cmd := &command{analysis: a, node: c, words: words, dirs: dirs}
	return cmd.run()
}

// assign accepts only settings of language and colour before a command: any other name can change what runs.
func (a *analysis) assign(as *syntax.Assign, prefix bool, dirs []string) {
	name := ""
	if as.Name != nil {
		name = as.Name.Value
	}
	plain := prefix && !as.Append && !as.Naked && as.Index == nil && as.Array == nil
	value := word{known: true}
	if as.Value != nil {
		value = a.word(as.Value, dirs)
	}
	switch name {
	case "LANG", "LANGUAGE", "NO_COLOR", "TERM", "COLUMNS", "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_NUMERIC", "LC_TIME", "LC_MESSAGES":
		if plain && value.known && !strings.ContainsAny(value.text, "/$`") {
			return
		}
	}
	a.opaque(name, "the assignment to %s can change what runs", name)
	a.nested(as, dirs)
}

func (a *analysis) redirect(r *syntax.Redirect, dirs []string) {
	if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
		a.opaque("", "a redirection that assigns a variable")
	}
	if r.Hdoc != nil {
		for _, part := range r.Hdoc.Parts {
			if _, ok := part.(*syntax.Lit); !ok {
				a.opaque("", "a here-document with expansions")
				a.nested(r.Hdoc, dirs)
				break
			}
		}
	}
	if r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc {
		return
	}
	w := a.word(r.Word, dirs)
	switch r.Op {
	case syntax.WordHdoc:
		return
	case syntax.DplIn, syntax.DplOut:
		if w.known && (w.text == "-" || strings.Trim(w.text, "0123456789") == "") {
			return
		}
		if r.Op == syntax.DplOut {
			a.target(effect.Write, w, dirs)
			return
		}
		a.opaque("", "a redirection to a file descriptor that is not a number")
	case syntax.RdrIn:
		a.target(effect.Read, w, dirs)
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.RdrAll, syntax.AppAll:
		a.target(effect.Write, w, dirs)
	case syntax.RdrInOut:
		a.target(effect.Read, w, dirs)
		a.target(effect.Write, w, dirs)
	default:
		a.opaque("", "the redirection %s: not followed here", r.Op)
		a.target(effect.Write, w, dirs)
	}
}

// target adds the effect of a redirection.
func (a *analysis) target(kind effect.Kind, w word, dirs []string) {
	if w.known && !w.glob {
		switch w.text {
		case "/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/zero", "/dev/urandom":
			return
		}
		if rest, ok := strings.CutPrefix(w.text, "/dev/fd/"); ok && strings.Trim(rest, "0123456789") == "" {
			return
		}
		for _, proto := range []string{"/dev/tcp/", "/dev/udp/"} {
			if rest, ok := strings.CutPrefix(w.text, proto); ok {
				a.add(effect.Connect, strings.Replace(rest, "/", ":", 1), "a redirection to "+w.text)
				return
			}
		}
	}
	if w.glob || !w.known && kind == effect.Read {
		a.opaque("", "a redirection whose target is known only when it runs")
	}
	a.path(kind, w, dirs, "a redirection")
}

func nodeName(cmd syntax.Command) string {
	switch cmd.(type) {
	case *syntax.ForClause:
		return "a for loop"
	case *syntax.WhileClause:
		return "a while loop"
	case *syntax.CaseClause:
		return "a case"
	case *syntax.FuncDecl:
		return "a function"
	case *syntax.ArithmCmd, *syntax.LetClause:
		return "arithmetic"
	case *syntax.TestClause:
		return "a [[ test"
	case *syntax.DeclClause:
		return "a declaration"
	case *syntax.CoprocClause:
		return "a coprocess"
	}
	return "a construct"
}
