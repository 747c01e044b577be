package yaml

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"
)

// Node is a value in a document, which knows where it stands. In its methods, what names the value in the error.
type Node struct {
	doc *document
	ast ast.Node
}

// Field is one key of a mapping with its value.
type Field struct {
	Name       string
	Key, Value Node
}

// Kind is what a value is.
type Kind int

const (
	Other Kind = iota // an anchor, an alias, a tag, infinity…: nothing that any method takes
	Null
	Bool
	Number // in JSON's spelling
	Text
	Mapping
	List
)

// Kind says what the value is.
func (n Node) Kind() Kind {
	switch n.ast.(type) {
	case nil, *ast.NullNode:
		return Null
	case *ast.BoolNode:
		return Bool
	case *ast.MappingNode, *ast.MappingValueNode:
		return Mapping
	case *ast.SequenceNode:
		return List
	}
	if _, ok := n.Decimal(); ok {
		return Number
	}
	if _, ok := n.Literal(); ok {
		return Text
	}
	return Other
}

// Empty says that there is no document at all: nothing, or comments only.
func (n Node) Empty() bool { return n.ast == nil }

// Line is where the value begins, from 1.
func (n Node) Line() int { return max(1, position(n.ast).Line) }

// Place is where the value begins: "FILE:LINE:COL".
func (n Node) Place() string {
	at := position(n.ast)
	return fmt.Sprintf("%s:%d:%d", n.doc.file, max(1, at.Line), max(1, at.Column))
}

// Errorf makes an *Error at the value's place.
func (n Node) Errorf(format string, args ...any) error {
	return n.doc.errorf(position(n.ast), format, args...)
}

// Wrong says that the value has another type than it should.
func (n Node) Wrong(what, want string) error {
	return n.Errorf("%s must be %s, not %s", what, want, n.described())
}

func (n Node) described() string {
	is := describe(n.ast)
	if _, ok := n.Decimal(); is == "a number" && !ok {
		is += " in another spelling than JSON's"
	}
	return is
}

func describe(n ast.Node) string {
	switch n := n.(type) {
	case nil, *ast.NullNode:
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
		return "an anchor, alias or merge key (not read here: write the value out)"
	case *ast.TagNode:
		return "a tag (not read here)"
	default:
		return n.Type().String()
	}
}

// Pairs returns the keys of a mapping in the order of the file.
func (n Node) Pairs(what string) ([]Field, error) { return n.pairs(what, false) }

// NumberedPairs is Pairs where a key may also be a number.
func (n Node) NumberedPairs(what string) ([]Field, error) { return n.pairs(what, true) }

func (n Node) pairs(what string, numbers bool) ([]Field, error) {
	var values []*ast.MappingValueNode
	switch m := n.ast.(type) {
	case *ast.MappingNode:
		values = m.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{m}
	default:
		return nil, n.Wrong(what, "a mapping")
	}
	fields := make([]Field, 0, len(values))
	seen := make(map[string]int, len(values))
	for _, v := range values {
		key := Node{n.doc, v.Key}
		name, ok := key.Literal()
		if number, is := key.Decimal(); numbers && !ok && is {
			name, ok = number.String(), true
		}
		if !ok {
			return nil, key.Errorf("a key of %s must be text, not %s", what, describe(v.Key))
		}
		if first := seen[name]; first != 0 {
			return nil, key.Errorf("duplicate key %q in %s; the first is in line %d", name, what, first)
		}
		seen[name] = key.Line()
		fields = append(fields, Field{name, key, Node{n.doc, v.Value}})
	}
	return fields, nil
}

// Fields is Pairs where only some keys are allowed.
func (n Node) Fields(what string, allowed ...string) ([]Field, error) {
	fields, err := n.Pairs(what)
	if err != nil {
		return nil, err
	}
	for _, f := range fields {
		if !slices.Contains(allowed, f.Name) {
			return nil, f.Key.Errorf("unknown key %q in %s; allowed: %s", f.Name, what, strings.Join(allowed, ", "))
		}
	}
	return fields, nil
}

// List returns the values of a list.
func (n Node) List(what string) ([]Node, error) {
	s, ok := n.ast.(*ast.SequenceNode)
	if !ok {
		return nil, n.Wrong(what, "a list")
	}
	nodes := make([]Node, len(s.Values))
	for i, v := range s.Values {
		nodes[i] = Node{n.doc, v}
	}
	return nodes, nil
}

// Literal returns the value of text, and whether it is text.
func (n Node) Literal() (string, bool) {
	switch n := n.ast.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		if n.Value != nil {
			return n.Value.Value, true
		}
	}
	return "", false
}

// Text returns text.
func (n Node) Text(what string) (string, error) {
	s, ok := n.Literal()
	if !ok {
		return "", n.Wrong(what, "text (put it in quotes)")
	}
	return s, nil
}

// Bool returns true or false.
func (n Node) Bool(what string) (bool, error) {
	b, ok := n.ast.(*ast.BoolNode)
	if !ok {
		return false, n.Wrong(what, "true or false")
	}
	return b.Value, nil
}

var jsonNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`) })

// Decimal returns a number as it is written. Only JSON's spelling is taken: YAML readers disagree about 017 and 1_000.
func (n Node) Decimal() (json.Number, bool) {
	if n.ast == nil {
		return "", false
	}
	t := n.ast.GetToken()
	if t == nil || t.Type == token.SingleQuoteType || t.Type == token.DoubleQuoteType {
		return "", false
	}
	switch n.ast.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.StringNode: // a number too long for the reader arrives as text
		return json.Number(t.Value), jsonNumber().MatchString(t.Value)
	}
	return "", false
}

// Int reads a whole number from low to high.
func (n Node) Int(what string, low, high int64) (int64, error) {
	if num, ok := n.Decimal(); ok {
		if i, err := num.Int64(); err == nil && i >= low && i <= high {
			return i, nil
		}
		return 0, n.Errorf("%s must be a whole number from %d to %d, not %s", what, low, high, num)
	}
	return 0, n.Wrong(what, fmt.Sprintf("a whole number from %d to %d", low, high))
}

// Amount reads a number from 0 to high.
func (n Node) Amount(what string, high float64) (float64, error) {
	if num, ok := n.Decimal(); ok {
		if f, err := num.Float64(); err == nil && f >= 0 && f <= high {
			return f, nil
		}
		return 0, n.Errorf("%s must be a number from 0 to %g, not %s", what, high, num)
	}
	return 0, n.Wrong(what, fmt.Sprintf("a number from 0 to %g", high))
}

// Duration reads a duration in Go's spelling, from 0 to high.
func (n Node) Duration(what string, high time.Duration) (time.Duration, error) {
	s, ok := n.Literal()
	if !ok {
		return 0, n.Wrong(what, `a duration such as "200ms" or "1.5s"`)
	}
	v, err := time.ParseDuration(s)
	if err != nil || v < 0 || v > high {
		return 0, n.Errorf(`%s must be a duration from 0s to %s, such as "200ms" or "1.5s", not %q`, what, short(high), s)
	}
	return v, nil
}

// short is a duration without its zeros: 1h instead of 1h0m0s.
func short(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, zero) {
			s = s[:len(s)-2]
		}
	}
	return s
}

// JSON returns the value as compact JSON with the keys in the order of the file.
func (n Node) JSON(what string) (json.RawMessage, error) {
	var buf bytes.Buffer
	err := n.json(&buf, what, 1)
	return buf.Bytes(), err
}

func (n Node) json(buf *bytes.Buffer, what string, depth int) error {
	if depth > maxNesting {
		return n.Errorf("%s is nested more than %d deep", what, maxNesting)
	}
	switch v := n.ast.(type) {
	case *ast.NullNode:
		buf.WriteString("null")
		return nil
	case *ast.BoolNode:
		fmt.Fprint(buf, v.Value)
		return nil
	case *ast.SequenceNode:
		buf.WriteByte('[')
		for i, item := range v.Values {
			if i > 0 {
				buf.WriteByte(',')
			}
			if err := (Node{n.doc, item}).json(buf, what, depth+1); err != nil {
				return err
			}
		}
		buf.WriteByte(']')
		return nil
	case *ast.MappingNode, *ast.MappingValueNode:
		fields, err := n.Pairs(what)
		if err != nil {
			return err
		}
		buf.WriteByte('{')
		for i, f := range fields {
			if i > 0 {
				buf.WriteByte(',')
			}
			writeString(buf, f.Name)
			buf.WriteByte(':')
			if err := f.Value.json(buf, what, depth+1); err != nil {
				return err
			}
		}
		buf.WriteByte('}')
		return nil
	}
	if num, ok := n.Decimal(); ok {
		buf.WriteString(num.String())
		return nil
	}
	if s, ok := n.Literal(); ok {
		writeString(buf, s)
		return nil
	}
	return n.Wrong("a value in "+what, "something JSON can hold, with numbers in JSON's spelling")
}

// writeString writes s as JSON without escaping <, > and &, which a model would not escape either.
func writeString(buf *bytes.Buffer, s string) {
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s)           // a string into a buffer cannot fail
	buf.Truncate(buf.Len() - 1) // Encode ends with a newline
}
