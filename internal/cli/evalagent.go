package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"belay/eval"
	"belay/harness"
	"belay/internal/family"
	"belay/journal"
	"belay/loop"
)

// belayAgent is the production harness: this program as a child, so that a kill ends all of it and its memory is its own.
type belayAgent struct {
	self    string
	model   string   // as --model; rehearsal:oracle, rehearsal:null and rehearsal:cheat are the task's own
	flags   []string // further flags of belay run
	environ []string
}

// ownScripts are the rehearsals that each task brings itself.
var ownScripts = []string{"oracle", "null", "cheat"}

// nullScript is the model that does nothing, for tasks without a null.yaml.
const nullScript = "version: 1\nname: \"null\"\nturns: [{say: \"There is nothing that I would do.\"}]\notherwise: {say: \"There is nothing that I would do.\"}\n"

// ownScript says whether a model is one of each task's own scripts.
func ownScript(model string) (name string, ok bool) {
	name, ok = strings.CutPrefix(model, "rehearsal:")
	for _, own := range ownScripts {
		if ok && name == own {
			return name, true
		}
	}
	return "", false
}

func (b belayAgent) spec(a eval.Attempt) (string, error) {
	if a.Rehearsal != "" {
		return "rehearsal:" + a.Rehearsal, nil
	}
	name, own := ownScript(b.model)
	if !own {
		return b.model, nil
	}
	if file := a.Task.Rehearsal(name); file != "" {
		return "rehearsal:" + file, nil
	}
	if name == "null" {
		file := filepath.Join(a.State, "null.yaml")
		return "rehearsal:" + file, os.WriteFile(file, []byte(nullScript), 0o644)
	}
	return "", fmt.Errorf("the task %s has no %s.yaml", a.Task.ID, name)
}

// Run starts belay run with a state of its own.
func (b belayAgent) Run(ctx context.Context, a eval.Attempt) (eval.Run, error) {
	spec, err := b.spec(a)
	if err != nil {
		return eval.Run{}, err
	}
	args := []string{"run", "-", "--json", "--workspace", a.Workspace}
	if spec != "" {
		args = append(args, "--model", spec)
	}
	args = append(args, b.flags...)
	if a.Budget.Turns > 0 {
		args = append(args, "--max-turns", strconv.Itoa(a.Budget.Turns))
	}
	if a.Budget.Tokens > 0 {
		args = append(args, "--max-tokens", strconv.FormatInt(a.Budget.Tokens, 10))
	}
	if a.Budget.USD > 0 && a.Rehearsal == "" && !strings.HasPrefix(spec, "rehearsal:") {
		args = append(args, "--budget-usd", strconv.FormatFloat(a.Budget.USD, 'f', -1, 64))
	}
	wall := a.Budget.Wall
	if wall > 0 {
		args = append(args, "--timeout", wall.String())
	} else {
		wall = time.Duration(harness.DefaultBounds.WallMS) * time.Millisecond
	}
	env := append(withoutVariables(b.environ, "BELAY_HOME"), "BELAY_HOME="+a.State)
	end, out, timedOut, err := performAgent(ctx, b.self, a, env, b.self, args, a.Prompt, wall+untilKill)
	if err != nil {
		return eval.Run{}, err
	}
	run := eval.Run{Exit: end.Code, Memory: end.Memory, Reason: fmt.Sprintf("exit %d", end.Code)}
	var said struct {
		harness.Result
		Error string `json:"error"`
		RunID string `json:"run_id"`
	}
	if i := strings.IndexByte(out, '{'); i >= 0 {
		_ = json.NewDecoder(strings.NewReader(out[i:])).Decode(&said) // what cannot be read says nothing
	}
	run.RunID, run.Turns, run.Tokens, run.Standing = said.RunID, said.Turns, said.Usage.Total(), string(said.Standing)
	if run.Reason = said.Reason; said.Error != "" {
		run.Reason = said.Error
	}
	if ids, err := journal.Runs(a.State); err == nil && len(ids) > 0 {
		run.RunID = ids[0]
		run.Journal = filepath.Join(journal.RunsDir(a.State), ids[0])
		s := summarize(run.Journal)
		usd := s.Cost.Dollars()
		run.USD = &usd
		run.Turns = max(run.Turns, s.Turns)
	}
	if run.USD != nil && said.RunID != "" && said.Usage.Total() > 0 && *run.USD == 0 && !strings.HasPrefix(spec, "rehearsal:") {
		run.USD = nil // the price is unknown
	}
	switch {
	case timedOut:
		run.End, run.Reason = eval.Bounded, "it was killed after "+(wall+untilKill).String()
	case end.Signal != "":
		run.End, run.Reason = eval.Crashed, "it was ended by a signal: "+end.Signal
	default:
		switch loop.Exit(end.Code) {
		case loop.ExitBound:
			run.End = eval.Bounded
		case loop.ExitEnvironment, loop.ExitInterrupted:
			run.End = eval.Unavailable
		case loop.ExitUsage:
			return run, fmt.Errorf("belay run refuses: %s", run.Reason)
		case loop.ExitProved, loop.ExitUnverified, loop.ExitFailed, loop.ExitWaiting:
			run.End = eval.Ended
		default:
			run.End = eval.Crashed
		}
	}
	return run, nil
}

// performAgent runs an agent's program and keeps what it prints, in a.Output. The text of its standard output is returned.
func performAgent(ctx context.Context, self string, a eval.Attempt, env []string, program string, args []string, stdin string, wall time.Duration) (end family.End, out string, timedOut bool, err error) {
	file, err := os.OpenFile(a.Output, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o644)
	if err != nil {
		return end, "", false, err
	}
	defer file.Close()
	errs, err := os.OpenFile(a.Output+".err", os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o644)
	if err != nil {
		return end, "", false, err
	}
	defer errs.Close()
	bounded, cancel := context.WithTimeout(ctx, wall)
	defer cancel()
	cmd := exec.Command(program, args...)
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = env, a.Workspace, file, errs
	cmd.Stdin = strings.NewReader(stdin)
	end, err = family.Run(bounded, self, cmd)
	if ctx.Err() != nil {
		return end, "", false, ctx.Err()
	}
	if err != nil {
		return end, "", false, err
	}
	if info, err := errs.Stat(); err == nil && info.Size() == 0 {
		_ = os.Remove(a.Output + ".err")
	}
	data, err := os.ReadFile(a.Output)
	if len(data) > 16<<20 {
		data = data[:16<<20]
	}
	return end, string(data), errors.Is(bounded.Err(), context.DeadlineExceeded), err
}

func withoutVariables(environ []string, names ...string) (kept []string) {
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		drop := false
		for _, n := range names {
			drop = drop || n == name
		}
		if !drop {
			kept = append(kept, v)
		}
	}
	return kept
}

// otherAgent is any program: a shell line in which {prompt}, {prompt_file} and {workspace} stand for what a trial gives it.
type otherAgent struct {
	self     string
	line     string
	environ  []string
	keepHome bool
}

// defaultWall bounds an agent of which nobody said how long it may take.
const defaultWall = 30 * time.Minute

func (o otherAgent) Run(ctx context.Context, a eval.Attempt) (eval.Run, error) {
	prompt := filepath.Join(a.State, "prompt.md")
	if err := os.WriteFile(prompt, []byte(a.Prompt), 0o644); err != nil {
		return eval.Run{}, err
	}
	line := strings.NewReplacer("{prompt}", shellQuote(a.Prompt), "{prompt_file}", shellQuote(prompt), "{workspace}", shellQuote(a.Workspace)).Replace(o.line)
	env := withoutVariables(o.environ, "PWD", "OLDPWD")
	if !o.keepHome {
		home := filepath.Join(a.State, "home")
		if err := os.MkdirAll(home, 0o755); err != nil {
			return eval.Run{}, err
		}
		env = append(withoutVariables(env, "HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"), "HOME="+home)
	}
	env = append(env, "PWD="+a.Workspace, "BELAY_EVAL_TRIAL="+strconv.Itoa(a.Trial))
	wall := a.Budget.Wall
	if wall == 0 {
		wall = defaultWall
	}
	end, out, timedOut, err := performAgent(ctx, o.self, a, env, "/bin/sh", []string{"-c", line}, "", wall)
	if err != nil {
		return eval.Run{}, err
	}
	run := eval.Run{Exit: end.Code, Memory: end.Memory, Reason: fmt.Sprintf("exit %d", end.Code), End: eval.Ended}
	run.USD, run.Tokens, run.Turns = reportedUsage(out)
	switch {
	case timedOut:
		run.End, run.Reason = eval.Bounded, "it was killed after "+wall.String()
	case end.Signal != "":
		run.End, run.Reason = eval.Crashed, "it was ended by a signal: "+end.Signal
	case end.Code == 126 || end.Code == 127:
		return run, fmt.Errorf("the agent's command cannot be run (exit %d); see output.txt.err", end.Code)
	case end.Code != 0:
		run.End = eval.Crashed
	}
	return run, nil
}

// reportedUsage reads what agents that print JSON say of themselves in their last object: Claude Code's --output-format json, and belay's own.
func reportedUsage(out string) (usd *float64, tokens int64, turns int) {
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var said struct {
		TotalCost *float64 `json:"total_cost_usd"`
		Cost      *float64 `json:"cost_usd"`
		Turns     int      `json:"num_turns"`
		Usage     struct {
			In  int64 `json:"input_tokens"`
			Out int64 `json:"output_tokens"`
		} `json:"usage"`
	}
	if json.Unmarshal([]byte(lines[len(lines)-1]), &said) != nil {
		return nil, 0, 0
	}
	if usd = said.TotalCost; usd == nil {
		usd = said.Cost
	}
	return usd, said.Usage.In + said.Usage.Out, said.Turns
}

// shellQuote makes text one word of a shell line.
func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
