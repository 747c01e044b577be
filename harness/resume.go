package harness

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"belay/internal/projection"
	"belay/internal/redact"
	"belay/journal"
	"belay/loop"
	"belay/message"
	"belay/model"
	"belay/policy"
	"belay/verify"
)

// Resume goes on with a run that stopped. What cfg does not say is as it was: workspace, model, mode,
// verifiers, and bounds, which hold for the whole run and not for what is left of it. A Task in cfg is told
// to the model as the person's next message.
func Resume(ctx context.Context, runID string, cfg Config) (Result, error) {
	home, err := stateDir(cfg.Home)
	if err != nil {
		return Result{}, &UsageError{err}
	}
	cfg.Home = home
	dir := filepath.Join(journal.RunsDir(home), runID)
	log, err := journal.Open(dir, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return Result{}, &UsageError{fmt.Errorf("there is no run %s in %s", runID, home)}
	}
	if errors.Is(err, journal.ErrBusy) {
		return Result{}, &UsageError{err}
	}
	if err != nil {
		return Result{}, err
	}
	defer log.Close()
	secrets, err := openSecrets(home, runID, cfg.KeyFiles)
	if err != nil {
		return Result{}, err
	}
	past, err := recall(log, secrets)
	if err != nil {
		return Result{}, err
	}
	if how := past.finished(); how != "" && cfg.Task == "" {
		return Result{}, &UsageError{fmt.Errorf("run %s is finished: %s; to go on from there, say what else to do", runID, how)}
	}
	if !cfg.OtherRepository {
		if err := past.sameRepository(ctx); err != nil {
			return Result{}, err
		}
	}
	if _, err := os.Stat(intentPath(dir)); err == nil { // a rewind was interrupted: it is finished first
		if err := log.Close(); err != nil {
			return Result{}, err
		}
		r, err := OpenRewind(ctx, home, runID, cfg.EnvFiles)
		if err == nil {
			err = r.Close()
		}
		if err != nil {
			return Result{}, err
		}
		return Resume(ctx, runID, cfg)
	}
	say := cfg.Task
	cfg = past.fill(cfg)
	a, err := build(ctx, cfg, runID)
	if err != nil {
		return Result{}, err
	}
	changes := past.changes(a, cfg.Version)
	if cfg.Progress != nil {
		for _, c := range changes {
			cfg.Progress(changeText(c))
		}
	}
	if !cfg.Fresh { // the context goes on under the system prompt and the tools that it began with
		a.system, a.specs = past.start.System, past.tools
	}
	cfg.Task = say
	entries := a.opening(cfg)
	if len(changes) > 0 {
		entries = slices.Insert(entries, 1, journal.Entry{Type: journal.TypeResume, Payload: journal.Resume{Changes: changes}})
	}
	if cfg.Fresh {
		note, err := freshNote(log.Dir())
		if err != nil {
			return Result{}, err
		}
		at := slices.IndexFunc(entries, func(e journal.Entry) bool { return e.Type == journal.TypeSessionStart }) + 1
		entries = slices.Insert(entries, at, journal.Entry{Type: journal.TypeUserMessage, Payload: journal.UserMessage{Text: note, By: "harness"}})
	}
	if text := news(changes, a.place.Workspace); text != "" {
		at := len(entries)
		if say != "" {
			at-- // the person has the last word
		}
		entries = slices.Insert(entries, at, journal.Entry{Type: journal.TypeUserMessage, Payload: journal.UserMessage{Text: text, By: "harness"}})
	}
	entries = append(entries, mentions(a.place.Workspace, say)...)
	for i := range entries {
		entries[i].Session = past.session + 1
	}
	events, err := a.secrets.Log(log).Append(entries...)
	if err != nil {
		return Result{}, err
	}
	cfg.show(events)
	return a.work(ctx, log, loop.Run)
}

// past is what a journal says about how its run was configured and ended.
type past struct {
	start   journal.SessionStart // the last one
	tools   []model.Tool         // that the model was told of
	session int
	task    string // the first message
	stop    message.StopReason
	end     journal.SessionEnd
	ended   bool
	files   map[string]string // path -> what the model last saw of it
	told    map[string]string // what an earlier resume said is changed -> what it was then
}

// finished says how the run ended where nothing is left to do: the model's last words were an answer. "" says that
// it stands still.
func (p past) finished() string {
	switch {
	case !p.ended:
		return ""
	case p.end.Standing != "":
		return p.end.Standing
	case loop.Exit(p.end.Exit) == loop.ExitUnverified:
		return "the model gave its answer"
	case p.stop == message.StopRefusal:
		return "the model refused"
	}
	return ""
}

func recall(log *journal.File, secrets *redact.Redactor) (past, error) {
	p := past{files: map[string]string{}, told: map[string]string{}}
	var reply journal.Event // the last one
	for e, err := range log.Events() {
		if err == nil {
			switch e.Type {
			case journal.TypeSessionStart:
				p.start = journal.SessionStart{}
				err = e.Decode(&p.start)
				p.session, p.ended = e.Session, false
			case journal.TypeModelReply:
				reply = e
			case journal.TypeToolResult:
				if !bytes.Contains(e.Payload, []byte(`"hashes":{`)) {
					break // most name no file, and all are looked at
				}
				var r journal.ToolResult
				err = e.Decode(&r)
				maps.Copy(p.files, r.Hashes)
			case journal.TypeResume:
				var r journal.Resume
				err = e.Decode(&r)
				for _, c := range r.Changes {
					p.told[c.What+" "+c.Name] = c.Is
					if c.What == "file" {
						p.files[c.Name] = c.Is
					}
				}
			case journal.TypeUserMessage:
				var m journal.UserMessage
				if err = e.Decode(&m); p.task == "" {
					p.task = m.Text
				}
			case journal.TypeSessionEnd:
				p.end = journal.SessionEnd{}
				err = e.Decode(&p.end)
				p.ended = true
			}
		}
		if err != nil {
			return p, fmt.Errorf("resume %s: %w", log.RunID(), err)
		}
	}
	if reply.Seq > 0 {
		var r journal.ModelReply
		if err := reply.Decode(&r); err != nil {
			return p, fmt.Errorf("resume %s: %w", log.RunID(), err)
		}
		p.stop = r.Stop
	}
	switch {
	case p.session == 0:
		return p, fmt.Errorf("resume %s: the journal holds no session", log.RunID())
	case p.start.Projection == outerProjection:
		return p, &UsageError{fmt.Errorf("run %s is an outer loop: go on with it by the same `belay loop` command in %s", log.RunID(), p.start.Workspace)}
	case !projection.Known(p.start.Projection):
		return p, &UsageError{fmt.Errorf("run %s was made with projection version %s; this belay has version %s and would send other contexts", log.RunID(), p.start.Projection, projection.Version)}
	}
	if err := reveal(&p.start, secrets); err != nil {
		return p, fmt.Errorf("resume %s: %w", log.RunID(), err)
	}
	if err := json.Unmarshal(p.start.Tools, &p.tools); err != nil {
		return p, fmt.Errorf("resume %s: tools: %w", log.RunID(), err)
	}
	if _, err := os.Stat(p.start.Workspace); err != nil {
		return p, &UsageError{fmt.Errorf("run %s worked in %s, which is not there any more", log.RunID(), p.start.Workspace)}
	}
	return p, nil
}

// fill completes a configuration with what held before.
func (p past) fill(cfg Config) Config {
	cfg.Workspace, cfg.AllowWide, cfg.Task = p.start.Workspace, true, p.task
	if cfg.Model == "" {
		cfg.Model = p.start.Model.Spec
	}
	was := p.start.Model
	cfg.Effort = cmp.Or(cfg.Effort, was.Effort)
	cfg.Roles.Light, cfg.Roles.Judge = cmp.Or(cfg.Roles.Light, was.Light), cmp.Or(cfg.Roles.Judge, was.Judge)
	if len(cfg.Roles.Fallback) == 0 {
		cfg.Roles.Fallback = was.Fallback
	}
	if len(cfg.Only) == 0 { // what the model was not told of is not run for it either
		for _, t := range p.tools {
			cfg.Only = append(cfg.Only, t.Name)
		}
	}
	cfg.PauseToAsk = cfg.PauseToAsk || p.start.OnAsk == "pause" && !cfg.RefuseToAsk
	cfg.ApprovePlan = cfg.ApprovePlan || p.start.Approve == "plan"
	if len(cfg.ContextPolicy) == 0 {
		cfg.ContextPolicy = p.start.Context
	}
	if cfg.Mode == "" {
		cfg.Mode = policy.Mode(p.start.Mode)
	}
	if len(cfg.Verify) == 0 && p.start.Named {
		for _, name := range p.start.Verify { // what the configuration describes comes from there
			if !slices.ContainsFunc(cfg.Checks, func(c verify.Check) bool { return c.Run == name || c.Name == name || c.Type == name }) {
				cfg.Verify = append(cfg.Verify, name)
			}
		}
	}
	for _, path := range p.start.Protect { // what was out of reach stays so
		if !slices.Contains(cfg.Protect, path) {
			cfg.Protect = append(cfg.Protect, path)
		}
	}
	b, before := &cfg.Bounds, p.start.Bounds
	*b = journal.Bounds{Turns: cmp.Or(b.Turns, before.Turns), Tokens: cmp.Or(b.Tokens, before.Tokens), Money: cmp.Or(b.Money, before.Money),
		WallMS: cmp.Or(b.WallMS, before.WallMS), MiB: cmp.Or(b.MiB, before.MiB)}
	return cfg
}
