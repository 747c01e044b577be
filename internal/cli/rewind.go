package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"belay/checkpoint"
	"belay/harness"
	"belay/internal/render"
	"belay/journal"
)

// rewound is what --json prints: what would be lost, and what was done.
type rewound struct {
	RunID string `json:"run_id"`
	harness.Loss
	Done   bool            `json:"done"`
	Rewind *journal.Rewind `json:"rewind,omitempty"`
}

type rewindFlags struct {
	to                   string
	files, context, both bool
	dry, force, yes      bool
	undo, json           bool
}

func (a *app) rewindCommand() *cobra.Command {
	var f rewindFlags
	cmd := &cobra.Command{
		Use:   "rewind RUN",
		Short: "Take a run back: its files and its conversation",
		Long: `Take a run back to a checkpoint: its files, its conversation, or both (the default). Shown first is what would be lost: files,
edits of yours among them, and messages. What was sent to others stays; it is listed with what makes up for it.

--to is a checkpoint (c_…), the number of a turn (as it was before that turn), @N for after event N, or a step (s2, as it was before
it). Without --to, it is the person's last message. A rewind is itself taken back with --undo. Where a file is not as any checkpoint
has it, nothing is done without --force.`,
		Example: `  belay rewind last --dry-run
  belay rewind last --yes
  belay rewind r_01k5 --to 7 --files --yes
  belay rewind last --undo --yes`,
		Args: oneRun, ValidArgsFunction: a.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error { return a.rewind(cmd.Context(), args[0], f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.to, "to", "", "`where` to go back to: a checkpoint, a turn, @event or a step")
	flags.BoolVar(&f.files, "files", false, "only the files")
	flags.BoolVar(&f.context, "context", false, "only the conversation")
	flags.BoolVar(&f.both, "both", false, "files and conversation (the default)")
	flags.BoolVar(&f.undo, "undo", false, "take back the last rewind")
	flags.BoolVar(&f.dry, "dry-run", false, "only show what would be lost")
	flags.BoolVar(&f.force, "force", false, "go back although something would be lost that no checkpoint holds")
	flags.BoolVar(&f.yes, "yes", false, "do not ask")
	flags.BoolVar(&f.json, "json", false, "print JSON")
	cmd.MarkFlagsMutuallyExclusive("files", "context", "both")
	cmd.MarkFlagsMutuallyExclusive("to", "undo")
	return cmd
}

func (a *app) rewind(ctx context.Context, name string, f rewindFlags) (err error) {
	runID, dir, err := a.find(name)
	if err == nil {
		err = readable(dir)
	}
	if err != nil {
		return err
	}
	r, err := harness.OpenRewind(ctx, filepath.Dir(filepath.Dir(dir)), runID, "")
	if err != nil {
		return damaged(err, runID)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	b, err := goal(r, f)
	if err != nil {
		return err
	}
	loss, err := r.Look(ctx, b)
	if err != nil {
		return err
	}
	out := rewound{RunID: runID, Loss: loss}
	if !f.json {
		if err := a.showLoss(r, b, loss); err != nil {
			return err
		}
	}
	if f.dry {
		if f.json {
			return a.json(out)
		}
		return nil
	}
	if len(loss.Conflicts) == 0 || f.force {
		if ok, err := a.agreed(f.yes, f.json, "Go back?"); err != nil || !ok {
			return err
		}
	}
	w, err := r.Do(ctx, b, loss)
	if err != nil {
		return err
	}
	if out.Done, out.Rewind = true, &w; f.json {
		return a.json(out)
	}
	undo := "--undo"
	if b.Undo != "" {
		undo = "--to " + loss.Before.ID
	}
	return a.lines(a.screen().Good("went back") + fmt.Sprintf("  to %s, %d files; ", b.To.ID, len(w.Restored)) + a.screen().Dim("to take it back: ") + self() + " rewind " + runID + " " + undo)
}

// agreed asks a person. Where nobody can be asked it wants --yes.
func (a *app) agreed(yes, asJSON bool, question string) (bool, error) {
	if yes {
		return true, nil
	}
	if asJSON || !render.IsTerminal(a.in) {
		return false, usagef("nothing was done: nobody can be asked here. Look with --dry-run, then say --yes")
	}
	fmt.Fprint(a.err, question+" [y/N] ")
	line, err := bufio.NewReader(a.in).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); answer == "y" || answer == "yes" {
		return true, nil
	}
	if err == nil {
		err = a.lines("nothing was done")
	}
	return false, err
}

// goal finds what the person means.
func goal(r *harness.Rewind, f rewindFlags) (harness.Back, error) {
	b := harness.Back{Files: !f.context, Context: !f.files, Force: f.force}
	if f.undo {
		return undoing(r, b)
	}
	limit := int64(0) // the last event that stays
	switch n, err := strconv.ParseInt(strings.TrimPrefix(f.to, "@"), 10, 64); {
	case f.to == "":
		for _, e := range r.Events {
			var m journal.UserMessage
			if e.Type == journal.TypeUserMessage && e.Decode(&m) == nil && m.By == "" {
				limit = e.Seq
			}
		}
		// Its checkpoint follows it.
		for _, e := range r.Events {
			if e.Seq > limit && e.Type == journal.TypeCheckpoint {
				limit = e.Seq
				break
			}
		}
	case err == nil && strings.HasPrefix(f.to, "@"):
		if last := r.Events[len(r.Events)-1].Seq; n < 1 || n > last {
			return b, usagef("the run has no event %d: its last is %d", n, last)
		}
		limit = n
	case err == nil:
		for _, e := range r.Events {
			if e.Type == journal.TypeModelCall && int64(e.Turn) == n {
				limit = e.Seq - 1
				break
			}
		}
		if limit == 0 {
			return b, usagef("the run has no turn %d", n)
		}
	case strings.HasPrefix(f.to, "c_"):
		m, err := r.Store.Get(f.to)
		if errors.Is(err, checkpoint.ErrUnknown) {
			err = usagef("%w; `%s checkpoint ls` lists them", err, self())
		}
		if err != nil {
			return b, err
		}
		if m.Run != r.Log.RunID() && b.Context {
			return b, usagef("%s is a checkpoint of another run: only the --files can be taken from it", m.ID)
		}
		b.To, b.Seq = m, m.Seq
		return b, nil
	default:
		for _, e := range r.Events {
			if e.Step == f.to {
				limit = e.Seq - 1
				break
			}
		}
		if limit == 0 {
			return b, usagef("--to %s is no checkpoint (c_…), turn (7), event (@120) or step of this run", f.to)
		}
	}
	for _, e := range r.Events {
		var c journal.Checkpoint
		if e.Type != journal.TypeCheckpoint || e.Seq > limit || e.Decode(&c) != nil {
			continue
		}
		m, err := r.Store.Get(c.ID)
		if errors.Is(err, checkpoint.ErrUnknown) {
			continue // collected
		}
		if err != nil {
			return b, err
		}
		b.To, b.Seq = m, limit
	}
	if b.To.ID == "" {
		return b, usagef("there is no checkpoint before that")
	}
	return b, nil
}

// undoing goes to what was there before the last rewind.
func undoing(r *harness.Rewind, b harness.Back) (harness.Back, error) {
	undone := map[string]bool{}
	for i := len(r.Events) - 1; i >= 0; i-- {
		var w journal.Rewind
		if r.Events[i].Type != journal.TypeRewind {
			continue
		}
		if err := r.Events[i].Decode(&w); err != nil {
			return b, err
		}
		if w.Undo != "" {
			undone[w.Undo] = true
			continue
		}
		if undone[w.ID] {
			continue
		}
		m, err := r.Store.Get(w.Before)
		b.To, b.Seq, b.Files, b.Context, b.Undo = m, r.Events[i].Seq-1, w.Files, w.Context, w.ID
		return b, err
	}
	return b, usagef("the run was not taken back, so there is nothing to undo")
}

func (a *app) showLoss(r *harness.Rewind, b harness.Back, loss harness.Loss) error {
	screen := a.screen()
	lines := []string{screen.Bold("back to "+b.To.ID) + fmt.Sprintf("  %s, event %d, %s", render.Line(b.To.Reason), b.Seq, b.To.Time.Local().Format("2006-01-02 15:04:05"))}
	if b.Context {
		lines = append(lines, fmt.Sprintf("dropped from the conversation: %d messages and results", loss.Messages))
	}
	if len(loss.User) > 0 {
		lines = append(lines, screen.Alarm("changed by somebody else, and lost: ")+render.Line(strings.Join(loss.User, ", ")))
	}
	for _, path := range loss.Conflicts {
		lines = append(lines, screen.Bad("in no checkpoint: ")+render.Line(path))
	}
	for _, x := range loss.Effects {
		line := "stays: " + render.Line(x.Summary) + " (" + render.Line(x.Target) + ", key " + x.Key + ")"
		if x.Compensation != "" {
			line += "; makes up for it: " + render.Line(x.Compensation)
		}
		lines = append(lines, line)
	}
	text, err := changesText(r.Store.Read, loss.Changes)
	if err != nil {
		return err
	}
	if len(loss.Changes) == 0 && b.Files {
		lines = append(lines, "no file differs")
	}
	if text != "" {
		lines = append(lines, strings.TrimSuffix(render.Clean(text), "\n"))
	}
	return a.lines(lines...)
}

// changesText is the unified diff of changes.
func changesText(read func(string) ([]byte, error), changes []checkpoint.Change) (string, error) {
	var b strings.Builder
	for _, c := range changes {
		before, after := map[string][]byte{}, map[string][]byte{}
		for _, side := range []struct {
			mode uint32
			id   string
			to   map[string][]byte
		}{{c.WasMode, c.Was, before}, {c.NowMode, c.Now, after}} {
			if side.mode == 0 || side.mode&0o170000 == 0o040000 {
				continue
			}
			content, err := read(side.id)
			if err != nil {
				return "", err
			}
			if base := filepath.Base(c.Path); strings.HasPrefix(base, ".env") {
				content = []byte("(secrets are not shown)\n" + side.id + "\n")
			}
			side.to[c.Path] = content
		}
		switch {
		case len(before) == 0 && len(after) == 0:
			fmt.Fprintf(&b, "folder %s: %s\n", c.Path, c.Kind)
		case c.WasMode != 0 && c.NowMode != 0 && c.WasMode != c.NowMode:
			fmt.Fprintf(&b, "mode of %s: %o → %o\n", c.Path, c.WasMode, c.NowMode)
		}
		b.WriteString(diffTrees(before, after))
	}
	return b.String(), nil
}
