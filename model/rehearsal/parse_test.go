package rehearsal

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"belay/internal/yaml"
	"belay/message"
	"belay/model"
)

const full = `version: 1
name: everything
model: {context_window: 1000, price: {input: 3.0, output: 15, cache_read: 0.3, cache_write: 3.75}}
turns:
  - thinking: "hm"
    say: |
      two
      lines
    calls:
      - {tool: Read, args: {z: 1, a: [true, null, 1.50, -0, "x<y"], m: {}, big: 123456789012345678901234567890}}
      - tool: LS
      - {tool: Bash, bad_args: '{"command": '}
      - {tool: Bash, bad_args: '[1, 2]'}
    expect:
      last_user_contains: [one, two]
      results: 0
      last_result_error: false
    usage: {input: 1200, output: 80, cache_read: 900}
    delay: 200ms
    error: {status: 529, retry_after: 1.5}
    cut_stream: true
  - stop: max_tokens
  - repeat: {times: 2, say: "at {{n}}", calls: [{tool: Bash, args: {command: "echo {{n}}"}}], expect: {last_result_matches: "^{{n}}$"}}
  - repeat:
      times: 2
      turns: [{say: "a{{n}}"}, {say: "b{{n}}"}]
when:
  - {purpose: compaction, say: "short"}
otherwise: {say: "done {{n}}"}
`

func parse(t *testing.T, text string) *Script {
	t.Helper()
	s, err := Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func turn(t *testing.T, s *Script, replies int, purpose model.Purpose) Turn {
	t.Helper()
	got, err := s.Turn(replies, purpose)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestEverythingIsRead(t *testing.T) {
	s := parse(t, full)
	wantInfo := model.Info{Provider: "rehearsal", Model: "everything", ContextWindow: 1000, Scripted: true,
		Price: &message.Price{Input: 3, Output: 15, CacheRead: 0.3, CacheWrite: 3.75}}
	if d := cmp.Diff(wantInfo, s.Info()); d != "" {
		t.Error(d)
	}
	call := func(id, name, args, bad string) message.Block {
		return message.Block{Kind: message.KindCall, Call: &message.ToolCall{ID: id, Name: name, Args: json.RawMessage(args), BadArgs: bad}}
	}
	want := []message.Block{
		{Kind: message.KindThinking, Text: "hm"},
		message.Text("two\nlines\n"),
		call("call_1_1", "Read", `{"z":1,"a":[true,null,1.50,-0,"x<y"],"m":{},"big":123456789012345678901234567890}`, ""),
		call("call_1_2", "LS", `{}`, ""),
		call("call_1_3", "Bash", `"{\"command\": "`, "not valid JSON: unexpected end of JSON input"),
		call("call_1_4", "Bash", `[1,2]`, "not a JSON object"),
	}
	first := turn(t, s, 0, "")
	if d := cmp.Diff(want, first.Blocks); d != "" {
		t.Error(d)
	}
	if first.Delay != 200*time.Millisecond || first.Stop != message.StopToolUse || first.Failure.RetryAfter != 1500*time.Millisecond {
		t.Errorf("first turn: %+v", first)
	}
	if _, err := json.Marshal(first.Blocks); err != nil {
		t.Errorf("blocks with bad arguments cannot be stored: %v", err)
	}
	if got := turn(t, s, 1, ""); got.Stop != message.StopLength || len(got.Blocks) != 0 {
		t.Errorf("bare stop: %+v", got)
	}
	var said []string
	for i := range 9 {
		said = append(said, message.PlainText(turn(t, s, i, "").Blocks))
	}
	if d := cmp.Diff([]string{"two\nlines\n", "", "at 1", "at 2", "a1", "b1", "a2", "b2", "done {{n}}"}, said); d != "" {
		t.Error(d)
	}
	repeated := turn(t, s, 3, "")
	if got := string(repeated.Blocks[1].Call.Args); got != `{"command":"echo 2"}` {
		t.Error(got)
	}
	if got := repeated.Expect[0].Want; got != "^2$" {
		t.Error(got)
	}
	if got := repeated.Label; got != "turn 4 (repetition 2 of 2)" {
		t.Error(got)
	}
	if got := message.PlainText(turn(t, s, 3, model.Compaction).Blocks); got != "short" {
		t.Error(got)
	}
	if _, err := s.Turn(0, model.Judge); err == nil || !strings.Contains(err.Error(), "purpose: judge") {
		t.Errorf("unanswered purpose: %v", err)
	}
}

func TestScriptWithoutOtherwiseEndsLoudly(t *testing.T) {
	s := parse(t, "version: 1\nturns: [{say: hi}]\n")
	_, err := s.Turn(1, "")
	if e := model.AsError(err); e.Class != model.Script || !strings.Contains(e.Message, "turn 2") {
		t.Errorf("got %v", err)
	}
	if s.Name != "test" {
		t.Errorf("default name: %q", s.Name)
	}
}

func TestMistakesAreLocated(t *testing.T) {
	turns := func(s string) string { return "version: 1\nturns:\n  - " + s + "\n" }
	for _, c := range []struct{ name, text, want string }{
		{"empty file", "", `test.yaml:1:1: the script is empty`},
		{"only a comment", "# hi\n", `test.yaml:1:1: the script is empty`},
		{"not a mapping", "- a\n", `test.yaml:1:1: the script must be a mapping, not a list`},
		{"broken YAML", "version: 1\nturns: [\n", `test.yaml:2:8: not valid YAML`},
		{"tab", "version: 1\nturns:\n\t- say: x\n", `test.yaml:3:1: not valid YAML`},
		{"two documents", "version: 1\nturns: [{say: x}]\n---\nversion: 1\n", `test.yaml:4:1: a second YAML document`},
		{"no version", "turns: [{say: x}]\n", `test.yaml:1:1: the script has no version`},
		{"later version", "version: 2\n", `test.yaml:1:10: version must be 1`},
		{"version as text", "version: \"1\"\n", `test.yaml:1:10: version must be 1`},
		{"unknown top key", "version: 1\nturn: []\n", `test.yaml:2:1: unknown key "turn" in the script; allowed: version, name, model, turns, when, otherwise`},
		{"duplicate key", "version: 1\nversion: 1\n", `test.yaml:2:1: not valid YAML: mapping key "version" already defined at [1:1]`},
		{"duplicate key, quoted", turns(`calls: [{tool: A, args: {"a": 1, 'a': 2}}]`), `already defined`},
		{"no turns", "version: 1\n", `test.yaml:1:1: the script says nothing`},
		{"turns not a list", "version: 1\nturns: {say: x}\n", `test.yaml:2:8: turns must be a list, not a mapping`},
		{"turn is text", turns("hello"), `test.yaml:3:5: a turn must be a mapping, not text`},
		{"unknown turn key", turns("sya: hello"), `test.yaml:3:5: unknown key "sya" in a turn; allowed: say, thinking, calls`},
		{"empty turn", turns("usage: {input: 1}"), `test.yaml:3:5: a turn says nothing`},
		{"null turn", "version: 1\nturns:\n  -\n", `a turn must be a mapping, not empty`},
		{"say is a number", turns("say: 5"), `test.yaml:3:10: say must be text (put it in quotes), not a number`},
		{"unknown stop", turns("stop: done"), `test.yaml:3:11: unknown stop; allowed: end, tool_use, max_tokens, refusal, pause`},
		{"call without tool", turns("calls: [{args: {}}]"), `a call needs a tool`},
		{"unknown call key", turns("calls: [{tool: A, arg: {}}]"), `unknown key "arg" in a call; allowed: tool, args, bad_args`},
		{"args a list", turns("calls: [{tool: A, args: [1]}]"), `test.yaml:3:29: args must be a mapping (bad_args sends anything else), not a list`},
		{"args and bad_args", turns("calls: [{tool: A, args: {}, bad_args: x}]"), `either args or bad_args`},
		{"good bad_args", turns("calls: [{tool: A, bad_args: '{}'}]"), `bad_args holds a good JSON object`},
		{"infinity", turns("calls: [{tool: A, args: {x: .inf}}]"), `test.yaml:3:33: a value in args must be something JSON can hold`},
		{"octal", turns("calls: [{tool: A, args: {x: 017}}]"), `numbers in JSON's spelling`},
		{"numeric key", turns("calls: [{tool: A, args: {1: 2}}]"), `a key of args must be text, not a number`},
		{"anchor", turns("say: &x hi"), `not an anchor, alias or merge key`},
		{"tag", turns("say: !!str hi"), `not a tag`},
		{"merge", turns("<<: {say: hi}"), `a key of a turn must be text`},
		{"expect unknown", turns("{say: x, expect: {last_contains: y}}"), `unknown key "last_contains" in expect; allowed: last_result_contains`},
		{"expect empty", turns("{say: x, expect: {}}"), `expect is empty`},
		{"expect empty text", turns(`{say: x, expect: {last_result_contains: ""}}`), `must not be empty`},
		{"expect bad regexp", turns(`{say: x, expect: {last_result_matches: "("}}`), `must be a regular expression`},
		{"error without status", turns("error: {retry_after: 1}"), `error needs a status`},
		{"error status", turns("error: {status: 200}"), `status must be a whole number from 400 to 599, not 200`},
		{"cut of nothing", turns("cut_stream: true"), `cuts the stream of an empty reply`},
		{"cut word", turns("{say: x, cut_stream: soon}"), `cut_stream must be true, how many events arrive, or after, bytes and how, not text`},
		{"delay", turns("{say: x, delay: 5}"), `delay must be a duration such as "200ms"`},
		{"negative delay", turns("{say: x, delay: -5s}"), `delay must be a duration from 0s to 1h`},
		{"negative usage", turns("{say: x, usage: {input: -1}}"), `input must be a whole number from 0`},
		{"price", "version: 1\nmodel: {price: {input: cheap}}\n", `test.yaml:2:24: input must be a number from 0`},
		{"window", "version: 1\nmodel: {context_window: 0}\n", `context_window must be a whole number from 1`},
		{"repeat with sibling", turns("{say: x, repeat: {times: 2, say: y}}"), `repeat stands alone`},
		{"repeat without times", turns("repeat: {say: x}"), `repeat needs times`},
		{"repeat too often", turns("repeat: {times: 1000001, say: x}"), `times must be a whole number from 1 to 1000000`},
		{"repeat of nothing", turns("repeat: {times: 2}"), `repeat says nothing`},
		{"repeat of both", turns("repeat: {times: 2, say: x, turns: [{say: y}]}"), `either turns or one turn's own keys`},
		{"repeat in repeat", turns("repeat: {times: 2, repeat: {times: 2}}"), `unknown key "repeat"`},
		{"unknown purpose", "version: 1\nwhen: [{purpose: lunch, say: x}]\n", `unknown purpose; allowed: compaction, judge, explain`},
		{"no purpose", "version: 1\nwhen: [{say: x}]\n", `needs a purpose`},
		{"purpose twice", "version: 1\nwhen: [{purpose: judge, say: x}, {purpose: judge, say: y}]\n", `answered twice`},
		{"name of two lines", "version: 1\nname: \"a\\nb\"\n", `name must be one line`},
		{"not UTF-8", "version: 1\nname: \xff\n", `test.yaml:2:1: this line is not UTF-8`},
		{"deep", turns("calls: [{tool: A, args: {x: " + strings.Repeat("[", 70) + strings.Repeat("]", 70) + "}}]"), `nested more than 64 deep`},
		{"too large", strings.Repeat("#", yaml.MaxBytes+1), `at most 4194304 are read`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("test.yaml", []byte(c.text))
			var e *Error
			if !errors.As(err, &e) {
				t.Fatalf("want *Error, got %v", err)
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			if e.Line < 1 || e.Col < 1 || e.File != "test.yaml" {
				t.Errorf("place %s:%d:%d", e.File, e.Line, e.Col)
			}
		})
	}
}

func TestErrorShowsTheLine(t *testing.T) {
	_, err := Parse("bad.yaml", []byte("version: 1\nturns:\n  - say: hi\n    stpo: end\n"))
	want := `bad.yaml:4:5: unknown key "stpo" in a turn; allowed: say, thinking, calls, expect, stop, usage, error, cut_stream, delay, drip, repeat
  4 |     stpo: end
  ` + "  " + `      ^`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestDocumentNamesEveryKey(t *testing.T) {
	doc, err := os.ReadFile("../../docs/rehearsal.md")
	if err != nil {
		t.Fatal(err)
	}
	keys := append([]string{"purpose", "times"}, resultKinds...)
	for _, list := range [][]string{scriptKeys, modelKeys, priceKeys, turnKeys, callKeys, usageKeys, failureKeys, cutKeys} {
		keys = append(keys, list...)
	}
	for _, p := range places {
		keys = append(keys, p.name)
	}
	for _, c := range comparisons {
		keys = append(keys, "PLACE_"+c.name)
	}
	for _, k := range keys {
		if !strings.Contains(string(doc), "`"+k+"`") {
			t.Errorf("docs/rehearsal.md does not explain %q", k)
		}
	}
	for _, s := range stops {
		if !strings.Contains(string(doc), s.name) {
			t.Errorf("docs/rehearsal.md does not name the stop %q", s.name)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(full))
	f.Add([]byte("version: 1\nturns: [{say: hi}]\n"))
	f.Add([]byte("a: &x [*x]\n"))
	f.Add([]byte("? a\n: |2-\n  b\n"))
	f.Add([]byte("version: 1\r\nturns:\r\n- say: >-\r\n   x\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<14 {
			return
		}
		s, err := Parse("f.yaml", data)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Line < 1 || e.Col < 1 || !strings.HasPrefix(err.Error(), "f.yaml:") {
				t.Fatalf("not a located error: %#v", err)
			}
			return
		}
		for i := range min(s.Turns()+1, 50) {
			turn, err := s.Turn(i, "")
			if err != nil {
				if i < s.Turns() {
					t.Fatal(err)
				}
				continue
			}
			if _, err := json.Marshal(turn.Blocks); err != nil {
				t.Fatalf("turn %d cannot be stored: %v", i+1, err)
			}
			for _, c := range message.Calls(turn.Blocks) {
				var object map[string]any
				if err := json.Unmarshal(c.Args, &object); (err == nil && object != nil) != (c.BadArgs == "") {
					t.Fatalf("call %s: args %s, bad_args %q", c.ID, c.Args, c.BadArgs)
				}
			}
		}
	})
}
