package shell

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"belay/effect"
	"belay/tool"
)

// analysis collects the effects of one line. The rule everywhere is: what is not positively known becomes opaque.
type analysis struct {
	place       tool.Place
	effects     effect.Set
	vars        *vars
	funcs       map[string]*syntax.Stmt
	links       map[string]string // folders and what they really are
	text        string            // of the tree that is read
	parts       []effect.Command
	seen        map[effect.Effect]bool // the effects, once there are many
	steps       int
	nodes       []*syntax.CallExpr // whose parts are kept
	linked      bool               // it changed folder through a symbolic link
	injected    bool               // the tree was changed: see guard
	current     int                // while inner is set: which of the line's commands started the inner line
	conditional bool               // what is read may not run, or runs in a subshell
	inner       bool               // reading a line inside a line: its tree is not what will be printed
	scrubbed    bool               // behind env -i or -u: what is put into the environment would not arrive
	depth       int                // of lines inside lines, as in sh -c '…', and of functions
}

// flow says in which folders a command leaves the shell, when it succeeds and when it fails. More than one folder
// means: one of them. The folder "" is one that is known only when it runs.
type flow struct{ ok, fail []string }

func same(dirs []string) flow { return flow{dirs, dirs} }

func (f flow) any() []string { return union(f.ok, f.fail) }

func union(a, b []string) []string {
	var out []string
	for i, d := range b {
		if !slices.Contains(a, d) {
			if out == nil {
				out = slices.Clone(a)
			}
			out = append(out, b[i])
		}
	}
	if out == nil {
		return a
	}
	return out
}

func (a *analysis) add(kind effect.Kind, target, why string) {
	key := effect.Effect{Kind: kind, Target: target}
	if kind == effect.Opaque {
		key.Why = why
	}
	if len(a.effects) < 16 {
		for i := range a.effects {
			x := &a.effects[i]
			if x.Kind == kind && x.Target == target && (kind != effect.Opaque || x.Why == why) {
				return
			}
		}
	} else {
		if a.seen == nil {
			a.seen = map[effect.Effect]bool{}
			for _, x := range a.effects {
				if x.Kind != effect.Opaque {
					x.Why = ""
				}
				a.seen[x] = true
			}
		}
		if a.seen[key] {
			return
		}
		a.seen[key] = true
	}
	a.effects = append(a.effects, effect.Effect{Kind: kind, Target: target, Why: why})
}

func (a *analysis) opaque(target, format string, args ...any) {
	a.add(effect.Opaque, target, fmt.Sprintf(format, args...))
}

// path adds an effect on a path for every folder in which the command may run. A pattern stands for all it
// could match. A word that is not known gives an effect without a target: the worst case.
func (a *analysis) path(kind effect.Kind, w word, dirs []string, why string) {
	if !w.known && w.alts == nil {
		a.add(kind, "", why+": the path is known only when it runs")
		return
	}
	if w.known {
		a.onePath(kind, w.text, dirs, why)
		return
	}
	for _, text := range w.alts {
		a.onePath(kind, text, dirs, why)
	}
}

func (a *analysis) onePath(kind effect.Kind, text string, dirs []string, why string) {
	if harmlessDevice(text) {
		return
	}
	for _, dir := range dirs {
		switch {
		case filepath.IsAbs(text):
			a.add(kind, a.real(filepath.Clean(text)), why)
		case dir == "":
			a.add(kind, "", why+": the folder is known only when it runs")
		default:
			a.add(kind, a.real(filepath.Join(dir, text)), why)
		}
	}
}

// harmlessDevice says that writing there changes nothing.
func harmlessDevice(text string) bool {
	switch text {
	case "/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/zero", "/dev/urandom", "/dev/full":
		return true
	}
	rest, ok := strings.CutPrefix(text, "/dev/fd/")
	return ok && rest != "" && strings.Trim(rest, "0123456789") == ""
}

// real resolves the links of a clean path. A line names few folders many times.
func (a *analysis) real(p string) string {
	if r, ok := a.links[p]; ok {
		return r
	}
	if a.links == nil {
		a.links = map[string]string{"/": "/", a.place.Workspace: a.place.Workspace} // a place's workspace is resolved
		if r, ok := a.links[p]; ok {
			return r
		}
	}
	if len(p) > maxPath {
		return p
	}
	r := p
	if parent := filepath.Dir(p); parent == p {
		r = tool.ResolveLinks(p)
	} else {
		r = filepath.Join(a.real(parent), filepath.Base(p))
		if info, err := os.Lstat(r); err == nil && info.Mode()&fs.ModeSymlink != 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
			r = tool.ResolveLinks(r)
		}
	}
	a.links[p] = r
	return r
}

// maxPath is longer than any path that a system call takes, in bytes.
const maxPath = 4096

func (a *analysis) stmts(list []*syntax.Stmt, dirs []string) flow {
	f := same(dirs)
	for _, s := range list {
		f = a.stmt(s, f.any())
		if len(f.any()) > 8 {
			f = same([]string{""})
		}
	}
	return f
}

func (a *analysis) stmt(s *syntax.Stmt, dirs []string) flow {
	if a.steps++; a.steps > maxSteps {
		return same(dirs) // the line is refused
	}
	if s.Coprocess || s.Disown {
		a.opaque("&", "it leaves a process in the background")
	}
	reads := false // the command is read, which takes IFS= before it
	if c, ok := s.Cmd.(*syntax.CallExpr); ok && len(c.Args) > 0 {
		reads = c.Args[0].Lit() == "read"
	}
	for _, r := range s.Redirs {
		a.redirect(r, dirs)
	}
	if s.Background {
		a.inSubshell(func() { a.command(s.Cmd, dirs, reads) })
		return same(dirs)
	}
	f := a.command(s.Cmd, dirs, reads)
	if s.Negated {
		f.ok, f.fail = f.fail, f.ok
	}
	return f
}

func (a *analysis) command(cmd syntax.Command, dirs []string, reads bool) flow {
	switch c := cmd.(type) {
	case nil:
		return same(dirs)
	case *syntax.CallExpr:
		return a.call(c, dirs, reads)
	case *syntax.BinaryCmd:
		switch c.Op {
		case syntax.AndStmt:
			x := a.stmt(c.X, dirs)
			var y flow
			a.maybe(func() { y = a.stmt(c.Y, x.ok) })
			return flow{y.ok, union(x.fail, y.fail)}
		case syntax.OrStmt:
			x := a.stmt(c.X, dirs)
			var y flow
			a.maybe(func() { y = a.stmt(c.Y, x.fail) })
			return flow{union(x.ok, y.ok), y.fail}
		case syntax.Pipe, syntax.PipeAll:
			if downloads(c.X) && interprets(c.Y) {
				a.add(effect.Configure, "sh", "it pipes a download into an interpreter")
			}
			a.inSubshell(func() { a.stmt(c.X, dirs) })
			a.inSubshell(func() { a.stmt(c.Y, dirs) })
			return same(dirs)
		}
	case *syntax.Subshell:
		a.inSubshell(func() { a.stmts(c.Stmts, dirs) })
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
	case *syntax.ForClause:
		return a.forClause(c, dirs)
	case *syntax.WhileClause:
		a.forget(c)
		return a.repeat(dirs, func(dirs []string) []string {
			cond := a.stmts(c.Cond, dirs)
			return union(cond.any(), a.stmts(c.Do, cond.any()).any())
		})
	case *syntax.CaseClause:
		return a.caseClause(c, dirs)
	case *syntax.FuncDecl:
		return a.declare(c, dirs)
	case *syntax.ArithmCmd:
		a.arith(c.X, dirs)
		return same(dirs)
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			a.arith(x, dirs)
		}
		return same(dirs)
	case *syntax.TestClause:
		a.testExpr(c.X, dirs)
		return same(dirs)
	case *syntax.DeclClause:
		a.declClause(c, dirs)
		return same(dirs)
	case *syntax.CoprocClause:
		a.opaque("&", "it leaves a process in the background")
		a.inSubshell(func() { a.stmt(c.Stmt, dirs) })
		return same(dirs)
	}
	a.opaque("", "a construct that is not followed here")
	return same(dirs)
}

func (a *analysis) ifClause(c *syntax.IfClause, dirs []string) []string {
	cond := a.stmts(c.Cond, dirs)
	out := cond.any()
	a.maybe(func() { out = union(out, a.stmts(c.Then, cond.any()).any()) })
	switch {
	case c.Else == nil:
	case len(c.Else.Cond) == 0:
		a.maybe(func() { out = union(out, a.stmts(c.Else.Then, cond.any()).any()) })
	default:
		a.maybe(func() { out = union(out, a.ifClause(c.Else, cond.any())) })
	}
	return out
}

// repeat follows what may run any number of times until it changes folders no more.
func (a *analysis) repeat(dirs []string, body func(dirs []string) []string) flow {
	for range 3 {
		var out []string
		a.maybe(func() { out = union(dirs, body(dirs)) })
		if len(out) == len(dirs) {
			return same(out)
		}
		dirs = out
	}
	dirs = []string{""}
	a.maybe(func() { body(dirs) })
	return same(dirs)
}

func (a *analysis) forClause(c *syntax.ForClause, dirs []string) flow {
	if c.Select {
		a.opaque("select", "`select` waits for a person")
	}
	switch loop := c.Loop.(type) {
	case *syntax.WordIter:
		v := value{alts: []string{}}
		for _, w := range loop.Items {
			x := a.word(w, dirs)
			switch {
			case v.alts == nil:
			case x.known:
				v.alts = append(v.alts, x.text)
				v.pattern = v.pattern || x.glob
			case x.alts != nil:
				for _, alt := range x.alts {
					v.alts = append(v.alts, alt)
					v.pattern = v.pattern || strings.ContainsAny(alt, "*?[")
				}
			default:
				v.alts = nil
				v.tame = x.tame && len(loop.Items) == 1
			}
		}
		if len(v.alts) == 0 || len(v.alts) > maxAlts {
			v.alts = nil
		}
		v.number = v.alts != nil && !slices.ContainsFunc(v.alts, func(s string) bool { return s == "" || strings.Trim(s, "0123456789") != "" })
		if !harmless(loop.Name.Value) {
			a.opaque(loop.Name.Value, "the assignment to %s can change what runs", loop.Name.Value)
		}
		a.forget(c)
		return a.repeat(dirs, func(dirs []string) []string {
			a.set(loop.Name.Value, v)
			return a.stmts(c.Do, dirs).any()
		})
	case *syntax.CStyleLoop:
		if loop.Init != nil {
			a.arith(loop.Init, dirs)
		}
		a.forget(c)
		return a.repeat(dirs, func(dirs []string) []string {
			for _, x := range []syntax.ArithmExpr{loop.Cond, loop.Post} {
				if x != nil {
					a.arith(x, dirs)
				}
			}
			return a.stmts(c.Do, dirs).any()
		})
	}
	a.opaque("", "a loop that is not followed here")
	return same(dirs)
}

func (a *analysis) caseClause(c *syntax.CaseClause, dirs []string) flow {
	a.word(c.Word, dirs)
	out := dirs
	for _, item := range c.Items {
		for _, p := range item.Patterns {
			a.word(p, dirs)
		}
		a.maybe(func() { out = union(out, a.stmts(item.Stmts, out).any()) })
	}
	return same(out)
}

// declare keeps a function for its calls. Whether one that is declared inside something else exists cannot be told.
func (a *analysis) declare(c *syntax.FuncDecl, dirs []string) flow {
	if c.Name == nil || known(c.Name.Value) || a.conditional || a.funcs[c.Name.Value] != nil || a.inner {
		a.opaque("", "a function that is declared where it may not be, or twice")
		a.inSubshell(func() { a.stmt(c.Body, dirs) })
		return same(dirs)
	}
	if a.funcs == nil {
		a.funcs = map[string]*syntax.Stmt{}
	}
	a.funcs[c.Name.Value] = c.Body
	return same(dirs)
}

func (a *analysis) testExpr(x syntax.TestExpr, dirs []string) {
	switch x := x.(type) {
	case *syntax.Word:
		a.word(x, dirs)
	case *syntax.ParenTest:
		a.testExpr(x.X, dirs)
	case *syntax.UnaryTest:
		switch x.Op {
		case syntax.TsVarSet, syntax.TsRefVar:
			a.opaque("[[", "`[[` with a variable's name, which may be a subscript that is evaluated")
			a.testExpr(x.X, dirs)
		case syntax.TsNot, syntax.TsParen, syntax.TsEmpStr, syntax.TsNempStr, syntax.TsOptSet, syntax.TsFdTerm:
			a.testExpr(x.X, dirs)
		default:
			a.testPath(x.X, dirs)
		}
	case *syntax.BinaryTest:
		switch x.Op {
		case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
			for _, side := range []syntax.TestExpr{x.X, x.Y} {
				if w, ok := side.(*syntax.Word); ok {
					a.arithWord(unquoted(w), dirs)
				} else {
					a.opaque("[[", "a test that is not read here")
				}
			}
		case syntax.TsNewer, syntax.TsOlder, syntax.TsDevIno:
			a.testPath(x.X, dirs)
			a.testPath(x.Y, dirs)
		default:
			a.testExpr(x.X, dirs)
			a.testExpr(x.Y, dirs)
		}
	default:
		a.opaque("[[", "a test that is not read here")
	}
}

// unquoted takes the quotes off a word of one part.
func unquoted(w *syntax.Word) *syntax.Word {
	if len(w.Parts) == 1 {
		if q, ok := w.Parts[0].(*syntax.DblQuoted); ok && len(q.Parts) == 1 {
			return &syntax.Word{Parts: q.Parts}
		}
	}
	return w
}

func (a *analysis) testPath(x syntax.TestExpr, dirs []string) {
	w, ok := x.(*syntax.Word)
	if !ok {
		a.testExpr(x, dirs)
		return
	}
	a.looks(a.word(w, dirs), dirs, "`[[`")
}

// declClause reads declare, local, export and readonly: only plain assignments to harmless names.
func (a *analysis) declClause(c *syntax.DeclClause, dirs []string) {
	variant := c.Variant.Value
	for i, as := range c.Args {
		if as.Name == nil {
			lit := ""
			if as.Value != nil {
				lit = as.Value.Lit()
			}
			switch {
			case lit == "-a" || lit == "-A" || lit == "-r" || lit == "-l" || lit == "-u" || lit == "-g", lit == "-p" && len(c.Args) == 1, lit == "-f" && i == len(c.Args)-1, lit == "-F":
			default:
				a.opaque(variant, "an option of `%s` that can change how values are evaluated", variant)
				if as.Value != nil {
					a.word(as.Value, dirs)
				}
			}
			continue
		}
		a.assign(as, false, false, dirs)
	}
}

func (a *analysis) call(c *syntax.CallExpr, dirs []string, reads bool) flow {
	for _, as := range c.Assigns {
		a.assign(as, len(c.Args) > 0, reads, dirs)
	}
	if len(c.Args) == 0 {
		return same(dirs)
	}
	words := make([]word, len(c.Args))
	for i, w := range c.Args {
		words[i] = a.word(w, dirs)
		words[i].arg = i
	}
	first := words[0]
	if first.known && interpreters[commandName(first.text)] && downloadsInside(c) {
		a.add(effect.Configure, "sh", "it hands a download to an interpreter")
	}
	part := a.part(c)
	if body := a.funcs[first.text]; body != nil && first.one() {
		if a.depth >= 4 {
			a.opaque(first.text, "functions inside functions, too deep")
			return same(dirs)
		}
		a.depth++
		f := a.stmt(body, dirs)
		a.depth--
		return f
	}
	return (&command{analysis: a, node: c, words: words, dirs: dirs, touched: new(bool), part: part}).run()
}

// part keeps a simple command as it is written, once, and returns its place; -1 where it is none of the line's own.
func (a *analysis) part(c *syntax.CallExpr) int {
	if a.inner {
		from, to := int(c.Args[0].Pos().Offset()), int(c.Args[len(c.Args)-1].End().Offset())
		if a.current >= 0 && a.current < len(a.parts) && from <= to && to <= len(a.text) {
			if p := &a.parts[a.current]; !slices.Contains(p.Inner, a.text[from:to]) {
				p.Inner = append(p.Inner, a.text[from:to])
			}
		}
		return a.current
	}
	if at := slices.Index(a.nodes, c); at >= 0 {
		return at
	}
	from, to := int(c.Args[0].Pos().Offset()), int(c.Args[len(c.Args)-1].End().Offset())
	text := ""
	if from <= to && to <= len(a.text) {
		text = a.text[from:to]
	}
	a.nodes = append(a.nodes, c)
	a.parts = append(a.parts, effect.Command{Text: text})
	return len(a.parts) - 1
}

func (a *analysis) redirect(r *syntax.Redirect, dirs []string) {
	if r.N != nil && strings.HasPrefix(r.N.Value, "{") {
		a.opaque("", "a redirection that assigns a variable")
	}
	if r.Hdoc != nil {
		b := &builder{texts: []string{""}}
		for _, part := range r.Hdoc.Parts {
			if _, ok := part.(*syntax.Lit); !ok {
				a.substituted(b, part, dirs, true)
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
		if w.known && w.text != "" && (w.text == "-" || strings.Trim(strings.TrimSuffix(w.text, "-"), "0123456789") == "") {
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
	if w.one() {
		if harmlessDevice(w.text) {
			return
		}
		for _, proto := range []string{"/dev/tcp/", "/dev/udp/"} {
			if rest, ok := strings.CutPrefix(w.text, proto); ok {
				a.add(effect.Connect, strings.Replace(rest, "/", ":", 1), "a redirection to "+w.text)
				return
			}
		}
	} else if w.glob || slices.ContainsFunc(w.alts, isNet) || !w.known && w.alts == nil && !(kind == effect.Read && (w.outer || w.tame) && !strings.HasPrefix(w.head, "/")) && (w.head == "" || strings.HasPrefix(w.head, "/d") || strings.HasPrefix("/dev/", w.head)) {
		// A name that begins /dev/tcp/ would open a connection.
		a.opaque("", "a redirection whose target is known only when it runs")
	}
	a.path(kind, w, dirs, "a redirection")
}

func isNet(s string) bool { return strings.HasPrefix(s, "/dev/") }
