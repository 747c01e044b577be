package stream

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

type result struct {
	Events []string
	End    string
}

func readAll(r io.Reader, limit int) result {
	var out result
	reader := NewReader(r)
	reader.limit = limit
	for {
		ev, err := reader.Next()
		if err != nil {
			out.End = err.Error()
			return out
		}
		s := string(ev.Data)
		if ev.Name != "" {
			s = ev.Name + "|" + s
		}
		if ev.Done {
			s = "done"
		}
		out.Events = append(out.Events, s)
	}
}

// sized reads pieces of the given sizes, over and over.
type sized struct {
	r     io.Reader
	sizes []int
	i     int
}

func (s *sized) Read(p []byte) (int, error) {
	n := min(max(s.sizes[s.i%len(s.sizes)], 1), len(p))
	s.i++
	return s.r.Read(p[:n])
}

func TestReader(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want result
	}{
		"plain":                {"data: {}\n\ndata: [DONE]\n\n", result{[]string{"{}", "done"}, "EOF"}},
		"names":                {"event: a\ndata: 1\n\ndata: 2\n\n", result{[]string{"a|1", "2"}, "EOF"}},
		"crlf":                 {"event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", result{[]string{"a|1", "2"}, "EOF"}},
		"cr":                   {"data: 1\r\rdata: 2\r\r", result{[]string{"1", "2"}, "EOF"}},
		"mixed ends":           {"data: 1\r\n\ndata: 2\r\r\ndata: 3\n\r\n", result{[]string{"1", "2", "3"}, "EOF"}},
		"no space":             {"data:1\n\ndata:  2\n\n", result{[]string{"1", "2"}, "EOF"}},
		"several lines":        {"data: {\ndata: \"a\":\ndata: 1}\n\n", result{[]string{"{\n\"a\":\n1}"}, "EOF"}},
		"comments":             {": OPENROUTER PROCESSING\n\n:\ndata: 1\n: ping\n\ndata: : wrapped\n\n", result{[]string{"1"}, "EOF"}},
		"empty":                {"data:\n\ndata: \n\n\n\n\nevent: x\n\ndata: 1\n\n", result{[]string{"1"}, "EOF"}},
		"bom":                  {"\xef\xbb\xbfdata: 1\n\n", result{[]string{"1"}, "EOF"}},
		"no blank line at end": {"data: 1\n\ndata: 2", result{[]string{"1", "2"}, "EOF"}},
		"id and retry":         {"id: 7\nretry: 10\ndata: 1\n\n", result{[]string{"1"}, "EOF"}},
		"bare json":            {"{\"error\": 1}\n", result{[]string{`{"error": 1}`}, "EOF"}},
		"plain text":           {"data: 1\n\nupstream error: read ECONNRESET\n", result{[]string{"1"}, `a line of the stream is no server-sent event: "upstream error: read ECONNRESET"`}},
		"nothing":              {"", result{nil, "EOF"}},
		"white space":          {"  \n \n", result{nil, "EOF"}},
		"too long a line":      {"data: " + strings.Repeat("x", 200) + "\n\n", result{nil, ErrTooLong.Error()}},
		"too long together":    {strings.Repeat("data: "+strings.Repeat("x", 60)+"\n", 4) + "\n", result{nil, ErrTooLong.Error()}},
		"unicode":              {"data: größe 日本\n\n", result{[]string{"größe 日本"}, "EOF"}},
	} {
		const limit = 150
		if d := cmp.Diff(c.want, readAll(strings.NewReader(c.in), limit)); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if d := cmp.Diff(c.want, readAll(iotest.OneByteReader(strings.NewReader(c.in)), limit)); d != "" {
			t.Errorf("%s, byte by byte: %s", name, d)
		}
		if d := cmp.Diff(c.want, readAll(iotest.DataErrReader(&sized{r: strings.NewReader(c.in), sizes: []int{2, 5, 1}}), limit)); d != "" {
			t.Errorf("%s, in pieces: %s", name, d)
		}
	}
}

func TestReaderKeepsTheReadersError(t *testing.T) {
	broken := errors.New("broken")
	got := readAll(io.MultiReader(strings.NewReader("data: 1\n\ndata: {\"half"), iotest.ErrReader(broken)), 1000)
	if d := cmp.Diff(result{[]string{"1"}, "broken"}, got); d != "" {
		t.Error(d)
	}
}

// TestReaderIsBounded feeds far more than may be kept.
func TestReaderIsBounded(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	end := readAll(io.LimitReader(endless("x"), 1<<30), MaxEvent).End
	if end != ErrTooLong.Error() {
		t.Errorf("an endless line: %s", end)
	}
	if got := readAll(io.LimitReader(endless("data:\n\n"), 14<<20), MaxEvent); len(got.Events) != 0 || got.End != "EOF" {
		t.Errorf("empty events: %d, %s", len(got.Events), got.End)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if grown := int64(after.TotalAlloc - before.TotalAlloc); grown > 8*MaxEvent {
		t.Errorf("allocated %d MiB", grown>>20)
	}
}

type repeated struct {
	s string
	i int
}

func endless(s string) io.Reader { return &repeated{s: s} }

func (r *repeated) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = r.s[r.i%len(r.s)]
		r.i++
	}
	return len(p), nil
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("event: a\r\ndata: 1\r\n\r\ndata: {\"x\":\ndata: 1}\n\n: c\n\ndata: [DONE]\n\n"), uint8(3), uint8(1))
	f.Add([]byte("\xef\xbb\xbfdata:\rdata\n\r\n{}\nx"), uint8(1), uint8(2))
	f.Fuzz(func(t *testing.T, in []byte, a, b uint8) {
		want := readAll(bytes.NewReader(in), MaxEvent)
		got := readAll(&sized{r: bytes.NewReader(in), sizes: []int{int(a), int(b)}}, MaxEvent)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("the split changes what is read: %s", d)
		}
	})
}

func TestFragments(t *testing.T) {
	for _, c := range []struct {
		pieces []string // JSON strings
		want   string
	}{
		{[]string{`"a\n\t\"\\\/\b\f\r"`, `null`, `""`, `"é"`}, "a\n\t\"\\/\b\f\ré"},
		{[]string{`"\ud83e"`, `"\uddd7"`}, "🧗"},
		{[]string{`"x\uD83E"`, `"y"`}, "x\uFFFDy"},
		{[]string{`"\uddd7"`}, "\uFFFD"},
		{[]string{"\"\xf0\x9f\"", "\"\xa7\x97!\""}, "🧗!"},
		{[]string{"\"\xff\""}, "\uFFFD"},
		{[]string{`"日本"`}, "日本"},
	} {
		var joined []byte
		told := 0
		var deltas string
		for _, p := range c.pieces {
			var f Fragment
			if err := json.Unmarshal([]byte(p), &f); err != nil {
				t.Fatalf("%q: %v", p, err)
			}
			joined = append(joined, f...)
			n := shown(joined)
			deltas += Join(joined[told:n])
			told = n
		}
		if got := Join(joined); got != c.want {
			t.Errorf("%q: %q, want %q", c.pieces, got, c.want)
		}
		if !strings.HasPrefix(c.want, deltas) {
			t.Errorf("%q: shown as %q", c.pieces, deltas)
		}
	}
	var f Fragment
	if err := json.Unmarshal([]byte("7"), &f); err == nil {
		t.Error("a number is no text")
	}
}

func FuzzFragment(f *testing.F) {
	f.Add(`"a\ud83e\uddd7\n"`, 3)
	f.Fuzz(func(t *testing.T, text string, at int) {
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		var got Fragment
		if err := json.Unmarshal(quoted, &got); err != nil {
			t.Fatal(err)
		}
		if want := strings.ToValidUTF8(text, "\uFFFD"); utf8.ValidString(text) && Join(got) != want {
			t.Errorf("%q became %q", text, Join(got))
		}
		if json.Unmarshal([]byte(text), &got) == nil && !utf8.ValidString(Join(got)) {
			t.Errorf("%q became invalid", text)
		}
		if utf8.ValidString(text) { // split anywhere, it comes together again
			at = min(max(at, 0), len(text))
			if Join(append([]byte(text[:at]), text[at:]...)) != text {
				t.Errorf("%q split at %d", text, at)
			}
		}
	})
}
