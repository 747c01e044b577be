package tui

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"

	"belay/effect"
	"belay/internal/render"
	"belay/journal"
	"belay/message"
	"belay/model"
)

var update = flag.Bool("update", false, "accept what is drawn now")

// play is a run as the journal holds it.
func play(t testing.TB) []journal.Event {
	t.Helper()
	log := journal.NewMemory("r_test", func() time.Time { return time.Date(2026, 9, 7, 10, 14, 3, 0, time.UTC) })
	call := func(id, name, args string) message.Block {
		return message.Block{Kind: message.KindCall, Call: &message.ToolCall{ID: id, Name: name, Args: json.RawMessage(args)}}
	}
	events, err := log.Append(
		journal.Entry{Type: journal.TypeSessionStart, Payload: journal.SessionStart{Workspace: "/home/ada/shop", Mode: "edit", Sandbox: "full", Model: journal.ModelInfo{ID: "rehearsal:fix", ContextWindow: 200_000}, Bounds: journal.Bounds{Turns: 40, Money: 3 * message.Dollar}, System: "s", Tools: json.RawMessage("[]")}},
		journal.Entry{Type: journal.TypeUserMessage, Payload: journal.UserMessage{Text: "Fix the failing test."}},
		journal.Entry{Type: journal.TypeModelCall, Turn: 1, Payload: journal.ModelCall{Model: "rehearsal:fix", Estimate: 3000}},
		journal.Entry{Type: journal.TypeModelReply, Turn: 1, Payload: journal.ModelReply{Stop: message.StopToolUse, Usage: message.Usage{Input: 2000, CacheRead: 8000, Output: 90}, Cost: message.USD(0.02), Blocks: []message.Block{
			message.Text("I look **first** at `add.py`, 世界:\n\n- run the tests\n- fix `add`\n\n```python\ndef add(a, b):  # sum\n    return a + b\n```"), call("c1", "Bash", `{"command":"python3 -m unittest"}`)}}},
		journal.Entry{Type: journal.TypePlan, Turn: 1, Payload: journal.Plan{Objective: "Fix it", Steps: []journal.Step{{ID: "a", Text: "Find the cause", Status: journal.StepDone}, {ID: "b", Text: "Fix add", Status: journal.StepActive}, {ID: "c", Text: "Run everything", Status: journal.StepPending}}}},
		journal.Entry{Type: journal.TypeToolRequest, Turn: 1, Payload: journal.ToolRequest{CallID: "c1", Tool: "Bash", Args: json.RawMessage(`{"command":"python3 -m unittest"}`), Summary: "python3 -m unittest", Class: 2, Permission: journal.Permission{Verdict: effect.Allow, Rule: "defaults.class-2", By: "policy"}}},
		journal.Entry{Type: journal.TypeToolResult, Turn: 1, Payload: journal.ToolResult{CallID: "c1", Status: "error", Code: "EXIT_STATUS", Summary: "exit 1 · 13 lines", Text: "FAILED", DurationMS: 340}},
	)
	if err != nil {
		t.Fatal(err)
	}
	return events
}

var asked = journal.Question{ID: "q_c2", Kind: "permission", Tool: "Bash", Summary: "git push origin main", Class: 4, Why: "It sends.", Undo: "what has left this machine cannot be called back",
	Effects: effect.Set{{Kind: effect.Connect, Target: "github.com"}}, Options: []journal.Option{{ID: "once", Label: "yes, this once"}, {ID: "run", Label: "yes, for this run: Bash(git push origin main)"}, {ID: "no", Label: "no, because …"}}}

// screen starts a session of a size. Nothing it does reaches a terminal.
func screen(t testing.TB, width, height int, cfg Config) *session {
	t.Helper()
	cfg.Workspace, cfg.Model, cfg.Mode = "/home/ada/shop", "rehearsal:fix", "edit"
	cfg.Sandbox = func(context.Context) string { return "full" }
	s := newSession(t.Context(), cfg)
	s.Update(tea.WindowSizeMsg{Width: width, Height: height})
	s.Update(levelMsg(s.Sandbox(s.ctx)))
	return s
}

func shown(s *session) string { return s.View().Content }

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (run with -update to accept):\n%s", name, d)
	}
}

// fits holds that no line is wider and no frame higher than the screen.
func fits(t *testing.T, s *session) {
	t.Helper()
	lines := strings.Split(shown(s), "\n")
	if len(lines) != s.height {
		t.Errorf("%d lines on a screen of %d", len(lines), s.height)
	}
	for n, line := range lines {
		if w := render.Width(bareOf(line)); w > s.width {
			t.Errorf("line %d has %d columns of %d: %q", n+1, w, s.width, line)
		}
	}
}

func TestFrames(t *testing.T) {
	for _, size := range []struct{ width, height int }{{80, 24}, {200, 50}} {
		name := fmt.Sprintf("%dx%d", size.width, size.height)
		s := screen(t, size.width, size.height, Config{})
		golden(t, "welcome-"+name, shown(s))
		fits(t, s)
		for _, e := range play(t) {
			s.Update(eventMsg{e})
		}
		golden(t, "work-"+name, shown(s))
		fits(t, s)
		answers := make(chan journal.Answer, 1)
		s.Update(askMsg{asked, answers})
		golden(t, "card-"+name, shown(s))
		fits(t, s)
	}
}

func press(s *session, keys ...string) {
	for _, k := range keys {
		msg := tea.KeyPressMsg{}
		switch k {
		case "enter":
			msg.Code = tea.KeyEnter
		case "esc":
			msg.Code = tea.KeyEscape
		case "up":
			msg.Code = tea.KeyUp
		case "down":
			msg.Code = tea.KeyDown
		case "tab":
			msg.Code = tea.KeyTab
		case "ctrl+c":
			msg.Code, msg.Mod = 'c', tea.ModCtrl
		default:
			for _, r := range k {
				s.Update(tea.KeyPressMsg{Code: r, Text: string(r)})
			}
			continue
		}
		s.Update(msg)
	}
}

// TestCard: a stray key accepts nothing; then a key, a number or words answer.
func TestCard(t *testing.T) {
	ask := func() (*session, chan journal.Answer) {
		s := screen(t, 80, 24, Config{})
		answers := make(chan journal.Answer, 1)
		s.Update(askMsg{asked, answers})
		return s, answers
	}
	s, answers := ask()
	press(s, "y", "enter", "1")
	if len(answers) != 0 {
		t.Fatalf("a stray key answered: %+v", <-answers)
	}
	for keys, want := range map[string]journal.Answer{"y": {Choice: "once"}, "?": {Choice: "?"}, "2": {Choice: "run"}, "down down enter|too late|enter": {Choice: "no", Reason: "too late"}, "n|not now|enter": {Choice: "no", Reason: "not now"}, "n|enter": {Choice: "no"}} {
		s, answers := ask()
		s.cards[0].opened = time.Now().Add(-time.Second)
		for i, part := range strings.Split(keys, "|") {
			if i == 0 {
				press(s, strings.Fields(part)...)
			} else {
				press(s, part)
			}
		}
		select {
		case got := <-answers:
			if got != want {
				t.Errorf("%s: %+v, want %+v", keys, got, want)
			}
		default:
			t.Errorf("%s: no answer\n%s", keys, shown(s))
		}
		if len(s.cards) != 0 {
			t.Errorf("%s: the card stays", keys)
		}
	}
}

// TestTyping: what is said while it works waits, and Enter once more tells it at the next turn.
func TestTyping(t *testing.T) {
	said := make(chan string, 10)
	hold := make(chan bool)
	s := screen(t, 80, 24, Config{Work: func(_ context.Context, text string, with Work) (Ended, error) {
		said <- text
		<-hold
		for _, more := range with.Inbox() {
			said <- "inbox: " + more
		}
		return Ended{RunID: "r_1", Exit: 3, Reason: "unverified"}, nil
	}})
	press(s, "fix it")
	_, cmd := s.Update(tea.KeyPressMsg{Code: tea.KeyEnter})
	done := make(chan tea.Msg)
	go func() { done <- cmd() }()
	if got := <-said; got != "fix it" {
		t.Fatal(got)
	}
	press(s, "and the docs", "enter")
	if !strings.Contains(shown(s), "queued: and the docs") {
		t.Error(shown(s))
	}
	press(s, "enter")
	if strings.Contains(shown(s), "queued:") {
		t.Error("it is still queued")
	}
	hold <- true
	if got := <-said; got != "inbox: and the docs" {
		t.Error(got)
	}
	s.Update(<-done)
	if s.busy || s.runID != "r_1" {
		t.Errorf("busy %v, run %s", s.busy, s.runID)
	}
}

func TestCompletion(t *testing.T) {
	s := screen(t, 80, 24, Config{Files: func(prefix string) []string {
		var fits []string
		for _, f := range []string{"add.py", "assets/", "b.go"} {
			if strings.HasPrefix(f, prefix) {
				fits = append(fits, f)
			}
		}
		return fits
	}})
	press(s, "look at @a")
	if !strings.Contains(shown(s), "@add.py") || strings.Contains(shown(s), "@b.go") {
		t.Error(shown(s))
	}
	press(s, "tab")
	if got := s.input.value(); got != "look at @add.py " {
		t.Errorf("%q", got)
	}
	s.input.reset()
	press(s, "/co")
	if !strings.Contains(shown(s), "/cost") {
		t.Error(shown(s))
	}
}

// TestLeave: Ctrl-C twice leaves, once does not.
func TestLeave(t *testing.T) {
	s := screen(t, 80, 24, Config{})
	if _, cmd := s.Update(tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}); cmd != nil {
		t.Error("once leaves")
	}
	_, cmd := s.Update(tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl})
	if cmd == nil {
		t.Fatal("twice does not leave")
	}
	if _, quit := cmd().(tea.QuitMsg); !quit {
		t.Error("twice does not leave")
	}
}

// TestHostileText: no model and no tool paints the screen or moves its cursor.
func TestHostileText(t *testing.T) {
	s := screen(t, 60, 20, Config{})
	evil := "a\x1b[2Jb\x1b]0;x\x07c\u202ed\rE\x9b31m 👩‍👩‍👧 é 世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界世界"
	log := journal.NewMemory("r_test", nil)
	events, err := log.Append(journal.Entry{Type: journal.TypeUserMessage, Payload: journal.UserMessage{Text: evil}},
		journal.Entry{Type: journal.TypeModelReply, Turn: 1, Payload: journal.ModelReply{Stop: message.StopEnd, Blocks: []message.Block{message.Text("# " + evil + "\n- " + evil + "\n```\n" + evil + "\n```\n**" + evil + "**")}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		s.Update(eventMsg{e})
	}
	s.Update(deltaMsg{model.Event{Kind: model.TextDelta, Delta: evil}})
	s.Update(tea.PasteMsg{Content: evil})
	for _, bad := range []string{"\x1b[2J", "\x1b]", "\x07", "\u202e", "\x9b", "\r"} {
		if strings.Contains(shown(s), bad) {
			t.Errorf("%q reaches the screen", bad)
		}
	}
	fits(t, s)
}

// TestLongRun: ten thousand events are drawn, scrolled and resized in bounded time and memory; only what is visible costs.
func TestLongRun(t *testing.T) {
	var all []journal.Event
	base := play(t)
	for len(all) < 10_000 {
		all = append(all, base...)
	}
	s := screen(t, 80, 24, Config{Events: func() iter.Seq2[journal.Event, error] {
		return func(yield func(journal.Event, error) bool) {
			for _, e := range all {
				if !yield(e, nil) {
					return
				}
			}
		}
	}})
	s.Update(s.load()())
	if len(s.seen.lines) < 10_000 {
		t.Fatalf("%d lines", len(s.seen.lines))
	}
	for range 100 {
		s.scroll(100)
		fits(t, s)
	}
	_, cmd := s.Update(tea.WindowSizeMsg{Width: 120, Height: 40})
	s.Update(cmd())
	fits(t, s)
}

func BenchmarkFrame(b *testing.B) {
	s := screen(b, 120, 40, Config{})
	for range 1000 {
		for _, e := range play(b) {
			s.Update(eventMsg{e})
		}
	}
	b.ResetTimer()
	for b.Loop() {
		s.View()
	}
}

func TestEditor(t *testing.T) {
	var e editor
	type_ := func(keys ...string) string {
		for _, k := range keys {
			if len([]rune(k)) == 1 {
				e.key(k, k)
			} else {
				e.key(k, "")
			}
		}
		return e.value()
	}
	for _, c := range []struct {
		keys string
		want string
	}{
		{"a b c", "abc"}, {"left left x", "axbc"}, {"home y end z", "yaxbcz"}, {"backspace", "yaxbc"}, {"alt+enter d up home 1", "1yaxbc\nd"}, {"down end e", "1yaxbc\nde"},
		{"ctrl+u", "1yaxbc\n"}, {"backspace ctrl+w", ""},
	} {
		if got := type_(strings.Fields(c.keys)...); got != c.want {
			t.Errorf("%s: %q, want %q", c.keys, got, c.want)
		}
	}
	e.insert(strings.Repeat("x", mostTyped+1))
	if e.value() != "" {
		t.Error("too much was taken")
	}
}
