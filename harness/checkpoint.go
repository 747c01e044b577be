package harness

import (
	"context"
	"errors"
	"fmt"

	"belay/checkpoint"
	"belay/internal/snapshot"
	"belay/journal"
	"belay/policy"
)

// keeper makes the store what the loop wants of it.
type keeper struct {
	store *snapshot.Store
	run   string
}

func (k keeper) Take(ctx context.Context, n journal.Checkpoint, at journal.Event, unless string) (journal.Checkpoint, error) {
	m, err := k.store.TakeUnless(ctx, checkpoint.Note{Run: k.run, Seq: at.Seq, Turn: at.Turn, Step: at.Step, Reason: n.Reason, Green: n.Green, PlanHash: n.PlanHash, Effects: n.Effects}, unless)
	if err != nil || m.ID == "" {
		return journal.Checkpoint{}, err
	}
	n.ID, n.Tree, n.Base, n.Files, n.Bytes = m.ID, m.Tree, m.Base, m.Covered.Files, m.Covered.Bytes
	for _, u := range m.Uncovered {
		n.Uncovered = append(n.Uncovered, journal.Uncovered(u))
	}
	return n, nil
}

func (k keeper) Changed(from, to string) ([]string, error) {
	changes, err := k.store.Diff(from, to)
	return changedPaths(changes), err
}

func changedPaths(changes []checkpoint.Change) []string {
	var paths []string
	for _, c := range changes {
		paths = append(paths, c.Path)
	}
	return paths
}

func (k keeper) Save(paths []string) ([]journal.PreImage, error) {
	saved, err := k.store.Save(paths)
	if err != nil {
		return nil, err
	}
	var out []journal.PreImage
	for _, c := range saved {
		out = append(out, journal.PreImage{Path: c.Path, ID: c.Now, Mode: c.NowMode})
	}
	return out, nil
}

func (k keeper) PutBack(ctx context.Context, saved []journal.PreImage) error {
	var changes []checkpoint.Change
	for _, p := range saved {
		changes = append(changes, checkpoint.Change{Path: p.Path, Kind: checkpoint.Modified, Now: p.ID, NowMode: p.Mode})
	}
	return k.store.PutBack(ctx, changes)
}

func (k keeper) Restore(ctx context.Context, from, to string) ([]string, error) {
	a, err := k.store.Get(from)
	if err != nil {
		return nil, err
	}
	b, err := k.store.Get(to)
	if err != nil {
		return nil, err
	}
	return k.store.Restore(ctx, a, b, false)
}

// errShared says that another run changes the workspace.
var errShared = errors.New("another run works in this workspace: wait until it has ended, give this one a clone of its own, or say --share-workspace (then neither can be rewound safely); --mode plan only reads and needs none of it")

// keepFiles opens the checkpoint store of a run that may change files, and keeps other such runs out.
func (a *agent) keepFiles(cfg Config, runID string) error {
	if a.mode == policy.Plan || !a.isolated() {
		return nil
	}
	store, err := OpenCheckpoints(a.home, a.place.Workspace, cfg.EnvFiles)
	if err != nil {
		return err
	}
	if a.unlock, err = lockWorkspace(store, cfg.ShareWorkspace); err != nil {
		return err
	}
	a.store = store
	return nil
}

// OpenCheckpoints opens the checkpoint store of a workspace. The setting says what is done with files of secrets:
// "" or "encrypt", or "leave_out".
func OpenCheckpoints(home, workspace, envFiles string) (*snapshot.Store, error) {
	if envFiles != "" && envFiles != string(snapshot.Encrypt) && envFiles != string(snapshot.LeaveOut) {
		return nil, &UsageError{fmt.Errorf("files of secrets are handled by %q: it is encrypt or leave_out", envFiles)}
	}
	return snapshot.Open(snapshot.Config{Home: home, Workspace: workspace, Env: snapshot.Env(envFiles), Commit: headOf(workspace)})
}

// lockWorkspace takes the workspace for one run, and keeps a collection of garbage out of the store.
func lockWorkspace(store *snapshot.Store, shared bool) (func() error, error) {
	release, ok, err := store.Lock("store", true)
	if err == nil && !ok {
		err = &UsageError{errors.New("`belay checkpoint gc` is at work on this workspace: try again in a moment")}
	}
	if err != nil {
		return nil, err
	}
	if shared {
		return release, nil
	}
	free, ok, err := store.Lock("workspace", false)
	if err == nil && !ok {
		err = &UsageError{errShared}
	}
	if err != nil {
		return nil, errors.Join(err, release())
	}
	return func() error { return errors.Join(free(), release()) }, nil
}

// closeFiles keeps what was seen for the next run, and lets it in.
func (a *agent) closeFiles() {
	if a.store != nil {
		a.store.Close()
		a.unlock()
	}
}

// journalled is a checkpoint as an event names it.
func journalled(m checkpoint.Manifest) journal.Checkpoint {
	c := journal.Checkpoint{ID: m.ID, Tree: m.Tree, Base: m.Base, Reason: m.Reason, Green: m.Green, Files: m.Covered.Files, Bytes: m.Covered.Bytes, Effects: m.Effects}
	for _, u := range m.Uncovered {
		c.Uncovered = append(c.Uncovered, journal.Uncovered(u))
	}
	return c
}
