package eval

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Config says what to measure.
type Config struct {
	Suite    *Suite
	Out      string // results folder, absolute; made where it is missing
	Runner   Runner
	Player   Runner // plays the rehearsals that controls are; nil is Runner
	Box      Box
	Judge    Judge  // nil: tasks with a model grader are quarantined
	Facts    []Fact // the configuration: another one needs another folder
	Budget   Budget // for tasks that say none
	Trials   int    // for each task; 0 takes the task's own, else 1
	Parallel int    // trials at once; 0 is 1
	Retries  int    // how often a trial that does not count is run again

	NoControls   bool           // trust that the tasks were checked
	ControlsOnly bool           // run no trial
	Progress     func(Progress) // one call at a time
	// Memory says how much is available, in bytes; nil admits trials without asking.
	Memory func() (int64, bool)
}

// Progress is told after each thing that was finished.
type Progress struct {
	Done, All   int // trials
	Pass        int
	NotCounted  int
	USD         float64 // so far, of this folder
	Left        time.Duration
	LeftKnown   bool
	Trial       *Trial    // what was finished; nil where it is a control
	Control     *Controls // likewise
	Rerun       bool      // Trial is run again
	Quarantined []string
}

// sweep is one run over a suite.
type sweep struct {
	cfg    Config
	log    *Log
	work   string
	judged map[string]Calibration

	mu      sync.Mutex
	memory  int64 // the largest process of any trial, bytes
	running int
	changed *sync.Cond
	state   Progress
	started time.Time
	done    int // in this process
	bases   map[string]string

	preparing map[string]*sync.Mutex // by task
}

// defaultMemory is what a trial is taken to need before one has been seen, and the least that stays free, in bytes.
const defaultMemory = 256 << 20

// ErrOtherConfig is the error for a folder that holds results of another configuration.
var ErrOtherConfig = errors.New("another configuration")

// RunSuite runs what is missing: the controls of each task, then its trials. What a process before it has finished is kept. The
// error is ctx's when it was interrupted: the same call goes on.
func RunSuite(ctx context.Context, cfg Config) error {
	log, lines, err := OpenLog(cfg.Out)
	if err != nil {
		return err
	}
	defer log.Close()
	s := &sweep{cfg: cfg, log: log, work: filepath.Join(cfg.Out, "work"), started: time.Now(), bases: map[string]string{}, preparing: map[string]*sync.Mutex{}, judged: map[string]Calibration{}}
	s.changed = sync.NewCond(&s.mu)
	if err := removeAll(s.work); err != nil {
		return err
	}
	if err := os.MkdirAll(s.work, 0o755); err != nil {
		return err
	}
	defer removeAll(s.work)
	done, err := s.begin(lines)
	if err != nil {
		return err
	}
	if err := s.calibrate(ctx, log.Dir); err != nil {
		return err
	}
	tasks, err := s.controls(ctx, done)
	if err != nil || cfg.ControlsOnly {
		return err
	}
	return s.trials(ctx, tasks, done)
}

// begin checks that what is in the folder belongs to this configuration.
func (s *sweep) begin(lines []Line) (Results, error) {
	done := Collect(lines)
	if done.Start == nil {
		start := Start{Suite: s.cfg.Suite.Name, SuiteHash: s.cfg.Suite.Hash, Config: s.cfg.Facts, ConfigHash: HashFacts(s.cfg.Facts)}
		for _, t := range s.cfg.Suite.Tasks {
			start.Tasks = append(start.Tasks, t.ID)
		}
		return done, s.log.Append(Line{Type: lineStart, Start: &start})
	}
	if done.Start.SuiteHash != s.cfg.Suite.Hash {
		return done, fmt.Errorf("%w: the suite was another one when the results in %s were made; name another folder with --out", ErrOtherConfig, s.cfg.Out)
	}
	if changes := Changes(done.Start.Config, s.cfg.Facts); len(changes) > 0 {
		return done, fmt.Errorf("%w: the results in %s were made with %s; name another folder with --out", ErrOtherConfig, s.cfg.Out, changes[0])
	}
	return done, nil
}

// base is the prepared tree of a task; it is made once. Other tasks do not wait for it.
func (s *sweep) base(ctx context.Context, t *Task) (string, error) {
	s.mu.Lock()
	lock := s.preparing[t.ID]
	if lock == nil {
		lock = &sync.Mutex{}
		s.preparing[t.ID] = lock
	}
	s.mu.Unlock()
	lock.Lock()
	defer lock.Unlock()
	s.mu.Lock()
	dir := s.bases[t.ID]
	s.mu.Unlock()
	if dir != "" {
		return dir, nil
	}
	dir = filepath.Join(s.work, "base-"+t.ID, "project")
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	if err := prepare(ctx, t, s.cfg.Box, dir); err != nil {
		return "", errors.Join(err, removeAll(filepath.Dir(dir)))
	}
	s.mu.Lock()
	s.bases[t.ID] = dir
	s.mu.Unlock()
	return dir, nil
}

// controls runs those that are missing, several tasks at once, and gives the tasks that passed theirs.
func (s *sweep) controls(ctx context.Context, done Results) ([]*Task, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(ctx, func() { s.changed.Broadcast() })()
	sound := make([]bool, len(s.cfg.Suite.Tasks))
	var all sync.WaitGroup
	for i, t := range s.cfg.Suite.Tasks {
		if !s.admit(ctx) {
			break
		}
		all.Go(func() {
			defer s.leave()
			var err error
			if sound[i], err = s.sound(ctx, t, done); err != nil {
				stop(err)
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	var good []*Task
	for i, t := range s.cfg.Suite.Tasks {
		if sound[i] {
			good = append(good, t)
		} else {
			s.state.Quarantined = append(s.state.Quarantined, t.ID)
		}
	}
	return good, nil
}

// sound runs the controls of one task that are missing, and says whether all of them are as they must be.
func (s *sweep) sound(ctx context.Context, t *Task, done Results) (bool, error) {
	ok := true
	note := func(result Controls) error {
		if err := s.log.Append(Line{Type: lineControl, Control: &result}); err != nil {
			return err
		}
		s.tell(func(p *Progress) { p.Control = &result })
		return nil
	}
	for _, want := range t.controls() {
		if s.cfg.NoControls {
			break
		}
		name := "null"
		if want.control != nil {
			name = want.control.Name
		}
		result, known := done.control(t.ID, name)
		if !known {
			base, err := s.base(ctx, t)
			if ctx.Err() != nil {
				return false, ctx.Err()
			}
			if err != nil {
				result = Controls{Task: t.ID, Name: name, Want: want.score, Summary: "the workspace cannot be prepared: " + err.Error()}
			} else if result, err = s.control(ctx, t, base, want.control, want.score); err != nil {
				return false, err
			}
			if err := note(result); err != nil {
				return false, err
			}
		}
		ok = ok && result.OK
	}
	if why := s.judgeless(t); why != "" {
		ok = false
		if _, known := done.control(t.ID, "judge"); !known {
			if err := note(Controls{Task: t.ID, Name: "judge", Want: 1, Summary: why}); err != nil {
				return false, err
			}
		}
	}
	return ok, nil
}

// judgeless says why a task with a model grader cannot be graded, "" where it can.
func (s *sweep) judgeless(t *Task) string {
	for _, g := range t.Graders {
		if g.Type != "model" {
			continue
		}
		if s.cfg.Judge == nil {
			return "no judge is set for its model grader"
		}
		if c := s.judged[g.Rubric+"\x00"+g.Calibration]; !c.OK {
			return "the judge is refused: " + c.Why
		}
	}
	return ""
}

// wanted is a control with the score that it must have; a nil control is the untouched workspace.
type wanted struct {
	control *Control
	score   int
}

func (t *Task) controls() []wanted {
	var all []wanted
	if t.Oracle != nil {
		all = append(all, wanted{t.Oracle, 1})
	}
	all = append(all, wanted{nil, 0})
	for i := range t.Cheats {
		all = append(all, wanted{&t.Cheats[i], 0})
	}
	return all
}

// trials runs what is missing, all tasks once before any of them again.
func (s *sweep) trials(ctx context.Context, tasks []*Task, done Results) error {
	type job struct {
		task   *Task
		number int
	}
	var jobs []job
	most := 0
	count := func(t *Task) int { return max(1, orElse(s.cfg.Trials, t.Trials)) }
	for _, t := range tasks {
		most = max(most, count(t))
		s.state.All += count(t)
	}
	for number := 1; number <= most; number++ {
		for _, t := range tasks {
			if number > count(t) {
				continue
			}
			if old, ok := done.trial(t.ID, number); ok {
				s.count(old)
				continue
			}
			jobs = append(jobs, job{t, number})
		}
	}
	s.started = time.Now()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(ctx, func() { s.changed.Broadcast() })()
	var all sync.WaitGroup
	for _, j := range jobs {
		if !s.admit(ctx) {
			break
		}
		all.Go(func() {
			defer s.leave()
			if err := s.whole(ctx, j.task, j.number); err != nil {
				stop(err)
			}
		})
	}
	all.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

func orElse(a, b int) int {
	if a != 0 {
		return a
	}
	return b
}

// admit waits for a free place, and for memory: one trial always runs.
func (s *sweep) admit(ctx context.Context) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ctx.Err() == nil {
		if s.running < max(1, s.cfg.Parallel) && (s.running == 0 || s.roomy()) {
			s.running++
			return true
		}
		s.changed.Wait() // somebody leaves, or ctx ends
	}
	return false
}

// roomy says whether there is memory for one trial more.
func (s *sweep) roomy() bool {
	if s.cfg.Memory == nil {
		return true
	}
	free, known := s.cfg.Memory()
	return !known || free > defaultMemory+max(s.memory, defaultMemory)
}

func (s *sweep) leave() {
	s.mu.Lock()
	s.running--
	s.mu.Unlock()
	s.changed.Broadcast()
}

func (s *sweep) remember(memory int64) {
	s.mu.Lock()
	s.memory = max(s.memory, memory)
	s.mu.Unlock()
}

// whole runs a trial until it counts or was run again often enough, and stores it.
func (s *sweep) whole(ctx context.Context, t *Task, number int) error {
	base, err := s.base(ctx, t)
	if err != nil {
		return err
	}
	for attempt := 1; ; attempt++ {
		trial, err := s.runTrial(ctx, t, base, number, attempt)
		if err != nil {
			return err
		}
		again := !trial.Outcome.Counts() && attempt <= s.cfg.Retries
		kind := lineTrial
		if again {
			kind = lineRerun
		}
		if err := s.log.Append(Line{Type: kind, Trial: &trial}); err != nil {
			return err
		}
		if !again {
			s.mu.Lock()
			s.count(trial)
			s.done++
			s.mu.Unlock()
		}
		s.tell(func(p *Progress) { p.Trial, p.Rerun = &trial, again })
		if !again {
			return nil
		}
	}
}

func (s *sweep) count(t Trial) {
	s.state.Done++
	switch {
	case t.Outcome == Pass:
		s.state.Pass++
	case !t.Outcome.Counts():
		s.state.NotCounted++
	}
	if t.USD != nil {
		s.state.USD += *t.USD
	}
	s.state.USD += t.JudgeUSD
}

func (s *sweep) tell(what func(*Progress)) {
	if s.cfg.Progress == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.state
	p.Quarantined = slices.Clone(p.Quarantined)
	if s.done > 0 {
		p.Left, p.LeftKnown = time.Since(s.started)/time.Duration(s.done)*time.Duration(p.All-p.Done), true
	}
	what(&p)
	s.cfg.Progress(p)
}
