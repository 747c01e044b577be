package features

import (
	"strings"
	"testing"
)

func TestWith(t *testing.T) {
	for name, c := range map[string]struct{ text, id, want string }{
		"yaml":               {"bootstrap: make\nfeatures:\n  - id: a   # first\n    title: A\n    status: open\n  - id: b\n    title: B\n    status: todo # now\n", "b", "bootstrap: make\nfeatures:\n  - id: a   # first\n    title: A\n    status: open\n  - id: b\n    title: B\n    status: done # now\n"},
		"yaml, no status":    {"- id: a\n  title: A\n- id: b\n  title: B\n", "a", "- id: a\n  status: done\n  title: A\n- id: b\n  title: B\n"},
		"yaml in one line":   {"- {id: a, title: A}\n- {id: ab, title: B, status: open}\n", "ab", "- {id: a, title: A}\n- {id: ab, title: B, status: done}\n"},
		"json":               {"{\"features\": [\n  {\"id\": \"a\", \"title\": \"A\", \"status\": \"open\"},\n  {\"id\": \"b\", \"title\": \"B\"}\n]}\n", "b", "{\"features\": [\n  {\"id\": \"a\", \"title\": \"A\", \"status\": \"open\"},\n  {\"id\": \"b\", \"status\": \"done\", \"title\": \"B\"}\n]}\n"},
		"json in one line":   {`[{"id":"a","title":"A","status":"open"},{"id":"b","title":"B","status":"open"}]`, "b", `[{"id":"a","title":"A","status":"open"},{"id":"b","title":"B","status":"done"}]`},
		"status comes first": {"- status: open\n  id: a\n  title: A\n- status: open\n  id: b\n  title: B\n", "b", "- status: open\n  id: a\n  title: A\n- status: done\n  id: b\n  title: B\n"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := Parse("f", []byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			got, err := l.With(c.id, Done)
			if err != nil || string(got) != c.want {
				t.Errorf("%v\n%s\nwant\n%s", err, got, c.want)
			}
		})
	}
}

func TestNext(t *testing.T) {
	l, err := Parse("f", []byte("- {id: a, title: A, priority: 3}\n- {id: b, title: B, priority: 1, status: done}\n- {id: c, title: C, priority: 2}\n- {id: d, title: D, priority: 2}\n"))
	if err != nil || l.Next().ID != "c" {
		t.Fatal(err, l.Next())
	}
	if l, err := Parse("f", []byte("- {id: a, title: A, status: passing}\n")); err != nil || l.Next() != nil {
		t.Error(err)
	}
}

func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"[]": "1 to 10000", "- {title: A}\n": "no id", "- {id: a}\n": "no title", "- {id: a, title: A}\n- {id: a, title: B}\n": "twice",
		"- {id: a, title: A, status: maybe}\n": "no status", "features: 3\n": "features", "{}": "no features", "- {id: a, title: [\n": "f:",
	} {
		if _, err := Parse("f", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func FuzzWith(f *testing.F) {
	f.Add([]byte("- id: a\n  title: A\n  status: open\n- id: b\n  title: B\n"))
	f.Add([]byte(`{"features":[{"id":"a","title":"A"},{"id":"b","title":"B"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := Parse("f", text)
		if err != nil {
			return
		}
		for _, feature := range l.Features {
			got, err := l.With(feature.ID, Aside)
			if err != nil {
				continue // it is said, and nothing changed
			}
			again, err := Parse("f", got)
			if err != nil || len(again.Features) != len(l.Features) {
				t.Fatalf("%v\n%s", err, got)
			}
		}
	})
}
