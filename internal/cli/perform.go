package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"belay/harness"
	"belay/internal/render"
	"belay/journal"
)

// starter begins a run, or goes on with one.
type starter func(context.Context, harness.Config) (harness.Result, error)

// outputFlags say how a run is shown.
type outputFlags struct{ json, stream bool }

func (f *outputFlags) register(flags *pflag.FlagSet) {
	flags.BoolVar(&f.json, "json", false, "print one JSON object at the end, and nothing else")
	flags.BoolVar(&f.stream, "stream-json", false, "print each journal event as one line of JSON, and nothing else")
}

func (f *outputFlags) check() error {
	if f.json && f.stream {
		return usagef("--json prints one object at the end, --stream-json one event a line: choose one")
	}
	return nil
}

// stopped is what --json prints about a run: its result, and the command that goes on where it stands still.
type stopped struct {
	harness.Result
	Resume string `json:"resume,omitempty"`
}

// perform starts a run, shows it, and ends with its exit code. Where the run stands still, the last line is the
// command that goes on.
func (a *app) perform(ctx context.Context, cfg harness.Config, out outputFlags, start starter) error {
	cfg.Version, cfg.Rules = version(), a.rules
	var at halt
	begin := func(ctx context.Context, cfg harness.Config) (harness.Result, error) {
		show := cfg.Observe
		cfg.Observe = func(e journal.Event) { at.observe(e); show(e) }
		return start(ctx, cfg)
	}
	switch {
	case out.json:
		result, err := a.quietly(ctx, cfg, nil, begin)
		if err != nil {
			return err
		}
		for _, line := range a.attempts(result.Attempts) {
			fmt.Fprintln(a.err, "belay: "+line)
		}
		return ended(result, a.json(stopped{result, at.goOn(result)}))
	case out.stream:
		result, err := a.quietly(ctx, cfg, a.out, begin)
		return ended(result, err)
	}
	result, err := a.lively(ctx, cfg, begin)
	if err != nil {
		return err
	}
	screen := a.screen()
	lines := append(render.Proofs(screen, result.Proof), screen.Dim("run "+result.RunID+" · "+self()+" show "+result.RunID))
	lines = append(lines, a.evasions(result.Circumvention)...)
	lines = append(lines, a.attempts(result.Attempts)...)
	if next := at.goOn(result); next != "" {
		lines = append(lines, screen.Dim("to go on: ")+next)
	}
	return ended(result, a.lines(lines...))
}

// attempts names what a person has to know at the end: what the agent tried and no agent may.
func (a *app) attempts(tried []string) []string {
	var lines []string
	for _, what := range tried {
		lines = append(lines, a.screen().Alarm("for a person:")+" "+render.Line(what))
	}
	return lines
}

// ended turns a run's result into the exit code of the command.
func ended(result harness.Result, err error) error {
	if err != nil {
		return err
	}
	return outcome(result.Exit)
}

// lively runs with live text.
func (a *app) lively(ctx context.Context, cfg harness.Config, start starter) (harness.Result, error) {
	return a.livelyWith(ctx, cfg, start, func(live *render.Live, cfg *harness.Config) {
		if render.IsTerminal(a.in) && render.IsTerminal(a.out) && !cfg.PauseToAsk {
			cfg.Ask, cfg.Remember = (&terminal{live, newKeyboard(a.in)}).ask, a.remember
		}
	})
}

// livelyWith lets more be set once the live text is there.
func (a *app) livelyWith(ctx context.Context, cfg harness.Config, start starter, more func(*render.Live, *harness.Config)) (harness.Result, error) {
	out := &watched{w: a.out}
	live := render.NewLive(out, a.screen(), nil)
	defer live.Close()
	screen := a.screen()
	ctx, cancel, stop := interruptible(ctx, func(line string) { live.Notice("", screen.Bold(line)) })
	defer stop()
	out.onError(cancel)
	cfg.Observe, cfg.Delta, cfg.Progress = live.Observe, live.Delta, live.Progress
	more(live, &cfg)
	result, err := start(ctx, cfg)
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
func (a *app) quietly(ctx context.Context, cfg harness.Config, stream io.Writer, start starter) (harness.Result, error) {
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
		if e.Type == journal.TypeDegraded && e.Decode(&weak) == nil && weak.Component != "run" { // how it ends is in the result
			for _, line := range render.Degraded(render.Detect(a.err, os.Getenv), weak) {
				fmt.Fprintln(a.err, line)
			}
		}
	}
	result, err := start(ctx, cfg)
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
