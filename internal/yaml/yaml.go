// Package yaml reads YAML by hand and strictly: every key and every type is checked where it stands, and a mistake comes with its place, what is allowed, and the line itself.
package yaml

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Error is a mistake in a document, at a place in its file.
type Error struct {
	File      string
	Line, Col int    // from 1; Col counts characters
	Message   string // what is wrong and what is allowed
	Source    string // the line itself, "" where there is none or where it must not be shown
}

// Error is "FILE:LINE:COL: message" and, below it, the line with a mark under the column.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Message)
	if e.Source == "" {
		return s
	}
	source, col := []rune(e.Source), min(e.Col-1, len([]rune(e.Source)))
	if from := max(0, col-60); from > 0 || len(source) > 120 { // a long line is shown around the column
		source, col = source[from:min(len(source), from+120)], col-from
	}
	indent := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, string(source[:col]))
	return fmt.Sprintf("%s\n  %d | %s\n  %s   %s^", s, e.Line, string(source), strings.Repeat(" ", len(fmt.Sprint(e.Line))), indent)
}

const (
	// MaxBytes is what a document may have at most: the YAML reader needs more than linear time.
	MaxBytes   = 4 << 20
	maxNesting = 64 // levels
	maxOpen    = 2000
)

// document is the file that a node is part of.
type document struct {
	file  string
	lines []string
}

// Parse reads data, which must be one YAML document or none, and returns its root; the root of a file without
// any is Empty. File stands for it in every error, and what ("the script") says what it is. The error is an *Error.
func Parse(file, what string, data []byte) (root Node, err error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	d := &document{file: file, lines: strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n")}
	if len(data) > MaxBytes {
		d.lines = nil
		return Node{}, d.errorf(start, "%s has %d bytes; at most %d are read", what, len(data), MaxBytes)
	}
	for i, line := range d.lines {
		if !utf8.ValidString(line) {
			return Node{}, d.errorf(&token.Position{Line: i + 1, Column: 1}, "this line is not UTF-8")
		}
	}
	if at := tooDeep(d.lines); at > 0 {
		return Node{}, d.errorf(&token.Position{Line: at, Column: 1}, "%s is nested too deep", what)
	}
	// The YAML reader is not ours and a file may come from anywhere: its panic is this file's error.
	defer func() {
		if r := recover(); r != nil {
			root, err = Node{}, d.errorf(start, "not readable as YAML (%v)", r)
		}
	}()
	f, err := parser.ParseBytes(data, 0)
	if err != nil {
		var bad yaml.Error
		if errors.As(err, &bad) && bad.GetToken() != nil {
			return Node{}, d.errorf(bad.GetToken().Position, "not valid YAML: %s", bad.GetMessage())
		}
		return Node{}, d.errorf(start, "not valid YAML: %v", err)
	}
	var bodies []ast.Node
	for _, doc := range f.Docs {
		if doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	switch len(bodies) {
	case 0:
		return Node{d, nil}, nil
	case 1:
		return Node{d, bodies[0]}, nil
	}
	return Node{}, d.errorf(position(bodies[1]), "a second YAML document; %s is one", what)
}

// tooDeep returns the line, from 1, in which more than maxOpen levels are open, 0 where none is. The YAML reader needs
// minutes for some hundred kilobytes of them. Brackets in text are counted too: nobody leaves so many open.
func tooDeep(lines []string) int {
	open := 0
	for i, line := range lines {
		open += strings.Count(line, "[") + strings.Count(line, "{") - strings.Count(line, "]") - strings.Count(line, "}")
		open = max(open, 0)
		if open > maxOpen || nests(line) {
			return i + 1
		}
	}
	return 0
}

// nests says whether a line begins with more than maxOpen block collections in each other: "- - - ".
func nests(line string) bool {
	n := 0
	for {
		line = strings.TrimLeft(line, " \t")
		rest, ok := strings.CutPrefix(line, "- ")
		if !ok {
			if rest, ok = strings.CutPrefix(line, "? "); !ok {
				return n > maxOpen
			}
		}
		line, n = rest, n+1
	}
}

var start = &token.Position{Line: 1, Column: 1}

func (d *document) errorf(at *token.Position, format string, args ...any) error {
	e := &Error{File: d.file, Line: max(1, at.Line), Col: max(1, at.Column), Message: fmt.Sprintf(format, args...)}
	if e.Line <= len(d.lines) {
		e.Source = d.lines[e.Line-1]
	}
	return e
}

func position(n ast.Node) *token.Position {
	switch n := n.(type) {
	case nil:
		return start
	case *ast.MappingNode: // its own token is the first colon, or the brace
		if !n.IsFlowStyle && len(n.Values) > 0 {
			return position(n.Values[0])
		}
	case *ast.MappingValueNode:
		return position(n.Key)
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position
	}
	return start
}
