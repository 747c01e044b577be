package render

import (
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"belay/journal"
	"belay/model"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // stories show local time
	os.Exit(m.Run())
}

func each(events []journal.Event) iter.Seq2[journal.Event, error] {
	return func(yield func(journal.Event, error) bool) {
		for _, e := range events {
			if !yield(e, nil) {
				return
			}
		}
	}
}

func narrow() int { return 60 }

func TestStory(t *testing.T) {
	whole := store(t, append(fixture(), fixtureEnd()...))
	tests := []struct {
		golden string
		events []journal.Event
		screen Screen
		full   bool
		holds  bool
		err    error
	}{
		{golden: "story.txt", events: whole, holds: true},
		{golden: "story-full.txt", events: whole, full: true},
		{golden: "story-narrow-color.txt", events: whole, screen: Screen{Color: true, Columns: narrow}, err: fs.ErrNotExist},
		{golden: "story-unfinished.txt", events: store(t, fixture()[:5])},
		{golden: "story-open-call.txt", events: store(t, fixture()[:6])},
	}
	for _, tt := range tests {
		t.Run(tt.golden, func(t *testing.T) {
			var b strings.Builder
			s := Story{Screen: tt.screen, Full: tt.full, Holds: func(journal.SessionStart, []journal.Proof) (bool, error) { return tt.holds, tt.err }}
			if err := s.Tell(&b, fixtureID, each(tt.events)); err != nil {
				t.Fatal(err)
			}
			golden(t, tt.golden, b.String())
		})
	}
}

func TestStoryTellsWhatComesBeforeDamage(t *testing.T) {
	events := store(t, fixture()[:4])
	damage := &journal.DamageError{Finding: journal.Finding{Line: 4, Text: "broken chain"}}
	var b strings.Builder
	err := Story{}.Tell(&b, fixtureID, func(yield func(journal.Event, error) bool) {
		for _, e := range events[:4] {
			yield(e, nil)
		}
		yield(journal.Event{}, damage)
	})
	if !errors.Is(err, damage) {
		t.Errorf("the error is %v, want the damage", err)
	}
	if !strings.Contains(b.String(), "task: Fix the failing test") || strings.Contains(b.String(), "unfinished") {
		t.Errorf("the story is\n%s", b.String())
	}
}

// still is a Live whose time stands still and whose ticks come from the test.
func still(w io.Writer, s Screen) (*Live, *clock) {
	c := newClock()
	l := &Live{out: w, screen: s, clock: c.Now, teller: teller{screen: s}, began: c.now, since: c.now, stop: make(chan struct{}), done: make(chan struct{})}
	close(l.stop)
	close(l.done)
	return l, c
}

func TestLivePlain(t *testing.T) {
	var b strings.Builder
	l, c := still(&b, Screen{})
	l.Progress("preparing the sandbox")
	c.advance(2 * time.Second)
	l.tick() // not more than two seconds: nothing
	c.advance(time.Second)
	l.tick()
	for range 20 { // many ticks, but one line in ten seconds
		c.advance(500 * time.Millisecond)
		l.tick()
	}
	for _, e := range store(t, append(fixture(), fixtureEnd()...)) {
		l.Observe(e)
		c.advance(100 * time.Millisecond)
		l.tick()
		if e.Type == journal.TypeToolRequest && e.Seq == 7 {
			c.advance(3 * time.Second)
			l.tick()
			l.Delta(model.Event{Kind: model.TextDelta, Delta: "never shown on a plain screen" + evil})
			l.tick()
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	golden(t, "live-plain.txt", b.String())
	for _, r := range b.String() {
		if r == '\x1b' || r == '\r' {
			t.Fatalf("a plain screen got %q", r)
		}
	}
}

func TestLiveMoving(t *testing.T) {
	var b strings.Builder
	l, c := still(&b, Screen{Color: true, Moving: true, Columns: narrow})
	events := store(t, append(fixture(), fixtureEnd()...))
	for _, e := range events {
		l.Observe(e)
		c.advance(1500 * time.Millisecond)
		l.tick()
		if e.Type == journal.TypeModelCall {
			l.Delta(model.Event{Kind: model.TextDelta, Delta: strings.Repeat("many words are being typed ", 10) + evil + "the end"})
			l.tick()
		}
	}
	l.Notice("stopping")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	golden(t, "live-moving.txt", strings.NewReplacer("\r", "<CR>", "\x1b", "<ESC>").Replace(b.String()))
	for line := range strings.SplitSeq(b.String(), "\r\x1b[K") {
		status, _, _ := strings.Cut(line, "\n")
		if w := Width(uncolored(status)); strings.ContainsAny(status, strings.Join(frames, "")) && w >= 60 {
			t.Errorf("a status line of %d columns on a screen of 60: %q", w, status)
		}
	}
}

func uncolored(s string) string { return Clean(s) }

func TestLiveReportsWriteErrors(t *testing.T) {
	l, _ := still(failing{}, Screen{})
	l.Notice("one")
	if err := l.Close(); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Close: %v", err)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

// TestLiveFromManyGoroutines is for the race detector, and for a Close that waits for the ticker.
func TestLiveFromManyGoroutines(t *testing.T) {
	l := NewLive(io.Discard, Screen{Moving: true, Columns: narrow}, nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 200 {
			l.Progress("x")
			l.Delta(model.Event{Kind: model.TextDelta, Delta: "y"})
		}
	}()
	for _, e := range store(t, fixture()) {
		l.Observe(e)
	}
	<-done
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestClean(t *testing.T) {
	tests := []struct{ in, want string }{
		{"plain\ttext\n", "plain\ttext\n"},
		{"\x1b[31mred\x1b[0m", "red"},
		{"\x1b]0;title\atext", "text"},
		{"\x1b]8;;http://example.com\x1b\\link\x1b]8;;\x1b\\", "link"},
		{"\x1b]unterminated\nnext", "unterminated\nnext"},
		{"\x1bP1$r\x1b\\a", "a"},
		{"\x1b(Bok", "ok"},
		{"\x1bcreset", "reset"},
		{"a\u009b31mb", "ab"},
		{"a\x9bb", "a\uFFFDb"},
		{"50%\r100%\r\n", "50%\n100%\n"},
		{"bell\a back\b del\x7f nul\x00", "bell back del nul"},
		{"user\u202eexe.txt", "userexe.txt"},
		{"tag\U000E0041", "tag"},
		{"👩\u200d🔬 é 漢字", "👩\u200d🔬 é 漢字"},
		{"\x1b", ""},
		{"\x1b[", ""},
	}
	for _, tt := range tests {
		if got := Clean(tt.in); got != tt.want {
			t.Errorf("Clean(%q) = %q, want %q", tt.in, got, tt.want)
		}
	}
}

func FuzzClean(f *testing.F) {
	for _, seed := range []string{evil, "\x1b[31m", "\x1b\x1b[[m", "\u009b1\u009c", "a\r\x07\n", "\xc2", "\x1b]\x1b\\", "\x1bP\u2028"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := Clean(s)
		if !utf8.ValidString(got) {
			t.Fatalf("not UTF-8: %q", got)
		}
		for _, r := range got {
			if r != '\n' && r != '\t' && unicode.IsControl(r) || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
				t.Fatalf("%U got through in %q", r, got)
			}
		}
		if again := Clean(got); again != got {
			t.Fatalf("cleaning twice changes %q to %q", got, again)
		}
		if line := Line(s); strings.ContainsAny(line, "\n\t") {
			t.Fatalf("Line gave more than a line: %q", line)
		}
		for _, columns := range []int{1, 2, 7, 40} {
			if w := Width(Cut(Line(s), columns)); w > columns {
				t.Fatalf("Cut to %d columns gave %d", columns, w)
			}
			for _, line := range wrap(got, columns+1) { // one wide rune needs two
				if Width(line) > columns+1 {
					t.Fatalf("wrap to %d columns gave %q", columns+1, line)
				}
			}
		}
	})
}

func TestDetect(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	tests := []struct {
		name string
		env  map[string]string
		want bool
	}{
		{name: "a file", want: false},
		{name: "forced", env: map[string]string{"CLICOLOR_FORCE": "1"}, want: true},
		{name: "forced off", env: map[string]string{"CLICOLOR_FORCE": "0"}, want: false},
		{name: "refused wins", env: map[string]string{"CLICOLOR_FORCE": "1", "NO_COLOR": "1"}, want: false},
		{name: "empty NO_COLOR is none", env: map[string]string{"CLICOLOR_FORCE": "1", "NO_COLOR": ""}, want: true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := Detect(null, func(k string) string { return tt.env[k] })
			if s.Color != tt.want || s.Moving {
				t.Errorf("color %v, moving %v; want color %v on something that is no terminal", s.Color, s.Moving, tt.want)
			}
		})
	}
}

func TestWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-1: "0ms", 0: "0ms", 999 * time.Millisecond: "999ms", 1240 * time.Millisecond: "1.2s", 59960 * time.Millisecond: "1m00s",
		123 * time.Second: "2m03s", 62 * time.Minute: "1h02m",
	} {
		if got := Duration(d); got != want {
			t.Errorf("Duration(%v) = %q, want %q", d, got, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 12345: "12.3k", 999_949: "999.9k", 999_950: "1.0M", 2_000_000: "2.0M"} {
		if got := Count(n); got != want {
			t.Errorf("Count(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestWrap(t *testing.T) {
	tests := []struct {
		in   string
		want []string
	}{
		{"", []string{""}},
		{"one two three", []string{"one two", "three"}},
		{"one  two   three", []string{"one  two", "three"}},
		{"exactly8 x", []string{"exactly8", "x"}},
		{"abcdefghijklmnopq", []string{"abcdefgh", "ijklmnop", "q"}},
		{"  indented text", []string{"  indent", "ed text"}},
		{"a\n\tb\n", []string{"a", "    b"}},
		{"漢字漢字漢字", []string{"漢字漢字", "漢字"}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, wrap(tt.in, 8)); diff != "" {
			t.Errorf("wrap(%q):\n%s", tt.in, diff)
		}
	}
}

// TestLongHostileTextIsCheap would take hours where the cost grew with the square of a length.
func TestLongHostileTextIsCheap(t *testing.T) {
	for _, unit := range []string{"x", "\x1bP", "\x1b[", " ", "a ", "\u0301", "\u009d"} {
		s := strings.Repeat(unit, 1<<18)
		wrap(Clean(s), 2)
		Cut(Line(s), 10)
		matters(Clean(s), 8)
	}
}
