package eval

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Runner is an agent: whatever takes a prompt and changes a workspace.
type Runner interface {
	// Run lets the agent work. When it returns, all processes of the agent are dead. An error is a fault of what is around the agent
	// (nothing about the agent is known); how the agent itself ended is in the Run. A cancelled ctx ends it with ctx's error.
	Run(ctx context.Context, a Attempt) (Run, error)
}

// Attempt is what an agent is given. All paths are absolute.
type Attempt struct {
	Task      *Task
	Trial     int
	Prompt    string
	Workspace string
	State     string // an empty folder for what the agent keeps; it stays beside the results
	Output    string // file for what it prints
	Budget    Budget
	Rehearsal string // script that is played instead of the agent's model, "" for none
}

// End is how an agent ended.
type End string

const (
	Ended       End = "ended"       // by itself
	Bounded     End = "bounded"     // by a bound
	Crashed     End = "crashed"     // by its own fault
	Unavailable End = "unavailable" // for want of something around it: network, key, quota, disk
)

// Run is what became of an attempt.
type Run struct {
	End      End
	Reason   string
	Exit     int
	RunID    string
	Journal  string // folder of the run's journal, absolute; "" where there is none
	Turns    int
	Tokens   int64
	USD      *float64 // nil is unknown
	Memory   int64    // bytes of the largest process, 0 where unknown
	Standing string
}

// runTrial runs one attempt and grades it. The error is ctx's: then nothing is known.
func (s *sweep) runTrial(ctx context.Context, t *Task, base string, number, attempt int) (Trial, error) {
	start := time.Now()
	trial := Trial{Task: t.ID, Trial: number, Attempt: attempt}
	place, err := s.newPlace()
	if err != nil {
		return trial, err
	}
	defer removeAll(place)
	keep := filepath.Join("trials", t.ID, fmt.Sprintf("%d-%d", number, attempt))
	fault := func(err error) (Trial, error) {
		trial.Outcome, trial.Reason = HarnessFault, err.Error()
		trial.TotalMS = time.Since(start).Milliseconds()
		return trial, ctx.Err()
	}
	run, transcript, err := s.attempt(ctx, t, base, place, keep, number, "")
	trial.AgentMS = time.Since(start).Milliseconds()
	if ctx.Err() != nil {
		return trial, ctx.Err()
	}
	trial.Output = filepath.ToSlash(filepath.Join(keep, "output.txt"))
	if err != nil {
		return fault(err)
	}
	trial.RunID, trial.Exit, trial.Turns, trial.Tokens, trial.USD, trial.Standing = run.RunID, run.Exit, run.Turns, run.Tokens, run.USD, run.Standing
	if run.Journal != "" {
		if rel, err := filepath.Rel(s.cfg.Out, run.Journal); err == nil {
			trial.Journal = filepath.ToSlash(rel)
		}
	}
	trial.Steps, trial.Denied, trial.Asked = transcript.steps, transcript.denied, transcript.asked
	if trial.Turns == 0 {
		trial.Turns = transcript.Turns
	}
	s.remember(run.Memory)
	switch run.End {
	case Unavailable:
		trial.Outcome, trial.Reason = HarnessFault, run.Reason
	case Bounded:
		trial.Outcome, trial.Reason = OutOfBudget, run.Reason
	default:
		graded := time.Now()
		trial.Grades, err = s.grading(t, base, filepath.Join(place, "project"), place, &transcript).grade(ctx)
		trial.GradeMS = time.Since(graded).Milliseconds()
		if ctx.Err() != nil {
			return trial, ctx.Err()
		}
		if err != nil {
			return fault(err)
		}
		trial.settle(run)
	}
	trial.Suggested = suggest(transcript, trial)
	trial.TotalMS = time.Since(start).Milliseconds()
	return trial, nil
}

// settle makes an outcome of the graders' words.
func (trial *Trial) settle(run Run) {
	var words []string
	for _, g := range trial.Grades {
		trial.JudgeUSD += g.USD
		if g.Type == "transcript" && g.Status == Failed {
			trial.Forbidden++
		}
		if g.Status != Passed {
			words = append(words, g.Grader+": "+g.Summary)
		}
	}
	trial.Reason = cut(strings.Join(words, "; "), 500)
	switch verdict(trial.Grades) {
	case Passed:
		trial.Outcome, trial.Reason = Pass, run.Reason
	case GraderError:
		trial.Outcome = GraderFault
	default:
		trial.Outcome = Fail
		if run.End == Crashed {
			trial.Outcome, trial.Reason = AgentError, run.Reason+"; "+trial.Reason
		}
	}
}

// attempt copies the workspace, runs the agent in it and reads what it did. The agent is dead when it returns.
func (s *sweep) attempt(ctx context.Context, t *Task, base, place, keep string, number int, rehearsal string) (Run, Transcript, error) {
	workspace := filepath.Join(place, "project")
	if err := copyTree(base, workspace, nil); err != nil {
		return Run{}, Transcript{}, fmt.Errorf("copy the workspace: %w", err)
	}
	before, err := readState(workspace)
	if err != nil {
		return Run{}, Transcript{}, err
	}
	kept := filepath.Join(s.cfg.Out, keep)
	if err := removeAll(kept); err != nil { // of a sweep that was killed
		return Run{}, Transcript{}, err
	}
	state := filepath.Join(kept, "state")
	if err := os.MkdirAll(state, 0o755); err != nil {
		return Run{}, Transcript{}, err
	}
	prompt := t.Prompt
	if replace, _ := t.places(workspace, place); replace != nil {
		prompt = replace.Replace(prompt)
	}
	runner := s.cfg.Runner
	if rehearsal != "" && s.cfg.Player != nil {
		runner = s.cfg.Player
	}
	run, err := runner.Run(ctx, Attempt{Task: t, Trial: number, Prompt: prompt, Workspace: workspace, State: state, Output: filepath.Join(kept, "output.txt"),
		Budget: t.Budget.or(s.cfg.Budget), Rehearsal: rehearsal})
	if err != nil {
		return run, Transcript{}, err
	}
	transcript := Transcript{Events: map[string]int{}, Exit: run.Exit}
	if run.Journal != "" {
		if transcript, err = ReadTranscript(run.Journal, workspace); err != nil {
			return run, transcript, err
		}
	}
	now, err := readState(workspace)
	transcript.compare(before, now)
	return run, transcript, err
}

func (b Budget) or(other Budget) Budget {
	if b.Turns == 0 {
		b.Turns = other.Turns
	}
	if b.Tokens == 0 {
		b.Tokens = other.Tokens
	}
	if b.USD == 0 {
		b.USD = other.USD
	}
	if b.Wall == 0 {
		b.Wall = other.Wall
	}
	return b
}

// newPlace makes a folder that a trial works in. Its name says nothing.
func (s *sweep) newPlace() (string, error) {
	var name [6]byte
	rand.Read(name[:])
	place := filepath.Join(s.work, hex.EncodeToString(name[:]))
	return place, os.Mkdir(place, 0o755)
}

func (s *sweep) grading(t *Task, base, tree, place string, transcript *Transcript) grading {
	g := grading{task: t, box: s.cfg.Box, judge: s.cfg.Judge, judged: s.judged, base: base, tree: tree, place: place, transcript: transcript, known: transcript}
	if g.known == nil {
		g.known = &Transcript{}
	}
	return g
}

// control brings a fresh workspace into a known state and grades it.
func (s *sweep) control(ctx context.Context, t *Task, base string, c *Control, want int) (Controls, error) {
	start := time.Now()
	name := "null"
	if c != nil {
		name = c.Name
	}
	result := Controls{Task: t.ID, Name: name, Want: want}
	place, err := s.newPlace()
	if err != nil {
		return result, err
	}
	defer removeAll(place)
	status, err := s.controlGrade(ctx, t, base, c, place, &result)
	if ctx.Err() != nil {
		return result, ctx.Err()
	}
	switch {
	case err != nil:
		result.Summary = "could not be run: " + err.Error()
	case status == GraderError:
		result.Summary = "a grader broke: " + result.words()
	case status == Passed:
		result.Score, result.OK = 1, want == 1
		if result.Summary = "scores 1"; want == 0 {
			result.Summary = "scores 1 and must not: the graders take this for a solution"
		}
	default:
		result.OK = want == 0
		if result.Summary = "scores 0"; want == 1 {
			result.Summary = "scores 0 and must score 1: " + result.words()
		}
	}
	result.MS = time.Since(start).Milliseconds()
	return result, nil
}

func (c Controls) words() string {
	var words []string
	for _, g := range c.Grades {
		if g.Status != Passed {
			words = append(words, g.Grader+": "+g.Summary)
		}
	}
	return cut(strings.Join(words, "; "), 400)
}

func (s *sweep) controlGrade(ctx context.Context, t *Task, base string, c *Control, place string, result *Controls) (status Status, err error) {
	tree := filepath.Join(place, "project")
	var transcript *Transcript
	switch {
	case c == nil:
		err = copyTree(base, tree, nil)
	case c.direct():
		if err = copyTree(base, tree, nil); err == nil {
			err = s.apply(ctx, t, c, tree, place)
		}
	default:
		var run Run
		var tr Transcript
		run, tr, err = s.attempt(ctx, t, base, place, filepath.Join("controls", t.ID, safeName(c.Name)), 0, c.Rehearsal)
		transcript = &tr
		if err == nil && (run.End == Unavailable || run.End == Bounded) {
			err = errors.New(run.Reason)
		}
	}
	if err != nil {
		return "", err
	}
	g := s.grading(t, base, tree, place, transcript)
	g.judge = nil // controls are about code: a judge is held against labels instead
	result.Grades, err = g.grade(ctx)
	return verdict(result.Grades), err
}

// safeName is a name that can be a folder's.
func safeName(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, name)
}

// apply does what a direct control says to the tree.
func (s *sweep) apply(ctx context.Context, t *Task, c *Control, tree, place string) error {
	switch {
	case c.Patch != "":
		if err := git(ctx, tree, "apply", "--whitespace=nowarn", "--", c.Patch); err != nil {
			return fmt.Errorf("the patch %s does not apply: %w", filepath.Base(c.Patch), err)
		}
		return nil
	case c.Run == "":
		return t.layAll(c.Files, tree, place, "")
	}
	root := filepath.Join(place, "control")
	work := filepath.Join(root, "workspace")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	if err := os.Rename(tree, work); err != nil {
		return err
	}
	lay := filepath.Join(root, "files")
	if err := os.MkdirAll(lay, 0o755); err != nil {
		return err
	}
	replace, _ := t.places(work, root)
	for _, l := range c.Lay {
		if err := layIn(lay, l, "", replace); err != nil {
			return err
		}
	}
	line := c.Run
	if replace != nil {
		line = replace.Replace(line)
	}
	exit, err := s.cfg.Box.Run(ctx, Command{Root: root, Dir: work, Line: line, Env: []string{"BELAY_CONTROL_DIR=" + lay, "BELAY_WORKSPACE=" + work}, Timeout: setupTimeout})
	if err != nil {
		return err
	}
	if exit.TimedOut || exit.Code != 0 {
		return fmt.Errorf("`%s` failed (exit %d): %s", cut(line, 100), exit.Code, cut(tail(exit.Output, 600), 300))
	}
	return os.Rename(work, tree)
}
