package tool

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

func numbers(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

func TestCutText(t *testing.T) {
	long := strings.Replace(numbers(10000), "line 5000\n", "ERROR: it broke\n", 1)
	for cut, ends := range map[Cut][2]bool{CutBoth: {true, true}, "": {true, true}, CutHead: {true, false}, CutTail: {false, true}} {
		short, truncated := CutText(long, 100, cut)
		if !truncated || len(short) > 100*BytesPerToken+200 {
			t.Errorf("%s: %v, %d bytes", cut, truncated, len(short))
		}
		if strings.HasPrefix(short, "line 1\n") != ends[0] || strings.HasSuffix(short, "line 10000\n") != ends[1] {
			t.Errorf("%s keeps the wrong ends:\n%s", cut, short)
		}
		if !strings.Contains(short, "ERROR: it broke\n") || !strings.Contains(short, "1 of them look like errors, 1 shown here") {
			t.Errorf("%s loses the error:\n%s", cut, short)
		}
		kept := strings.Count(short, "line ") + 1
		m := regexp.MustCompile(`\[… (\d+) lines`).FindStringSubmatch(short)
		if m == nil {
			t.Fatalf("%s has no marker:\n%s", cut, short)
		}
		if missing, _ := strconv.Atoi(m[1]); missing+kept != 10001 {
			t.Errorf("%s: the marker says %d, %d are there", cut, missing, kept)
		}
	}
}

func TestCutTextLeavesShortTextsAlone(t *testing.T) {
	for _, s := range []string{"", "x", "a\nb", strings.Repeat("x", 400)} {
		if short, truncated := CutText(s, 100, CutBoth); truncated || short != s {
			t.Errorf("%q became %q", s, short)
		}
	}
}

func TestCutTextCutsInsideOneLongLine(t *testing.T) {
	s := "start" + strings.Repeat("ä", 10000) + "end"
	short, truncated := CutText(s, 100, CutBoth)
	if !truncated || len(short) > 500 || !utf8.ValidString(short) || !strings.HasPrefix(short, "start") || !strings.HasSuffix(short, "end") || !strings.Contains(short, "bytes of this line left out") {
		t.Errorf("%d bytes: %s", len(short), short)
	}
}

// A line that is too long by itself still shows its ends, whatever stands beside it.
func TestCutTextShowsALongLineBesideShortOnes(t *testing.T) {
	long := "start" + strings.Repeat("x", 100_000) + "end"
	for _, cut := range []Cut{CutBoth, CutHead, CutTail} {
		short, truncated := CutText(long+"\n[exit 0]\n", 100, cut)
		if !truncated || len(short) > 500 || !strings.Contains(short, "xxxxx") || !strings.Contains(short, "of this line left out") {
			t.Errorf("%s: %q", cut, short)
		}
	}
}

func TestCutTextCountsErrorsThatDoNotFit(t *testing.T) {
	s := numbers(1000) + strings.Repeat("error: again\n", 500) + numbers(1000)
	short, _ := CutText(s, 1000, CutBoth)
	if n := strings.Count(short, "error: again"); n != MaxErrorLines || !strings.Contains(short, "500 of them look like errors, 50 shown here") {
		t.Errorf("%d error lines:\n%s", n, short)
	}
}

func FuzzCutText(f *testing.F) {
	f.Add(numbers(100), 10, "both")
	f.Add("error\xff\n\n\r\n"+strings.Repeat("x", 1000), 3, "head")
	f.Fuzz(func(t *testing.T, s string, budget int, cut string) {
		if budget > 1000 {
			return
		}
		short, truncated := CutText(s, budget, Cut(cut))
		if !truncated && short != s {
			t.Fatal("changed without saying so")
		}
		if budget > 0 && len(short) > max(budget*BytesPerToken, 0)+300 {
			t.Fatalf("%d bytes for %d tokens", len(short), budget)
		}
		if utf8.ValidString(s) && !utf8.ValidString(short) {
			t.Fatal("a character is split")
		}
		if truncated && !strings.Contains(short, "left out") {
			t.Fatal("cut without a marker")
		}
	})
}

func TestNearest(t *testing.T) {
	names := []string{"Read", "UpdatePlan", "file_path", "handler.go"}
	for in, want := range map[string]string{"read": "Read", "update_plan": "UpdatePlan", "path": "file_path", "filePath": "file_path", "handlr.go": "handler.go", "zzzz": "", "": ""} {
		if got := nearest(in, names); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// However long they are, fifty error lines stay and the rest is counted; so does what the capture did not keep.
func TestCutKeepsErrorsAndWhatIsMissing(t *testing.T) {
	c := NewCapture(64 << 10)
	for i := range 5000 {
		fmt.Fprintf(c, "line %d of what nobody reads\n", i)
		if i%10 == 0 {
			fmt.Fprintf(c, "error %d: %s\n", i, strings.Repeat("long ", 60))
		}
	}
	text := c.String()
	missing := regexp.MustCompile(`(?m)^\[… of the output, \d+ bytes were not kept …\]$`)
	if !missing.MatchString(text) {
		t.Fatal("the capture dropped nothing")
	}
	for _, budget := range []int{2000, 4000} {
		short, cut := CutText(text, budget, CutBoth)
		shown := strings.Count(short[strings.Index(short, "left out"):strings.Index(short, "end of the shown errors")], "\nerror ")
		if !cut || shown != MaxErrorLines {
			t.Errorf("%d of %d error lines stayed in %d tokens:\n%s", shown, MaxErrorLines, budget, short)
		}
		if !missing.MatchString(short) {
			t.Error("the cut left out how much the capture did not keep")
		}
		if len(short) > budget*BytesPerToken*5/4 {
			t.Errorf("%d bytes for a budget of %d", len(short), budget*BytesPerToken)
		}
	}
}
