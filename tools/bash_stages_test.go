package tools

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/internal/shell"
	"belay/tool"
)

// However the output is chopped, the reports come out of it and the rest stays as it was.
func TestReports(t *testing.T) {
	mark := newMark()
	in := "one\x1e" + mark + " 0 1 0\x1etwo\x1ethree\x1e" + mark[:4] + "\x1e\x1e" + mark + " end 0\x1e" + "four\x1e" + mark
	for size := 1; size <= len(in); size++ {
		var out bytes.Buffer
		r := newReports(mark)
		r.filter(&out)
		for rest := in; rest != ""; {
			n := min(size, len(rest))
			if got, err := r.Write([]byte(rest[:n])); got != n || err != nil {
				t.Fatal(got, err)
			}
			rest = rest[n:]
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if want := "onetwo\x1ethree\x1e" + mark[:4] + "\x1efour\x1e" + mark; out.String() != want {
			t.Fatalf("size %d: %q, want %q", size, out.String(), want)
		}
		if d := cmp.Diff([][]string{{"0", "1", "0"}, {"end", "0"}}, r.got); d != "" {
			t.Fatal(size, d)
		}
	}
	var out bytes.Buffer
	r := newReports(mark)
	r.filter(&out)
	endless := "\x1e" + mark + " " + strings.Repeat("x", 10*maxReport)
	for range 10 {
		r.Write([]byte(endless))
	}
	r.Close()
	if out.Len() != 10*len(endless) {
		t.Error("a report without an end was not passed on")
	}
}

func TestStages(t *testing.T) {
	part := func(op string, names ...string) shell.Part { return shell.Part{Op: op, Stages: names} }
	for _, c := range []struct {
		parts []shell.Part
		got   [][]string
		exit  tool.Exit
		want  string
	}{
		{[]shell.Part{part(";", "rg", "grep", "sed")}, [][]string{{"0", "0", "1", "0"}, {"end", "0"}, {"exit", "0"}}, tool.Exit{}, "rg 0, grep 1 (empty), sed 0 (empty)"},
		{[]shell.Part{part(";", "a"), part("&&", "b"), part("||", "c")}, [][]string{{"0", "1"}, {"exit", "3"}}, tool.Exit{Code: 3}, "a 1; b not run; c 3"},
		{[]shell.Part{part(";", "a"), part(";", "b", "c")}, [][]string{{"0", "0"}, {"exit", "1", "0"}}, tool.Exit{Code: 1}, "a 0; b 1, c 0"},
		{[]shell.Part{part(";", "a"), part(";", "sleep"), part(";", "b")}, [][]string{{"0", "137"}}, tool.Exit{Code: 137, TimedOut: true}, "a 137 (SIGKILL); sleep killed; b not run"},
	} {
		if got := stagesText(stages(c.parts, c.got, c.exit, false)); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}
