// Package shell reads a command line as bash would and says what it would do, as effects, and which re-printed text is to be run in its place.
package shell

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"

	"belay/effect"
	"belay/tool"
)

// Program is a command line that was understood as far as it says.
type Program struct {
	// Text is what must be run in place of the original line: the re-printed syntax tree, so that what was
	// judged is what runs. Reads by git carry options here that switch off what its configuration could start.
	Text    string
	Effects effect.Set
	Parts   []effect.Command // its simple commands, as they are written
	Summary string           // one line for a person
}

// Reads says that the line does nothing but read and start programs that only read.
func (p Program) Reads() bool {
	for _, e := range p.Effects {
		if e.Kind != effect.Read && e.Kind != effect.Exec {
			return false
		}
	}
	return true
}

// Unreadable is the error for a line that bash and this package could read differently, or that is no bash.
type Unreadable struct {
	What string // what is wrong, with its place
	Hint string // what to write instead
}

func (u *Unreadable) Error() string { return "unreadable command line: " + u.What }

// MaxLine is the longest line in bytes, also re-printed. Linux refuses a single argument of 128 KiB, and half of
// that bounds the time that the worst nesting takes to parse.
const MaxLine = 64 << 10

// maxDepth bounds nesting; what people and models write stays below 20.
const maxDepth = 100

// Analyze parses a line as bash and says what it would do when run in place.Dir. The error is *Unreadable.
func Analyze(line string, place tool.Place) (p Program, err error) {
	// The parser is not ours and a line may come from anywhere: what it cannot read is refused, whatever happens.
	defer func() {
		if v := recover(); v != nil {
			p, err = Program{}, &Unreadable{fmt.Sprintf("reading it failed: %v", v), "Write it more simply, or put it into a script file."}
		}
	}()
	tree, text, err := reprint(line)
	if err != nil {
		return Program{}, err
	}
	if strings.Count(text, "|") > maxPipes {
		return Program{}, tooMuch
	}
	a := &analysis{place: place, text: text}
	a.stmts(tree.Stmts, []string{place.Dir})
	if a.steps > maxSteps || a.vars != nil && len(a.vars.of) > maxVars {
		return Program{}, tooMuch
	}
	if a.injected {
		// The options that were put in are text of our own; it must survive the same round trip.
		text, err = printed(tree)
		if err == nil {
			_, _, err = stable(text)
		}
		if err != nil {
			return Program{}, err
		}
	}
	return Program{Text: text, Effects: a.effects, Parts: a.parts, Summary: summary(text)}, nil
}

// What is followed in one line is bounded, so that none takes long: loops and functions can make a short line do much.
const (
	maxSteps = 4000 // statements read, each as often as it is followed
	maxVars  = 200
	maxPipes = 400
)

var tooMuch = &Unreadable{"it does too much to be followed", "Write several lines, or put it into a script file."}

// POSIX says whether a plain sh reads the text as bash does, for machines that have no bash.
func POSIX(text string) error {
	if _, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(strings.NewReader(text), ""); err != nil {
		return &Unreadable{err.Error(), "This machine has only a plain sh: write the line without bash's extensions."}
	}
	return nil
}

// reprint parses a line and returns the tree of its re-printed text: what is judged is what will run.
func reprint(line string) (*syntax.File, string, error) {
	if err := refuse(line); err != nil {
		return nil, "", err
	}
	first, err := parse(line)
	if err != nil {
		return nil, "", err
	}
	if len(first.Stmts) == 0 {
		return nil, "", &Unreadable{"there is no command in it", "Write at least one command."}
	}
	text, err := printed(first)
	if err != nil {
		return nil, "", err
	}
	if text == line {
		return first, text, nil // it is printed as it was written, so that parsing it again gives the same
	}
	return stable(text)
}

// stable parses a printed text and makes sure that printing it again changes nothing.
func stable(text string) (*syntax.File, string, error) {
	tree, err := parse(text)
	if err != nil {
		return nil, "", &Unreadable{"it cannot be re-printed reliably: " + err.Error(), "Write it more simply, or put it into a script file."}
	}
	again, err := printed(tree)
	if err != nil {
		return nil, "", err
	}
	if again != text {
		return nil, "", &Unreadable{"it cannot be re-printed reliably", "Write it more simply, or put it into a script file."}
	}
	return tree, text, nil
}

// A parser and a printer hold buffers that are worth keeping.
var (
	parsers  = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(false)) }}
	printers = sync.Pool{New: func() any { return syntax.NewPrinter() }}
)

func parse(text string) (*syntax.File, error) {
	if deep(text) {
		return nil, &Unreadable{fmt.Sprintf("it is nested more than %d levels deep", maxDepth), "Write it more simply, or put it into a script file."}
	}
	parser := parsers.Get().(*syntax.Parser)
	tree, err := parser.Parse(strings.NewReader(text), "")
	parsers.Put(parser)
	if err != nil {
		var perr syntax.ParseError
		if errors.As(err, &perr) {
			return nil, &Unreadable{fmt.Sprintf("line %d, column %d: %s", perr.Pos.Line(), perr.Pos.Col(), perr.Text), "Check quotes, brackets and here-documents; it must be valid bash."}
		}
		return nil, &Unreadable{err.Error(), "It must be valid bash."}
	}
	return tree, nil
}

func printed(tree *syntax.File) (string, error) {
	var b bytes.Buffer
	printer := printers.Get().(*syntax.Printer)
	err := printer.Print(&b, tree)
	printers.Put(printer)
	if err != nil {
		return "", &Unreadable{"it cannot be re-printed: " + err.Error(), "Write it more simply, or put it into a script file."}
	}
	if b.Len() > MaxLine {
		return "", &Unreadable{"re-printed it is longer than the limit", "Write the text to a file and run that."}
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// deep bounds what a recursive parser is given: it counts, without understanding quotes, how many brackets could
// be open at once.
func deep(text string) bool {
	open := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '(', '{', '[':
			open++
		case ')', '}', ']':
			open = max(open-1, 0)
		}
		if open > maxDepth {
			return true
		}
	}
	return false
}

// refuse finds text that bash and our parser could read differently, or that shows a person something else than
// what it is.
func refuse(line string) error {
	if len(line) > MaxLine {
		return &Unreadable{fmt.Sprintf("it has %d bytes, the limit is %d", len(line), MaxLine), "Write the text to a file and run that."}
	}
	if !utf8.ValidString(line) {
		return &Unreadable{"it is not valid UTF-8", "Write other bytes as escapes, for example with printf '\\377'."}
	}
	for i, r := range line {
		what := ""
		switch {
		case r == '\n' || r == '\t':
		case r == '\r':
			what = "a carriage return"
		case r == 0:
			what = "a NUL character"
		case unicode.IsControl(r):
			what = fmt.Sprintf("the control character %U", r)
		case unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Bidi_Control, r):
			what = fmt.Sprintf("the invisible character %U", r)
		case r > unicode.MaxASCII && unicode.IsSpace(r), r == 0x2028, r == 0x2029, r == 0x115F, r == 0x1160, r == 0x3164, r == 0xFFA0:
			what = fmt.Sprintf("the blank look-alike %U", r)
		}
		if what != "" {
			return &Unreadable{fmt.Sprintf("%s at byte %d", what, i), "Leave it out, or write it as an escape, for example with printf."}
		}
	}
	lines := strings.Split(line, "\n")
	for i, l := range lines {
		trimmed := strings.TrimRight(l, " \t")
		backslashes := len(trimmed) - len(strings.TrimRight(trimmed, `\`))
		if backslashes%2 == 0 {
			continue
		}
		where := fmt.Sprintf("line %d ends in a backslash", i+1)
		switch {
		case trimmed != l && i < len(lines)-1:
			return &Unreadable{where + " and blanks, which is no continuation", "Remove the blanks after the backslash."}
		case i == len(lines)-1 && trimmed == l:
			return &Unreadable{where + " and nothing follows", "Remove the backslash."}
		case comment(l):
			return &Unreadable{where + " in what looks like a comment", "Leave the comment or the backslash out."}
		}
	}
	return nil
}

// comment says that a # in the line could start a comment.
func comment(l string) bool {
	for i := 0; i < len(l); i++ {
		if l[i] == '#' && (i == 0 || strings.IndexByte(" \t;&|()`", l[i-1]) >= 0) {
			return true
		}
	}
	return false
}

// summary is the first line, at most 120 characters.
func summary(text string) string {
	first, rest, more := strings.Cut(text, "\n")
	if r := []rune(first); len(r) > 120 {
		first = string(r[:119]) + "…"
	}
	if more {
		first += fmt.Sprintf(" … (+%d lines)", 1+strings.Count(rest, "\n"))
	}
	return first
}
