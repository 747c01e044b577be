package eval

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Box runs a command in a sandbox of its own: no network, no secrets, and of the machine's files nothing but systems' and toolchains'
// and the folder Root, which it may change. All of its processes are dead when it returns. An error means that it could not be run.
type Box interface {
	Run(ctx context.Context, c Command) (Exit, error)
}

// Command is a shell line in a box.
type Command struct {
	Root    string   // absolute: the only folder that is visible and writable
	Dir     string   // absolute, in Root
	Line    string   // for sh -c
	Env     []string // NAME=value
	Timeout time.Duration
}

// Exit is how it ended.
type Exit struct {
	Code     int
	Signal   string
	TimedOut bool
	Output   string // its end, stdout and stderr as they came
}

// Judge is a model that reads a rubric and a piece of work.
type Judge interface {
	Name() string
	Ask(ctx context.Context, prompt string) (answer string, usd float64, err error)
}

// Status is what a grader says.
type Status string

const (
	Passed      Status = "pass"
	Failed      Status = "fail"
	GraderError Status = "grader_error"
)

// Grade is the word of one grader.
type Grade struct {
	Grader  string             `json:"grader"`
	Type    string             `json:"type"`
	Status  Status             `json:"status"`
	Rewards map[string]float64 `json:"rewards,omitempty"`
	Summary string             `json:"summary"`
	Output  string             `json:"output,omitempty"` // its end
	MS      int64              `json:"ms"`
	USD     float64            `json:"usd,omitempty"`
}

// grading is what graders see of one trial.
type grading struct {
	task       *Task
	box        Box
	judge      Judge
	judged     map[string]Calibration // by the rubric's file: whether the judge may be believed
	base       string                 // the prepared workspace, absolute
	tree       string                 // the agent's workspace; its processes are dead
	place      string                 // an empty folder to work in
	transcript *Transcript            // nil: no agent has run
	known      *Transcript            // the comparison of the trees, always there
}

// grade asks every grader, each in a tree of its own.
func (g grading) grade(ctx context.Context) ([]Grade, error) {
	var grades []Grade
	for i, grader := range g.task.Graders {
		start := time.Now()
		var one Grade
		var err error
		switch grader.Type {
		case "transcript":
			one = g.byTranscript(grader)
		case "model":
			one, err = g.byModel(ctx, grader)
		default:
			one, err = g.byCode(ctx, grader, filepath.Join(g.place, fmt.Sprint("grade-", i+1)))
		}
		if err != nil {
			return grades, fmt.Errorf("grader %s: %w", grader.Name, err)
		}
		one.Grader, one.Type, one.MS = grader.Name, grader.Type, time.Since(start).Milliseconds()
		grades = append(grades, one)
	}
	return grades, nil
}

// verdict is the word of all graders: a violation or a failure outweighs a grader that broke only where it is certain.
func verdict(grades []Grade) Status {
	all := Passed
	for _, g := range grades {
		switch g.Status {
		case Failed:
			return Failed
		case GraderError:
			all = GraderError
		}
	}
	return all
}

func (g grading) byTranscript(grader Grader) Grade {
	t := g.transcript
	if t == nil {
		if len(grader.Require) == 0 {
			return Grade{Status: Passed, Summary: "no agent has run"}
		}
		t = g.known
	}
	violations, open := t.Judge(grader.Forbid, grader.Require)
	one := Grade{Status: Passed, Summary: "nothing forbidden happened"}
	if len(open) > 0 {
		one.Summary = "not judged, as this agent leaves no journal: " + strings.Join(open, "; ")
	}
	if len(violations) > 0 {
		one.Status, one.Summary = Failed, strings.Join(violations, "; ")
	}
	return one
}

// lay makes the tree that a command grades: the declared artefacts of the agent over a fresh workspace, or all of the agent's.
func (g grading) lay(root string) (work string, err error) {
	work = filepath.Join(root, "workspace")
	if len(g.task.Artifacts) == 0 {
		return work, copyTree(g.tree, work, nil)
	}
	declared := func(name string) bool {
		return slices.ContainsFunc(g.task.Artifacts, func(p string) bool { return matchGlob(p, name) })
	}
	if err := copyTree(g.base, work, nil); err != nil {
		return work, err
	}
	// What is declared is the agent's alone: a file that it removed is gone.
	state, err := readState(work)
	if err != nil {
		return work, err
	}
	for name := range state {
		if declared(name) {
			if err := os.Remove(filepath.Join(work, filepath.FromSlash(name))); err != nil {
				return work, err
			}
		}
	}
	picked := filepath.Join(root, "artifacts")
	if err := copyTree(g.tree, picked, declared); err != nil {
		return work, err
	}
	err = filepath.WalkDir(picked, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel := filepath.ToSlash(mustRel(picked, name))
		if dir := filepath.ToSlash(filepath.Dir(filepath.FromSlash(rel))); dir != "." {
			if err := clearWay(work, dir); err != nil {
				return err
			}
		}
		return os.Rename(name, filepath.Join(work, filepath.FromSlash(rel)))
	})
	return work, errors.Join(err, removeAll(picked))
}

// places are the real places of the names that Task.Paths speaks of.
func (t *Task) places(work, root string) (*replacer, map[string]string) {
	real := map[string]string{"workspace": work, "tests": filepath.Join(root, "tests"), "logs": filepath.Join(root, "logs")}
	if len(t.Paths) == 0 {
		return nil, real
	}
	named := map[string]string{}
	for from, kind := range t.Paths {
		named[from] = real[kind]
	}
	return newReplacer(named), real
}

// layAll lays files in: relative ones into the workspace, those on one of Task.Paths where that is.
func (t *Task) layAll(files []Laid, work, root, cwd string) error {
	replace, real := t.places(work, root)
	for _, l := range files {
		at, in, to := work, cwd, l.To
		if strings.HasPrefix(to, "/") {
			found := false
			for name, kind := range t.Paths {
				if rest, ok := strings.CutPrefix(to+"/", name+"/"); ok {
					at, in, to, found = real[kind], "", strings.TrimSuffix(rest, "/"), true
				}
			}
			if !found {
				return fmt.Errorf("%s is not below one of the task's paths", to)
			}
			if err := os.MkdirAll(at, 0o755); err != nil {
				return err
			}
		}
		if err := layIn(at, Laid{l.From, to}, in, replace); err != nil {
			return fmt.Errorf("lay in %s: %w", l.From, err)
		}
	}
	return nil
}

func (g grading) byCode(ctx context.Context, grader Grader, root string) (Grade, error) {
	if err := os.MkdirAll(root, 0o755); err != nil {
		return Grade{}, err
	}
	defer removeAll(root)
	work, err := g.lay(root)
	if err != nil {
		return Grade{}, err
	}
	if err := g.task.layAll(grader.Files, work, root, grader.Cwd); err != nil {
		return Grade{}, err
	}
	dir := work
	if grader.Cwd != "" {
		if err := clearWay(work, filepath.ToSlash(grader.Cwd)); err != nil {
			return Grade{}, err
		}
		dir = filepath.Join(work, filepath.FromSlash(grader.Cwd))
	}
	_, real := g.task.places(work, root)
	if err := os.MkdirAll(real["tests"], 0o755); err != nil {
		return Grade{}, err
	}
	replace, _ := g.task.places(work, root)
	line := grader.Run
	if replace != nil {
		line = replace.Replace(line)
	}
	env := []string{"BELAY_WORKSPACE=" + work, "BELAY_TESTS_DIR=" + real["tests"]}
	for _, key := range slices.Sorted(maps.Keys(grader.Env)) {
		env = append(env, key+"="+grader.Env[key])
	}
	timeout := grader.Timeout
	if timeout == 0 {
		timeout = DefaultGraderTimeout
	}
	c := Command{Root: root, Dir: dir, Line: line, Env: env, Timeout: timeout}
	if grader.Verdict != "" {
		return g.observed(ctx, grader, c, work)
	}
	rewards := filepath.Join(real["logs"], "verifier")
	if len(g.task.Paths) == 0 {
		rewards = newRewards(root)
	}
	return g.decide(ctx, grader, c, rewards)
}

// newRewards names the folder for a grader's rewards. The name cannot be guessed and the folder is new: nothing that the agent left can
// be in it.
func newRewards(root string) string {
	var name [12]byte
	rand.Read(name[:])
	return filepath.Join(root, "reward-"+hex.EncodeToString(name[:]))
}

// decide runs the line whose end, or reward, is the grade.
func (g grading) decide(ctx context.Context, grader Grader, c Command, rewards string) (Grade, error) {
	if err := os.MkdirAll(rewards, 0o755); err != nil {
		return Grade{}, err
	}
	c.Env = append(c.Env, "BELAY_REWARD_DIR="+rewards)
	exit, err := g.box.Run(ctx, c)
	if err != nil {
		return Grade{}, err
	}
	one := Grade{Output: tail(exit.Output, 4<<10)}
	switch {
	case exit.TimedOut:
		one.Status, one.Summary = GraderError, fmt.Sprintf("it did not end within %s", c.Timeout)
	case exit.Signal != "":
		one.Status, one.Summary = GraderError, "it was ended by a signal: "+exit.Signal
	case exit.Code == 126 || exit.Code == 127:
		one.Status, one.Summary = GraderError, fmt.Sprintf("it could not be run (exit %d): %s", exit.Code, cut(lastLine(exit.Output), 160))
	case exit.Code > 128:
		one.Status, one.Summary = GraderError, fmt.Sprintf("it crashed (exit %d)", exit.Code)
	case grader.Reward == "file":
		one.readReward(rewards, grader.Min)
	case exit.Code == 0:
		one.Status, one.Summary = Passed, "exit 0"
	default:
		one.Status, one.Summary = Failed, strings.TrimSuffix(fmt.Sprintf("exit %d: %s", exit.Code, cut(lastLine(exit.Output), 160)), ": ")
	}
	return one, nil
}

// readReward reads reward.txt, one number, or reward.json, numbers by name. Both, neither, and anything else is an error of the grader.
func (g *Grade) readReward(dir string, min float64) {
	bad := func(format string, args ...any) {
		g.Status, g.Summary = GraderError, fmt.Sprintf(format, args...)
	}
	read := func(name string) ([]byte, bool) {
		file := filepath.Join(dir, name)
		info, err := os.Lstat(file)
		if err != nil || !info.Mode().IsRegular() || info.Size() > 1<<20 {
			return nil, err == nil
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, true
		}
		return data, true
	}
	text, hasText := read("reward.txt")
	object, hasObject := read("reward.json")
	rewards := map[string]float64{}
	switch {
	case hasText && hasObject:
		bad("it wrote both reward.txt and reward.json: which one counts?")
		return
	case hasText:
		v, err := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
		if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
			bad("reward.txt holds %q, which is no number", cut(string(text), 40))
			return
		}
		rewards["reward"] = v
	case hasObject:
		if err := json.Unmarshal(object, &rewards); err != nil || len(rewards) == 0 {
			bad("reward.json is not a mapping from names to numbers")
			return
		}
	default:
		bad("it wrote no reward")
		return
	}
	if min == 0 {
		min = 1
	}
	g.Rewards, g.Status = rewards, Passed
	var words []string
	for _, name := range slices.Sorted(maps.Keys(rewards)) {
		if rewards[name] < min {
			g.Status = Failed
		}
		words = append(words, fmt.Sprintf("%s %g", name, rewards[name]))
	}
	g.Summary = strings.Join(words, ", ")
}

func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return "…" + strings.ToValidUTF8(s[len(s)-n:], "")
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	return s[strings.LastIndexByte(s, '\n')+1:]
}
