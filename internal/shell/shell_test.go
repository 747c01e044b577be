package shell

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"belay/effect"
	"belay/tool"
)

var place = tool.Place{Workspace: "/ws", Dir: "/ws", Home: "/home/me"}

// kinds are the kinds of a line's effects without those that only read.
func kinds(p Program) string {
	var out []string
	for _, e := range p.Effects {
		if k := string(e.Kind); e.Kind != effect.Read && e.Kind != effect.Exec && !slices.Contains(out, k) {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// newline stands for a line break in the files of lines.
const newline = "␤"

// corpus reads a file of lines.
func corpus(t testing.TB, name string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(strings.ReplaceAll(string(data), "\r", ""), "\n"), "\n")
}

// reads are lines that only read, as agents write them.
func reads(t testing.TB) []string {
	var out []string
	for _, l := range corpus(t, "reads.txt") {
		out = append(out, strings.ReplaceAll(l, newline, "\n"))
	}
	return out
}

type other struct{ line, kinds string }

// others are lines that do more than read, with the kinds of what they do; "refused" is none.
func others(t testing.TB) []other {
	var out []other
	for _, l := range corpus(t, "others.txt") {
		kinds, line, _ := strings.Cut(l, "\t")
		out = append(out, other{strings.ReplaceAll(line, newline, "\n"), kinds})
	}
	return out
}

func TestReads(t *testing.T) {
	for _, line := range reads(t) {
		p, err := Analyze(line, place)
		if err != nil {
			t.Errorf("%q: %v", line, err)
		} else if !p.Reads() {
			t.Errorf("%q is not read as a read: %v", line, p.Effects)
		}
	}
}

func TestOthers(t *testing.T) {
	for _, c := range others(t) {
		p, err := Analyze(c.line, place)
		got := "refused"
		if err == nil {
			got = kinds(p)
		}
		if got != c.kinds {
			t.Errorf("%q: kinds %q, want %q: %v", c.line, got, c.kinds, p.Effects)
		}
	}
}

func TestTargets(t *testing.T) {
	for line, want := range map[string][]string{
		"rm -rf /":                        {"delete /"},
		"rm -rf ~/":                       {"delete /home/me"},
		"rm -rf *":                        {"delete /ws"},
		"rm -rf ./*":                      {"delete /ws"},
		"rm -rf /*":                       {"delete /"},
		"rm -rf ../*/":                    {"delete /"},
		"rm -rf src/../..":                {"delete /"},
		"rm *.o":                          {"delete /ws/*.o"},
		"rm $X":                           {"delete "},
		"echo k > ~/.ssh/x":               {"write /home/me/.ssh/x"},
		"echo k > $HOME/.ssh/x":           {"write /home/me/.ssh/x"},
		"cd /etc && echo k > x":           {"write /etc/x"},
		"cd a; echo k > x":                {"write /ws/a/x", "write /ws/x"},
		"cd a || echo k > x":              {"write /ws/x"},
		"(cd a); echo k > x":              {"write /ws/x"},
		"! cd a && echo k > x":            {"write /ws/x"},
		"mv a b":                          {"delete /ws/a", "write /ws/b", "write /ws/b/a"},
		"cp hook .git/hooks/":             {"write /ws/.git/hooks", "write /ws/.git/hooks/hook"},
		"git push":                        {"connect origin"},
		"git push git@host.example:x.git": {"connect host.example"},
		"curl -s https://h.example/x":     {"connect h.example"},
		"ssh me@h.example ls":             {"connect h.example"},
		"scp x me@h.example:y":            {"connect h.example"},
	} {
		p, err := Analyze(line, place)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range p.Effects {
			if e.Kind == effect.Write || e.Kind == effect.Delete || e.Kind == effect.Connect {
				got = append(got, string(e.Kind)+" "+e.Target)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", line, diff)
		}
	}
}

func TestReadTargets(t *testing.T) {
	for line, want := range map[string][]string{
		"cat .env":                       {"/ws/.env"},
		"cat ~/.ssh/id_rsa":              {"/home/me/.ssh/id_rsa"},
		"grep x /home/me/.netrc":         {"/home/me/.netrc"},
		"grep /etc/shadow x":             {"/ws/x"},
		"grep -f /home/me/.netrc x":      {"/home/me/.netrc", "/ws/x"},
		"grep --file=/home/me/.n x":      {"/home/me/.n", "/ws/x"},
		"grep -e a /home/me/x":           {"/home/me/x"},
		"grep --regexp a /home/me/x":     {"/home/me/x"},
		"git show HEAD:.env":             {"/ws", "/ws/.env", "/ws/HEAD:.env"},
		"head -n 5 /home/me/x":           {"/home/me/x"},
		"jq --rawfile a /home/me/k -n .": {"/home/me/k", "/ws"},
		"cat < ../x":                     {"/x"},
		"find /home/me -name x":          {"/home/me"},
		"sed -n 1p /home/me/x":           {"/home/me/x"},
		"cd .. && cat x":                 {"/x"},
		"ls /home/me/*":                  {"/home/me/*"},
		"timeout 5 cat /home/me/x":       {"/home/me/x"},
		"test -f /home/me/.ssh/x":        {"/home/me/.ssh"},
		"[[ -f .env ]]":                  {"/ws"},
		"wc --files0-from=/home/me/x":    {"/home/me/x"},
	} {
		p, err := Analyze(line, place)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range p.Effects {
			if e.Kind == effect.Read {
				got = append(got, e.Target)
			}
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q: %s", line, diff)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, line := range []string{
		"", "   ", "# only a comment", "ls\x00", "ls\r\nrm x", "ls \rrm x", "ls \x1b[2K", "ls \x7f", "ls \u0085", "ls\u00a0x", "ls \u202erm", "l\u200bs", "ls \xff", "\ufeffls", "ls \\", "ls \\ \nrm x", "ls # c \\\nrm x",
		"ls 'x", "ls \"x", "ls $(", "ls | ", "if ls", "ls )", "cat <<EOF", "ls && ", strings.Repeat("(", 200) + "ls" + strings.Repeat(")", 200), strings.Repeat("x", MaxLine+1),
	} {
		p, err := Analyze(line, place)
		var unreadable *Unreadable
		if !errors.As(err, &unreadable) {
			t.Errorf("%.40q is read as %q, %v", line, p.Text, err)
		} else if unreadable.What == "" || unreadable.Hint == "" {
			t.Errorf("%.40q: the refusal does not say what to do: %+v", line, unreadable)
		}
	}
}

// guard is what a git command that reads begins with.
const guard = "GIT_ALLOW_PROTOCOL=none git --no-pager --no-optional-locks -c core.fsmonitor=false -c core.hooksPath=/dev/null -c log.showSignature=false -c diff.autoRefreshIndex=false "

// A short line can ask for much to be followed; such a line is refused before it takes long.
func TestTooMuchIsRefused(t *testing.T) {
	var functions strings.Builder
	for i := range 8 {
		fmt.Fprintf(&functions, "f%d() { %s; }\n", i, strings.Repeat(fmt.Sprintf("f%d;", i+1), 200)+":")
	}
	nested := strings.Repeat("while cd x; do ", 20) + "ls" + strings.Repeat("; done", 20)
	var assigned, operands strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&assigned, "x%d=1;", i)
	}
	for i := range 9000 {
		fmt.Fprintf(&operands, " a%d", i)
	}
	for name, line := range map[string]string{"functions": functions.String() + "f0", "variables": assigned.String() + "ls", "pipes": "ls" + strings.Repeat("|cat", 5000), "statements": strings.Repeat("ls;", 10000)} {
		var unreadable *Unreadable
		if _, err := Analyze(line, place); !errors.As(err, &unreadable) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, line := range map[string]string{"loops": nested, "operands": "rm" + operands.String(), "folders": "cat " + strings.Repeat("a/", 30000), "loops without folders": strings.Repeat("while ls; do ", 20) + "ls" + strings.Repeat("; done", 20)} {
		if _, err := Analyze(line, place); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRuns(t *testing.T) {
	for line, want := range map[string]string{
		"ls   -la;pwd":                 "ls -la\npwd",
		"ls # comment":                 "ls",
		"sed -n 1p *.go":               "sed -n 1p ./*.go",
		"cat x | python3 -m json.tool": "cat x | python3 -I -m json.tool",
		"go list ./...":                "GOTOOLCHAIN=local GOPROXY=off go list -buildvcs=false ./...",
		"git status":                   guard + "-c status.submoduleSummary=false status --ignore-submodules=dirty",
		"git push":                     "git push",
		"cd x && git diff":             "cd x && " + guard + "-c diff.submodule=short diff --no-ext-diff --no-textconv --ignore-submodules=dirty",
		"timeout 5 git -C x blame y":   "GIT_ALLOW_PROTOCOL=none timeout 5 " + strings.TrimPrefix(guard, "GIT_ALLOW_PROTOCOL=none ") + "-C x blame --no-textconv y",
	} {
		p, err := Analyze(line, place)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, p.Text); diff != "" {
			t.Errorf("%q: %s", line, diff)
		}
		again, err := Analyze(p.Text, place)
		if err != nil || again.Text != p.Text {
			t.Errorf("%q: what runs is not stable: %q, %v", line, again.Text, err)
		}
		if diff := cmp.Diff(p.Effects, again.Effects); diff != "" {
			t.Errorf("%q: what runs has other effects: %s", line, diff)
		}
	}
}

func TestPOSIX(t *testing.T) {
	if err := POSIX("ls && pwd | head"); err != nil {
		t.Error(err)
	}
	for _, line := range []string{"cat <(ls)", "x=(1 2)", "cat <<< x"} {
		if POSIX(line) == nil {
			t.Errorf("%q passes for plain sh", line)
		}
	}
}

func FuzzAnalyze(f *testing.F) {
	for _, line := range reads(f) {
		f.Add(line)
	}
	for _, c := range others(f) {
		f.Add(c.line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		p, err := Analyze(line, place)
		if err != nil {
			var unreadable *Unreadable
			if !errors.As(err, &unreadable) {
				t.Fatalf("%q: %v", line, err)
			}
			return
		}
		again, err := Analyze(p.Text, place)
		if err != nil {
			t.Fatalf("%q runs as %q, which is refused: %v", line, p.Text, err)
		}
		if again.Text != p.Text {
			t.Fatalf("%q runs as %q, which runs as %q", line, p.Text, again.Text)
		}
		if p.Reads() != again.Reads() {
			t.Fatalf("%q and %q are judged differently: %v and %v", line, p.Text, p.Effects, again.Effects)
		}
	})
}

func BenchmarkAnalyze(b *testing.B) {
	for b.Loop() {
		if _, err := Analyze("cd src && git log --oneline -10 | head -5; grep -rn 'foo' . 2>/dev/null", place); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCorpus gives the median time of a line that reads, as line-ns.
func BenchmarkCorpus(b *testing.B) {
	lines := reads(b)
	for b.Loop() {
		took := make([]time.Duration, len(lines))
		for i, line := range lines {
			started := time.Now()
			if _, err := Analyze(line, place); err != nil {
				b.Fatal(err)
			}
			took[i] = time.Since(started)
		}
		slices.Sort(took)
		b.ReportMetric(float64(took[len(took)/2]), "median-ns/line")
		b.ReportMetric(float64(took[len(took)*99/100]), "p99-ns/line")
	}
}
