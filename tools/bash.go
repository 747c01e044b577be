package tools

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"belay/effect"
	"belay/internal/shell"
	"belay/tool"
)

//go:embed bash.md
var bashDescription string

const (
	defaultTimeout = 60 * time.Second
	maxTimeout     = 10 * time.Minute
)

// Bash runs a command line in the sandbox. What runs is the re-printed syntax tree that was judged.
type Bash struct{}

type bashArgs struct {
	Command     string `json:"command"`
	TimeoutMS   int    `json:"timeout_ms"`
	Description string `json:"description"`
}

func (Bash) Spec() tool.Spec {
	return tool.Spec{
		Name:        "Bash",
		Classes:     []effect.Class{1, 2, 3, 4, 5},
		Description: strings.TrimSpace(bashDescription),
		Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["command"],"properties":{
			"command":{"type":"string","minLength":1,"description":"The command line, in bash."},
			"timeout_ms":{"type":"integer","minimum":1,"maximum":600000,"description":"Milliseconds after which the command is killed; 60000 when left out."},
			"description":{"type":"string","description":"What it does, in a few words, for the person who watches."}}}`),
		Replay: tool.OpaqueCall,
	}
}

// read is the command line, understood, with its arguments.
func (Bash) read(place tool.Place, call tool.Call) (bashArgs, shell.Program, error) {
	args, err := decode[bashArgs](call)
	if err != nil {
		return args, shell.Program{}, err
	}
	p, err := shell.Analyze(args.Command, place)
	var unreadable *shell.Unreadable
	if errors.As(err, &unreadable) {
		return args, p, tool.Mistakef(tool.InvalidArguments, unreadable.Hint, "%s", unreadable.Error())
	}
	if err == nil {
		if name, advice := p.Terminal(); name != "" {
			return args, p, tool.Mistakef(tool.Unsupported, advice, "%s wants a terminal, and there is none here", name)
		}
	}
	return args, p, err
}

func (b Bash) Plan(place tool.Place, call tool.Call) (tool.Plan, error) {
	_, p, err := b.read(place, call)
	if err != nil {
		return tool.Plan{}, err
	}
	effects := append(effect.Set{{Kind: effect.Exec, Target: "bash"}}, p.Effects...)
	return tool.Plan{Effects: effects, Replay: replay(place, p), Summary: p.Summary, Commands: p.Parts, Runs: p.Text}, nil
}

// replay says whether a line may run again when it is not known whether it ran: a line that only reads may, and so
// may one that only writes known files of the workspace, once they are as before.
func replay(place tool.Place, p shell.Program) tool.Replay {
	declared := tool.Pure
	for _, e := range p.Effects {
		switch {
		case e.Kind == effect.Connect, e.Kind == effect.Fetch:
			return tool.External
		case e.Kind == effect.Read, e.Kind == effect.Exec, declared == tool.OpaqueCall:
		case e.Kind != effect.Write && e.Kind != effect.Delete, !known(place, e.Target):
			declared = tool.OpaqueCall
		default:
			declared = tool.Reversible
		}
	}
	return declared
}

// known says that a target is one path below the workspace, of which a copy can be saved.
func known(place tool.Place, target string) bool {
	return target != "" && !strings.ContainsAny(target, "*?[") && target != place.Workspace && place.Rel(target) != target
}

// environment keeps a shell and git from reading settings that would start something else, and from waiting
// for a terminal.
var environment = []string{"BASH_ENV=", "ENV=", "PAGER=cat", "GIT_PAGER=cat", "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "TERM=dumb",
	"GIT_EDITOR=:", "EDITOR=false", "VISUAL=false", "SUDO_ASKPASS=/bin/false", "SSH_ASKPASS=/bin/false", "DEBIAN_FRONTEND=noninteractive"}

// withKey gives programs that can use it the idempotency key of a call that has one.
func withKey(call tool.Call) []string {
	if call.Key == "" {
		return environment
	}
	return append(slices.Clone(environment), "BELAY_IDEMPOTENCY_KEY="+call.Key)
}

// program is the interpreter's command line. Where there is no bash, sh runs the lines that both read alike.
func program(text string, lookPath func(string) (string, error)) ([]string, error) {
	if _, err := lookPath("bash"); err == nil {
		return []string{"bash", "--norc", "--noprofile", "-c", "--", text}, nil
	}
	if err := shell.POSIX(text); err != nil {
		return nil, err
	}
	return []string{"sh", "-c", "--", text}, nil
}

func (b Bash) Run(ctx context.Context, env tool.Env, call tool.Call) (tool.Result, error) {
	place := env.Place()
	args, p, err := b.read(place, call)
	if err != nil {
		return failed(err)
	}
	text, mark := p.Text, newMark()
	watched, isWatched := p.Watch(mark)
	if _, err := exec.LookPath("bash"); err == nil && isWatched {
		text = watched.Text
	}
	argv, err := program(text, exec.LookPath)
	if err != nil {
		return tool.Failf(tool.Unsupported, "This machine has no bash: write the line for a plain sh.", "%v", err), nil
	}
	timeout := defaultTimeout
	if args.TimeoutMS > 0 {
		timeout = min(time.Duration(args.TimeoutMS)*time.Millisecond, maxTimeout)
	}
	output := tool.NewCapture(tool.CaptureLimit)
	said := newReports(mark)
	exit, err := env.Exec(ctx, tool.Command{Argv: argv, Dir: place.Dir, Env: withKey(call), Output: output, Filter: said.filter, Timeout: timeout})
	switch {
	case errors.Is(err, tool.ErrDenied):
		return tool.Failf(tool.Denied, "Read with the file tools instead, or call ReportBlocker.", "the command cannot be started here: %v", err), nil
	case err != nil:
		return tool.Result{}, fmt.Errorf("running %q: %w", p.Summary, err)
	}
	var ran []stage
	if isWatched {
		ran = stages(watched.Parts, said.got, exit, output.Total() > 0)
	}
	r := bashResult(place, output, exit, timeout, ran)
	if slices.ContainsFunc(watched.Parts, func(part shell.Part) bool { return part.Background }) {
		r.Text += "\n[what was started in the background ended with this call: start it and use it in one call]"
	}
	if better := p.ReadsFiles(); better != "" {
		r.Text += "\n[" + better + " does this, with what belongs to it: use it for files]"
	}
	return r, nil
}

func bashResult(place tool.Place, output *tool.Capture, exit tool.Exit, timeout time.Duration, ran []stage) tool.Result {
	text := visible(output.String())
	lines := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
		lines++
	}
	for _, d := range exit.Denied {
		text += "[the sandbox refused: " + d + "]\n"
	}
	ended := fmt.Sprintf("exit %d", exit.Code)
	if exit.Signal != "" {
		ended = fmt.Sprintf("%s by a signal, exit %d", exit.Signal, exit.Code)
	}
	if exit.TimedOut {
		ended = fmt.Sprintf("killed after the timeout of %v, exit %d", timeout, exit.Code)
	}
	shown := ended
	if len(ran) > 0 {
		shown += " · stages: " + stagesText(ran)
	}
	code := exit.Code
	r := tool.Result{
		Status:  tool.Success,
		Summary: fmt.Sprintf("%s · %s", ended, plural(lines, "line")),
		// No duration: it stands in the envelope. What the model reads is the same for the same run.
		Text:    fmt.Sprintf("%s[%s · cwd %s]", text, shown, place.Dir),
		Stats:   tool.Stats{Duration: exit.Duration, Bytes: output.Total(), Exit: &code, Denied: exit.Denied},
		Context: tool.Context{Dir: place.Dir},
		Data: bashData{Exit: exit.Code, Signal: exit.Signal, TimedOut: exit.TimedOut, Duration: exit.Duration.Milliseconds(), Dir: place.Dir,
			Bytes: output.Total(), Stages: ran}.encode(),
	}
	switch {
	case exit.TimedOut:
		r.Status = tool.Error
		r.Error = &tool.Failure{Code: tool.Timeout, Message: ended, Hint: "Give a larger timeout_ms, or run a smaller part of it."}
		r.Text += "\n" + r.Error.Hint
	case exit.Code != 0:
		r.Status = tool.Error
		r.Error = &tool.Failure{Code: tool.ExitStatus, Message: ended, Hint: "Read the output: it says why."}
	}
	return r
}
