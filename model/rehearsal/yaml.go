package rehearsal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// Error is a mistake in a script, at a place in its file.
type Error struct {
	File      string
	Line, Col int    // from 1; Col counts characters
	Message   string // what is wrong and what is allowed
	Source    string // the line itself, "" where there is none
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
	maxScript  = 4 << 20 // bytes; the YAML reader needs more than linear time
	maxNesting = 64      // levels
)

// document is a YAML file that is read by hand, strictly: every key and every type is checked where it stands.
type document struct {
	file  string
	lines []string
}

// field is one key of a mapping with its value.
type field struct {
	name string
	at   *token.Position
	node ast.Node
}

// open parses data, which must be exactly one YAML document, and returns its root.
func open(file string, data []byte) (d *document, root ast.Node, err error) {
	d = &document{file: file, lines: strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n")}
	start := &token.Position{Line: 1, Column: 1}
	if len(data) > maxScript {
		return nil, nil, d.errorf(start, "the script has %d bytes; at most %d are read (use repeat for long runs)", len(data), maxScript)
	}
	for i, line := range d.lines {
		if !utf8.ValidString(line) {
			return nil, nil, d.errorf(&token.Position{Line: i + 1, Column: 1}, "this line is not UTF-8")
		}
	}
	// The YAML reader is not ours and a script may come from anywhere: its panic is this file's error.
	defer func() {
		if r := recover(); r != nil {
			d, root, err = nil, nil, d.errorf(start, "not readable as YAML (%v)", r)
		}
	}()
	f, err := parser.ParseBytes(data, 0)
	if err != nil {
		var bad yaml.Error
		if errors.As(err, &bad) && bad.GetToken() != nil {
			return nil, nil, d.errorf(bad.GetToken().Position, "not valid YAML: %s", bad.GetMessage())
		}
		return nil, nil, d.errorf(start, "not valid YAML: %v", err)
	}
	var bodies []ast.Node
	for _, doc := range f.Docs {
		if doc.Body != nil {
			bodies = append(bodies, doc.Body)
		}
	}
	switch len(bodies) {
	case 0:
		return nil, nil, d.errorf(start, "the script is empty; it starts with \"version: 1\" and has turns")
	case 1:
		return d, bodies[0], nil
	}
	return nil, nil, d.errorf(position(bodies[1]), "a second YAML document; a script is one")
}

func position(n ast.Node) *token.Position {
	switch n := n.(type) {
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
	return &token.Position{Line: 1, Column: 1}
}

func (d *document) errorf(at *token.Position, format string, args ...any) error {
	e := &Error{File: d.file, Line: max(1, at.Line), Col: max(1, at.Column), Message: fmt.Sprintf(format, args...)}
	if e.Line <= len(d.lines) {
		e.Source = d.lines[e.Line-1]
	}
	return e
}

// wrong says that a value has another type than it should.
func (d *document) wrong(n ast.Node, what, want string) error {
	if n == nil {
		return d.errorf(&token.Position{Line: 1, Column: 1}, "%s must be %s", what, want)
	}
	return d.errorf(position(n), "%s must be %s, not %s", what, want, describe(n))
}

func describe(n ast.Node) string {
	switch n := n.(type) {
	case *ast.NullNode:
		return "empty"
	case *ast.BoolNode:
		return "true or false"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	case *ast.StringNode, *ast.LiteralNode:
		return "text"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		return "an anchor, alias or merge key (scripts have none; use repeat)"
	case *ast.TagNode:
		return "a tag (scripts have none)"
	default:
		return n.Type().String()
	}
}

// pairs returns the keys of a mapping in the order of the file.
func (d *document) pairs(n ast.Node, what string) ([]field, error) {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		return nil, d.wrong(n, what, "a mapping")
	}
	fields := make([]field, 0, len(values))
	seen := make(map[string]*token.Position, len(values))
	for _, v := range values {
		name, ok := text(v.Key)
		if !ok {
			return nil, d.errorf(position(v.Key), "a key of %s must be text, not %s", what, describe(v.Key))
		}
		f := field{name, position(v.Key), v.Value}
		if first := seen[name]; first != nil {
			return nil, d.errorf(f.at, "duplicate key %q in %s; the first is in line %d", name, what, first.Line)
		}
		seen[name] = f.at
		fields = append(fields, f)
	}
	return fields, nil
}

// fields is pairs where only some keys are allowed.
func (d *document) fields(n ast.Node, what string, allowed ...string) ([]field, error) {
	fields, err := d.pairs(n, what)
	if err != nil {
		return nil, err
	}
	for _, f := range fields {
		if !slices.Contains(allowed, f.name) {
			return nil, d.errorf(f.at, "unknown key %q in %s; allowed: %s", f.name, what, strings.Join(allowed, ", "))
		}
	}
	return fields, nil
}

func (d *document) list(n ast.Node, what string) ([]ast.Node, error) {
	s, ok := n.(*ast.SequenceNode)
	if !ok {
		return nil, d.wrong(n, what, "a list")
	}
	return s.Values, nil
}

func text(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		if n.Value != nil {
			return n.Value.Value, true
		}
	}
	return "", false
}

func (d *document) text(n ast.Node, what string) (string, error) {
	s, ok := text(n)
	if !ok {
		return "", d.wrong(n, what, "text (put it in quotes)")
	}
	return s, nil
}

func (d *document) boolean(n ast.Node, what string) (bool, error) {
	b, ok := n.(*ast.BoolNode)
	if !ok {
		return false, d.wrong(n, what, "true or false")
	}
	return b.Value, nil
}

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// number returns a number as it is written. Only JSON's spelling is taken: YAML readers disagree about 017 and 1_000.
func number(n ast.Node) (json.Number, bool) {
	t := n.GetToken()
	if t == nil || t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType {
		return "", false
	}
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.StringNode: // a number too long for the reader arrives as text
		return json.Number(t.Value), jsonNumber.MatchString(t.Value)
	}
	return "", false
}

// integer reads a whole number from low to high.
func (d *document) integer(n ast.Node, what string, low, high int64) (int64, error) {
	if num, ok := number(n); ok {
		if i, err := num.Int64(); err == nil && i >= low && i <= high {
			return i, nil
		}
		return 0, d.errorf(position(n), "%s must be a whole number from %d to %d, not %s", what, low, high, num)
	}
	return 0, d.wrong(n, what, fmt.Sprintf("a whole number from %d to %d", low, high))
}

// amount reads a number from 0 to high.
func (d *document) amount(n ast.Node, what string, high float64) (float64, error) {
	if num, ok := number(n); ok {
		if f, err := num.Float64(); err == nil && f >= 0 && f <= high {
			return f, nil
		}
		return 0, d.errorf(position(n), "%s must be a number from 0 to %g, not %s", what, high, num)
	}
	return 0, d.wrong(n, what, fmt.Sprintf("a number from 0 to %g", high))
}

func (d *document) duration(n ast.Node, what string) (time.Duration, error) {
	s, ok := text(n)
	if !ok {
		return 0, d.wrong(n, what, `a duration such as "200ms" or "1.5s"`)
	}
	v, err := time.ParseDuration(s)
	if err != nil || v < 0 || v > time.Hour {
		return 0, d.errorf(position(n), `%s must be a duration from 0s to 1h, such as "200ms" or "1.5s", not %q`, what, s)
	}
	return v, nil
}

// json turns a value into compact JSON with the keys in the order of the file.
func (d *document) json(buf *bytes.Buffer, n ast.Node, what string, depth int) error {
	if depth > maxNesting {
		return d.errorf(position(n), "%s is nested more than %d deep", what, maxNesting)
	}
	switch n := n.(type) {
	case *ast.NullNode:
		buf.WriteString("null")
		return nil
	case *ast.BoolNode:
		fmt.Fprint(buf, n.Value)
		return nil
	case *ast.SequenceNode:
		buf.WriteByte('[')
		for i, v := range n.Values {
			if i > 0 {
				buf.WriteByte(',')
			}
			if err := d.json(buf, v, what, depth+1); err != nil {
				return err
			}
		}
		buf.WriteByte(']')
		return nil
	case *ast.MappingNode, *ast.MappingValueNode:
		fields, err := d.pairs(n, what)
		if err != nil {
			return err
		}
		buf.WriteByte('{')
		for i, f := range fields {
			if i > 0 {
				buf.WriteByte(',')
			}
			writeString(buf, f.name)
			buf.WriteByte(':')
			if err := d.json(buf, f.node, what, depth+1); err != nil {
				return err
			}
		}
		buf.WriteByte('}')
		return nil
	}
	if n != nil {
		if num, ok := number(n); ok {
			buf.WriteString(num.String())
			return nil
		}
		if s, ok := text(n); ok {
			writeString(buf, s)
			return nil
		}
	}
	return d.wrong(n, "a value in "+what, "something JSON can hold, with numbers in JSON's spelling")
}

// writeString writes s as JSON without escaping <, > and &, which a model would not escape either.
func writeString(buf *bytes.Buffer, s string) {
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s)           // a string into a buffer cannot fail
	buf.Truncate(buf.Len() - 1) // Encode ends with a newline
}
