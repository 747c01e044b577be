package shell

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// Part is one pipeline of a line's outermost list.
type Part struct {
	Op         string   // how it follows the part before it: ";", "&&" or "||"
	Stages     []string // the commands of the pipeline, by name
	Background bool     // it was started with & and has no status of its own
}

// Watched is a line that reports the exit status of each stage of each of its parts while it runs, and does else what
// it did before.
type Watched struct {
	Text  string
	Parts []Part
}

// Marks of a watched line's reports, in place of a part's number.
const (
	MarkEnd  = "end"  // the line ran to its end
	MarkExit = "exit" // the shell ended
)

// meddling is what would see that a line is watched: it asks the shell about itself.
var meddling = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\b(trap|shopt|alias|PIPESTATUS|BASH_\w+|BASHPID|LINENO|FUNCNAME|xtrace|verbose|history|coproc|compgen|declare|typeset|export -f)\b|/proc/|/dev/fd|\bset\s+-[a-zA-Z]*[xvntb]|\bset\s*($|[;|&\n)])`)
})

// Watch adds reports to a line of two or more commands, or one in the background. Each report is the byte 0x1e, the mark, a blank, the number of the
// part (or MarkEnd, MarkExit), the exit status of each stage, the byte 0x1e; it is written to where the line's output
// goes. The mark is letters and digits. It gives false for a line that is a single command, or that could notice.
func (p Program) Watch(mark string) (Watched, bool) {
	if meddling().MatchString(p.Text) || strings.Contains(p.Text, "__belay") {
		return Watched{}, false
	}
	tree, err := parse(p.Text)
	if err != nil {
		return Watched{}, false
	}
	w := &watcher{}
	var out []*syntax.Stmt
	for _, s := range tree.Stmts {
		out = append(out, w.top(s, ";")...)
	}
	stages, background := 0, false
	for _, part := range w.parts {
		stages += len(part.Stages)
		background = background || part.Background
	}
	if stages < 2 && !background {
		return Watched{}, false
	}
	last := tree.Stmts[len(tree.Stmts)-1]
	tree.Stmts = append(out, &syntax.Stmt{Position: last.End(), Cmd: raw(MarkEnd, last.End())})
	var b bytes.Buffer
	if err := syntax.NewPrinter().Print(&b, tree); err != nil {
		return Watched{}, false
	}
	text := strings.TrimSuffix(b.String(), "\n")
	for _, j := range joins() {
		text = j.from.ReplaceAllString(text, j.to)
	}
	if _, err := parse(text); err != nil || strings.Contains(text, "__belay_open") || len(text) > MaxLine+MaxLine/2 {
		return Watched{}, false
	}
	return Watched{Text: fmt.Sprintf(watching, mark, text), Parts: w.parts}, true
}

// watching stands before the line, on its first line so that the numbers in bash's messages stay right. The function keeps $? and,
// as its last argument is $_, that too.
const watching = `exec {__belay_out}>&1; __belay() { local __belay_s=$? IFS=' '; builtin printf '\036%s %%s\036' "${*:1:$#-1}" >&$__belay_out; return $__belay_s; } 2>/dev/null; trap '__belay exit "${PIPESTATUS[@]}" "$_"' EXIT; : "$0"; %s`

// joins put what was added on the line that it was added to, so that bash counts lines as before. A report after a
// here-document has a line of its own; it has two blanks.
var joins = sync.OnceValue(func() []joining {
	return []joining{
		{regexp.MustCompile(`\{\n\t*__belay_open\n\t*`), "{ "},
		{regexp.MustCompile(`\n\t*__belay (\d)`), "; __belay $1"},
		{regexp.MustCompile(`(__belay +\d+ "\$\{PIPESTATUS\[@\]\}" "\$_")\n\t*\}`), "$1; }"},
	}
})

type joining struct {
	from *regexp.Regexp
	to   string
}

type watcher struct{ parts []Part }

func raw(what string, at syntax.Pos) *syntax.CallExpr {
	value := fmt.Sprintf(`__belay %s "${PIPESTATUS[@]}" "$_"`, what)
	return &syntax.CallExpr{Args: []*syntax.Word{{Parts: []syntax.WordPart{&syntax.Lit{ValuePos: at, ValueEnd: at, Value: value}}}}}
}

// report is the statement that reports the part that was added last.
func (w *watcher) report(s *syntax.Stmt) *syntax.Stmt {
	at := s.End()
	number := fmt.Sprint(len(w.parts) - 1)
	syntax.Walk(s, func(n syntax.Node) bool {
		if r, ok := n.(*syntax.Redirect); ok && r.Hdoc != nil {
			number = " " + strings.TrimSpace(number)
		}
		return true
	})
	return &syntax.Stmt{Position: at, Cmd: raw(number, at)}
}

// top gives a statement of the line's list with its reports.
func (w *watcher) top(s *syntax.Stmt, op string) []*syntax.Stmt {
	switch cmd := s.Cmd.(type) {
	case *syntax.FuncDecl:
		return []*syntax.Stmt{s}
	case *syntax.BinaryCmd:
		if (cmd.Op == syntax.AndStmt || cmd.Op == syntax.OrStmt) && !s.Background && !s.Negated && len(s.Redirs) == 0 {
			cmd.X = w.operand(cmd.X, op)
			cmd.Y = w.operand(cmd.Y, cmd.Op.String())
			return []*syntax.Stmt{s}
		}
	}
	if s.Background || s.Coprocess || s.Disown {
		w.parts = append(w.parts, Part{Op: op, Stages: []string{strings.Join(stageNames(s), " | ")}, Background: true})
		return []*syntax.Stmt{s}
	}
	w.parts = append(w.parts, Part{Op: op, Stages: stageNames(s)})
	if s.Negated { // what follows ! is never what set -e looks at; a report after it would be
		inner := *s
		inner.Negated = false
		s.Cmd, s.Redirs = block(s, []*syntax.Stmt{&inner, w.report(&inner)}), nil
		return []*syntax.Stmt{s}
	}
	return []*syntax.Stmt{s, w.report(s)}
}

// operand gives a side of && or || with its reports.
func (w *watcher) operand(s *syntax.Stmt, op string) *syntax.Stmt {
	got := w.top(s, op)
	if len(got) == 1 {
		return got[0]
	}
	return &syntax.Stmt{Position: s.Pos(), Cmd: block(s, got)}
}

// block holds a statement and its report, where only one statement can stand.
func block(s *syntax.Stmt, stmts []*syntax.Stmt) *syntax.Block {
	open := &syntax.Stmt{Position: s.Pos(), Cmd: &syntax.CallExpr{Args: []*syntax.Word{{Parts: []syntax.WordPart{&syntax.Lit{ValuePos: s.Pos(), ValueEnd: s.Pos(), Value: "__belay_open"}}}}}}
	return &syntax.Block{Lbrace: s.Pos(), Rbrace: s.End(), Stmts: append([]*syntax.Stmt{open}, stmts...)}
}

// stageNames are the names of a pipeline's commands.
func stageNames(s *syntax.Stmt) []string {
	if b, ok := s.Cmd.(*syntax.BinaryCmd); ok && (b.Op == syntax.Pipe || b.Op == syntax.PipeAll) {
		return append(stageNames(b.X), stageNames(b.Y)...)
	}
	return []string{stageName(s)}
}

func stageName(s *syntax.Stmt) string {
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		if len(c.Args) > 0 {
			var b bytes.Buffer
			if syntax.NewPrinter().Print(&b, c.Args[0]) == nil {
				name := []rune(b.String())
				return strings.Join(strings.Fields(string(name[:min(len(name), 40)])), " ")
			}
		}
		if len(c.Assigns) > 0 && c.Assigns[0].Name != nil {
			return c.Assigns[0].Name.Value + "="
		}
		return "redirection"
	case *syntax.Subshell:
		return "(…)"
	case *syntax.Block:
		return "{…}"
	case *syntax.IfClause:
		return "if"
	case *syntax.WhileClause:
		if c.Until {
			return "until"
		}
		return "while"
	case *syntax.ForClause:
		return "for"
	case *syntax.CaseClause:
		return "case"
	case *syntax.TestClause:
		return "[["
	case *syntax.ArithmCmd:
		return "(("
	case *syntax.TimeClause:
		return "time"
	case *syntax.DeclClause:
		return c.Variant.Value
	case *syntax.LetClause:
		return "let"
	case nil:
		return "redirection"
	}
	return "command"
}
