package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"belay/checkpoint"
	"belay/internal/failpoint"
	"belay/internal/snapshot"
	"belay/journal"
)

// Rewind is a run with its journal and its workspace in hand, to go back in.
type Rewind struct {
	Log    *journal.File
	Store  *snapshot.Store
	Events []journal.Event
	unlock func() error
	append func(...journal.Entry) error
}

// Back says where to go back to.
type Back struct {
	To      checkpoint.Manifest
	Seq     int64 // the context is as after this event
	Files   bool
	Context bool
	Force   bool
	Undo    string // the rewind that this one takes back
}

// Loss is what a rewind takes away.
type Loss struct {
	To        string              `json:"to"`
	Seq       int64               `json:"seq"`
	Changes   []checkpoint.Change `json:"changes"`
	User      []string            `json:"user"`      // of them, what somebody else changed
	Conflicts []string            `json:"conflicts"` // would destroy what no checkpoint holds
	Messages  int                 `json:"messages"`  // of the conversation
	Effects   []journal.External  `json:"effects"`   // that stay
	Before    checkpoint.Manifest `json:"-"`
}

// OpenRewind takes a run that stands still and its workspace. A rewind that was interrupted is finished first.
func OpenRewind(ctx context.Context, home, runID, envFiles string) (*Rewind, error) {
	dir := filepath.Join(journal.RunsDir(home), runID)
	log, err := journal.Open(dir, nil)
	if errors.Is(err, journal.ErrBusy) {
		err = &UsageError{err}
	}
	if err != nil {
		return nil, err
	}
	r := &Rewind{Log: log}
	fail := func(err error) (*Rewind, error) { return nil, errors.Join(err, r.Close()) }
	workspace := ""
	for e, err := range log.Events() {
		if err != nil {
			return fail(err)
		}
		r.Events = append(r.Events, e)
		if e.Type == journal.TypeSessionStart {
			var p journal.SessionStart
			if err := e.Decode(&p); err != nil {
				return fail(err)
			}
			workspace = p.Workspace
		}
	}
	secrets, err := openSecrets(home, runID, nil)
	if err != nil {
		return fail(err)
	}
	wrapped := secrets.Log(log)
	r.append = func(entries ...journal.Entry) error {
		events, err := wrapped.Append(entries...)
		r.Events = append(r.Events, events...)
		return err
	}
	if r.Store, err = OpenCheckpoints(home, workspace, envFiles); err != nil {
		return fail(err)
	}
	if r.unlock, err = lockWorkspace(r.Store, false); err != nil {
		return fail(err)
	}
	if err := settleRewind(ctx, log.Dir(), r.Store, r.Events, r.append); err != nil {
		return fail(err)
	}
	return r, nil
}

// Close lets others in.
func (r *Rewind) Close() error {
	var err error
	if r.unlock != nil {
		err = errors.Join(r.Store.Close(), r.unlock())
	}
	return errors.Join(err, r.Log.Close())
}

// Look keeps the files as they are, and says what going back would take away. Nothing of the workspace changes.
func (r *Rewind) Look(ctx context.Context, b Back) (Loss, error) {
	head := r.Events[len(r.Events)-1]
	m, err := r.Store.Take(ctx, checkpoint.Note{Run: r.Log.RunID(), Seq: head.Seq, Turn: head.Turn, Reason: "before a rewind"})
	if err != nil {
		return Loss{}, err
	}
	loss := Loss{To: b.To.ID, Seq: b.Seq, Before: m, Changes: []checkpoint.Change{}, User: []string{}, Conflicts: []string{}, Effects: []journal.External{}}
	last, user := "", map[string]bool{}
	for _, e := range r.Events {
		switch e.Type {
		case journal.TypeCheckpoint:
			var c journal.Checkpoint
			if err := e.Decode(&c); err != nil {
				return loss, err
			}
			last = c.Tree
			if e.Seq > b.To.Seq && c.ID != b.To.ID {
				for _, p := range c.User {
					user[p] = true
				}
			}
		case journal.TypeRewind:
			var w journal.Rewind
			if err := e.Decode(&w); err != nil {
				return loss, err
			}
			if to, err := r.Store.Get(w.Checkpoint); err == nil && w.Files {
				last = to.Tree
			}
		case journal.TypeExternal:
			var x journal.External
			if err := e.Decode(&x); err != nil {
				return loss, err
			}
			if e.Seq > b.Seq {
				loss.Effects = append(loss.Effects, x)
			}
		case journal.TypeModelReply, journal.TypeUserMessage, journal.TypeToolResult:
			if b.Context && e.Seq > b.Seq {
				loss.Messages++
			}
		}
	}
	if !b.Files {
		return loss, nil
	}
	if last != "" && last != m.Tree {
		since, err := r.Store.Diff(last, m.Tree)
		if err != nil {
			return loss, err
		}
		for _, c := range since {
			user[c.Path] = true
		}
	}
	if loss.Changes, err = r.Store.Plan(m, b.To); err != nil {
		return loss, err
	}
	for _, c := range loss.Changes {
		if user[c.Path] {
			loss.User = append(loss.User, c.Path)
		}
	}
	if loss.Conflicts, err = r.Store.Conflicts(loss.Changes); err != nil {
		return loss, err
	}
	if loss.Conflicts == nil {
		loss.Conflicts = []string{}
	}
	return loss, nil
}

// intent is what an interrupted rewind leaves behind: with it, the next who opens the run finishes it.
type intent struct {
	Before checkpoint.Manifest `json:"before"`
	To     checkpoint.Manifest `json:"to"`
	Event  journal.Rewind      `json:"event"`
}

func intentPath(dir string) string { return filepath.Join(dir, "rewind.json") }

// Do goes back. It is one act: the files, and then one event. What was interrupted in between is finished by the next
// who opens the run.
func (r *Rewind) Do(ctx context.Context, b Back, loss Loss) (journal.Rewind, error) {
	if len(loss.Conflicts) > 0 && !b.Force {
		return journal.Rewind{}, &UsageError{fmt.Errorf("%s: %w; say --force to go back nevertheless", strings.Join(loss.Conflicts, ", "), checkpoint.ErrConflict)}
	}
	w := journal.Rewind{ID: "w_" + strings.TrimPrefix(loss.Before.ID, "c_"), Checkpoint: b.To.ID, Before: loss.Before.ID, ToSeq: b.Seq,
		Files: b.Files, Context: b.Context, Effects: loss.Effects, Undo: b.Undo, By: "user"}
	w.Told = told(w, loss)
	before := journalled(loss.Before)
	for _, c := range loss.Changes {
		if slices.Contains(loss.User, c.Path) && len(before.User) < journal.MaxChanged {
			before.User = append(before.User, c.Path)
		}
	}
	// The checkpoint of what is there now is a part of the journal before anything is touched.
	if err := r.append(journal.Entry{Type: journal.TypeCheckpoint, Session: r.session(), Payload: before}); err != nil {
		return w, err
	}
	text, err := json.Marshal(intent{loss.Before, b.To, w})
	if err != nil {
		return w, err
	}
	path := intentPath(r.Log.Dir())
	if err := writeSynced(path, text); err != nil {
		return w, fmt.Errorf("rewind: %w", err)
	}
	failpoint.Hit("rewind.after-intent")
	if err := settleRewind(ctx, r.Log.Dir(), r.Store, r.Events, r.append); err != nil {
		return w, err
	}
	err = r.Events[len(r.Events)-1].Decode(&w)
	return w, err
}

func (r *Rewind) session() int { return r.Events[len(r.Events)-1].Session }

// settleRewind finishes a rewind whose intent is there: the files, if its event is missing, and the event.
func settleRewind(ctx context.Context, dir string, store *snapshot.Store, events []journal.Event, add func(...journal.Entry) error) error {
	text, err := os.ReadFile(intentPath(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var in intent
	if err == nil {
		err = json.Unmarshal(text, &in)
	}
	if err != nil {
		return fmt.Errorf("an interrupted rewind: %w", err)
	}
	done := slices.ContainsFunc(events, func(e journal.Event) bool {
		var w journal.Rewind
		return e.Type == journal.TypeRewind && e.Decode(&w) == nil && w.ID == in.Event.ID
	})
	if !done {
		if in.Event.Files {
			if in.Event.Restored, err = store.Apply(ctx, in.Before, in.To); err != nil {
				return fmt.Errorf("rewind: %w", err)
			}
			in.Event.Restored = in.Event.Restored[:min(len(in.Event.Restored), journal.MaxChanged)]
		}
		failpoint.Hit("rewind.before-event")
		last := events[len(events)-1]
		if err := add(journal.Entry{Type: journal.TypeRewind, Session: last.Session, Turn: last.Turn, Payload: in.Event}); err != nil {
			return err
		}
		failpoint.Hit("rewind.after-event")
	}
	return os.Remove(intentPath(dir))
}

// writeSynced replaces a file durably.
func writeSynced(path string, text []byte) error {
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// told is what the model reads about it.
func told(w journal.Rewind, loss Loss) string {
	var b strings.Builder
	switch {
	case w.Files && w.Context:
		fmt.Fprintf(&b, "The person has gone back: this conversation and the files are as they were then (checkpoint %s).", w.Checkpoint)
	case w.Files:
		fmt.Fprintf(&b, "The person has set the files back to checkpoint %s, and left this conversation as it is: what you did to these files since then is undone. Read them again before you rely on them.", w.Checkpoint)
	default:
		b.WriteString("The person has gone back in this conversation, and left the files as they are: they may hold changes of yours of which you know nothing. Read them before you change them.")
	}
	if w.Files && !w.Context && len(loss.Changes) > 0 {
		var paths []string
		for _, c := range loss.Changes[:min(len(loss.Changes), 20)] {
			paths = append(paths, c.Path)
		}
		b.WriteString("\nChanged: " + strings.Join(paths, ", "))
	}
	for _, x := range loss.Effects {
		fmt.Fprintf(&b, "\nThis has happened and stays: %s (%s).", x.Summary, x.Target)
	}
	return b.String()
}
