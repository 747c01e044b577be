package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"belay/harness"
	"belay/internal/render"
	"belay/journal"
	"belay/message"
	"belay/policy"
)

// noModel is what a person reads who names no model.
const noModel = `no model is set. Say which one does the work:
  --model rehearsal:FILE   a scripted model that follows FILE; offline, free, the same every time
To see how that looks first: %s demo`

var modes = []policy.Mode{policy.Plan, policy.Manual, policy.Edit, policy.Autonomous}

// runFlags are the flags of run.
type runFlags struct {
	cfg          harness.Config
	mode         string
	turns        int
	tokens       int64
	usd          float64
	timeout      time.Duration
	json, stream bool
}

func (a *app) runCommand() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   `run "task"|-|@file`,
		Short: "Work on one task until it is proved, given up or out of bounds",
		Long: `Work on one task in the current folder until it is proved, given up or out of bounds. "-" reads the task from
standard input, "@file" from a file.

Exit codes: 0 done and proved · 1 fault of belay's own · 2 usage or configuration · 3 finished, unverified ·
4 verification failed or blocker reported · 5 bound reached · 6 waiting for a person · 7 environment failure ·
130 interrupted.`,
		Example: `  belay run "make the tests pass" --model rehearsal:script.yaml
  belay run @task.md --model rehearsal:script.yaml --verify "go test ./..." --verify "go vet ./..."
  git diff | belay run - --model rehearsal:review.yaml --mode plan --json`,
		Args: exactly(1, `one task in quotes (or - or @file)`),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runTask(cmd, args[0], f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.cfg.Model, "model", "", "the model, for example rehearsal:FILE")
	flags.StringArrayVar(&f.cfg.Verify, "verify", nil, "shell `command` that must pass before the task counts as done; may be repeated")
	flags.StringVar(&f.cfg.Workspace, "workspace", "", "`folder` to work in (default: the current one)")
	flags.BoolVar(&f.cfg.AllowWide, "allow-wide-workspace", false, "let the workspace be / or your home folder")
	flags.StringVar(&f.mode, "mode", string(policy.Edit), "what may happen without asking: plan, manual, edit or autonomous")
	flags.IntVar(&f.turns, "max-turns", 0, "stop after `N` turns")
	flags.Int64Var(&f.tokens, "max-tokens", 0, "stop after `N` tokens, read and written")
	flags.Float64Var(&f.usd, "budget-usd", 0, "stop after `X` US dollars")
	flags.DurationVar(&f.timeout, "timeout", 0, "stop after a `duration`, for example 10m")
	flags.BoolVar(&f.json, "json", false, "print one JSON object at the end, and nothing else")
	flags.BoolVar(&f.stream, "stream-json", false, "print each journal event as one line of JSON, and nothing else")
	return cmd
}

func (a *app) runTask(cmd *cobra.Command, arg string, f runFlags) error {
	if err := f.check(cmd.Flags().Changed); err != nil {
		return err
	}
	if f.cfg.Model == "" {
		return usagef(noModel, self())
	}
	var err error
	if f.cfg.Task, err = a.task(arg); err != nil {
		return err
	}
	f.cfg.Version = version()
	switch {
	case f.json:
		result, err := a.quietly(cmd.Context(), f.cfg, nil)
		if err != nil {
			return err
		}
		return ended(result, a.json(result))
	case f.stream:
		result, err := a.quietly(cmd.Context(), f.cfg, a.out)
		return ended(result, err)
	}
	result, err := a.lively(cmd.Context(), f.cfg)
	if err != nil {
		return err
	}
	screen := a.screen()
	lines := render.Proofs(screen, result.Proof)
	return ended(result, a.lines(append(lines, screen.Dim("run "+result.RunID+" · "+self()+" show "+result.RunID))...))
}

// ended turns a run's result into the exit code of the command.
func ended(result harness.Result, err error) error {
	if err != nil {
		return err
	}
	return outcome(result.Exit)
}

// check refuses what cannot be meant. A bound that was given as 0 would otherwise be the default one.
func (f *runFlags) check(given func(string) bool) error {
	f.cfg.Mode = policy.Mode(strings.ToLower(f.mode))
	if !slices.Contains(modes, f.cfg.Mode) {
		return usagef("there is no mode %q: it is plan, manual, edit or autonomous", f.mode)
	}
	if f.json && f.stream {
		return usagef("--json prints one object at the end, --stream-json one event a line: choose one")
	}
	const above = "--%s must be above 0"
	switch {
	case given("max-turns") && f.turns <= 0:
		return usagef(above, "max-turns")
	case given("max-tokens") && f.tokens <= 0:
		return usagef(above, "max-tokens")
	case given("timeout") && f.timeout < time.Millisecond:
		return usagef("--timeout must be 1ms or more")
	case given("budget-usd") && !(f.usd >= 1e-9 && f.usd <= 1e9):
		return usagef("--budget-usd must be above 0 and at most a billion")
	}
	for _, command := range f.cfg.Verify {
		if strings.TrimSpace(command) == "" {
			return usagef("--verify needs a command: an empty one would prove nothing")
		}
	}
	wall := int64(math.Ceil(float64(f.timeout) / float64(time.Millisecond)))
	f.cfg.Bounds = journal.Bounds{Turns: f.turns, Tokens: f.tokens, Money: message.USD(f.usd), WallMS: wall}
	return nil
}

// taskMax bounds a task in bytes: more than this is data, and belongs into a file of the workspace.
const taskMax = 1 << 20

// task reads what is to be done.
func (a *app) task(arg string) (string, error) {
	text, from := arg, "the task"
	switch {
	case arg == "-":
		if render.IsTerminal(a.in) {
			fmt.Fprintln(a.err, "Type the task; end it with Ctrl-D on a line of its own.")
		}
		from = "the task on standard input"
		b, err := io.ReadAll(io.LimitReader(a.in, taskMax+1))
		if err != nil {
			return "", fmt.Errorf("read %s: %w", from, err)
		}
		text = string(b)
	case strings.HasPrefix(arg, "@"):
		from = "the task in " + arg[1:]
		file, err := os.Open(arg[1:])
		if err != nil {
			return "", usagef("read the task: %w", err)
		}
		defer file.Close()
		b, err := io.ReadAll(io.LimitReader(file, taskMax+1))
		if err != nil {
			return "", usagef("read %s: %w", from, err)
		}
		text = string(b)
	}
	if len(text) > taskMax {
		return "", usagef("%s is longer than 1 MiB; put the data into a file of the workspace and name it in the task", from)
	}
	if text = strings.TrimSpace(text); text == "" {
		return "", usagef("%s is empty: say what is to be done, for example %s run \"make the tests pass\"", from, self())
	}
	return strings.ToValidUTF8(text, "\uFFFD"), nil
}

// lively runs with live text.
func (a *app) lively(ctx context.Context, cfg harness.Config) (harness.Result, error) {
	out := &watched{w: a.out}
	live := render.NewLive(out, a.screen(), nil)
	defer live.Close()
	screen := a.screen()
	ctx, cancel, stop := interruptible(ctx, func(line string) { live.Notice("", screen.Bold(line)) })
	defer stop()
	out.onError(cancel)
	cfg.Observe, cfg.Delta, cfg.Progress = live.Observe, live.Delta, live.Progress
	result, err := a.run(ctx, cfg)
	if unread := live.Close(); err == nil && unread != nil {
		err = fmt.Errorf("show the run: %w", unread)
	}
	return result, faulty(result, err)
}

// fault is an error of a run that had started: its journal says more.
type fault struct {
	err   error
	runID string
}

func (e *fault) Error() string {
	return e.err.Error() + "\nThe journal says how far it came: " + self() + " show " + e.runID
}

func (e *fault) Unwrap() error { return e.err }

func faulty(result harness.Result, err error) error {
	if err == nil || result.RunID == "" {
		return err
	}
	return &fault{err, result.RunID}
}

// quietly runs without live text; events go to stream as lines of JSON where there is one. What weakens the run
// is said on standard error all the same.
func (a *app) quietly(ctx context.Context, cfg harness.Config, stream io.Writer) (harness.Result, error) {
	ctx, cancel, stop := interruptible(ctx, func(line string) { fmt.Fprintln(a.err, "belay: "+line) })
	defer stop()
	out := &watched{w: stream}
	out.onError(cancel)
	cfg.Observe = func(e journal.Event) {
		if stream != nil {
			out.encode(e)
			return
		}
		var weak journal.Degraded
		if e.Type == journal.TypeDegraded && e.Decode(&weak) == nil {
			for _, line := range render.Degraded(render.Detect(a.err, os.Getenv), weak) {
				fmt.Fprintln(a.err, line)
			}
		}
	}
	result, err := a.run(ctx, cfg)
	return result, faulty(result, err)
}

func (a *app) screen() render.Screen { return render.Detect(a.out, os.Getenv) }

func (a *app) lines(lines ...string) error {
	if len(lines) == 0 {
		return nil
	}
	_, err := io.WriteString(a.out, strings.Join(lines, "\n")+"\n")
	return err
}

// watched is an output whose first error (nobody reads any more) ends the run in order.
type watched struct {
	mu  sync.Mutex
	w   io.Writer
	end func()
}

func (w *watched) onError(end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end = end
}

func (w *watched) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := w.w.Write(p)
	if err != nil && w.end != nil {
		w.end()
	}
	return n, err
}

func (w *watched) encode(v any) {
	b, err := compact(v)
	if err == nil {
		w.Write(b)
	}
}

// compact is one line of JSON with its newline.
func compact(v any) ([]byte, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return []byte(b.String()), err
}
