package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"belay/harness"
	"belay/internal/render"
	"belay/internal/sandbox"
	"belay/internal/tui"
	"belay/journal"
	"belay/loop"
	"belay/message"
	"belay/policy"
)

// talk is an interactive session: one run that goes on with each message, until the person begins another.
type talk struct {
	app *app
	cfg harness.Config // what every message starts with

	mu    sync.Mutex
	runID string
	mode  policy.Mode
	model string
	spent spent
}

// spent is what the run has used; each message may use as much again as its bounds say.
type spent struct {
	turns int
	usage message.Usage
	cost  message.Cost
	wall  time.Duration
}

func (a *app) sessionFlags(cmd *cobra.Command) (f *runFlags, plain *bool) {
	f, plain = &runFlags{}, new(bool)
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(plain, "plain", false, "a session in plain lines, for screen readers and dumb terminals")
	cmd.Flags().StringVar(&f.cfg.Model, "model", "", "the `model` of a session: anthropic:NAME, openai:NAME, gemini:NAME, openai:NAME@URL or rehearsal:FILE")
	cmd.Flags().StringVar(&f.mode, "mode", string(policy.Edit), "what may happen in a session without asking: plan, manual, edit or autonomous")
	cmd.Flags().StringArrayVar(&f.cfg.Verify, "verify", nil, "shell `command` that must pass before a task of the session counts as done; may be repeated")
	return f, plain
}

// converse opens the session in this folder, or, with a run, goes on with that.
func (a *app) converse(ctx context.Context, f *runFlags, given func(string) bool, plain bool, prompt, runID string) error {
	cfg, err := a.configure(f, given)
	if err != nil {
		return err
	}
	cfg.Version, cfg.Rules, cfg.Remember = version(), a.rules, a.remember
	if cfg.Workspace == "" {
		if cfg.Workspace, err = os.Getwd(); err != nil {
			return err
		}
	}
	t := &talk{app: a, cfg: cfg, runID: runID, mode: cfg.Mode, model: cfg.Model}
	if plain || !render.IsTerminal(a.in) || !render.IsTerminal(a.out) || os.Getenv("TERM") == "dumb" {
		return t.plainly(ctx, prompt)
	}
	screen := a.screen()
	var names []string
	for _, m := range modes {
		names = append(names, string(m))
	}
	return tui.Run(ctx, tui.Config{
		Workspace: cfg.Workspace, Model: cfg.Model, Mode: string(cfg.Mode), Sandbox: t.sandbox, Bounds: cfg.Bounds, Prompt: prompt,
		Events: t.events, Work: t.work, Command: t.command, Commands: sessionCommands, Files: t.files, Shell: t.shell, Remember: t.note,
		SetMode: t.setMode, Modes: names,
		In: a.in, Out: a.out, Environ: os.Environ(), Editor: cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR")), Color: screen.Color,
	})
}

// sessionCommands are the slash commands that are commands of belay, with the run filled in.
var sessionCommands = []tui.Command{
	{Name: "compact", Help: "summarise the older part of the context: /compact [focus]"},
	{Name: "context", Help: "what the last request held"},
	{Name: "diff", Help: "what the agent changed"},
	{Name: "doctor", Help: "what works on this machine"},
	{Name: "effects", Help: "what has left this machine"},
	{Name: "fork", Help: "a new run that goes on from here: /fork [SEQ]"},
	{Name: "memory", Help: "what later sessions are told"},
	{Name: "model", Help: "another model from the next message on: /model NAME"},
	{Name: "permissions", Help: "the rules, and where each comes from"},
	{Name: "proof", Help: "what proves that it is finished"},
	{Name: "resume", Help: "go on with another run: /resume RUN"},
	{Name: "rewind", Help: "take files and conversation back: /rewind [--to TURN], shown first, done with --yes"},
	{Name: "runs", Help: "the runs of this folder"},
	{Name: "trace", Help: "the whole story of the run"},
	{Name: "verify", Help: "run the verifiers now"},
}

// sandbox is what commands will get, before a run says what they got.
func (t *talk) sandbox(ctx context.Context) string {
	if t.cfg.Sandbox == "off" {
		return "off"
	}
	level := sandbox.Probe(ctx)
	return level.Name()
}

func (t *talk) events() iter.Seq2[journal.Event, error] {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.runID == "" {
		return nil
	}
	home, err := t.app.home()
	if err != nil {
		return nil
	}
	return journal.Read(filepath.Join(journal.RunsDir(home), t.runID))
}

// message is the configuration of the next message.
func (t *talk) message(text string) (cfg harness.Config, runID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	cfg = t.cfg
	cfg.Task, cfg.Mode, cfg.Model = text, t.mode, t.model
	if t.runID == "" {
		return cfg, ""
	}
	b, s := &cfg.Bounds, t.spent
	b.Turns += s.turns
	b.Tokens += s.usage.Total()
	b.Money += s.cost
	b.WallMS += s.wall.Milliseconds()
	return cfg, t.runID
}

// work says something to the agent: the first message begins a run, every other one goes on with it.
func (t *talk) work(ctx context.Context, text string, with tui.Work) (tui.Ended, error) {
	cfg, runID := t.message(text)
	cfg.Observe, cfg.Delta, cfg.Progress, cfg.Ask, cfg.Inbox = with.Observe, with.Delta, with.Progress, with.Ask, with.Inbox
	began := time.Now()
	var result harness.Result
	var err error
	if runID == "" {
		result, err = t.app.run(ctx, cfg)
	} else {
		result, err = t.app.resume(ctx, runID, cfg)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if result.RunID != "" {
		t.runID = result.RunID
		t.spent = spent{result.Turns, result.Usage, result.Cost, t.spent.wall + time.Since(began)}
	}
	return tui.Ended{RunID: t.runID, Exit: int(result.Exit), Reason: endWord(result)}, err
}

// endWord is how the work on a message ended, in a word.
func endWord(r harness.Result) string {
	switch {
	case r.Exit == loop.ExitProved:
		return "proved"
	case r.Exit == loop.ExitInterrupted:
		return "stopped"
	case r.Standing != "":
		return string(r.Standing)
	}
	return r.Reason
}

func (t *talk) setMode(mode string) error {
	if !slices.Contains(modes, policy.Mode(mode)) {
		return fmt.Errorf("there is no mode %q: it is plan, manual, edit or autonomous", mode)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mode = policy.Mode(mode)
	return nil
}

// command runs a slash command: those of the session itself, and belay's own with the run filled in.
func (t *talk) command(ctx context.Context, line string) (string, error) {
	words := strings.Fields(line)
	name, args := words[0], words[1:]
	t.mu.Lock()
	runID, workspace := t.runID, t.cfg.Workspace
	t.mu.Unlock()
	needRun := func(words ...string) (string, error) {
		if runID == "" {
			return "", errors.New("nothing has been said yet, so there is no run")
		}
		return t.app.inside(ctx, append(words, args...))
	}
	switch name {
	case "clear":
		t.mu.Lock()
		t.runID, t.spent = "", spent{}
		t.mu.Unlock()
		return "a new run begins with your next message; " + orNo(runID, "there was none before", "the one before is "+runID), nil
	case "model":
		if len(args) != 1 {
			return "the model is " + orNo(t.model, "whatever a local server lists", t.model), nil
		}
		t.mu.Lock()
		t.model = args[0]
		t.mu.Unlock()
		return "from the next message on: " + args[0], nil
	case "resume":
		if len(args) != 1 {
			return t.app.inside(ctx, []string{"runs", "--limit", "15"})
		}
		id, _, err := t.app.find(args[0])
		if err != nil {
			return "", err
		}
		t.mu.Lock()
		t.runID, t.spent = id, spent{}
		t.mu.Unlock()
		return "", nil
	case "compact":
		if len(args) > 0 {
			args = []string{"--focus", strings.Join(args, " ")}
		}
		return needRun("compact", runID)
	case "context":
		return needRun("context", runID)
	case "diff", "effects", "proof":
		return needRun(name, runID)
	case "fork":
		if len(args) == 1 {
			args = []string{"--at", args[0]}
		}
		return needRun("fork", runID)
	case "rewind":
		if slices.Contains(args, "--yes") {
			return needRun("rewind", runID)
		}
		text, err := needRun("rewind", runID, "--dry-run")
		if err == nil {
			text += "nothing was done yet; to go back: /" + strings.Join(append(words, "--yes"), " ") + "\n"
		}
		return text, err
	case "trace":
		return needRun("show", runID)
	case "memory":
		return t.app.inside(ctx, append([]string{"memory", "show"}, args...))
	case "permissions":
		return t.app.inside(ctx, []string{"policy", "show"})
	case "runs":
		return t.app.inside(ctx, append([]string{"runs"}, args...))
	case "doctor":
		return t.app.inside(ctx, []string{"doctor"})
	case "verify":
		return t.app.inside(ctx, []string{"verify", "--here", "--workspace", workspace})
	}
	return "", fmt.Errorf("there is no /%s", name)
}

func orNo(value, without, with string) string {
	if value == "" {
		return without
	}
	return with
}

// inside runs a command line of belay's own and returns what it prints.
func (a *app) inside(ctx context.Context, args []string) (string, error) {
	var out, errs bytes.Buffer
	inner := *a
	inner.in, inner.out, inner.err, inner.begun = strings.NewReader(""), &out, &errs, false
	code := inner.main(ctx, args)
	text := out.String()
	if errs.Len() > 0 && code != 0 {
		return text, errors.New(strings.TrimSpace(strings.TrimPrefix(errs.String(), "belay: ")))
	}
	return text, nil
}

// shell runs a line of the person's own, in the sandbox and on record.
func (t *talk) shell(ctx context.Context, line string) (string, error) {
	cfg, _ := t.message("")
	args, err := json.Marshal(map[string]string{"command": line})
	if err != nil {
		return "", err
	}
	envelopes, _, err := harness.Call(ctx, cfg, []harness.ToolCall{{Name: "Bash", Args: args}})
	if err != nil || len(envelopes) == 0 {
		return "", err
	}
	return envelopes[0].Text, nil
}

// files offers paths of the workspace that begin with a prefix.
func (t *talk) files(prefix string) []string {
	dir, base := filepath.Split(prefix)
	if !filepath.IsLocal(filepath.Join(".", dir)) {
		return nil
	}
	entries, err := os.ReadDir(filepath.Join(t.cfg.Workspace, dir))
	if err != nil {
		return nil
	}
	var found []string
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, base) || name == ".git" || strings.HasPrefix(name, ".") && base == "" {
			continue
		}
		if e.IsDir() {
			name += "/"
		}
		if found = append(found, dir+name); len(found) == 50 {
			break
		}
	}
	return found
}

// plainly is the session in plain lines, with the same commands.
func (t *talk) plainly(ctx context.Context, prompt string) error {
	a := t.app
	keys := newKeyboard(a.in)
	if err := a.lines("belay in "+render.Line(t.cfg.Workspace)+", mode "+string(t.mode)+". Say what to do; /help lists what else can be typed, /quit leaves.", ""); err != nil {
		return err
	}
	for {
		text := prompt
		if prompt = ""; text == "" {
			if _, err := io.WriteString(a.out, "> "); err != nil {
				return err
			}
			line, err := keys.next(ctx)
			if errors.Is(err, io.EOF) {
				return a.lines("")
			}
			if err != nil {
				return err
			}
			text = strings.TrimSpace(line)
		}
		switch {
		case text == "":
		case text == "/quit" || text == "/exit":
			return nil
		case text == "/help":
			if err := a.lines(t.helpLines()...); err != nil {
				return err
			}
		case strings.HasPrefix(text, "/mode "):
			if err := t.setMode(strings.TrimSpace(text[len("/mode "):])); err != nil {
				fmt.Fprintln(a.err, "belay: "+err.Error())
			}
		case strings.HasPrefix(text, "/"):
			t.tell(t.command(ctx, text[1:]))
		case strings.HasPrefix(text, "!"):
			t.tell(t.shell(ctx, strings.TrimSpace(text[1:])))
		case strings.HasPrefix(text, "#"):
			t.tell("remembered", t.note(strings.TrimSpace(text[1:])))
		default:
			if err := t.sayPlainly(ctx, text, keys); err != nil {
				fmt.Fprintln(a.err, "belay: "+render.Clean(err.Error()))
			}
		}
	}
}

func (t *talk) helpLines() []string {
	var lines []string
	for _, c := range append([]tui.Command{{Name: "help", Help: "this"}, {Name: "mode", Help: "what may happen without asking: /mode plan|manual|edit|autonomous"},
		{Name: "clear", Help: "begin a new run with an empty context"}, {Name: "quit", Help: "leave; belay resume last goes on"}}, sessionCommands...) {
		lines = append(lines, fmt.Sprintf("/%-12s %s", c.Name, c.Help))
	}
	return append(lines, "!LINE runs a shell line of your own in the sandbox; #NOTE remembers it")
}

// tell prints what a command printed.
func (t *talk) tell(text string, err error) {
	if err != nil {
		fmt.Fprintln(t.app.err, "belay: "+render.Clean(err.Error()))
	}
	if text = strings.TrimRight(text, "\n"); text != "" {
		_ = t.app.lines(text)
	}
}

// sayPlainly shows the work on one message as belay run does.
func (t *talk) sayPlainly(ctx context.Context, text string, keys *keyboard) error {
	cfg, runID := t.message(text)
	start := t.app.run
	if runID != "" {
		start = func(ctx context.Context, cfg harness.Config) (harness.Result, error) {
			return t.app.resume(ctx, runID, cfg)
		}
	}
	began := time.Now()
	result, err := t.app.livelyWith(ctx, cfg, start, func(live *render.Live, cfg *harness.Config) {
		cfg.Ask = (&terminal{live, keys}).ask
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	if result.RunID != "" {
		t.runID = result.RunID
		t.spent = spent{result.Turns, result.Usage, result.Cost, t.spent.wall + time.Since(began)}
	}
	return err
}

// note keeps a sentence for later sessions.
func (t *talk) note(text string) error {
	if text == "" {
		return errors.New("write what to remember behind the #")
	}
	cfg, _ := t.message("")
	var failure error
	for _, edit := range []map[string]any{{"command": "insert", "path": "MEMORY.md", "text": "- " + text, "line": 0}, {"command": "create", "path": "MEMORY.md", "text": "- " + text}} {
		args, err := json.Marshal(edit)
		if err != nil {
			return err
		}
		envelopes, _, err := harness.Call(context.Background(), cfg, []harness.ToolCall{{Name: "Memory", Args: args}})
		if err != nil {
			return err
		}
		if failure = nil; len(envelopes) == 1 && envelopes[0].Error != nil {
			failure = errors.New(envelopes[0].Error.Message)
		}
		if failure == nil {
			return nil
		}
	}
	return failure
}
