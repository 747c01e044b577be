package model

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseSpec(t *testing.T) {
	for _, c := range []struct {
		text string
		want Spec
		fail string // part of the error
	}{
		{text: "anthropic:claude-opus-5-5", want: Spec{"anthropic", "claude-opus-5-5", ""}},
		{text: " OpenAI:gpt-6.2-sol ", want: Spec{"openai", "gpt-6.2-sol", ""}},
		{text: "openai:qwen3:8b@http://127.0.0.1:11434/v1/", want: Spec{"openai", "qwen3:8b", "http://127.0.0.1:11434/v1"}},
		{text: "openai:@cf/meta/llama@https://gw.example.com", want: Spec{"openai", "@cf/meta/llama", "https://gw.example.com"}},
		{text: "openai:org/name@v1.2", want: Spec{"openai", "org/name@v1.2", ""}},
		{text: "anthropic:x@http://[::1]:8000", want: Spec{"anthropic", "x", "http://[::1]:8000"}},
		{text: "rehearsal:a b@http://c:1.yaml", want: Spec{"rehearsal", "a b@http://c:1.yaml", ""}},
		{text: "", fail: "no provider"},
		{text: "gpt-4", fail: "no provider"},
		{text: "rehearsal:", fail: "no file"},
		{text: "openai:", fail: "no usable name"},
		{text: "openai:@http://127.0.0.1:1", fail: "no usable name"},
		{text: "openai:a b", fail: "no usable name"},
		{text: "gemini:x", fail: `unknown model "gemini:x"`},
		{text: "openai:m@127.0.0.1:11434", fail: "openai:m@http://127.0.0.1:11434"},
		{text: "openai:m@http://", fail: "which is none"},
		{text: "openai:m@http://u:secret@h/v1", fail: "password"},
		{text: "openai:m@http://h/v1?a=b", fail: "?"},
	} {
		got, err := ParseSpec(c.text)
		switch {
		case c.fail != "" && (err == nil || !strings.Contains(err.Error(), c.fail)):
			t.Errorf("%q: %+v %v, want an error with %q", c.text, got, err, c.fail)
		case c.fail != "" && strings.Contains(err.Error(), "secret"):
			t.Errorf("%q: the error shows the password: %v", c.text, err)
		case c.fail == "" && err != nil:
			t.Errorf("%q: %v", c.text, err)
		case c.fail == "":
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("%q: %s", c.text, d)
			}
			if again, err := ParseSpec(got.String()); err != nil || again != got {
				t.Errorf("%q: String() is read as %+v %v", c.text, again, err)
			}
		}
	}
}

func FuzzParseSpec(f *testing.F) {
	for _, s := range []string{"openai:a@http://h/v1", "rehearsal:x", "anthropic:a@b@https://[::1]:1/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSpec(text)
		if err != nil {
			return
		}
		if again, err := ParseSpec(s.String()); err != nil || again != s {
			t.Errorf("%q is %+v, which is read as %+v %v", text, s, again, err)
		}
	})
}

func TestKnown(t *testing.T) {
	for name, window := range map[string]int64{"claude-haiku-4-5-20251001": 200_000, "claude-opus-5": 1_000_000, "claude-opus-5-5": 1_000_000, "claude-opus-5-9": 0, "nobody": 0} {
		i := Known("anthropic", name)
		if i.ContextWindow != window || (i.Price == nil) != (window == 0) || i.ID() != "anthropic:"+name {
			t.Errorf("%s: %+v", name, i)
		}
	}
	if p := Known("anthropic", "claude-opus-5-5").Price; p.CacheRead != 0.2 {
		t.Errorf("the row of another model: %+v", p)
	}
	if i := Known("anthropic", "claude-haiku-5-5"); i.Price != nil || i.ContextWindow == 0 {
		t.Errorf("a known window, no known price: %+v", i)
	}
	if i := Known("openai", "claude-opus-5"); i.Price != nil {
		t.Errorf("another provider: %+v", i)
	}
}
