package harness

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"belay/internal/features"
	"belay/journal"
	"belay/loop"
	"belay/message"
)

// Outer says what an outer loop works through.
type Outer struct {
	Config          // what every session starts with; Task is the big task where From is set
	Features string // the list, relative to the workspace
	From     bool   // make the list from Task first

	Sessions   int           // most sessions in all; 0 is no bound
	Money      message.Cost  // of all sessions
	Time       time.Duration // of all sessions
	Tries      int           // failures of a feature after which it is set aside; 0 is 2
	Say        func(string)  // what happens, a line each
	AfterEvery func(Step)    // each session's end
}

// Step is one session of an outer loop.
type Step struct {
	Feature string       `json:"feature"`
	Title   string       `json:"title"`
	Run     string       `json:"run"`
	Exit    loop.Exit    `json:"exit"`
	Reason  string       `json:"reason"`
	Commit  string       `json:"commit,omitempty"`
	Cost    message.Cost `json:"cost_usd"`
}

// OuterResult is how an outer loop ended.
type OuterResult struct {
	RunID    string             `json:"run_id"`
	Branch   string             `json:"branch"`
	Exit     loop.Exit          `json:"exit"`
	Reason   string             `json:"reason"`
	Features []features.Feature `json:"features"`
	Steps    []Step             `json:"sessions"`
	Cost     message.Cost       `json:"cost_usd"`
}

// progressName is where a person reads how far it is.
const progressName = "progress.md"

// outerProjection marks the journal of an outer loop: it has no context of its own.
const outerProjection = "outer"

// outer is a running outer loop.
type outer struct {
	Outer
	dir    string // the workspace
	log    *journal.File
	runID  string
	branch string
	past   outerPast
	result OuterResult
}

// outerPast is what the loop's journal knows of the sessions before.
type outerPast struct {
	failed map[string]int // feature -> failures
	open   *journal.AgentStart
	cost   message.Cost
	count  int
	spent  time.Duration
	branch string
}

// RunOuter works through a list of features: a session with an empty context for each, proved by the harness, committed by it, or
// taken back. It goes on where it stopped, however that came.
func RunOuter(ctx context.Context, cfg Outer) (result OuterResult, err error) {
	o := &outer{Outer: cfg, result: OuterResult{Steps: []Step{}}}
	if o.Say == nil {
		o.Say = func(string) {}
	}
	if o.Tries == 0 {
		o.Tries = 2
	}
	if o.Home, err = stateDir(cfg.Home); err != nil {
		return result, &UsageError{err}
	}
	place, err := findWorkspace(cfg.Workspace, o.Home, cfg.AllowWide)
	if err != nil {
		return result, &UsageError{err}
	}
	o.dir, o.Config.Workspace = place.Workspace, place.Workspace
	if err := o.open(ctx); err != nil {
		return result, err
	}
	defer o.log.Close()
	exit, reason, err := o.work(ctx)
	if ctx.Err() != nil {
		exit, reason, err = loop.ExitInterrupted, "interrupted; the same command goes on", nil
	}
	o.result.RunID, o.result.Branch, o.result.Exit, o.result.Reason, o.result.Cost = o.runID, o.branch, exit, reason, o.past.cost
	if list, listErr := o.list(); listErr == nil {
		o.result.Features = list.Features
	}
	_, recorded := o.log.Append(journal.Entry{Type: journal.TypeSessionEnd, Payload: journal.SessionEnd{Reason: reason, Exit: int(exit), Cost: o.past.cost}})
	return o.result, errors.Join(err, recorded)
}

// marker names the file that says which run works through a list.
func (o *outer) marker() string {
	sum := sha256.Sum256([]byte(o.dir + "\x00" + o.Features))
	return filepath.Join(o.Home, "loops", hex.EncodeToString(sum[:12]))
}

// open takes up the loop's run, or begins one.
func (o *outer) open(ctx context.Context) error {
	if _, err := git(ctx, o.dir, "rev-parse", "--verify", "HEAD"); err != nil {
		return &UsageError{fmt.Errorf("an outer loop commits each feature, so %s must be a git repository with a commit: %w", o.dir, err)}
	}
	known, err := os.ReadFile(o.marker())
	if err == nil {
		o.runID = strings.TrimSpace(string(known))
		dir := filepath.Join(journal.RunsDir(o.Home), o.runID)
		if o.log, err = journal.Open(dir, nil); err == nil {
			if err := o.recall(); err != nil {
				return err
			}
			if o.past.open == nil || o.branched(ctx) {
				o.Say("going on with " + o.runID)
				return nil
			}
			o.Say("the branch of the loop before, " + o.branch + ", is gone: a new loop begins")
			if err := o.log.Close(); err != nil {
				return err
			}
			err = fs.ErrNotExist
		}
		if errors.Is(err, journal.ErrBusy) {
			return &UsageError{fmt.Errorf("another belay works through this list: %w", err)}
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := o.clean(ctx); err != nil {
		return err
	}
	if _, err := o.list(); err != nil && !(o.From && errors.Is(err, fs.ErrNotExist)) {
		return &UsageError{err}
	}
	o.runID = journal.NewRunID()
	o.past = outerPast{failed: map[string]int{}, branch: "belay/" + strings.TrimPrefix(o.runID, "r_")}
	start := journal.SessionStart{Version: o.Version, Workspace: o.dir, Head: headOf(o.dir), Mode: string(o.Mode), Projection: outerProjection, System: "an outer loop: it asks no model itself",
		Tools: json.RawMessage("[]"), Model: journal.ModelInfo{ID: o.Model, Spec: o.Model}, Bounds: journal.Bounds{Money: o.Money, WallMS: o.Time.Milliseconds()}}
	log, _, err := journal.Create(o.Home, o.runID, nil, journal.Entry{Type: journal.TypeSessionStart, Payload: start},
		journal.Entry{Type: journal.TypeUserMessage, Payload: journal.UserMessage{Text: cmp.Or(o.Task, "Work through "+o.Features)}})
	if err != nil {
		return err
	}
	o.log, o.branch = log, o.past.branch
	if err := os.MkdirAll(filepath.Dir(o.marker()), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(o.marker(), []byte(o.runID+"\n"), 0o600); err != nil {
		return err
	}
	return o.checkout(ctx)
}

// clean refuses a tree with changes that are not committed.
func (o *outer) clean(ctx context.Context) error {
	dirty, err := git(ctx, o.dir, "status", "--porcelain")
	if err == nil && dirty != "" {
		err = &UsageError{fmt.Errorf("the tree has changes that are not committed: commit or stash them, since what a failed session leaves is taken back\n%s", dirty)}
	}
	return err
}

// checkout goes to the loop's branch, and makes it where it is not there.
func (o *outer) checkout(ctx context.Context) error {
	if now, err := git(ctx, o.dir, "symbolic-ref", "--short", "-q", "HEAD"); err == nil && now == o.branch {
		return nil
	}
	if o.branched(ctx) {
		_, err := git(ctx, o.dir, "checkout", "-q", o.branch)
		return err
	}
	_, err := git(ctx, o.dir, "checkout", "-q", "-b", o.branch)
	return err
}

// recall folds the loop's own journal.
func (o *outer) recall() error {
	o.past = outerPast{failed: map[string]int{}, branch: "belay/" + strings.TrimPrefix(o.runID, "r_")}
	o.branch = o.past.branch
	var started time.Time
	for e, err := range o.log.Events() {
		if err != nil {
			return err
		}
		switch e.Type {
		case journal.TypeAgentStart:
			var p journal.AgentStart
			if err := e.Decode(&p); err != nil {
				return err
			}
			o.past.open, started = &p, e.TS.Time
		case journal.TypeAgentEnd:
			var p journal.AgentEnd
			if err := e.Decode(&p); err != nil {
				return err
			}
			o.past.open = nil
			o.past.count++
			o.past.cost += p.Cost
			o.past.spent += e.TS.Sub(started)
			if counts(loop.Exit(p.Exit)) && p.Feature != "" {
				o.past.failed[p.Feature]++
			}
		}
	}
	return nil
}

// branched says whether the loop's branch is there.
func (o *outer) branched(ctx context.Context) bool {
	_, err := git(ctx, o.dir, "rev-parse", "--verify", "-q", "refs/heads/"+o.branch)
	return err == nil
}

// counts says whether an end is a failed attempt at a feature, and not a broken environment or a kill.
func counts(exit loop.Exit) bool {
	return exit != loop.ExitProved && exit != loop.ExitEnvironment && exit != loop.ExitInterrupted
}

func (o *outer) list() (*features.List, error) {
	text, err := os.ReadFile(filepath.Join(o.dir, o.Features))
	if err != nil {
		return nil, err
	}
	return features.Parse(o.Features, text)
}

// work is the outer loop. It fits on a screen.
func (o *outer) work(ctx context.Context) (loop.Exit, string, error) {
	if err := o.settle(ctx); err != nil {
		return loop.ExitFault, "", err
	}
	if err := o.clean(ctx); err != nil { // what a person has changed since is not a session's
		return loop.ExitUsage, err.Error(), err
	}
	if err := o.checkout(ctx); err != nil {
		return loop.ExitFault, "", err
	}
	if o.From {
		if exit, reason, err := o.initialise(ctx); exit != loop.ExitProved || err != nil {
			return exit, reason, err
		}
	}
	for {
		if err := ctx.Err(); err != nil {
			return loop.ExitInterrupted, "interrupted", nil
		}
		list, err := o.list()
		if err != nil {
			return loop.ExitUsage, err.Error(), &UsageError{err}
		}
		next := list.Next()
		if next == nil {
			return o.finished(list)
		}
		if reason := o.bounded(); reason != "" {
			return loop.ExitBound, reason, nil
		}
		if reason, err := o.bootstrapped(ctx, list); reason != "" || err != nil {
			return loop.ExitEnvironment, reason, err
		}
		if exit, reason, err := o.session(ctx, list, *next); err != nil || exit == loop.ExitEnvironment || exit == loop.ExitInterrupted || exit == loop.ExitWaiting {
			return exit, reason, err
		}
	}
}

// finished says how the list ended.
func (o *outer) finished(list *features.List) (loop.Exit, string, error) {
	if err := os.Remove(o.marker()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return loop.ExitFault, "", err
	}
	var aside []string
	for _, f := range list.Features {
		if f.Status == features.Aside {
			aside = append(aside, f.ID)
		}
	}
	if len(aside) > 0 {
		return loop.ExitFailed, fmt.Sprintf("%d of %d features are done and proved; set aside: %s", len(list.Features)-len(aside), len(list.Features), strings.Join(aside, ", ")), nil
	}
	return loop.ExitProved, fmt.Sprintf("all %d features are done and proved", len(list.Features)), nil
}

// bounded says which bound of the whole loop is reached, "" where none is.
func (o *outer) bounded() string {
	spent := o.past.spent
	switch {
	case o.Sessions > 0 && o.past.count >= o.Sessions:
		return fmt.Sprintf("paused: %d sessions were had; the same command with a higher --max-sessions goes on", o.past.count)
	case o.Money > 0 && o.past.cost >= o.Money:
		return fmt.Sprintf("paused: %s of %s are spent; a higher --total-usd goes on", o.past.cost, o.Money)
	case o.Time > 0 && spent >= o.Time:
		return fmt.Sprintf("paused: %v of work were had; a higher --total-time goes on", spent.Round(time.Second))
	}
	return ""
}

// bootstrapped runs the list's bootstrap before each session: on a broken environment no failure would mean anything.
func (o *outer) bootstrapped(ctx context.Context, list *features.List) (reason string, err error) {
	if list.Bootstrap == "" {
		return "", nil
	}
	cfg := o.Config
	cfg.Verify, cfg.Checks = []string{list.Bootstrap}, nil
	checked, err := VerifyNow(ctx, cfg)
	if err != nil || checked.OK {
		return "", err
	}
	why := ""
	for _, c := range checked.Checks {
		why = cmp.Or(why, c.Summary)
	}
	return fmt.Sprintf("environment broken: `%s` fails before any work (%s)", list.Bootstrap, why), nil
}

// session has one feature worked on, with an empty context, and keeps or takes back what came of it.
func (o *outer) session(ctx context.Context, list *features.List, f features.Feature) (loop.Exit, string, error) {
	cfg := o.Config
	cfg.RunID = journal.NewRunID()
	cfg.Task = o.task(ctx, f)
	cfg.Protect = o.outOfReach()
	if f.Verify != "" {
		cfg.Verify = append([]string{f.Verify}, cfg.Verify...)
	}
	attempt := o.past.failed[f.ID] + 1
	o.Say(fmt.Sprintf("%s: %s (attempt %d of %d, run %s)", f.ID, f.Title, attempt, o.Tries, cfg.RunID))
	start := journal.AgentStart{Run: cfg.RunID, Task: f.Title, Feature: f.ID, Attempt: attempt, Bounds: withDefaults(cfg.Bounds), Head: headOf(o.dir)}
	if err := o.start(start); err != nil {
		return loop.ExitFault, "", err
	}
	began := time.Now()
	result, err := Run(ctx, cfg)
	var usage *UsageError
	if errors.As(err, &usage) { // nothing was started
		result.RunID, result.Exit, result.Reason = cfg.RunID, loop.ExitUsage, err.Error()
		if _, endErr := o.log.Append(journal.Entry{Type: journal.TypeAgentEnd, Payload: journal.AgentEnd{Run: cfg.RunID, Exit: int(result.Exit), Reason: result.Reason}}); endErr != nil {
			err = errors.Join(err, endErr)
		}
		return loop.ExitUsage, result.Reason, err
	}
	o.past.spent += time.Since(began)
	if err != nil {
		return loop.ExitFault, result.Reason, err
	}
	if result.Exit == loop.ExitInterrupted {
		return loop.ExitInterrupted, "interrupted", nil // its end is settled when somebody goes on
	}
	return o.close(ctx, list, f, result)
}

// start records a session before there is one.
func (o *outer) start(a journal.AgentStart) error {
	_, err := o.log.Append(journal.Entry{Type: journal.TypeAgentStart, Payload: a})
	o.past.open = &a
	return err
}

// refs are the files that say where branches stand: only the harness moves them.
var refs = []string{".git/HEAD", ".git/refs", ".git/packed-refs", ".git/worktrees"}

// outOfReach is what no session changes.
func (o *outer) outOfReach() []string {
	return append(append(slices.Clone(o.Protect), o.Features, progressName), refs...)
}

// close commits what is proved and takes everything else back. The state of the feature is the harness's to change.
func (o *outer) close(ctx context.Context, list *features.List, f features.Feature, r Result) (loop.Exit, string, error) {
	end := journal.AgentEnd{Run: r.RunID, Feature: f.ID, Exit: int(r.Exit), Standing: string(r.Standing), Reason: r.Reason, Turns: r.Turns, Usage: r.Usage, Cost: r.Cost}
	line := fmt.Sprintf("- %s: %s: ", f.ID, f.Title)
	moved, err := o.backOnBranch(ctx)
	if err != nil {
		return loop.ExitEnvironment, err.Error(), err
	}
	status := features.Open
	if r.Exit == loop.ExitProved {
		status = features.Done
		line += "done, proved by run " + r.RunID
	} else {
		kept, err := o.takeBack(ctx, r.RunID)
		if err != nil {
			return loop.ExitFault, "", err
		}
		end.Undone = true
		if counts(r.Exit) {
			o.past.failed[f.ID]++
		}
		line += fmt.Sprintf("attempt %d failed (exit %d: %s), taken back; run %s%s", o.past.failed[f.ID], r.Exit, oneLine(r.Reason), r.RunID, kept)
		if o.past.failed[f.ID] >= o.Tries {
			status = features.Aside
			line += "; set aside"
		}
	}
	line += moved
	commit, err := o.keep(ctx, list, f, status, line, r.RunID)
	if err != nil {
		return loop.ExitFault, "", err
	}
	end.Commit = commit
	if _, err := o.log.Append(journal.Entry{Type: journal.TypeAgentEnd, Payload: end}); err != nil {
		return loop.ExitFault, "", err
	}
	o.past.open = nil
	o.past.count++
	o.past.cost += r.Cost
	step := Step{Feature: f.ID, Title: f.Title, Run: r.RunID, Exit: r.Exit, Reason: r.Reason, Commit: commit, Cost: r.Cost}
	o.result.Steps = append(o.result.Steps, step)
	if o.AfterEvery != nil {
		o.AfterEvery(step)
	}
	o.Say(strings.TrimPrefix(line, "- "))
	if r.Exit == loop.ExitEnvironment {
		return loop.ExitEnvironment, r.Reason, nil
	}
	return r.Exit, r.Reason, nil
}

// keep writes state and progress and commits all there is, with the run in a trailer.
func (o *outer) keep(ctx context.Context, list *features.List, f features.Feature, status features.Status, line, runID string) (string, error) {
	if list != nil && status != features.Open {
		text, err := list.With(f.ID, status)
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(o.dir, o.Features), text, 0o644); err != nil {
			return "", err
		}
	}
	progress, err := os.ReadFile(filepath.Join(o.dir, progressName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if len(progress) == 0 {
		progress = []byte("# Progress\n\n")
	}
	if err := os.WriteFile(filepath.Join(o.dir, progressName), append(progress, line+"\n"...), 0o644); err != nil {
		return "", err
	}
	title := f.Title
	switch status {
	case features.Aside:
		title = "Set aside: " + title
	case features.Open:
		title = "Note a failed attempt: " + title
	}
	return o.commit(ctx, title, f.ID, runID)
}

func (o *outer) commit(ctx context.Context, title, feature, runID string) (string, error) {
	if _, err := git(ctx, o.dir, "add", "-A"); err != nil {
		return "", err
	}
	message := oneLine(title) + "\n\n"
	if feature != "" {
		message += "Belay-Feature: " + feature + "\n"
	}
	message += "Belay-Run: " + runID + "\n"
	args := []string{"commit", "-q", "--allow-empty", "--no-verify", "-m", message}
	if _, err := git(ctx, o.dir, "var", "GIT_AUTHOR_IDENT"); err != nil {
		args = append([]string{"-c", "user.name=belay", "-c", "user.email=belay@localhost"}, args...)
	}
	if _, err := git(ctx, o.dir, args...); err != nil {
		return "", err
	}
	return git(ctx, o.dir, "rev-parse", "HEAD")
}

// backOnBranch goes back to where the session began, wherever it has left HEAD and the branch. In the sandbox it cannot move
// them; so there it was a person, whose work is not touched.
func (o *outer) backOnBranch(ctx context.Context) (note string, err error) {
	at, _ := git(ctx, o.dir, "symbolic-ref", "--short", "-q", "HEAD") // "" is a detached one
	tip, err := git(ctx, o.dir, "rev-parse", "refs/heads/"+o.branch)
	if err != nil {
		return "", err
	}
	base := o.past.open.Head
	info, statErr := os.Lstat(filepath.Join(o.dir, ".git"))
	held := o.Sandbox != "off" && statErr == nil && info.IsDir()
	switch {
	case at == o.branch && (held || base == "" || tip == base):
		return "", nil
	case held:
		return "", fmt.Errorf("somebody has left the branch %s while a session worked, so nothing was committed or taken back: go back to it (git checkout %s), then the same command goes on", o.branch, o.branch)
	}
	if base != "" && tip != base {
		note = "; the session moved " + o.branch + " to " + tip + ", which was taken back"
		if _, err := git(ctx, o.dir, "update-ref", "refs/heads/"+o.branch, base); err != nil {
			return "", err
		}
	}
	if at != o.branch {
		note += "; the session left the branch"
	}
	if _, err := git(ctx, o.dir, "symbolic-ref", "HEAD", "refs/heads/"+o.branch); err != nil {
		return "", err
	}
	_, err = git(ctx, o.dir, "reset", "-q")
	return note, err
}

// takeBack makes the tree what the last commit says, but for what somebody else has changed meanwhile. It was clean when the
// session began.
func (o *outer) takeBack(ctx context.Context, runID string) (note string, err error) {
	others, both, kept, err := o.others(ctx, runID)
	if err != nil {
		return "", err
	}
	if _, err := git(ctx, o.dir, "reset", "-q"); err != nil {
		return "", err
	}
	restore, clean := []string{"checkout", "-q", "--", "."}, []string{"clean", "-q", "-ff", "-d"}
	for _, path := range others {
		restore, clean = append(restore, ":(exclude,literal)"+path), append(clean, "-e", "/"+ignoreEscapes.Replace(path))
	}
	if _, err := git(ctx, o.dir, restore...); err != nil {
		return "", err
	}
	if _, err := git(ctx, o.dir, clean...); err != nil {
		return "", err
	}
	if len(others) > 0 {
		note = "; kept what somebody else changed meanwhile: " + strings.Join(others, ", ")
	}
	if len(both) > 0 {
		note += fmt.Sprintf("; taken back too, since the session had changed it as well: %s (as it was: belay checkpoint restore %s)", strings.Join(both, ", "), kept)
	}
	return note, nil
}

// ignoreEscapes writes a path as a pattern of git's ignore files.
var ignoreEscapes = strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`, " ", `\ `)

// others lists what of the workspace somebody other than a run changed while it worked: what only they changed, and what both did,
// as they are in a checkpoint.
func (o *outer) others(ctx context.Context, runID string) (only, both []string, kept string, err error) {
	if _, err := os.Stat(filepath.Join(journal.RunsDir(o.Home), runID)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil, "", nil
	}
	r, err := OpenRewind(ctx, o.Home, runID, o.EnvFiles)
	if err != nil {
		return nil, nil, "", err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	begin, mine := "", map[string]bool{}
	for _, e := range r.Events {
		var c journal.Checkpoint
		if e.Type != journal.TypeCheckpoint {
			continue
		}
		if err := e.Decode(&c); err != nil {
			return nil, nil, "", err
		}
		if begin == "" {
			begin = c.ID
		}
		for _, path := range c.Agent {
			mine[path] = true
		}
	}
	if begin == "" { // it could change nothing
		return nil, nil, "", nil
	}
	to, err := r.Store.Get(begin)
	if err != nil {
		return nil, nil, "", err
	}
	loss, err := r.Look(ctx, Back{To: to, Files: true})
	if err != nil {
		return nil, nil, "", err
	}
	for _, path := range loss.User {
		if mine[path] || strings.ContainsAny(path, "\r\n") {
			both = append(both, path)
		} else {
			only = append(only, path)
		}
	}
	return only, both, loss.Before.ID, nil
}

// settle ends a session that was going on when the loop was killed: it is gone on with, since its journal knows how.
func (o *outer) settle(ctx context.Context) error {
	open := o.past.open
	if open == nil {
		return nil
	}
	list, err := o.list()
	var f features.Feature
	if err == nil {
		for _, have := range list.Features {
			if have.ID == open.Feature {
				f = have
			}
		}
	} else if open.Feature != "" {
		return err
	}
	head, err := git(ctx, o.dir, "log", "-1", "--format=%(trailers:key=Belay-Run,valueonly)")
	if err != nil {
		return err
	}
	if strings.TrimSpace(head) == open.Run { // it was committed, and only the last word is missing
		exit := loop.ExitFailed
		if f.Status == features.Done || open.Feature == "" {
			exit = loop.ExitProved
		}
		end := journal.AgentEnd{Run: open.Run, Feature: open.Feature, Exit: int(exit), Reason: "settled after a crash"}
		o.past.open, o.past.count = nil, o.past.count+1
		if counts(exit) {
			o.past.failed[open.Feature]++
		}
		_, err := o.log.Append(journal.Entry{Type: journal.TypeAgentEnd, Payload: end})
		return err
	}
	if _, err := os.Stat(filepath.Join(journal.RunsDir(o.Home), open.Run)); errors.Is(err, fs.ErrNotExist) {
		end := journal.AgentEnd{Run: open.Run, Feature: open.Feature, Exit: int(loop.ExitInterrupted), Reason: "killed before it began"}
		o.past.open = nil
		_, err := o.log.Append(journal.Entry{Type: journal.TypeAgentEnd, Payload: end})
		return err
	}
	o.Say("going on with the session of " + cmp.Or(open.Feature, "the initialiser") + ", run " + open.Run)
	cfg := o.Config
	cfg.Task = ""
	cfg.Protect = o.outOfReach()
	result, err := Resume(ctx, open.Run, cfg)
	var usage *UsageError
	switch {
	case errors.As(err, &usage):
		// It had ended: what it left counts as a failed attempt unless its journal says that it was proved.
		result, err = o.ended(open.Run)
		if err != nil {
			return err
		}
	case err != nil:
		return err
	}
	if result.Exit == loop.ExitInterrupted {
		return ctx.Err()
	}
	if open.Feature == "" {
		_, _, err = o.closeInitial(ctx, result)
		return err
	}
	_, _, err = o.close(ctx, list, f, result)
	return err
}

// ended reads how a session ended from its journal.
func (o *outer) ended(runID string) (Result, error) {
	r := Result{RunID: runID}
	r.Exit, r.Reason = loop.ExitFailed, "it cannot go on"
	for e, err := range journal.Read(filepath.Join(journal.RunsDir(o.Home), runID)) {
		if err != nil {
			return r, err
		}
		if e.Type == journal.TypeSessionEnd {
			var p journal.SessionEnd
			if err := e.Decode(&p); err != nil {
				return r, err
			}
			r.Exit, r.Reason, r.Turns, r.Usage, r.Cost = loop.Exit(p.Exit), p.Reason, p.Turns, p.Usage, p.Cost
		}
	}
	return r, nil
}

// task is what a session with an empty context is told.
func (o *outer) task(ctx context.Context, f features.Feature) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Build one feature of this project, and nothing else: %s (%s).\n", f.Title, f.ID)
	if f.Notes != "" {
		fmt.Fprintf(&b, "\nNotes:\n%s\n", f.Notes)
	}
	if f.Verify != "" {
		fmt.Fprintf(&b, "\nIt is done when this passes: %s\n", f.Verify)
	}
	if progress, err := os.ReadFile(filepath.Join(o.dir, progressName)); err == nil {
		lines := strings.Split(strings.TrimSpace(string(progress)), "\n")
		fmt.Fprintf(&b, "\nProgress so far (%s):\n%s\n", progressName, strings.Join(lines[max(0, len(lines)-20):], "\n"))
	}
	if log, err := git(ctx, o.dir, "log", "--oneline", "-10"); err == nil {
		fmt.Fprintf(&b, "\nLast commits:\n%s\n", log)
	}
	fmt.Fprintf(&b, "\nOthers build the other features of %s. The harness keeps that list, writes %s and commits: leave all three alone.\n", o.Features, progressName)
	return b.String()
}

// initialise has the list of features made, where it is not there yet.
func (o *outer) initialise(ctx context.Context) (loop.Exit, string, error) {
	if _, err := o.list(); err == nil {
		return loop.ExitProved, "", nil
	} else if !errors.Is(err, fs.ErrNotExist) {
		return loop.ExitUsage, err.Error(), &UsageError{err}
	}
	cfg := o.Config
	cfg.RunID = journal.NewRunID()
	cfg.Task = fmt.Sprintf(initialTask, o.Task, o.Features, o.Features)
	cfg.Protect = append(slices.Clone(cfg.Protect), refs...)
	cfg.Verify = []string{"test -s '" + strings.ReplaceAll(o.Features, "'", `'\''`) + "'"}
	o.Say("making " + o.Features + " from the task, run " + cfg.RunID)
	if err := o.start(journal.AgentStart{Run: cfg.RunID, Task: "make " + o.Features, Bounds: withDefaults(cfg.Bounds), Head: headOf(o.dir)}); err != nil {
		return loop.ExitFault, "", err
	}
	result, err := Run(ctx, cfg)
	if err != nil {
		return loop.ExitFault, result.Reason, err
	}
	if result.Exit == loop.ExitInterrupted {
		return loop.ExitInterrupted, "interrupted", nil
	}
	return o.closeInitial(ctx, result)
}

const initialTask = `Prepare the work on a big task; do not begin it. The task:

%s

Look at the repository. Then write %s: a YAML (or JSON) mapping with
- bootstrap: one shell command that shows in under a minute that the project builds and its tests run, as it is now
- features: a list of {id, title, verify, priority, status: open, notes}. Each feature is small enough for one sitting, can be built when those with a lower
  priority number are done, and has a verify command that fails now and passes only when it is really there.
Write nothing else but, where the bootstrap needs one, a script for it. Then call TaskComplete. %s is read by a program: keep to that form.`

func (o *outer) closeInitial(ctx context.Context, r Result) (loop.Exit, string, error) {
	end := journal.AgentEnd{Run: r.RunID, Exit: int(r.Exit), Standing: string(r.Standing), Reason: r.Reason, Turns: r.Turns, Usage: r.Usage, Cost: r.Cost}
	exit, reason := r.Exit, r.Reason
	if _, err := o.backOnBranch(ctx); err != nil {
		return loop.ExitEnvironment, err.Error(), err
	}
	list, err := o.list()
	switch {
	case exit != loop.ExitProved:
		reason = "no list of features was made: " + reason
	case err != nil:
		exit, reason = loop.ExitFailed, "the list of features that was made cannot be read: "+err.Error()
	default:
		line := fmt.Sprintf("- %d features were listed by run %s", len(list.Features), r.RunID)
		if end.Commit, err = o.keep(ctx, nil, features.Feature{Title: "List the features"}, features.Done, line, r.RunID); err != nil {
			return loop.ExitFault, "", err
		}
	}
	if exit != loop.ExitProved {
		if _, err := o.takeBack(ctx, r.RunID); err != nil {
			return loop.ExitFault, "", err
		}
		end.Undone = true
	}
	o.past.open, o.past.count, o.past.cost = nil, o.past.count+1, o.past.cost+r.Cost
	_, err = o.log.Append(journal.Entry{Type: journal.TypeAgentEnd, Payload: end})
	return exit, reason, err
}

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}
