package yaml

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func root(t *testing.T, text string) Node {
	t.Helper()
	n, err := Parse("f.yaml", "the file", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// at returns the value of a key at the top.
func at(t *testing.T, text, key string) Node {
	t.Helper()
	fields, err := root(t, text).Pairs("the file")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		if f.Name == key {
			return f.Value
		}
	}
	t.Fatalf("no key %s", key)
	return Node{}
}

func TestKinds(t *testing.T) {
	for text, want := range map[string]Kind{
		"": Null, "~": Null, "true": Bool, "yes": Text, "1": Number, "-0.5e3": Number, "123456789012345678901234567890": Number,
		"017": Other, "0x1f": Other, "1_000": Other, ".inf": Other, ".nan": Other, "'1'": Text, "a b": Text, "|\n  x": Text, "2026-01-02": Text, "{a: 1}": Mapping, "\n  a: 1": Mapping,
		"[]": List, "\n  - 1": List, "&a x": Other, "!!str x": Other,
	} {
		if got := at(t, "k: "+text+"\n", "k").Kind(); got != want {
			t.Errorf("%q is %d, want %d", text, got, want)
		}
	}
	if n := root(t, "# nothing\n"); !n.Empty() || n.Kind() != Null || n.Place() != "f.yaml:1:1" {
		t.Error("an empty file")
	}
	if n := root(t, "\ufeffk: 1\n"); n.Empty() || n.Place() != "f.yaml:1:1" {
		t.Error("a byte order mark")
	}
}

func TestValues(t *testing.T) {
	n := root(t, "text: |\n  two\n  lines\nnumber: 7\namount: 1.5\nbool: false\nwait: 90s\nlist: [a, b]\njson: {b: [1, null, \"<\"], a: 1.50}\n")
	fields, err := n.Fields("the file", "text", "number", "amount", "bool", "wait", "list", "json")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]any{}
	for _, f := range fields {
		var v any
		switch f.Name {
		case "text":
			v, err = f.Value.Text("text")
		case "number":
			v, err = f.Value.Int("number", 7, 7)
		case "amount":
			v, err = f.Value.Amount("amount", 1.5)
		case "bool":
			v, err = f.Value.Bool("bool")
		case "wait":
			v, err = f.Value.Duration("wait", 90*time.Second)
		case "list":
			var items []Node
			items, err = f.Value.List("list")
			var all []string
			for _, item := range items {
				s, _ := item.Literal()
				all = append(all, item.Place()+" "+s)
			}
			v = all
		case "json":
			v, err = f.Value.JSON("json")
		}
		if err != nil {
			t.Error(err)
		}
		got[f.Name] = v
	}
	want := map[string]any{"text": "two\nlines\n", "number": int64(7), "amount": 1.5, "bool": false, "wait": 90 * time.Second,
		"list": []string{"f.yaml:8:8 a", "f.yaml:8:11 b"}, "json": json.RawMessage(`{"b":[1,null,"<"],"a":1.50}`)}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		name string
		text string
		read func(Node) error
		want string
	}{
		{"text", "k: 1", func(n Node) error { _, err := n.Text("k"); return err }, "f.yaml:1:4: k must be text (put it in quotes), not a number"},
		{"bool", "k: yes", func(n Node) error { _, err := n.Bool("k"); return err }, "f.yaml:1:4: k must be true or false, not text"},
		{"int below", "k: 1", func(n Node) error { _, err := n.Int("k", 2, 3); return err }, "k must be a whole number from 2 to 3, not 1"},
		{"int above", "k: 4", func(n Node) error { _, err := n.Int("k", 2, 3); return err }, "k must be a whole number from 2 to 3, not 4"},
		{"int beyond", "k: 99999999999999999999", func(n Node) error { _, err := n.Int("k", 2, 3); return err }, "not 99999999999999999999"},
		{"int octal", "k: 010", func(n Node) error { _, err := n.Int("k", 2, 30); return err }, "k must be a whole number from 2 to 30, not a number in another spelling than JSON's"},
		{"amount", "k: 1e400", func(n Node) error { _, err := n.Amount("k", 9); return err }, "k must be a number from 0 to 9, not 1e400"},
		{"duration", "k: 2h", func(n Node) error { _, err := n.Duration("k", time.Hour); return err }, `k must be a duration from 0s to 1h, such as "200ms" or "1.5s", not "2h"`},
		{"duration short", "k: 2h", func(n Node) error { _, err := n.Duration("k", 90*time.Second); return err }, `from 0s to 1m30s`},
		{"list", "k: {}", func(n Node) error { _, err := n.List("k"); return err }, "k must be a list, not a mapping"},
		{"pairs", "k:", func(n Node) error { _, err := n.Pairs("k"); return err }, "k must be a mapping, not empty"},
		{"fields", "k:\n  a: 1\n  b: 2", func(n Node) error { _, err := n.Fields("k", "a", "c"); return err }, "f.yaml:3:3: unknown key \"b\" in k; allowed: a, c\n  3 |   b: 2\n        ^"},
		{"key", "k: {1: 1}", func(n Node) error { _, err := n.Pairs("k"); return err }, "a key of k must be text, not a number"},
		{"json", "k: {a: .nan}", func(n Node) error { _, err := n.JSON("k"); return err }, "f.yaml:1:8: a value in k must be something JSON can hold"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.read(at(t, c.text+"\n", "k"))
			var e *Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestErrorOfALongLine(t *testing.T) {
	e := &Error{File: "f", Line: 12, Col: 200, Message: "m", Source: "\t" + strings.Repeat("é", 300)}
	lines := strings.Split(e.Error(), "\n")
	if len(lines) != 3 || len([]rune(lines[1])) != len("  12 | ")+120 || strings.IndexByte(lines[2], '^') != len("  12 | ")+60 {
		t.Errorf("%q", lines)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("a: [1, {b: c}]\n"))
	f.Add([]byte("a: &x [*x]\n---\n"))
	f.Add([]byte("? a\n: |2-\n  b\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<14 {
			return
		}
		n, err := Parse("f.yaml", "the file", data)
		if err == nil {
			var text json.RawMessage
			if text, err = n.JSON("the file"); err == nil && !n.Empty() && !json.Valid(text) {
				t.Fatalf("not JSON: %s", text)
			}
		}
		var e *Error
		if err != nil && (!errors.As(err, &e) || e.Line < 1 || e.Col < 1 || !strings.HasPrefix(err.Error(), "f.yaml:")) {
			t.Fatalf("not a located error: %#v", err)
		}
	})
}

// TestDeepNestingIsRefused would take minutes where the YAML reader sees these.
func TestDeepNestingIsRefused(t *testing.T) {
	for _, unit := range []string{"[", "{a: ", "{", "[[],", "- ", "-   ", "? ", "- ? "} {
		for text, line := range map[string]int{strings.Repeat(unit, 100_000): 1, "a:\n " + strings.Repeat(unit, 100_000) + "\n": 2} {
			_, err := Parse("f.yaml", "the file", []byte(text))
			var e *Error
			if !errors.As(err, &e) || e.Line != line || e.Message != "the file is nested too deep" {
				t.Errorf("%q: %.200v", unit, err)
			}
		}
	}
	for _, text := range []string{strings.Repeat("[], {}", 100_000), strings.Repeat("- ", 1000) + "a", "a: '" + strings.Repeat("- ", 100_000) + "'"} {
		if tooDeep(strings.Split(text, "\n")) != 0 {
			t.Errorf("%.20q… is not deep", text)
		}
	}
}
