package rehearsal

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"belay/internal/yaml"
	"belay/message"
	"belay/model"
)

// Expectation is one thing that a request must hold before its turn is played.
type Expectation struct {
	Kind string // "last_result_contains"
	Want string
	Line int // in the script
}

// Where an expectation looks and how it compares; a kind is "place_comparison".
var (
	places = []place{
		{"last_result", "the results of the last round", lastResult},
		{"last_user", "the last text from the user's side", lastUser},
		{"request", "the conversation", conversation},
		{"system", "the system prompt", func(r model.Request) (string, bool) { return r.System, true }},
		{"tools", "the offered tools", toolNames},
	}
	comparisons = []comparison{
		{"contains", strings.Contains},
		{"lacks", func(held, want string) bool { return !strings.Contains(held, want) }},
		{"matches", func(held, want string) bool {
			re, err := regexp.Compile(want)
			return err == nil && re.MatchString(held)
		}},
	}
	resultKinds = []string{"results", "last_result_error"}
)

type place struct {
	name, title string
	of          func(model.Request) (held string, present bool)
}

type comparison struct {
	name  string
	holds func(held, want string) bool
}

func expectKeys() []string {
	var keys []string
	for _, p := range places {
		for _, c := range comparisons {
			keys = append(keys, p.name+"_"+c.name)
		}
	}
	return append(keys, resultKinds...)
}

func readExpect(n yaml.Node, repeated bool) ([]Expectation, error) {
	fields, err := n.Fields("expect", expectKeys()...)
	if err != nil {
		return nil, err
	}
	if len(fields) == 0 {
		return nil, n.Errorf("expect is empty; allowed: %s", strings.Join(expectKeys(), ", "))
	}
	var expect []Expectation
	for _, f := range fields {
		add := func(n yaml.Node, want string) {
			expect = append(expect, Expectation{Kind: f.Name, Want: want, Line: n.Line()})
		}
		switch f.Name {
		case "results":
			v, err := f.Value.Int(f.Name, 0, 10_000)
			if err != nil {
				return nil, err
			}
			add(f.Value, strconv.FormatInt(v, 10))
			continue
		case "last_result_error":
			v, err := f.Value.Bool(f.Name)
			if err != nil {
				return nil, err
			}
			add(f.Value, strconv.FormatBool(v))
			continue
		}
		values := []yaml.Node{f.Value}
		if list, err := f.Value.List(f.Name); err == nil && len(list) > 0 { // all of them must hold
			values = list
		}
		for _, v := range values {
			want, err := v.Text(f.Name)
			if err != nil {
				return nil, err
			}
			if want == "" {
				return nil, v.Errorf("%s must not be empty", f.Name)
			}
			if strings.HasSuffix(f.Name, "_matches") {
				probe := want
				if repeated {
					probe = strings.ReplaceAll(want, counter, "1")
				}
				if _, err := regexp.Compile(probe); err != nil {
					return nil, v.Errorf("%s must be a regular expression of Go's syntax: %v", f.Name, err)
				}
			}
			add(v, want)
		}
	}
	return expect, nil
}

// Check returns nil when the request holds all that the turn expects, else a *model.Error of class Script
// that names the turn, the expectation and what the request held instead.
func (s *Script) Check(t Turn, req model.Request) error {
	for _, e := range t.Expect {
		title, held, ok := e.look(req)
		if ok {
			continue
		}
		return s.fault("%s (line %d) expects %s %s, but %s %s", t.Label, e.Line, e.Kind, e.shown(), title, held)
	}
	return nil
}

// look compares, and describes what is there.
func (e Expectation) look(req model.Request) (title, held string, ok bool) {
	switch e.Kind {
	case "results":
		n := len(lastRound(req))
		return "the last round", fmt.Sprintf("has %d results", n), strconv.Itoa(n) == e.Want
	case "last_result_error":
		round := lastRound(req)
		failed := slices.ContainsFunc(round, func(r *message.ToolResult) bool { return r.Error })
		text, _ := lastResult(req)
		return "the last round", fmt.Sprintf("has errors: %v\n%s", failed, excerpt(text)), strconv.FormatBool(failed) == e.Want && len(round) > 0
	}
	for _, p := range places {
		for _, c := range comparisons {
			if e.Kind != p.name+"_"+c.name {
				continue
			}
			text, present := p.of(req)
			if !present {
				return p.title, "are not in the request at all", false
			}
			return p.title, "held:\n" + excerpt(text), c.holds(text, e.Want)
		}
	}
	return "the request", "was not looked at: no such expectation", false
}

func (e Expectation) shown() string {
	if e.Kind == "results" || e.Kind == "last_result_error" {
		return e.Want
	}
	return strconv.Quote(e.Want)
}

// excerpt is the head and tail of a text, enough to see what went wrong.
func excerpt(s string) string {
	const keep = 400 // bytes on each side
	if s == "" {
		return "  (nothing)"
	}
	if len(s) > 2*keep+100 {
		head, tail := keep, len(s)-keep
		for !utf8.RuneStart(s[head]) {
			head--
		}
		for !utf8.RuneStart(s[tail]) {
			tail++
		}
		s = fmt.Sprintf("%s\n[… %d bytes …]\n%s", s[:head], tail-head, s[tail:])
	}
	return "  " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n  ")
}

// lastRound returns the results in the last message that has any: a recap or a nudge may follow it.
func lastRound(req model.Request) []*message.ToolResult {
	var round []*message.ToolResult
	for i := len(req.Messages) - 1; i >= 0 && round == nil; i-- {
		for _, b := range req.Messages[i].Blocks {
			if b.Result != nil {
				round = append(round, b.Result)
			}
		}
	}
	return round
}

func lastResult(req model.Request) (string, bool) {
	round := lastRound(req)
	texts := make([]string, len(round))
	for i, r := range round {
		texts[i] = r.Text
	}
	return strings.Join(texts, "\n"), len(round) > 0
}

func lastUser(req model.Request) (string, bool) {
	for _, m := range slices.Backward(req.Messages) {
		if m.Role != message.User {
			continue
		}
		if s := message.PlainText(m.Blocks); s != "" && !strings.HasPrefix(s, "<recap>") { // which may follow anything
			return s, true
		}
	}
	return "", true
}

func conversation(req model.Request) (string, bool) {
	var b strings.Builder
	for _, m := range req.Messages {
		for _, block := range m.Blocks {
			switch {
			case block.Call != nil:
				fmt.Fprintf(&b, "%s %s\n", block.Call.Name, block.Call.Args)
			case block.Result != nil:
				b.WriteString(block.Result.Text + "\n")
			case block.Kind == message.KindText:
				b.WriteString(block.Text + "\n")
			}
		}
	}
	return b.String(), true
}

func toolNames(req model.Request) (string, bool) {
	names := make([]string, len(req.Tools))
	for i, t := range req.Tools {
		names[i] = t.Name
	}
	return strings.Join(names, "\n"), true
}
