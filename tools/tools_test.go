package tools

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/effect"
	"belay/tool"
	"belay/tool/tooltest"
)

// args builds a call's arguments from name, value pairs.
func args(pairs ...any) string {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	b, _ := json.Marshal(m)
	return string(b)
}

// says checks that a result's text holds all of the parts.
func says(parts ...string) func(*testing.T, *tooltest.Env, tool.Result) {
	return func(t *testing.T, _ *tooltest.Env, r tool.Result) {
		t.Helper()
		for _, p := range parts {
			if !strings.Contains(r.Text, p) {
				t.Errorf("the text lacks %q:\n%s", p, r.Text)
			}
		}
	}
}

// becomes checks a file's content.
func becomes(name, want string) func(*testing.T, *tooltest.Env, tool.Result) {
	return func(t *testing.T, e *tooltest.Env, r tool.Result) {
		t.Helper()
		if diff := cmp.Diff(want, e.Get(t, name)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestStandard(t *testing.T) {
	r, err := tool.NewRegistry(Standard()...)
	if err != nil {
		t.Fatal(err)
	}
	signals := map[string]tool.Signal{}
	for _, s := range r.Specs() {
		if s.Signal != "" {
			signals[s.Name] = s.Signal
		}
	}
	if diff := cmp.Diff(map[string]tool.Signal{"UpdatePlan": tool.Planning, "TaskComplete": tool.Complete, "AskUser": tool.Question, "ReportBlocker": tool.Blocker}, signals); diff != "" {
		t.Error(diff)
	}
}

func TestBash(t *testing.T) {
	tooltest.Conform(t, Bash{},
		tooltest.Case{Name: "a read", Files: map[string]string{"a": "hello\n"}, Args: args("command", "cat a"), Status: tool.Success, Kinds: []effect.Kind{effect.Exec, effect.Read}, Check: says("hello\n[exit 0 · ", "exit 0 · cwd /")},
		tooltest.Case{Name: "a write", Args: args("command", "echo x > b"), Status: tool.Success, Kinds: []effect.Kind{effect.Write}, Check: becomes("b", "x\n")},
		tooltest.Case{Name: "a failure", Args: args("command", "echo out; echo err >&2; (exit 3)"), Status: tool.Error, Code: tool.ExitStatus, Kinds: []effect.Kind{effect.Exec}, Check: func(t *testing.T, e *tooltest.Env, r tool.Result) {
			says("out\nerr\n[exit 3 · ")(t, e, r)
			if r.Stats.Exit == nil || *r.Stats.Exit != 3 || r.Summary != "exit 3 · 2 lines" {
				t.Errorf("exit %v, summary %q", r.Stats.Exit, r.Summary)
			}
		}},
		tooltest.Case{Name: "an unreadable line", Args: args("command", "ls 'x"), Status: tool.Error, Code: tool.InvalidArguments, Check: says("line 1, column 4", "quotes")},
		tooltest.Case{Name: "a carriage return", Args: args("command", "ls\r\nrm x"), Status: tool.Error, Code: tool.InvalidArguments, Check: says("carriage return")},
		tooltest.Case{Name: "a timeout", Args: args("command", "sleep 100 | cat", "timeout_ms", 100), Status: tool.Error, Code: tool.Timeout, Check: says("killed after the timeout of 100ms", "timeout_ms")},
		tooltest.Case{Name: "a terminal's output", Args: args("command", `printf '\033[31mred\033[0m 10%%\r 50%%\r100%%\nbad \377\001\r\n'`), Status: tool.Success, Check: says("100%\nbad \\xff\\x01\n[exit")},
		tooltest.Case{Name: "a line that looks like an option", Args: args("command", "-x"), Status: tool.Error, Code: tool.ExitStatus, Check: says("not found", "exit 127")},
		tooltest.Case{Name: "a here-document", Args: args("command", "cat > c <<'EOF'\na $b\n\tc\nEOF"), Status: tool.Success, Kinds: []effect.Kind{effect.Write}, Check: becomes("c", "a $b\n\tc\n")},
		tooltest.Case{Name: "no input", Args: args("command", "cat"), Status: tool.Success, Check: says("[exit 0")},
	)
}

func TestBashReplay(t *testing.T) {
	place := tool.Place{Workspace: "/ws", Dir: "/ws", Home: "/home/me"}
	for line, want := range map[string]tool.Replay{
		"ls": tool.Pure, "echo x > a": tool.Reversible, "rm a": tool.Reversible, "echo x > a; make": tool.OpaqueCall, "make; echo x > a": tool.OpaqueCall, "echo x > /etc/a": tool.OpaqueCall,
		"rm *.o": tool.OpaqueCall, "rm $X": tool.OpaqueCall, "make; git push": tool.External, "git push": tool.External, "sudo ls": tool.OpaqueCall, "rm -rf .": tool.OpaqueCall,
	} {
		plan, err := Bash{}.Plan(place, tool.Call{Name: "Bash", Args: json.RawMessage(args("command", line))})
		if err != nil {
			t.Fatal(err)
		}
		if plan.Replay != want {
			t.Errorf("%q: %s, want %s", line, plan.Replay, want)
		}
	}
}

func TestBashWithoutBash(t *testing.T) {
	none := func(string) (string, error) { return "", os.ErrNotExist }
	argv, err := program("ls", none)
	if err != nil || argv[0] != "sh" {
		t.Errorf("%v, %v", argv, err)
	}
	if _, err := program("cat <(ls)", none); err == nil {
		t.Error("bash's own syntax is given to a plain sh")
	}
	e := tooltest.NewEnv(t, nil)
	out := tool.NewCapture(1000)
	if exit, err := e.Exec(context.Background(), tool.Command{Argv: []string{"sh", "-c", "--", "echo hi"}, Output: out}); err != nil || exit.Code != 0 || out.String() != "hi\n" {
		t.Errorf("sh takes no --: %v %v %q", exit, err, out.String())
	}
}

func TestBashDoesNotReadStartFiles(t *testing.T) {
	e := tooltest.NewEnv(t, map[string]string{"evil": "echo EVIL\n"})
	t.Setenv("BASH_ENV", filepath.Join(e.Root, "evil"))
	r, err := Bash{}.Run(context.Background(), e, tool.Call{Name: "Bash", Args: json.RawMessage(args("command", "echo fine"))})
	if err != nil || strings.Contains(r.Text, "EVIL") || !strings.Contains(r.Text, "fine") {
		t.Errorf("%v: %s", err, r.Text)
	}
}

func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n": "plain\ttext\n", "\x1b[1;31mred\x1b[0m": "red", "\x1b]0;title\x07x": "x", "\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\": "link", "a\rb\rc\nd\r\n": "c\nd\n", "50%\r": "50%",
		"\xff\xfe": `\xff\xfe`, "a\x00b\x07": `a\x00b\x07`, "ä€😀": "ä€😀", "\x1b(B\x1b[mx": "x", "\x1b[K\x1b[?25lx": "x",
	} {
		if diff := cmp.Diff(want, visible(in)); diff != "" {
			t.Errorf("%q: %s", in, diff)
		}
	}
}

func FuzzVisible(f *testing.F) {
	f.Add("a\rb\x1b[31mc\xff")
	f.Fuzz(func(t *testing.T, s string) {
		out := visible(s)
		for _, r := range out {
			if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
				t.Fatalf("%q shows the control character %q", s, r)
			}
		}
	})
}

func TestRead(t *testing.T) {
	many := strings.Repeat("x\n", 3000)
	tooltest.Conform(t, Read{},
		tooltest.Case{Name: "a file", Files: map[string]string{"a.go": "one\ntwo\n"}, Args: args("file_path", "a.go"), Status: tool.Success, Kinds: []effect.Kind{effect.Read}, Check: func(t *testing.T, e *tooltest.Env, r tool.Result) {
			if r.Text != "     1\tone\n     2\ttwo\n" {
				t.Errorf("%q", r.Text)
			}
			if diff := cmp.Diff([]string{filepath.Join(e.Root, "a.go")}, r.Context.Read); diff != "" {
				t.Error(diff)
			}
		}},
		tooltest.Case{Name: "a window", Files: map[string]string{"a": "1\n2\n3\n4\n5\n"}, Args: args("file_path", "a", "offset", 2, "limit", 2), Status: tool.Success, Check: says("     2\t2\n     3\t3\n[lines 2-3 of 5; next offset 4]")},
		tooltest.Case{Name: "a long file", Files: map[string]string{"a": many}, Args: args("file_path", "a"), Status: tool.Success, Check: says("[lines 1-2000 of 3000; next offset 2001]")},
		tooltest.Case{Name: "long lines", Files: map[string]string{"a": strings.Repeat("ä", 5000) + "\nb\n"}, Args: args("file_path", "a"), Status: tool.Success, Check: says("bytes of this line left out]", "     2\tb")},
		tooltest.Case{Name: "many long lines", Files: map[string]string{"a": strings.Repeat(strings.Repeat("y", 1000)+"\n", 100)}, Args: args("file_path", "a"), Status: tool.Success, Check: func(t *testing.T, e *tooltest.Env, r tool.Result) {
			says("next offset 40")(t, e, r)
			if _, cut := tool.CutText(r.Text, Read{}.Spec().Budget, Read{}.Spec().Cut); cut {
				t.Error("the window is larger than the tool's own budget")
			}
		}},
		tooltest.Case{Name: "an empty file", Files: map[string]string{"a": ""}, Args: args("file_path", "a"), Status: tool.Success, Check: says("empty")},
		tooltest.Case{Name: "CRLF, no final newline", Files: map[string]string{"a": "\xef\xbb\xbfx\r\ny"}, Args: args("file_path", "a"), Status: tool.Success, Check: says("     1\tx\n", "byte order mark", "CRLF line endings; no newline at the end")},
		tooltest.Case{Name: "no valid UTF-8", Files: map[string]string{"a": "caf\xe9\n"}, Args: args("file_path", "a"), Status: tool.Success, Check: says(`caf\xe9`)},
		tooltest.Case{Name: "a missing file", Files: map[string]string{"src/handler.go": "", "src/other.go": ""}, Args: args("file_path", "src/handlr.go"), Status: tool.Error, Code: tool.NotFound, Check: says("Did you mean src/handler.go")},
		tooltest.Case{Name: "a missing folder", Args: args("file_path", "a/b/c.go"), Status: tool.Error, Code: tool.NotFound, Check: says("a/b does not exist either")},
		tooltest.Case{Name: "below a file", Files: map[string]string{"a": "x"}, Args: args("file_path", "a/b"), Status: tool.Error, Code: tool.NotFound},
		tooltest.Case{Name: "a folder", Files: map[string]string{"d/x": "", "d/y/z": ""}, Args: args("file_path", "d"), Status: tool.Error, Code: tool.Unsupported, Check: says("x y/")},
		tooltest.Case{Name: "a binary file", Files: map[string]string{"a": "\x7fELF\x00\x01"}, Args: args("file_path", "a"), Status: tool.Error, Code: tool.Unsupported, Check: says("binary")},
		tooltest.Case{Name: "UTF-16", Files: map[string]string{"a": "\xff\xfea\x00"}, Args: args("file_path", "a"), Status: tool.Error, Code: tool.Unsupported, Check: says("iconv")},
		tooltest.Case{Name: "past the end", Files: map[string]string{"a": "x\n"}, Args: args("file_path", "a", "offset", 9), Status: tool.Error, Code: tool.InvalidArguments, Check: says("at most 1")},
		tooltest.Case{Name: "outside", Args: args("file_path", "../x"), Status: tool.Error, Code: tool.Denied},
		tooltest.Case{Name: "a wrong type", Args: args("file_path", "a", "limit", "all"), Status: tool.Error, Code: tool.InvalidArguments, Check: says(`limit: expected integer, at least 1, got string "all"`, "Read takes file_path (string, not empty, required)")},
		tooltest.Case{Name: "a NUL", Args: args("file_path", "a\x00b"), Status: tool.Error, Code: tool.InvalidArguments},
		tooltest.Case{Name: "a very long name", Args: args("file_path", strings.Repeat("n", 5000)), Status: tool.Error, Code: tool.InvalidArguments},
	)
}

func TestReadJudgesTheFileBehindALink(t *testing.T) {
	e := tooltest.NewEnv(t, map[string]string{"real": "x"})
	outside := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"in": "real", "out": outside, "dangling": "/nowhere/at/all"} {
		if err := os.Symlink(target, filepath.Join(e.Root, name)); err != nil {
			t.Fatal(err)
		}
	}
	real, _ := filepath.EvalSymlinks(outside)
	for name, want := range map[string]string{"in": filepath.Join(e.Root, "real"), "out": real, "dangling": "/nowhere/at/all"} {
		plan, err := Read{}.Plan(e.Place(), tool.Call{Name: "Read", Args: json.RawMessage(args("file_path", name))})
		if err != nil || plan.Effects[0].Target != want {
			t.Errorf("%s: %v, %v, want %s", name, plan.Effects, err, want)
		}
	}
}

func TestEdit(t *testing.T) {
	file := func(s string) map[string]string { return map[string]string{"a.go": s} }
	edit := func(old, new string, more ...any) string {
		return args(append([]any{"file_path", "a.go", "old_string", old, "new_string", new}, more...)...)
	}
	tooltest.Conform(t, Edit{},
		tooltest.Case{Name: "unique", Files: file("a - b\n"), Args: edit("a - b", "a + b"), Status: tool.Success, Kinds: []effect.Kind{effect.Read, effect.Write}, Check: func(t *testing.T, e *tooltest.Env, r tool.Result) {
			becomes("a.go", "a + b\n")(t, e, r)
			says("1 replacement in a.go (+1 -1)", "+a + b")(t, e, r)
			if diff := cmp.Diff([]string{filepath.Join(e.Root, "a.go")}, r.Context.Wrote); diff != "" {
				t.Error(diff)
			}
		}},
		tooltest.Case{Name: "deletes", Files: file("a\nb\nc\n"), Args: edit("b\n", ""), Status: tool.Success, Check: becomes("a.go", "a\nc\n")},
		tooltest.Case{Name: "empties", Files: file("a"), Args: edit("a", ""), Status: tool.Success, Check: becomes("a.go", "")},
		tooltest.Case{Name: "not unique", Files: file("x\ny\nx\n"), Args: edit("x", "z"), Status: tool.Error, Code: tool.NotUnique, Check: says("2 times", "lines 1, 3", "replace_all")},
		tooltest.Case{Name: "all", Files: file("x\ny\nx\n"), Args: edit("x", "z", "replace_all", true), Status: tool.Success, Check: becomes("a.go", "z\ny\nz\n")},
		tooltest.Case{Name: "no change", Files: file("x"), Args: edit("x", "x"), Status: tool.Error, Code: tool.NoChange},
		tooltest.Case{Name: "not there", Files: file("func Add(a, b int) int {\n\treturn a - b\n}\n"), Args: edit("  return a-b", "x"), Status: tool.Error, Code: tool.NotFound, Check: says("nearest lines", "     2\t\treturn a - b")},
		tooltest.Case{Name: "other whitespace", Files: file("if x {\n\ty()\n}\n"), Args: edit("if x {\n    y()\n}", "z"), Status: tool.Error, Code: tool.NotFound, Check: says("other whitespace")},
		tooltest.Case{Name: "line numbers", Files: file("one\ntwo\n"), Args: edit("     1\tone\n     2\ttwo", "z"), Status: tool.Error, Code: tool.NotFound, Check: says("line numbers")},
		tooltest.Case{Name: "nothing near", Files: file("abc\n"), Args: edit("zzzzzzzzzz", "y"), Status: tool.Error, Code: tool.NotFound, Check: says("Nothing in the file is near")},
		tooltest.Case{Name: "CRLF", Files: file("a\r\nb\r\nc\r\n"), Args: edit("a\nb", "x\ny"), Status: tool.Success, Check: becomes("a.go", "x\r\ny\r\nc\r\n")},
		tooltest.Case{Name: "CRLF, new lines", Files: file("a\r\nb\r\n"), Args: edit("a", "x\ny"), Status: tool.Success, Check: becomes("a.go", "x\r\ny\r\nb\r\n")},
		tooltest.Case{Name: "CRLF given", Files: file("a\r\nb\r\n"), Args: edit("a\r\nb", "x\r\ny"), Status: tool.Success, Check: becomes("a.go", "x\r\ny\r\n")},
		tooltest.Case{Name: "mixed endings", Files: file("a\r\nb\nc\r\n"), Args: edit("b", "x"), Status: tool.Success, Check: becomes("a.go", "a\r\nx\nc\r\n")},
		tooltest.Case{Name: "BOM and no final newline", Files: file("\xef\xbb\xbfa\nb"), Args: edit("b", "c"), Status: tool.Success, Check: becomes("a.go", "\xef\xbb\xbfa\nc")},
		tooltest.Case{Name: "dollar signs", Files: file("a"), Args: edit("a", "$1 \\1 &"), Status: tool.Success, Check: becomes("a.go", "$1 \\1 &")},
		tooltest.Case{Name: "empty old_string", Files: file("a"), Args: edit("", "x"), Status: tool.Error, Code: tool.InvalidArguments, Check: says("old_string")},
		tooltest.Case{Name: "missing file", Files: file("a"), Args: args("file_path", "b.go", "old_string", "a", "new_string", "b"), Status: tool.Error, Code: tool.NotFound},
		tooltest.Case{Name: "binary", Files: file("a\x00b"), Args: edit("a", "b"), Status: tool.Error, Code: tool.Unsupported},
		tooltest.Case{Name: "misspelt argument", Files: file("a"), Args: args("file_path", "a.go", "old_str", "a", "new_string", "b"), Status: tool.Error, Code: tool.InvalidArguments, Check: says(`"old_str" is not an argument of Edit (did you mean "old_string"?)`, "old_string is missing")},
	)
}

func TestEditKeepsModeAndLink(t *testing.T) {
	e := tooltest.NewEnv(t, map[string]string{"real.sh": "a\n"})
	if err := os.Chmod(filepath.Join(e.Root, "real.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("real.sh", filepath.Join(e.Root, "link")); err != nil {
		t.Fatal(err)
	}
	r, err := Edit{}.Run(context.Background(), e, tool.Call{Name: "Edit", Args: json.RawMessage(args("file_path", "link", "old_string", "a", "new_string", "b"))})
	if err != nil || r.Error != nil {
		t.Fatalf("%v %v", err, r.Error)
	}
	info, err := os.Lstat(filepath.Join(e.Root, "link"))
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	if info, _ := os.Stat(filepath.Join(e.Root, "real.sh")); info.Mode().Perm() != 0o755 || e.Get(t, "real.sh") != "b\n" {
		t.Errorf("mode %v, content %q", info.Mode(), e.Get(t, "real.sh"))
	}
}

func TestWrite(t *testing.T) {
	tooltest.Conform(t, Write{},
		tooltest.Case{Name: "a new file", Args: args("file_path", "d/e/a", "content", "x\ny"), Status: tool.Success, Kinds: []effect.Kind{effect.Write}, Check: becomes("d/e/a", "x\ny")},
		tooltest.Case{Name: "an old file", Files: map[string]string{"a": "1\n2\n"}, Args: args("file_path", "a", "content", ""), Status: tool.Success, Check: says("0 bytes (was 2 lines)")},
		tooltest.Case{Name: "no change", Files: map[string]string{"a": "x"}, Args: args("file_path", "a", "content", "x"), Status: tool.Error, Code: tool.NoChange},
		tooltest.Case{Name: "a folder", Files: map[string]string{"d/a": "x"}, Args: args("file_path", "d", "content", "x"), Status: tool.Error, Code: tool.Unsupported},
		tooltest.Case{Name: "outside", Args: args("file_path", "../a", "content", "x"), Status: tool.Error, Code: tool.Denied},
		tooltest.Case{Name: "no content", Args: args("file_path", "a"), Status: tool.Error, Code: tool.InvalidArguments, Check: says("content is missing: expected string")},
	)
}

var project = map[string]string{
	"main.go": "package main\n\nfunc main() {}\n", "lib/a.go": "package lib\n\nfunc Add() {}\nfunc add() {}\n", "lib/a_test.go": "package lib\n", "build/out.go": "func Add() {}\n", "lib/keep.log": "Add\n", "x.log": "Add\n",
	".gitignore": "build/\n*.log\n!keep.log\n", "lib/.gitignore": "/secret.go\n", "lib/secret.go": "func Add() {}\n", ".git/config": "Add\n", ".env": "Add=1\n", "bin": "Add\x00",
}

func TestGlob(t *testing.T) {
	tooltest.Conform(t, Glob{},
		tooltest.Case{Name: "files", Files: project, Args: args("pattern", "**/*.go"), Status: tool.Success, Kinds: []effect.Kind{effect.Read}, Check: func(t *testing.T, e *tooltest.Env, r tool.Result) {
			says("main.go\n", "lib/a.go\n", "lib/a_test.go\n")(t, e, r)
			if r.Summary != "3 files" || strings.Contains(r.Text, "out.go") || strings.Contains(r.Text, "secret") {
				t.Errorf("%s: %s", r.Summary, r.Text)
			}
		}},
		tooltest.Case{Name: "below a folder", Files: project, Args: args("pattern", "*", "path", "lib"), Status: tool.Success, Check: says("lib/a.go", "lib/keep.log", "lib/.gitignore")},
		tooltest.Case{Name: "nothing", Files: project, Args: args("pattern", "*.rs"), Status: tool.Success, Check: says("no file matches")},
		tooltest.Case{Name: "malformed", Args: args("pattern", "[a"), Status: tool.Error, Code: tool.InvalidArguments},
		tooltest.Case{Name: "out of the folder", Args: args("pattern", "../*"), Status: tool.Error, Code: tool.InvalidArguments},
		tooltest.Case{Name: "missing folder", Args: args("pattern", "*", "path", "nope"), Status: tool.Error, Code: tool.NotFound},
	)
}

func TestGrep(t *testing.T) {
	only := func(want string) func(*testing.T, *tooltest.Env, tool.Result) {
		return func(t *testing.T, _ *tooltest.Env, r tool.Result) {
			t.Helper()
			if diff := cmp.Diff(want, r.Text); diff != "" {
				t.Error(diff)
			}
		}
	}
	tooltest.Conform(t, Grep{},
		tooltest.Case{Name: "content", Files: project, Args: args("pattern", "func Add"), Status: tool.Success, Kinds: []effect.Kind{effect.Read}, Check: only("lib/a.go:3:func Add() {}\n[1 file skipped: binary, unreadable or larger than 4194304 bytes]\n")},
		tooltest.Case{Name: "files", Files: project, Args: args("pattern", "add", "ignore_case", true, "glob", "*.{go,log}", "output_mode", "files_with_matches"), Status: tool.Success, Check: only("lib/a.go\nlib/keep.log\n")},
		tooltest.Case{Name: "count", Files: project, Args: args("pattern", "(?i)add", "glob", "lib/*.go", "output_mode", "count"), Status: tool.Success, Check: only("lib/a.go:2\n")},
		tooltest.Case{Name: "context", Files: project, Args: args("pattern", "func Add", "path", "lib/a.go", "context", 1), Status: tool.Success, Check: only("lib/a.go-2-\nlib/a.go:3:func Add() {}\nlib/a.go-4-func add() {}\n")},
		tooltest.Case{Name: "a limit", Files: map[string]string{"a": strings.Repeat("x\n", 100)}, Args: args("pattern", "^x$", "head_limit", 2), Status: tool.Success, Check: only("a:1:x\na:2:x\n[2 of 100 matching lines in 1 file shown: make the pattern narrower, add a path or a glob, or raise head_limit]\n")},
		tooltest.Case{Name: "a long line", Files: map[string]string{"a": strings.Repeat("ä", 5000) + "needle" + strings.Repeat("ö", 5000)}, Args: args("pattern", "needle"), Status: tool.Success, Check: says("needle", "bytes of this line left out")},
		tooltest.Case{Name: "nothing", Files: project, Args: args("pattern", "nowhere"), Status: tool.Success, Check: says("no match")},
		tooltest.Case{Name: "malformed", Args: args("pattern", "a("), Status: tool.Error, Code: tool.InvalidArguments, Check: says("Escape")},
		tooltest.Case{Name: "a wrong mode", Args: args("pattern", "a", "output_mode", "all"), Status: tool.Error, Code: tool.InvalidArguments, Check: says("output_mode", "files_with_matches")},
		tooltest.Case{Name: "missing folder", Args: args("pattern", "a", "path", "nope"), Status: tool.Error, Code: tool.NotFound},
	)
}

func TestLS(t *testing.T) {
	tooltest.Conform(t, LS{},
		tooltest.Case{Name: "a folder", Files: map[string]string{"a": "12345", "d/x": ""}, Args: args(), Status: tool.Success, Kinds: []effect.Kind{effect.Read}, Check: says("a (5 bytes)\nd/\n")},
		tooltest.Case{Name: "hostile names", Files: map[string]string{"a\nb": "", "-rf": ""}, Args: args("path", "."), Status: tool.Success, Check: says(`-rf (0 bytes)`, "a\\x0ab")},
		tooltest.Case{Name: "a file", Files: map[string]string{"a": ""}, Args: args("path", "a"), Status: tool.Error, Code: tool.Unsupported, Check: says("Read")},
		tooltest.Case{Name: "missing", Files: map[string]string{"docs/a": ""}, Args: args("path", "doc"), Status: tool.Error, Code: tool.NotFound, Check: says("docs")},
	)
}

func TestSignals(t *testing.T) {
	tooltest.Conform(t, TaskComplete{},
		tooltest.Case{Name: "complete", Args: args("summary", "done\nmore", "evidence", "tests pass"), Status: tool.Success, Check: says("verifiers")},
		tooltest.Case{Name: "no evidence", Args: args("summary", "done"), Status: tool.Error, Code: tool.InvalidArguments, Check: says("evidence is missing")},
	)
	tooltest.Conform(t, ReportBlocker{},
		tooltest.Case{Name: "blocked", Args: args("reason", "no database"), Status: tool.Success},
		tooltest.Case{Name: "no reason", Args: args("reason", ""), Status: tool.Error, Code: tool.InvalidArguments},
	)
}
