package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/effect"
	"belay/harness"
	"belay/internal/projection"
	"belay/journal"
	"belay/loop"
	"belay/message"
	"belay/model"
	"belay/verify"
)

// record is a harness that writes a real, short run: one call, one verification, a proof.
func record(home string, exit loop.Exit) func(context.Context, harness.Config) (harness.Result, error) {
	return func(_ context.Context, cfg harness.Config) (harness.Result, error) {
		fold := &projection.Fold{}
		observe := func(events []journal.Event, err error) error {
			for _, e := range events {
				if err := fold.Apply(e); err != nil {
					return err
				}
				if cfg.Observe != nil {
					cfg.Observe(e)
				}
			}
			return err
		}
		log, events, err := journal.Create(home, journal.NewRunID(), nil,
			journal.Entry{Type: journal.TypeSessionStart, Payload: journal.SessionStart{Version: cfg.Version, Workspace: cfg.Workspace, Mode: string(cfg.Mode),
				Model: journal.ModelInfo{ID: "rehearsal:test", Spec: cfg.Model, Scripted: true}, Sandbox: "test", Projection: projection.Version,
				System: "system", Tools: json.RawMessage(`[]`), Bounds: cfg.Bounds}},
			journal.Entry{Type: journal.TypeDegraded, Payload: journal.Degraded{Component: "sandbox", Loss: "none here"}},
			journal.Entry{Type: journal.TypeUserMessage, Payload: journal.UserMessage{Text: cfg.Task}})
		if err := observe(events, err); err != nil {
			return harness.Result{}, err
		}
		defer log.Close()
		_, hashes, err := fold.Request()
		if err != nil {
			return harness.Result{}, err
		}
		proof := journal.Proof{Command: "go test ./...", Tree: "t", LogHash: "l", DurationMS: 5, Seq: 9, RedBefore: true}
		out := loop.Outcome{Exit: exit, Reason: "so it is", Turns: 1, Usage: message.Usage{Input: 10, Output: 5}, Cost: message.USD(0.25)}
		if exit == loop.ExitProved {
			out.Standing, out.Proof = verify.Proved, []journal.Proof{proof}
		}
		call := message.ToolCall{ID: "c1", Name: "Bash", Args: json.RawMessage(`{}`)}
		entries := []journal.Entry{
			{Type: journal.TypeModelCall, Turn: 1, Payload: journal.ModelCall{Model: "rehearsal:test", CtxHash: hashes.CtxHash, PrefixHash: hashes.PrefixHash, Messages: 1}},
			{Type: journal.TypeModelReply, Turn: 1, Payload: journal.ModelReply{Stop: message.StopToolUse, Cost: out.Cost, Usage: out.Usage,
				Blocks: []message.Block{message.Text("I \x1b[31mrun\x1b[0m it."), {Kind: message.KindCall, Call: &call}}}},
			{Type: journal.TypeToolRequest, Turn: 1, Payload: journal.ToolRequest{CallID: "c1", Tool: "Bash", Args: call.Args, Summary: "true", Class: effect.ClassRead,
				Permission: journal.Permission{Verdict: effect.Allow, By: "policy"}}},
			{Type: journal.TypeToolResult, Turn: 1, Payload: journal.ToolResult{CallID: "c1", Status: "success", Summary: "exit 0", Text: "ok"}},
			{Type: journal.TypeSessionEnd, Turn: 1, Payload: journal.SessionEnd{Reason: out.Reason, Exit: int(exit), Standing: string(out.Standing), Proof: out.Proof, Turns: 1, Cost: out.Cost, Usage: out.Usage}},
		}
		if err := observe(log.Append(entries...)); err != nil {
			return harness.Result{}, err
		}
		return harness.Result{RunID: log.RunID(), Dir: log.Dir(), Workspace: cfg.Workspace, Outcome: out}, nil
	}
}

// shell runs command lines against one state directory.
type shell struct {
	t     *testing.T
	home  string
	run   func(context.Context, harness.Config) (harness.Result, error)
	stdin string

	resume  func(context.Context, string, harness.Config) (harness.Result, error)
	environ []string
}

func newShell(t *testing.T) *shell {
	home := t.TempDir()
	return &shell{t: t, home: home, run: record(home, loop.ExitProved)}
}

// do runs one command line and checks its exit code.
func (s *shell) do(want loop.Exit, args ...string) (stdout, stderr string) {
	s.t.Helper()
	var out, errs bytes.Buffer
	a := &app{in: strings.NewReader(s.stdin), out: &out, err: &errs, run: s.run, resume: s.resume, home: func() (string, error) { return s.home, nil }, environ: s.environ,
		userDir: func() (string, error) { return filepath.Join(s.home, "config"), nil }}
	if got := a.main(s.t.Context(), args); got != int(want) {
		s.t.Errorf("belay %q: exit %d, want %d\nstdout: %s\nstderr: %s", args, got, want, &out, &errs)
	}
	return out.String(), errs.String()
}

// decode reads JSON and fails on anything else.
func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, text)
	}
	return v
}

// fields are the names in a JSON object, sorted.
func fields(t *testing.T, text string) []string {
	t.Helper()
	var names []string
	for name := range decode[map[string]json.RawMessage](t, text) {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func TestExitCode(t *testing.T) {
	tests := []struct {
		err  error
		want loop.Exit
	}{
		{nil, 0},
		{errors.New("anything"), 1},
		{&harness.UsageError{Err: errors.New("no such thing")}, 2},
		{fmt.Errorf("wrapped: %w", usagef("no such thing")), 2},
		{outcome(loop.ExitUnverified), 3},
		{outcome(loop.ExitFailed), 4},
		{outcome(loop.ExitBound), 5},
		{outcome(loop.ExitWaiting), 6},
		{&model.Error{Class: model.Environment, Message: "no key"}, 7},
		{&model.Error{Class: model.Script, Message: "turn 2: expected FAIL"}, 1},
		{fmt.Errorf("run: %w", context.Canceled), 130},
		{&fault{&model.Error{Class: model.Script}, "r_1"}, 1},
		{&advice{errors.New("damaged"), "do"}, 1},
	}
	for _, tt := range tests {
		if got := exitCode(tt.err); got != tt.want {
			t.Errorf("exitCode(%v) = %d, want %d", tt.err, got, tt.want)
		}
	}
}

func TestResolve(t *testing.T) {
	ids := []string{"r_01k7zz", "r_01k7ab", "r_01k7a", "r_01k5cc"}
	tests := []struct{ name, want, problem string }{
		{"last", "r_01k7zz", ""},
		{"LAST", "r_01k7zz", ""},
		{"r_01k5cc", "r_01k5cc", ""},
		{"r_01k5", "r_01k5cc", ""},
		{"01k5", "r_01k5cc", ""},
		{"R_01K7Z", "r_01k7zz", ""},
		{"r_01k7a", "r_01k7a", ""}, // whole, though it begins another
		{"01k7", "", "fits 3 runs"},
		{"r_", "", "name a run"},
		{"", "", "name a run"},
		{"../../etc", "", "no run"},
		{"nope", "", "no run"},
	}
	for _, tt := range tests {
		got, err := resolve(tt.name, ids)
		if got != tt.want || (err == nil) != (tt.problem == "") || err != nil && (!strings.Contains(err.Error(), tt.problem) || exitCode(err) != loop.ExitUsage) {
			t.Errorf("resolve(%q) = %q, %v; want %q, %q", tt.name, got, err, tt.want, tt.problem)
		}
	}
	if _, err := resolve("last", nil); err == nil || !strings.Contains(err.Error(), "belay demo") {
		t.Errorf("without runs: %v", err)
	}
}

func TestUsageErrorsSayWhatToDo(t *testing.T) {
	tests := []struct {
		args []string
		says string
	}{
		{[]string{"rum"}, "Did you mean `belay run`?"},
		{[]string{"fix the tests"}, `belay run "fix the tests"`},
		{[]string{"journal", "verfy"}, "Did you mean `belay journal verify`?"},
		{[]string{"completion", "fich"}, "Did you mean `belay completion fish`?"},
		{[]string{"help", "shw"}, "Did you mean `belay show`?"},
		{[]string{"run", "x", "--modle", "y"}, "Did you mean --model?"},
		{[]string{"run", "x", "--verfiy", "y"}, "Did you mean --verify?"},
		{[]string{"run", "x", "--qqqqqq"}, "`belay run --help` lists the flags"},
		{[]string{"run"}, "takes one task"},
		{[]string{"run", "a", "b"}, "takes one task"},
		{[]string{"run", "", "--model", "rehearsal:f"}, "is empty"},
		{[]string{"run", " \n", "--model", "rehearsal:f"}, "is empty"},
		{[]string{"run", "-", "--model", "rehearsal:f"}, "standard input is empty"},
		{[]string{"run", "@/no/such/file", "--model", "rehearsal:f"}, "no such file"},
		{[]string{"run", "x", "--model", "rehearsal:f", "--mode", "yolo"}, "plan, manual, edit or autonomous"},
		{[]string{"run", "x", "--model", "rehearsal:f", "--max-turns", "0"}, "above 0"},
		{[]string{"run", "x", "--model", "rehearsal:f", "--max-tokens", "-1"}, "above 0"},
		{[]string{"run", "x", "--model", "rehearsal:f", "--budget-usd", "0"}, "above 0"},
		{[]string{"run", "x", "--model", "rehearsal:f", "--budget-usd", "NaN"}, "above 0"},
		{[]string{"run", "x", "--model", "rehearsal:f", "--timeout", "1us"}, "1ms or more"},
		{[]string{"run", "x", "--model", "rehearsal:f", "--timeout", "soon"}, "--timeout"},
		{[]string{"run", "x", "--model", "rehearsal:f", "--verify", " "}, "prove nothing"},
		{[]string{"run", "x", "--model", "rehearsal:f", "--json=false", "--stream-json", "--json"}, "choose one"},
		{[]string{"run", "x", "--model", "rehearsal:f", "--tools", " , "}, "names no tool"},
		{[]string{"replay", "last"}, "replay --verify last"},
		{[]string{"resume"}, "takes one run"},
		{[]string{"resume", "a", "b", "c"}, "takes one run"},
		{[]string{"resume", "last"}, "no runs yet"},
		{[]string{"resume", "last", " "}, "is empty"},
		{[]string{"resume", "last", "--timeout", "0s"}, "1ms or more"},
		{[]string{"resume", "last", "--verify", ""}, "prove nothing"},
		{[]string{"context", "last", "--turn", "0"}, "counts from 1"},
		{[]string{"context", "last"}, "no runs yet"},
		{[]string{"rehearse"}, "takes a rehearsal"},
		{[]string{"rehearse", "serv", "x.yaml"}, "serv"},
		{[]string{"rehearse", "serve", "/no/such.yaml"}, "no such file"},
		{[]string{"rehearse", "record"}, "takes one run"},
		{[]string{"doctor", "x"}, "takes no argument"},
		{[]string{"show"}, "takes one run"},
		{[]string{"show", "last"}, "no runs yet"},
		{[]string{"journal", "verify"}, "takes one run"},
		{[]string{"journal", "verify", "--all", "x"}, "not both"},
		{[]string{"runs", "--limit", "-1"}, "--limit"},
		{[]string{"version", "x"}, "takes no argument"},
		{[]string{"completion", "bash", "x"}, "belay --help"},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			s := newShell(t)
			s.run = func(context.Context, harness.Config) (harness.Result, error) {
				t.Error("a run was started")
				return harness.Result{}, nil
			}
			out, errs := s.do(loop.ExitUsage, tt.args...)
			if !strings.Contains(out+errs, tt.says) {
				t.Errorf("it does not say %q:\n%s%s", tt.says, out, errs)
			}
			if !slices.Contains(tt.args, "--json") {
				args := append([]string{tt.args[0], "--json"}, tt.args[1:]...)
				if out, errs := s.do(loop.ExitUsage, args...); errs != "" || decode[failure](t, out).Exit != 2 {
					t.Errorf("with --json: %q, and on stderr %q", out, errs)
				}
			}
		})
	}
}

func TestHelpOfEveryCommandHasAnExample(t *testing.T) {
	a := &app{}
	for _, c := range a.root().Commands() {
		for _, c := range append(c.Commands(), c) {
			if (c.Example == "" || c.Short == "") && !strings.HasPrefix(c.CommandPath(), "belay completion") {
				t.Errorf("%s has no example", c.CommandPath())
			}
		}
	}
}

func TestRunGivesTheHarnessWhatWasAsked(t *testing.T) {
	s := newShell(t)
	var got harness.Config
	s.run = func(_ context.Context, cfg harness.Config) (harness.Result, error) {
		got = cfg
		return harness.Result{Outcome: loop.Outcome{Exit: loop.ExitBound}}, nil
	}
	s.stdin = "\n the task \xff\n"
	s.do(loop.ExitBound, "run", "-", "--model", "rehearsal:/f", "--verify", "a, b", "--verify", "c", "--workspace", "w", "--allow-wide-workspace",
		"--mode", "Plan", "--tools", "Read, Grep", "--max-turns", "3", "--max-tokens", "4", "--budget-usd", "0.5", "--timeout", "1m")
	got.Observe, got.Delta, got.Progress, got.Rules, got.Version = nil, nil, nil, nil, ""
	want := harness.Config{Task: "the task \uFFFD", Workspace: "w", AllowWide: true, Model: "rehearsal:/f", Verify: []string{"a, b", "c"}, Mode: "plan",
		Only:   []string{"Read", "Grep"},
		Bounds: journal.Bounds{Turns: 3, Tokens: 4, Money: message.USD(0.5), WallMS: 60_000, MiB: 4096}, EnvFiles: "encrypt", MoneyMustHold: true}
	if diff := cmp.Diff(fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", got)); diff != "" {
		t.Error(diff)
	}
}

func TestResumeGivesTheHarnessWhatWasAsked(t *testing.T) {
	s := newShell(t)
	out, _ := s.do(0, "run", "do it", "--model", "rehearsal:f", "--json")
	run := decode[harness.Result](t, out)
	var id string
	var got harness.Config
	s.resume = func(_ context.Context, runID string, cfg harness.Config) (harness.Result, error) {
		id, got = runID, cfg
		return harness.Result{RunID: runID, Outcome: loop.Outcome{Exit: loop.ExitUnverified}}, nil
	}
	s.stdin = "and then\n"
	s.do(loop.ExitUnverified, "resume", "last", "-", "--model", "rehearsal:/g", "--verify", "v", "--budget-usd", "2")
	got.Observe, got.Delta, got.Progress, got.Rules, got.Version = nil, nil, nil, nil, ""
	want := harness.Config{Task: "and then", Model: "rehearsal:/g", Verify: []string{"v"}, Bounds: journal.Bounds{Money: 2 * message.Dollar}, MoneyMustHold: true}
	if diff := cmp.Diff(fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", got)); diff != "" || id != run.RunID {
		t.Errorf("run %s: %s", id, diff)
	}
}

// TestStoppedRunsSayHowToGoOn: the last line is a command that can be typed as it is.
func TestStoppedRunsSayHowToGoOn(t *testing.T) {
	for _, c := range []struct {
		exit  loop.Exit
		guard journal.Guard
		want  string
	}{
		{loop.ExitBound, journal.Guard{Bound: "turns", Limit: 40, Hard: true}, " resume r_1 --max-turns 80"},
		{loop.ExitBound, journal.Guard{Bound: "tokens", Limit: 2_000_000, Hard: true}, " resume r_1 --max-tokens 4000000"},
		{loop.ExitBound, journal.Guard{Bound: "usd", Limit: 0.25, Hard: true}, " resume r_1 --budget-usd 0.5"},
		{loop.ExitBound, journal.Guard{Bound: "time", Limit: 1800, Hard: true}, " resume r_1 --timeout 1h"},
		{loop.ExitBound, journal.Guard{Bound: "time", Limit: 45.5, Hard: true}, " resume r_1 --timeout 1m31s"},
		{loop.ExitBound, journal.Guard{Bound: "repetition", Limit: 5, Hard: true}, ` resume r_1 "what to do differently"`},
		{loop.ExitWaiting, journal.Guard{Bound: "turns", Limit: 40}, ` resume r_1 "your answer"`},
		{loop.ExitEnvironment, journal.Guard{}, " resume r_1"},
		{loop.ExitInterrupted, journal.Guard{}, " resume r_1"},
		{loop.ExitProved, journal.Guard{}, ""},
		{loop.ExitUnverified, journal.Guard{}, ""},
	} {
		s := newShell(t)
		s.run = func(_ context.Context, cfg harness.Config) (harness.Result, error) {
			payload, err := json.Marshal(c.guard)
			if err != nil {
				t.Fatal(err)
			}
			cfg.Observe(journal.Event{Type: journal.TypeGuard, Payload: payload})
			return harness.Result{RunID: "r_1", Outcome: loop.Outcome{Exit: c.exit}}, nil
		}
		out, _ := s.do(c.exit, "run", "do it", "--model", "rehearsal:f")
		lines := strings.Split(strings.TrimSpace(out), "\n")
		if last := lines[len(lines)-1]; !strings.HasSuffix(last, c.want) || strings.Contains(last, "to go on") != (c.want != "") {
			t.Errorf("exit %d at %s ends with %q, want %q", c.exit, c.guard.Bound, last, c.want)
		}
		out, _ = s.do(c.exit, "run", "do it", "--model", "rehearsal:f", "--json")
		if got := decode[stopped](t, out).Resume; !strings.HasSuffix(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("exit %d at %s says %q in JSON", c.exit, c.guard.Bound, got)
		}
	}
}

func TestRunReadsTheTaskFromAFile(t *testing.T) {
	s := newShell(t)
	path := filepath.Join(t.TempDir(), "task.md")
	if err := os.WriteFile(path, []byte("from a file\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, _ := s.do(0, "run", "@"+path, "--model", "rehearsal:f")
	if !strings.Contains(out, "task: from a file\n") {
		t.Errorf("it shows\n%s", out)
	}
}

func TestRunEndsWithTheOutcome(t *testing.T) {
	for _, exit := range []loop.Exit{0, 3, 4, 5, 6, 7, 130} {
		s := newShell(t)
		s.run = record(s.home, exit)
		out, errs := s.do(exit, "run", "do it", "--model", "rehearsal:f")
		if errs != "" || !strings.Contains(out, fmt.Sprintf("exit %d", exit)) || strings.ContainsRune(out, '\x1b') {
			t.Errorf("exit %d shows %q and on stderr %q", exit, out, errs)
		}
		out, _ = s.do(exit, "run", "do it", "--model", "rehearsal:f", "--json")
		if got := decode[harness.Result](t, out); got.Exit != exit || got.RunID == "" {
			t.Errorf("exit %d as JSON: %s", exit, out)
		}
	}
}

func TestRunJSON(t *testing.T) {
	s := newShell(t)
	out, errs := s.do(0, "run", "do it", "--model", "rehearsal:f", "--json")
	want := []string{"cost_usd", "dir", "exit", "proof", "reason", "run_id", "standing", "summary", "turns", "usage", "workspace"}
	if diff := cmp.Diff(want, fields(t, out)); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(errs, "DEGRADED sandbox: none here") {
		t.Errorf("the weaker mode is not told on stderr: %q", errs)
	}

	s.run = func(context.Context, harness.Config) (harness.Result, error) {
		return harness.Result{RunID: "r_1"}, errors.New("the disk is full")
	}
	out, _ = s.do(1, "run", "do it", "--model", "rehearsal:f", "--json")
	if diff := cmp.Diff(failure{"the disk is full", 1, "r_1"}, decode[failure](t, out)); diff != "" {
		t.Error(diff)
	}
}

func TestRunStreamsEvents(t *testing.T) {
	s := newShell(t)
	out, errs := s.do(0, "run", "do it", "--model", "rehearsal:f", "--stream-json")
	if errs != "" {
		t.Errorf("on stderr: %q", errs)
	}
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	for i, line := range lines {
		e := decode[journal.Event](t, line)
		if e.Seq != int64(i+1) || e.Sum == "" {
			t.Errorf("line %d is event %d with the sum %q", i+1, e.Seq, e.Sum)
		}
	}
	if last := decode[journal.Event](t, lines[len(lines)-1]); last.Type != journal.TypeSessionEnd {
		t.Errorf("the last line is a %s", last.Type)
	}
}

func TestFaultsGoToStderr(t *testing.T) {
	s := newShell(t)
	s.run = func(context.Context, harness.Config) (harness.Result, error) {
		return harness.Result{RunID: "r_1"}, errors.New("turn 2: the request does not hold \x1b[31mFAIL")
	}
	_, errs := s.do(1, "run", "do it", "--model", "rehearsal:f")
	if !strings.Contains(errs, "turn 2") || !strings.Contains(errs, "show r_1") || strings.ContainsRune(errs, '\x1b') {
		t.Errorf("stderr: %q", errs)
	}
}

func TestPanicsNeverReachThePerson(t *testing.T) {
	s := newShell(t)
	s.run = func(context.Context, harness.Config) (harness.Result, error) { panic("out of\ncheese") }
	for _, args := range [][]string{{"run", "secret task", "--model", "rehearsal:f"}, {"run", "secret task", "--model", "rehearsal:f", "--json"}} {
		out, errs := s.do(1, args...)
		text := out + errs
		if !strings.Contains(text, "belay has a bug: out of cheese; the report is in ") {
			t.Fatalf("it says %q", text)
		}
	}
	reports, _ := filepath.Glob(filepath.Join(s.home, "crash-*.txt"))
	if len(reports) != 2 {
		t.Fatalf("%d reports", len(reports))
	}
	report, err := os.ReadFile(reports[0])
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(report, []byte("cli_test.go")) || !bytes.Contains(report, []byte("command: belay run\n")) || bytes.Contains(report, []byte("secret")) {
		t.Errorf("the report is\n%s", report)
	}
}

func TestRunsJSON(t *testing.T) {
	s := newShell(t)
	if out, _ := s.do(0, "runs", "--json"); out != "[]\n" {
		t.Errorf("without runs: %q", out)
	}
	s.do(0, "run", "first", "--model", "rehearsal:f")
	s.run = record(s.home, loop.ExitBound)
	s.do(loop.ExitBound, "run", "second\nline", "--model", "rehearsal:f")
	log, _, err := journal.Create(s.home, journal.NewRunID(), nil,
		journal.Entry{Type: journal.TypeSessionStart, Payload: journal.SessionStart{Model: journal.ModelInfo{ID: "m"}, Tools: json.RawMessage(`[]`)}})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() // a run that is being written

	out, _ := s.do(0, "runs", "--json")
	var got []string
	for _, run := range decode[[]summary](t, out) {
		got = append(got, fmt.Sprintf("%s|%s|%s|%d|%v", run.Task, run.State, run.end(), run.Turns, run.Cost))
	}
	want := []string{"|unfinished|unfinished|0|$0.00", "second\nline|finished|exit 5|1|$0.25", "first|finished|proved|1|$0.25"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	text, _ := s.do(0, "runs", "--limit", "2")
	if lines := strings.Split(text, "\n"); len(lines) != 4 || !strings.Contains(lines[2], "exit 5") || !strings.HasSuffix(lines[2], "second line") {
		t.Errorf("the table is\n%s", text)
	}
}

func TestShow(t *testing.T) {
	s := newShell(t)
	workspace := t.TempDir()
	s.do(0, "run", "look", "--model", "rehearsal:f", "--workspace", workspace)
	text, _ := s.do(0, "show", "last")
	for _, want := range []string{"task: look", "I run it.", "✓ Bash true  class 1 allow · exit 0", "proved", "go test ./...", "red before", "proof void"} {
		if !strings.Contains(text, want) {
			t.Errorf("the story lacks %q:\n%s", want, text)
		}
	}
	out, _ := s.do(0, "show", "last", "--json")
	if events := decode[[]journal.Event](t, out); len(events) != 9 || events[0].Type != journal.TypeWriterOpen {
		t.Errorf("%d events", len(events))
	}
}

func TestAudit(t *testing.T) {
	s := newShell(t)
	out, _ := s.do(0, "run", "look", "--model", "rehearsal:f", "--json")
	run := decode[harness.Result](t, out)
	for _, args := range [][]string{{"replay", "--verify", "last"}, {"journal", "verify", run.RunID}} {
		s.do(0, args...)
		out, _ := s.do(0, append(args, "--json")...)
		if diff := cmp.Diff([]string{"contexts", "events", "findings", "ok", "run_id"}, fields(t, out)); diff != "" {
			t.Error(diff)
		}
		got := decode[audit](t, out)
		if !got.OK || got.Events != 9 || len(got.Contexts) != 1 || got.Contexts[0].Verdict != projection.Proved {
			t.Errorf("%q: %s", args, out)
		}
	}

	path := filepath.Join(run.Dir, "journal.jsonl")
	sound, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Replace(sound, []byte("exit 0"), []byte("exit 1"), 1)
	if bytes.Equal(flipped, sound) {
		t.Fatal("nothing to flip")
	}
	if err := os.WriteFile(path, flipped, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"replay", "--verify", "last"}, {"journal", "verify", "last"}, {"journal", "verify", "--all"}} {
		if out, _ := s.do(1, args...); !strings.Contains(out, "line 8: broken chain") {
			t.Errorf("%q does not name the line:\n%s", args, out)
		}
		s.do(1, append(args, "--json")...)
	}
	if out, errs := s.do(1, "show", "last"); !strings.Contains(out, "task: look") || !strings.Contains(errs, "line 8") || !strings.Contains(errs, "journal verify "+run.RunID) {
		t.Errorf("show of a damaged run: %s\n%s", out, errs)
	}
	if out, _ := s.do(1, "show", "last", "--json"); decode[failure](t, out).Exit != 1 {
		t.Errorf("show --json of a damaged run: %s", out)
	}
	if out, _ := s.do(0, "runs"); !strings.Contains(out, "damaged") {
		t.Errorf("runs: %s", out)
	}
}

// TestAuditFindsAForgedContext rewrites a journal with sound sums: only a replay sees that a context is another.
func TestAuditFindsAForgedContext(t *testing.T) {
	s := newShell(t)
	_, _, err := journal.Create(s.home, "r_01forged", nil,
		journal.Entry{Type: journal.TypeSessionStart, Payload: journal.SessionStart{Projection: projection.Version, Tools: json.RawMessage(`[]`)}},
		journal.Entry{Type: journal.TypeUserMessage, Payload: journal.UserMessage{Text: "x"}},
		journal.Entry{Type: journal.TypeModelCall, Turn: 1, Payload: journal.ModelCall{CtxHash: "another"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"replay", "--verify", "last"}, {"journal", "verify", "last"}} {
		if out, _ := s.do(1, args...); !strings.Contains(out, "line 4: turn 1: context failed") {
			t.Errorf("%q: %s", args, out)
		}
	}
}

func TestVersion(t *testing.T) {
	out, _ := newShell(t).do(0, "version", "--json")
	if diff := cmp.Diff([]string{"arch", "go", "os", "version"}, fields(t, out)); diff != "" {
		t.Error(diff)
	}
}

func TestBrokenPipeIsNoError(t *testing.T) {
	var errs bytes.Buffer
	a := &app{out: brokenPipe{}, err: &errs, in: strings.NewReader("")}
	a.main(t.Context(), []string{"version"})
	if errs.Len() > 0 {
		t.Errorf("stderr: %q", &errs)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Err: syscall.EPIPE}
}

// TestUnreadRunIsStopped: when nobody reads what a run shows, the run ends in order.
func TestUnreadRunIsStopped(t *testing.T) {
	for _, flag := range []string{"--stream-json", "--json=false"} {
		home := t.TempDir()
		var canceled bool
		a := &app{out: brokenPipe{}, err: io.Discard, in: strings.NewReader(""), home: func() (string, error) { return home, nil },
			userDir: func() (string, error) { return filepath.Join(home, "config"), nil }}
		a.run = func(ctx context.Context, cfg harness.Config) (harness.Result, error) {
			result, err := record(home, loop.ExitInterrupted)(ctx, cfg)
			canceled = ctx.Err() != nil
			return result, err
		}
		if code := a.main(t.Context(), []string{"run", "x", "--model", "rehearsal:f", flag}); (code != 1 && code != 130) || !canceled {
			t.Errorf("%s: exit %d, canceled %v", flag, code, canceled)
		}
	}
}

func TestDiffTrees(t *testing.T) {
	before := map[string][]byte{"a.go": []byte("one\ntwo\n"), "gone": []byte("x\n"), "same": []byte("s"), "bin": {0, 1}}
	after := map[string][]byte{"a.go": []byte("one\n2\n"), "new": []byte("y\n"), "same": []byte("s"), "bin": {0, 2, 3}}
	want := "--- a/a.go\n+++ b/a.go\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n" +
		"--- a/bin\n+++ b/bin\n(2 bytes before, 3 bytes after)\n" +
		"--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n" +
		"--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+y\n"
	if diff := cmp.Diff(want, diffTrees(before, after)); diff != "" {
		t.Error(diff)
	}
}

func TestBuiltByGoRun(t *testing.T) {
	hash := strings.Repeat("0a", 32)
	for path, want := range map[string]bool{
		"/tmp/go-build716985167/b001/exe/belay":            true,
		"/home/me/.cache/go-build/0a/" + hash + "-d/belay": true,
		"/srv/cache/0a/" + hash + "-d/belay":               true,
		"/usr/local/bin/belay":                             false,
		"/tmp/go-build716985167/b001/cli.test":             false,
		"/home/me/go-build/bin/belay":                      false,
	} {
		if got := builtByGoRun(filepath.FromSlash(path)); got != want {
			t.Errorf("builtByGoRun(%q) = %v", path, got)
		}
	}
}

func TestDemoFolderIsNobodysElse(t *testing.T) {
	dir := t.TempDir()
	if got, err := demoFolder(dir); err != nil || got != dir {
		t.Errorf("an empty folder: %q, %v", got, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := demoFolder(dir); exitCode(err) != loop.ExitUsage {
		t.Errorf("a folder with files: %v", err)
	}
	if _, err := demoFolder(filepath.Join(dir, "mine")); exitCode(err) != loop.ExitUsage {
		t.Errorf("a file: %v", err)
	}
}
