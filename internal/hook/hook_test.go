package hook

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestMatches(t *testing.T) {
	for _, c := range []struct {
		matcher, name string
		want          bool
	}{
		{"", "Edit", true}, {"*", "Edit", true}, {"Edit", "Edit", true}, {"Edit", "MultiEdit", false}, {"Edit|Write", "Write", true}, {"Edit, Write", "Write", true},
		{"edit", "Edit", false}, {"Edit.*", "NotebookEdit", true}, {"^Edit", "NotebookEdit", false}, {"mcp__memory", "mcp__memory__get", false}, {"mcp__memory__.*", "mcp__memory__get", true},
	} {
		got, err := matches(c.matcher, c.name)
		if err != nil || got != c.want {
			t.Errorf("%q on %q: %v %v", c.matcher, c.name, got, err)
		}
	}
	if _, err := matches("(", "x"); err == nil {
		t.Error("a broken expression was taken")
	}
}

// TestProtocol runs real commands and reads what they say.
func TestProtocol(t *testing.T) {
	json := func(s string) string { return "cat <<'EOT'\n" + s + "\nEOT" }
	for _, c := range []struct {
		name, command string
		event         Event
		want          func(Outcome) bool
	}{
		{"says nothing", "true", PreToolUse, func(o Outcome) bool { return !o.Deny && !o.Ask && o.Context == nil }},
		{"plain words before a call are nobody's", "echo hello", PreToolUse, func(o Outcome) bool { return !o.Deny && o.Context == nil }},
		{"plain words at the start", "echo hello", SessionStart, func(o Outcome) bool { return len(o.Context) == 1 && o.Context[0] == "hello" }},
		{"exit 2", "echo why >&2; exit 2", PreToolUse, func(o Outcome) bool { return o.Deny && o.Reason == "why" && !o.Failed }},
		{"exit 2 without words", "exit 2", PreToolUse, func(o Outcome) bool { return o.Deny && strings.Contains(o.Reason, "no reason") }},
		{"exit 2 after a call", "echo why >&2; exit 2", PostToolUse, func(o Outcome) bool { return !o.Deny && len(o.Context) == 1 && o.Context[0] == "why" }},
		{"exit 1", "echo oops >&2; exit 1", PreToolUse, func(o Outcome) bool { return o.Deny && o.Failed && strings.Contains(o.Reason, "oops") }},
		{"exit 1 after a call", "echo oops >&2; exit 1", PostToolUse, func(o Outcome) bool { return !o.Deny && len(o.Messages) == 1 }},
		{"no such program", "/nowhere/at/all", PreToolUse, func(o Outcome) bool { return o.Deny && o.Failed }},
		{"no such script, python", "python3 /nowhere.py", PreToolUse, func(o Outcome) bool { return o.Deny && o.Failed && strings.Contains(o.Reason, "cannot be found") }},
		{"no such script, sh", "sh /nowhere.sh", PreToolUse, func(o Outcome) bool { return o.Deny && o.Failed }},
		{"killed", "kill -9 $$", PreToolUse, func(o Outcome) bool { return o.Deny && o.Failed && strings.Contains(o.Reason, "crashed") }},
		{"too slow", "sleep 60", PreToolUse, func(o Outcome) bool { return o.Deny && o.Failed && strings.Contains(o.Reason, "more than") }},
		{"a child in the background", "sleep 60 & echo ok", SessionStart, func(o Outcome) bool { return len(o.Context) == 1 && o.Context[0] == "ok" }},
		{"deny", json(`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}`), PreToolUse, func(o Outcome) bool { return o.Deny && o.Reason == "no" }},
		{"deny, with another exit code", json(`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}`) + "\nexit 7", PreToolUse, func(o Outcome) bool { return o.Deny && o.Reason == "no" && !o.Failed }},
		{"allow is no decision", json(`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}`), PreToolUse, func(o Outcome) bool { return !o.Deny && !o.Ask }},
		{"defer", json(`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"defer"}}`), PreToolUse, func(o Outcome) bool { return o.Deny }},
		{"ask", json(`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"sure?"}}`), PreToolUse, func(o Outcome) bool { return o.Ask && o.Reason == "sure?" }},
		{"the old words", json(`{"decision":"block","reason":"old"}`), PreToolUse, func(o Outcome) bool { return o.Deny && o.Reason == "old" }},
		{"approve is no decision", json(`{"decision":"approve"}`), PreToolUse, func(o Outcome) bool { return !o.Deny }},
		{"rewrites", json(`{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"a":1}}}`), PreToolUse, func(o Outcome) bool { return string(o.Args) == `{"a":1}` }},
		{"adds to the context", json(`{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"look"}}`), PostToolUse, func(o Outcome) bool { return len(o.Context) == 1 && o.Context[0] == "look" }},
		{"halts", json(`{"continue":false,"stopReason":"enough"}`), PostToolUse, func(o Outcome) bool { return o.Halt && o.HaltWhy == "enough" }},
		{"tells the person", json(`{"systemMessage":"hey"}`), PreToolUse, func(o Outcome) bool { return len(o.Messages) == 1 && o.Messages[0] == "hey" }},
		{"blocks a stop", json(`{"decision":"block","reason":"not yet"}`), Stop, func(o Outcome) bool { return o.Deny && o.Reason == "not yet" }},
		{"broken JSON", "echo '{\"decision\":'", PreToolUse, func(o Outcome) bool { return o.Deny && o.Failed }},
		{"broken JSON and exit 2", "echo '{\"decision\":'; echo why >&2; exit 2", PreToolUse, func(o Outcome) bool { return o.Deny && !o.Failed && o.Reason == "why" }},
		{"a flood", "yes | head -c 5000000; exit 2", PreToolUse, func(o Outcome) bool { return o.Deny && len(o.Ran[0].Output) < 20_000 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			if strings.HasPrefix(c.command, "python3") {
				if _, err := exec.LookPath("python3"); err != nil {
					c.command = "echo \"x: can't open file 'y': [Errno 2] No such file or directory\" >&2; exit 2"
				}
			}
			h := Handler{Event: c.event, Type: "command", Command: c.command, Timeout: 20 * time.Second, Block: c.event == PreToolUse || c.event == Stop}
			if c.name == "too slow" {
				h.Timeout = 100 * time.Millisecond
			}
			out := New(Config{Handlers: []Handler{h}, Dir: t.TempDir(), RunID: "r_1", Environ: os.Environ()}).Run(t.Context(), Moment{Event: c.event, Subject: "Bash", Tool: "Bash"})
			if !c.want(out) || len(out.Ran) != 1 {
				t.Errorf("%+v", out)
			}
		})
	}
}

// TestTogether: deny beats ask, and two hooks that want different arguments beat neither.
func TestTogether(t *testing.T) {
	handler := func(text string) Handler {
		return Handler{Event: PreToolUse, Type: "command", Command: "echo '" + text + "'", Timeout: 20 * time.Second}
	}
	run := func(texts ...string) Outcome {
		var all []Handler
		for _, s := range texts {
			all = append(all, handler(s))
		}
		return New(Config{Handlers: all, Dir: t.TempDir(), Environ: os.Environ()}).Run(t.Context(), Moment{Event: PreToolUse, Subject: "Read", Tool: "Read"})
	}
	ask, deny := `{"hookSpecificOutput":{"permissionDecision":"ask","permissionDecisionReason":"a"}}`, `{"hookSpecificOutput":{"permissionDecision":"deny","permissionDecisionReason":"d"}}`
	if o := run(ask, deny); !o.Deny || o.Reason != "d" {
		t.Errorf("%+v", o)
	}
	if o := run(deny, ask); !o.Deny || o.Reason != "d" {
		t.Errorf("%+v", o)
	}
	if o := run(`{"hookSpecificOutput":{"updatedInput":{"a":1}}}`, `{"hookSpecificOutput":{"updatedInput":{"a":2}}}`); !o.Deny {
		t.Errorf("%+v", o)
	}
}

// TestNothingIsLeft: what a hook starts in its background is gone with it.
func TestNothingIsLeft(t *testing.T) {
	dir := t.TempDir()
	h := Handler{Event: PreToolUse, Type: "command", Command: "sleep 600 & echo $! > pid", Timeout: 20 * time.Second}
	New(Config{Handlers: []Handler{h}, Dir: dir, Environ: os.Environ()}).Run(t.Context(), Moment{Event: PreToolUse, Subject: "Read", Tool: "Read"})
	pid, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	for range 200 {
		if exec.Command("kill", "-0", strings.TrimSpace(string(pid))).Run() != nil || zombie(strings.TrimSpace(string(pid))) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("it is still there")
}

func zombie(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func TestLoad(t *testing.T) {
	one := Source{"a.json", []byte(`{"model":"x","hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"a","timeout":5}]}],"CwdChanged":[{"hooks":[{"type":"command","command":"b"}]}]}}`)}
	two := Source{"b.json", []byte(`{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"a"}]}],"Stop":[{"hooks":[{"type":"http","url":"http://x","onFailure":"continue"}]}]}}`)}
	handlers, notices, err := Load(one, two)
	if err != nil || len(handlers) != 2 || handlers[0].Timeout != 5*time.Second || !handlers[0].Block || handlers[1].Block || len(notices) != 1 {
		t.Fatalf("%+v %v %v", handlers, notices, err)
	}
	if handlers, _, err := Load(one, Source{"c.json", []byte(`{"disableAllHooks":true}`)}); err != nil || handlers != nil {
		t.Errorf("%v %v", handlers, err)
	}
	if handlers, _, _ := Load(Source{"c.json", []byte(`{"disableAllHooks":true}`)}, Source{"d.json", []byte(`{"disableAllHooks":false,"hooks":{"Stop":[{"hooks":[{"type":"command","command":"a"}]}]}}`)}); len(handlers) != 1 {
		t.Error("the more specific file does not decide")
	}
	for name, text := range map[string]string{"broken": "{\n\n x", "no type": `{"hooks":{"Stop":[{"hooks":[{"command":"a"}]}]}}`, "no command": `{"hooks":{"Stop":[{"hooks":[{"type":"command"}]}]}}`,
		"a word for failure": `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"a","onFailure":"maybe"}]}]}}`, "a matcher": `{"hooks":{"Stop":[{"matcher":"(","hooks":[{"type":"command","command":"a"}]}]}}`,
		"a shape": `{"hooks":{"Stop":{"hooks":[]}}}`} {
		if _, _, err := Load(Source{"x.json", []byte(text)}); err == nil || !strings.Contains(err.Error(), "x.json") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(`{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"a","args":["b"]}]}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		handlers, _, err := Load(Source{"x", data})
		if err == nil && len(data) > 0 && !json.Valid([]byte(strings.TrimPrefix(string(data), "\xef\xbb\xbf"))) && strings.TrimSpace(string(data)) != "" {
			t.Errorf("%v of no JSON", handlers)
		}
	})
}

// FuzzRead reads any output at any exit code: what is denied has a reason, and what is unreadable never allows.
func FuzzRead(f *testing.F) {
	f.Add(`{"decision":"block"}`, "why", 2)
	f.Fuzz(func(t *testing.T, stdout, stderr string, exit int) {
		h := Handler{Event: PreToolUse, Type: "command", Command: "c", Block: true}
		a := answer{}.read(h, Moment{Event: PreToolUse, Tool: "Bash"}, ran{exit: exit & 255, stdout: stdout, stderr: stderr})
		if (exit&255 == 2 || exit&255 != 0 && !strings.HasPrefix(strings.TrimSpace(stdout), "{")) && !a.deny {
			t.Errorf("exit %d lets it through", exit&255)
		}
		if a.deny && a.reason == "" {
			t.Error("denied without a reason")
		}
	})
}
