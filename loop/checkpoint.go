package loop

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"belay/effect"
	"belay/journal"
	"belay/tool"
)

// Checkpoints keep the workspace's files. What a method returns is durable.
type Checkpoints interface {
	// Take keeps the files as they are, unless their tree is the given one: then the checkpoint has no ID.
	Take(ctx context.Context, note journal.Checkpoint, at journal.Event, unless string) (journal.Checkpoint, error)
	// Changed lists the paths that differ between two trees.
	Changed(from, to string) ([]string, error)
	// Save keeps single files as they were before a call, and PutBack makes them so again.
	Save(paths []string) ([]journal.PreImage, error)
	PutBack(ctx context.Context, saved []journal.PreImage) error
	// Restore makes the files, which are as in one checkpoint, as in another.
	Restore(ctx context.Context, from, to string) ([]string, error)
}

// points is what the session knows of checkpoints: folded from the journal.
type points struct {
	last    journal.Checkpoint // the files as they were last seen
	seq     int64              // of it
	green   journal.Checkpoint
	trees   map[string]journal.Checkpoint
	spoken  int64                          // number of the person's last message
	opaque  bool                           // a call ran since last that may have changed anything
	wrote   []string                       // paths, relative, that calls wrote since last
	effects []string                       // keys
	waiting map[string]journal.ToolRequest // calls that a person is asked about
	head    journal.Event
}

func (p *points) apply(e *decoded, workspace string) error {
	p.head = e.Event
	switch e.Type {
	case journal.TypeUserMessage:
		var m journal.UserMessage
		if err := e.Decode(&m); err != nil {
			return err
		}
		if m.By == "" {
			p.spoken = e.Seq
		}
	case journal.TypeCheckpoint:
		var c journal.Checkpoint
		if err := e.Decode(&c); err != nil {
			return err
		}
		if p.trees == nil {
			p.trees = map[string]journal.Checkpoint{}
		}
		p.trees[c.ID] = c
		p.see(c, e.Seq)
		if c.Green {
			p.green = c
		}
	case journal.TypeRewind:
		var r journal.Rewind
		if err := e.Decode(&r); err != nil {
			return err
		}
		if c, ok := p.trees[r.Checkpoint]; ok && r.Files {
			p.see(c, e.Seq)
		}
	case journal.TypeExternal:
		var x journal.External
		if err := e.Decode(&x); err != nil {
			return err
		}
		p.effects = append(p.effects, x.Key)
	case journal.TypeToolRequest:
		var r journal.ToolRequest
		if err := e.Decode(&r); err != nil {
			return err
		}
		switch r.Permission.Verdict {
		case effect.Allow:
			p.acts(r, workspace)
		case effect.Ask: // it acts when a person has agreed
			if p.waiting == nil {
				p.waiting = map[string]journal.ToolRequest{}
			}
			p.waiting[r.CallID] = r
		}
	case journal.TypePermission:
		var g journal.Permitted
		if err := e.Decode(&g); err != nil {
			return err
		}
		if r, ok := p.waiting[g.CallID]; ok && g.Verdict == effect.Allow {
			p.acts(r, workspace)
		}
		delete(p.waiting, g.CallID)
	}
	return nil
}

// acts notes what a call may change.
func (p *points) acts(r journal.ToolRequest, workspace string) {
	if r.Class < effect.ClassReversible {
		return
	}
	p.opaque = p.opaque || opaque(r)
	for _, x := range r.Effects {
		if x.Kind == effect.Write || x.Kind == effect.Delete {
			if rel, err := filepath.Rel(workspace, x.Target); err == nil && filepath.IsLocal(rel) {
				p.wrote = append(p.wrote, filepath.ToSlash(rel))
			}
		}
	}
}

func (p *points) see(c journal.Checkpoint, seq int64) {
	p.last, p.seq, p.opaque, p.wrote = c, seq, false, nil
}

// opaque says that a call may change more than its effects name.
func opaque(r journal.ToolRequest) bool {
	replay := tool.Replay(r.Replay)
	return r.Class >= effect.ClassReversible && replay != tool.Reversible && replay != tool.Pure
}

// hadByAgent says that the agent may have changed a path since the last checkpoint.
func (p *points) hadByAgent(path string) bool {
	return p.opaque || slices.ContainsFunc(p.wrote, func(w string) bool {
		return w == "." || w == path || strings.HasPrefix(path, w+"/") || strings.HasPrefix(w, path+"/")
	})
}

// preserve makes a checkpoint where the files are not as they were last seen, or always. What somebody else changed
// meanwhile is told to the model, and never undone.
func (s *session) preserve(ctx context.Context, reason string, always, green bool) error {
	if s.Checkpoints == nil {
		return nil
	}
	unless := s.points.last.Tree
	if always || green && s.points.green.Tree != unless {
		unless = ""
	}
	note := journal.Checkpoint{Reason: reason, Green: green, Effects: slices.Clone(s.points.effects)}
	c, err := s.Checkpoints.Take(ctx, note, s.points.head, unless)
	if err != nil || c.ID == "" {
		return err
	}
	var others []string
	if last := s.points.last.Tree; last != "" && last != c.Tree {
		changed, err := s.Checkpoints.Changed(last, c.Tree)
		if err != nil {
			return err
		}
		for _, path := range changed {
			switch mine := s.points.hadByAgent(path); {
			case mine && len(c.Agent) < journal.MaxChanged:
				c.Agent = append(c.Agent, path)
			case !mine && len(c.User) < journal.MaxChanged:
				c.User = append(c.User, path)
			}
		}
		others = c.User
	}
	if err := s.record(s.entry(journal.TypeCheckpoint, c)); err != nil || len(others) == 0 {
		return err
	}
	return s.tell(sayOthersChanged(others))
}

// sayOthersChanged tells the model that files are not as it left them.
func sayOthersChanged(paths []string) string {
	const few = 20
	more := ""
	if n := len(paths) - few; n > 0 {
		paths, more = paths[:few], fmt.Sprintf("\n- and %d more", n)
	}
	return "Somebody else, most likely the person, changed these files since you last acted. Read them again before you rely on them, and keep these changes:\n- " +
		strings.Join(paths, "\n- ") + more
}

// heard makes the checkpoint of a person's message, and of files that tools wrote in the turn before: so a run can go
// back to before any turn.
func (s *session) heard(ctx context.Context) error {
	if s.points.spoken <= s.points.seq {
		if len(s.points.wrote) == 0 && !s.points.opaque {
			return nil
		}
		return s.preserve(ctx, fmt.Sprintf("after turn %d", s.turns), false, false)
	}
	return s.preserve(ctx, "user message", true, false)
}

// guarded makes what a call needs before it runs: a checkpoint, or copies of the files that it names.
func (s *session) guarded(ctx context.Context, st *step) error {
	r := &st.request
	if s.Checkpoints == nil || r.Class < effect.ClassReversible {
		return nil
	}
	if r.Class >= effect.ClassIrreversible || opaque(*r) {
		return s.preserve(ctx, "before "+brief(*r), false, false)
	}
	var paths []string
	for _, x := range r.Effects {
		if x.Kind != effect.Write && x.Kind != effect.Delete {
			continue
		}
		rel, err := filepath.Rel(s.Place.Workspace, x.Target)
		if err != nil || !filepath.IsLocal(rel) || rel == "." {
			continue
		}
		if rel = filepath.ToSlash(rel); !slices.Contains(paths, rel) {
			paths = append(paths, rel)
		}
	}
	saved, err := s.Checkpoints.Save(paths)
	if err != nil { // a folder, or what cannot be read: then the whole tree, and the outcome of a crash is unknown
		r.Replay = string(tool.OpaqueCall)
		return s.preserve(ctx, "before "+brief(*r), false, false)
	}
	r.Before = saved
	return nil
}

// followed looks at what a call that may have changed anything did change.
func (s *session) followed(ctx context.Context, st step) error {
	if s.Checkpoints == nil || !opaque(st.request) || ctx.Err() != nil {
		return nil
	}
	return s.preserve(ctx, "after "+brief(st.request), false, false)
}

func brief(r journal.ToolRequest) string {
	text := r.Summary
	if text == "" {
		text = r.Tool
	}
	text, _, _ = strings.Cut(text, "\n")
	if runes := []rune(text); len(runes) > 80 {
		text = string(runes[:79]) + "…"
	}
	return "`" + text + "`"
}

// external is the ledger's line about a call of class 4; it stands with the request, before anything is sent.
func (s *session) external(st step) []journal.Entry {
	if st.request.Class != effect.ClassExternal || st.request.Permission.Verdict != effect.Allow {
		return nil
	}
	var targets []string
	for _, x := range st.request.Effects {
		if x.Kind == effect.Connect && x.Target != "" && !slices.Contains(targets, x.Target) {
			targets = append(targets, x.Target)
		}
	}
	return []journal.Entry{s.entry(journal.TypeExternal, journal.External{Key: st.request.Key, CallID: st.call.ID,
		Target: strings.Join(targets, ", "), Summary: st.request.Summary, Compensation: st.compensation})}
}

// backToGreen returns to the last state that the verifiers passed on, after they failed too often: going on from there
// beats patching over. It does nothing where there is no such state, or where it is the present one.
func (s *session) backToGreen(ctx context.Context, failures int, why string) error {
	green := s.points.green
	if s.Checkpoints == nil || s.RewindAfter == 0 || failures == 0 || failures%s.RewindAfter != 0 || green.ID == "" {
		return nil
	}
	if err := s.preserve(ctx, "before going back", true, false); err != nil {
		return err
	}
	before := s.points.last
	if before.Tree == green.Tree {
		return nil
	}
	files, err := s.Checkpoints.Restore(ctx, before.ID, green.ID)
	if err != nil {
		return err
	}
	told := fmt.Sprintf("The verification failed %d times. The harness has set the files back to the last state on which it passed (checkpoint %s). What failed: %s\nDo not patch over it: take another way.", failures, green.ID, why)
	return s.record(s.entry(journal.TypeRewind, journal.Rewind{ID: "w" + before.ID, Checkpoint: green.ID, Before: before.ID, ToSeq: s.points.head.Seq,
		Files: true, Restored: files[:min(len(files), journal.MaxChanged)], By: "harness", Told: told}))
}
