package loop

import (
	"regexp"
	"strings"
	"testing"
)

var volatile = regexp.MustCompile(`\b[0-9.]+ ?(ns|µs|ms|s)\b|0x[0-9a-f]+`)

// FuzzSteady holds the scanner against the regular expression that says what it does.
func FuzzSteady(f *testing.F) {
	for _, s := range []string{"ok pkg 0.123s", "took 3 ms, 5µs", "at 0xc0000140: 00x1f", "x1.5s .5s a.5s _1s", "1s1s 1s.1s 12sx", "0x", "....", ".s", "s 0 s", "1.s.", "0x1s 0xfs", "é1s 1é", " .1s"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got, want := steady(s), volatile.ReplaceAllString(s, "~"); got != want {
			t.Errorf("%q became %q, want %q", s, got, want)
		}
	})
}

func TestSteadyIsLinear(t *testing.T) {
	s := strings.Repeat("1.", 1<<20)
	if got := steady(s); got != s {
		t.Errorf("%d bytes became %d", len(s), len(got))
	}
}
