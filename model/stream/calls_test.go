package stream

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/message"
	"belay/model"
)

func TestArgs(t *testing.T) {
	for raw, want := range map[string][2]string{
		"":                                {"{}", ""},
		" null ":                          {"{}", ""},
		"{}":                              {"{}", ""},
		` {"a": 1.50} `:                   {`{"a": 1.50}`, ""},
		`{"a":"x` + "\n\t\r\x01" + `"}`:   {`{"a":"x\n\t\r\u0001"}`, ""},
		`{"re":"\d+\.go","p":"C:\Users"}`: {`{"re":"\\d+\\.go","p":"C:\\Users"}`, ""},
		`{"a":"\u12"}`:                    {`{"a":"\\u12"}`, ""},
		`{"a":"\\d \" \u00e9"}`:           {`{"a":"\\d \" \u00e9"}`, ""},
		"{\n \"a\":\"b\nc\"}":             {"{\n \"a\":\"b\\nc\"}", ""},
		`"{\"a\":1}"`:                     {`{"a":1}`, ""},
		`[{"a":1}]`:                       {`{"a":1}`, ""},
		`"{\"a\":"`:                       {`"{\"a\":"`, "not a JSON object"},
		`[{"a":1},{"b":2}]`:               {`[{"a":1},{"b":2}]`, "not a JSON object"},
		`[ ]`:                             {`[]`, "not a JSON object"},
		`7`:                               {`7`, "not a JSON object"},
		`"text"`:                          {`"text"`, "not a JSON object"},
		`{"command": "ls`:                 {`"{\"command\": \"ls"`, "not valid JSON: unexpected end of JSON input"},
		`{"a":1}{"a":1}`:                  {`"{\"a\":1}{\"a\":1}"`, "not valid JSON: invalid character '{' after top-level value"},
		`{"a":"say "hi""}`:                {`"{\"a\":\"say \"hi\"\"}"`, "not valid JSON: invalid character 'h' after object key:value pair"},
		`{a:1}`:                           {`"{a:1}"`, "not valid JSON: invalid character 'a' looking for beginning of object key string"},
		`{"a":1,}`:                        {`"{\"a\":1,}"`, "not valid JSON: invalid character '}' looking for beginning of object key string"},
		"ls -la <x>":                      {`"ls -la <x>"`, "not valid JSON: invalid character 'l' looking for beginning of value"},
		"\xff":                            {`"` + "\uFFFD" + `"`, "not valid JSON: invalid character 'ï' looking for beginning of value"},
		`{"a":"` + "\xff" + `"}`:          {`{"a":"` + "\uFFFD" + `"}`, ""},
		`{"a":"\`:                         {`"{\"a\":\"\\"`, "not valid JSON: invalid character ' ' in string escape code"},
		strings.Repeat("[", 20000):        {`"` + strings.Repeat("[", 20000) + `"`, "not valid JSON: invalid character '[' exceeded max depth"},
		strings.Repeat(`{"a":`, 5) + "{}": {`"` + strings.Repeat(`{\"a\":`, 5) + `{}"`, "not valid JSON: unexpected end of JSON input"},
	} {
		args, bad := Args(raw)
		short := raw[:min(len(raw), 60)]
		if want[0] == `"{\"a\":\"say \"hi\"\"}"` {
			want[0] = string(quote(raw))
		}
		if string(args) != want[0] || bad != want[1] {
			t.Errorf("%q: %.200s, %q; want %.200s, %q", short, args, bad, want[0], want[1])
		}
	}
}

func FuzzArgs(f *testing.F) {
	for _, s := range []string{`{"a":"\d` + "\n" + `"}`, `"{\"a\":1}"`, `[{"a":1}]`, `{"command": "ls`, `"x"`, "7", "\xff{", `{"_invalid_arguments":"{"}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		args, bad := Args(raw)
		if !json.Valid(args) {
			t.Fatalf("%q gives no JSON: %q", raw, args)
		}
		var object map[string]json.RawMessage
		if bad == "" && (json.Unmarshal(args, &object) != nil || object == nil) {
			t.Fatalf("%q may run with %q, which is no object", raw, args)
		}
		if s := strings.TrimSpace(raw); bad == "" && string(args) == "{}" && s != "" && s != "null" && !strings.Contains(s, "{}") {
			t.Fatalf("%q became {}", raw)
		}
		call := message.ToolCall{Args: args, BadArgs: bad}
		again, bad2 := Args(Raw(call))
		if string(again) != string(args) || bad2 != bad {
			t.Errorf("%q: Raw is not the inverse: %q %q, then %q %q", raw, args, bad, again, bad2)
		}
		sent := History(call)
		if json.Unmarshal(sent, &object) != nil || object == nil {
			t.Errorf("%q is sent as %q, which is no object", raw, sent)
		}
		if back, bad3 := FromHistory(sent); bad != "" && (string(back) != string(args) || bad3 != bad) {
			t.Errorf("%q comes back as %q %q", raw, back, bad3)
		}
	})
}

func at(i int) *int { return &i }

func TestCalls(t *testing.T) {
	d := func(index *int, id, name, args string) CallDelta {
		return CallDelta{Index: index, ID: id, Name: name, Args: []byte(args)}
	}
	for name, c := range map[string]struct {
		deltas []CallDelta
		want   []string // "id name args"
	}{
		"one, in pieces": {[]CallDelta{d(at(0), "a", "Bash", ""), d(at(0), "", "", `{"x"`), d(at(0), "", "", `:1}`)}, []string{`a Bash {"x":1}`}},
		"whole":          {[]CallDelta{d(at(0), "a", "Bash", `{"x":1}`)}, []string{`a Bash {"x":1}`}},
		"two":            {[]CallDelta{d(at(0), "a", "Bash", `{"x":1}`), d(at(1), "b", "Read", `{}`)}, []string{`a Bash {"x":1}`, `b Read {}`}},
		"interleaved": {[]CallDelta{d(at(0), "a", "Bash", `{"x"`), d(at(1), "b", "Read", `{"y"`), d(at(0), "", "", `:1}`), d(at(1), "", "", `:2}`)},
			[]string{`a Bash {"x":1}`, `b Read {"y":2}`}},
		"name and id repeated": {[]CallDelta{d(at(0), "a", "Bash", `{"x"`), d(at(0), "a", "Bash", `:1}`)}, []string{`a Bash {"x":1}`}},
		"name repeated, no id": {[]CallDelta{d(at(0), "", "Bash", `{"x"`), d(at(0), "", "Bash", `:1}`)}, []string{`call_3_1 Bash {"x":1}`}},
		"no index":             {[]CallDelta{d(nil, "a", "Bash", `{"x"`), d(nil, "", "", `:1}`), d(nil, "b", "Read", ""), d(nil, "", "", `{"y":2}`)}, []string{`a Bash {"x":1}`, `b Read {"y":2}`}},
		"no index, ids always": {[]CallDelta{d(nil, "a", "Bash", `{"x"`), d(nil, "b", "Read", `{`), d(nil, "a", "", `:1}`), d(nil, "b", "", `}`)}, []string{`a Bash {"x":1}`, `b Read {}`}},
		"no index, no id":      {[]CallDelta{d(nil, "", "Bash", `{"x":1}`), d(nil, "", "Bash", `{"x":2}`), d(nil, "", "Read", ``)}, []string{`call_3_1 Bash {"x":1}`, `call_3_2 Bash {"x":2}`, `call_3_3 Read {}`}},
		"index always 0":       {[]CallDelta{d(at(0), "a", "Bash", `{"x":1}`), d(at(0), "b", "Bash", `{"x":2}`)}, []string{`a Bash {"x":1}`, `b Bash {"x":2}`}},
		"index always 0, no id": {[]CallDelta{d(at(0), "", "Bash", `{"x":1}`), d(at(0), "", "Bash", `{"x":2}`)},
			[]string{`call_3_1 Bash {"x":1}`, `call_3_2 Bash {"x":2}`}},
		"index always 0, open calls": {[]CallDelta{d(at(0), "a", "Bash", ``), d(at(0), "b", "Read", ``), d(at(0), "a", "", `{"x":1}`), d(at(0), "b", "", `{"y":2}`)},
			[]string{`a Bash {"x":1}`, `b Read {"y":2}`}},
		"index from 1, backwards": {[]CallDelta{d(at(2), "a", "Bash", `{}`), d(at(1), "b", "Read", `{}`), d(at(-1), "c", "LS", `{}`)}, []string{`a Bash {}`, `b Read {}`, `c LS {}`}},
		"a new id in each piece":  {[]CallDelta{d(at(0), "a", "Bash", `{"x"`), d(at(0), "b", "", `:1`), d(at(0), "c", "", `}`)}, []string{`a Bash {"x":1}`}},
		"sent twice":              {[]CallDelta{d(at(0), "a", "Bash", `{"x"`), d(at(0), "", "", `:1}`), d(at(0), "a", "Bash", `{"x":1}`)}, []string{`a Bash {"x":1}`}},
		"more after the end":      {[]CallDelta{d(at(0), "a", "Bash", `{"x":1}`), d(at(0), "", "", `{"x":2}`)}, []string{`a Bash BAD`}},
		"the id comes later":      {[]CallDelta{d(at(0), "", "Bash", ``), d(at(0), "a", "", `{}`)}, []string{`a Bash {}`}},
		"no name":                 {[]CallDelta{d(at(0), "a", "", `{}`), d(at(1), "b", "LS", ``)}, []string{`b LS {}`}},
		"an id twice": {[]CallDelta{d(at(0), "a", "Bash", `{"x":1}`), d(at(0), "b", "Bash", `{"x":1}`), d(at(1), "taken", "LS", "")},
			[]string{`a Bash {"x":1}`, `b Bash {"x":1}`, `call_3_3 LS {}`}},
		"duplicate start": {[]CallDelta{d(at(0), "a", "Bash", ``), d(at(0), "a", "Bash", ``), d(at(0), "", "", `{"x":1}`)}, []string{`a Bash {"x":1}`}},
		"byte by byte":    {bytewise("a", "Bash", `{"x":{"y":[1,"}"]}}`), []string{`a Bash {"x":{"y":[1,"}"]}}`}},
	} {
		var calls Calls
		for _, x := range c.deltas {
			if _, _, err := calls.Add(x); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		var got []string
		for _, call := range calls.finish(3, func(id string) bool { return id == "taken" }) {
			if call == nil {
				continue
			}
			args := string(call.Args)
			if call.BadArgs != "" {
				args = "BAD"
			}
			got = append(got, call.ID+" "+call.Name+" "+args)
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func bytewise(id, name, args string) []CallDelta {
	deltas := []CallDelta{{Index: at(0), ID: id, Name: name}}
	for i := range len(args) {
		deltas = append(deltas, CallDelta{Index: at(0), Args: []byte{args[i]}})
	}
	return deltas
}

func TestCallsAreBounded(t *testing.T) {
	var calls Calls
	for i := range MaxCalls {
		if _, _, err := calls.Add(CallDelta{Index: at(i), Name: "A"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := calls.Add(CallDelta{Index: at(MaxCalls), Name: "A"}); err == nil {
		t.Error("calls are not bounded")
	}
	r := NewReply(model.Request{})
	piece := []byte(strings.Repeat("x", 1<<20))
	var err error
	for range MaxReply>>20 + 1 {
		if _, err = r.Call(CallDelta{Index: at(0), Name: "A", Args: piece}); err != nil {
			break
		}
	}
	if err == nil {
		t.Error("arguments are not bounded")
	}
}

func TestStopClass(t *testing.T) {
	for _, c := range []struct {
		stop          message.StopReason
		calls, blocks int
		want          message.StopReason // "" is an error
	}{
		{message.StopEnd, 0, 0, message.StopEnd},
		{message.StopEnd, 1, 1, message.StopToolUse},
		{message.StopToolUse, 1, 1, message.StopToolUse},
		{message.StopToolUse, 0, 1, ""},
		{message.StopLength, 1, 1, message.StopLength},
		{message.StopRefusal, 1, 1, message.StopRefusal},
		{message.StopPause, 0, 1, message.StopPause},
		{"", 0, 1, message.StopEnd},
		{"", 1, 1, ""},
		{"", 0, 0, ""},
	} {
		got, err := stopClass("raw", c.stop, c.calls, c.blocks)
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%+v: %q %v", c, got, err)
		}
		if err != nil && !model.AsError(err).Retryable() {
			t.Errorf("%+v: %v is not retryable", c, err)
		}
	}
}

// FuzzCalls holds that no order of deltas panics, or makes calls that may run without an object.
func FuzzCalls(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 0x40, 5, 0x80, 7, 0xC0, 9, 11, 200})
	f.Fuzz(func(t *testing.T, program []byte) {
		r := NewReply(model.Request{})
		ids, names := []string{"", "a", "b", "call_1_1"}, []string{"", "Bash", "Read"}
		args := []string{"", "{}", `{"x"`, ":1}", `{"x":1}`, "null", "}", "\xf0\x9f"}
		for i := 0; i+1 < len(program); i += 2 {
			a, b := int(program[i]), int(program[i+1])
			d := CallDelta{ID: ids[a%4], Name: names[a/4%3], Args: []byte(args[b%8])}
			if a&0x40 == 0 {
				d.Index = at(b/8%4 - 1)
			}
			if _, err := r.Call(d); err != nil {
				return
			}
		}
		events, err := r.Finish("stop", message.StopEnd)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, ev := range events {
			if ev.Block == nil {
				continue
			}
			call := ev.Block.Call
			var object map[string]json.RawMessage
			if call.Name == "" || call.ID == "" || seen[call.ID] {
				t.Fatalf("a call without name or id, or one of two with the same id: %+v", call)
			}
			if seen[call.ID] = true; call.BadArgs == "" && (json.Unmarshal(call.Args, &object) != nil || object == nil) {
				t.Fatalf("%+v may run", call)
			}
		}
	})
}
