package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"belay/checkpoint"
	"belay/harness"
	"belay/internal/render"
	"belay/internal/snapshot"
)

func (a *app) checkpointCommand() *cobra.Command {
	var workspace string
	cmd := &cobra.Command{
		Use:   "checkpoint",
		Short: "List, show, compare and restore what the files were",
		Long: `Checkpoints keep the files of a workspace as they were: at every message of a person, before and after commands that may change
anything, and at the end of a run. They lie below belay's state, in git's format, and never touch your repository.`,
		Example: "  belay checkpoint ls\n  belay checkpoint restore c_019f --dry-run",
		Args:    a.noSuchCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&workspace, "workspace", "", "`folder` whose checkpoints are meant (default: the current one)")
	open := func() (*snapshot.Store, error) { return a.checkpoints(workspace) }
	cmd.AddCommand(a.checkpointListCommand(open), a.checkpointShowCommand(open), a.checkpointDiffCommand(open), a.checkpointRestoreCommand(open), a.checkpointGCCommand(), a.checkpointDUCommand())
	return cmd
}

// checkpoints opens the store of a workspace.
func (a *app) checkpoints(workspace string) (*snapshot.Store, error) {
	if workspace == "" {
		workspace = "."
	}
	path, err := filepath.Abs(workspace)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return nil, usagef("the workspace: %w", err)
	}
	home, err := a.home()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, err
	}
	return harness.OpenCheckpoints(home, path, "")
}

// get finds a checkpoint, or says how to find one.
func get(s *snapshot.Store, id string) (checkpoint.Manifest, error) {
	m, err := s.Get(id)
	if errors.Is(err, checkpoint.ErrUnknown) {
		err = usagef("%w in this workspace; `%s checkpoint ls` lists them", err, self())
	}
	return m, err
}

func (a *app) checkpointListCommand(open func() (*snapshot.Store, error)) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "ls [RUN]", Short: "List the checkpoints of a workspace, or of a run", Args: between(0, 1, "at most one run"),
		Example: "  belay checkpoint ls\n  belay checkpoint ls last --json", ValidArgsFunction: a.completeRun,
		RunE: func(_ *cobra.Command, args []string) error {
			run := ""
			if len(args) == 1 {
				id, dir, err := a.find(args[0])
				if err != nil {
					return err
				}
				run = id
				if workspace := summarize(dir).Workspace; workspace != "" {
					open = func() (*snapshot.Store, error) { return a.checkpoints(workspace) }
				}
			}
			s, err := open()
			if err != nil {
				return err
			}
			all, err := s.List()
			if err != nil {
				return err
			}
			shown := []checkpoint.Manifest{}
			for _, m := range all {
				if run == "" || m.Run == run {
					shown = append(shown, m)
				}
			}
			if asJSON {
				return a.json(shown)
			}
			if len(shown) == 0 {
				return a.lines("no checkpoints")
			}
			var lines []string
			for _, m := range shown {
				mark := " "
				if m.Green {
					mark = a.screen().Good("✓")
				}
				lines = append(lines, fmt.Sprintf("%s %s  %s  %6d files  turn %-3d  %s", m.ID, mark, m.Time.Local().Format("2006-01-02 15:04:05"), m.Covered.Files, m.Turn, render.Line(m.Reason)))
			}
			return a.lines(lines...)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) checkpointShowCommand(open func() (*snapshot.Store, error)) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show ID", Short: "Show a checkpoint, and what it does not cover", Args: exactly(1, "one checkpoint"), Example: "  belay checkpoint show c_019f",
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := open()
			if err != nil {
				return err
			}
			m, err := get(s, args[0])
			if err != nil {
				return err
			}
			if asJSON {
				return a.json(m)
			}
			lines := []string{a.screen().Bold(m.ID) + "  " + render.Line(m.Reason), "run       " + m.Run + fmt.Sprintf(", event %d, turn %d", m.Seq, m.Turn),
				"time      " + m.Time.Local().Format(time.RFC3339), "tree      " + m.Tree, fmt.Sprintf("covered   %d files, %d bytes", m.Covered.Files, m.Covered.Bytes)}
			if m.Green {
				lines = append(lines, "green     the verifiers pass on it")
			}
			for _, u := range m.Uncovered {
				lines = append(lines, fmt.Sprintf("uncovered %s  %d bytes, %s", render.Line(u.Path), u.Bytes, u.Why))
			}
			return a.lines(lines...)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) checkpointDiffCommand(open func() (*snapshot.Store, error)) *cobra.Command {
	var asJSON, stat bool
	cmd := &cobra.Command{
		Use: "diff ID [ID]", Short: "Compare a checkpoint with another, or with the files now", Args: between(1, 2, "one or two checkpoints"),
		Example: "  belay checkpoint diff c_019f\n  belay checkpoint diff c_019f c_01a0 --stat",
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := open()
			if err != nil {
				return err
			}
			from, err := get(s, args[0])
			if err != nil {
				return err
			}
			var to string
			if len(args) == 2 {
				m, err := get(s, args[1])
				if err != nil {
					return err
				}
				to = m.Tree
			} else if to, err = s.Tree(cmd.Context()); err != nil {
				return err
			}
			changes, err := s.Diff(from.Tree, to)
			if err != nil {
				return err
			}
			return a.showChanges(s.Read, changes, stat, asJSON)
		},
	}
	cmd.Flags().BoolVar(&stat, "stat", false, "only name the files")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// showChanges prints changes: as JSON, as a list or as a diff.
func (a *app) showChanges(read func(string) ([]byte, error), changes []checkpoint.Change, stat, asJSON bool) error {
	switch {
	case asJSON && changes == nil:
		return a.json([]checkpoint.Change{})
	case asJSON:
		return a.json(changes)
	case stat:
		var lines []string
		for _, c := range changes {
			lines = append(lines, fmt.Sprintf("%-9s %s", c.Kind, render.Line(c.Path)))
		}
		return a.lines(lines...)
	}
	text, err := changesText(read, changes)
	if err != nil || text == "" {
		return err
	}
	return a.lines(strings.TrimSuffix(render.Clean(text), "\n"))
}

func (a *app) checkpointRestoreCommand(open func() (*snapshot.Store, error)) *cobra.Command {
	var dry, force, yes, asJSON bool
	cmd := &cobra.Command{
		Use: "restore ID", Short: "Make the files as they were, outside of any run",
		Long: `Make the files as in a checkpoint. What is there now is kept in a checkpoint first. No conversation goes back; for that there is
belay rewind.`,
		Example: "  belay checkpoint restore c_019f --dry-run\n  belay checkpoint restore c_019f --yes", Args: exactly(1, "one checkpoint"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			s, err := open()
			if err != nil {
				return err
			}
			to, err := get(s, args[0])
			if err != nil {
				return err
			}
			unlock, ok, err := s.Lock("workspace", false)
			if err == nil && !ok {
				err = usagef("a run works in this workspace: stop it first")
			}
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.Close(), unlock()) }()
			now, err := s.Take(cmd.Context(), checkpoint.Note{Reason: "before a restore"})
			if err != nil {
				return err
			}
			changes, err := s.Plan(now, to)
			if err != nil {
				return err
			}
			if dry || !asJSON {
				if err := a.showChanges(s.Read, changes, asJSON, asJSON); err != nil || dry {
					return err
				}
			}
			if ok, err := a.agreed(yes, asJSON, "Restore?"); err != nil || !ok {
				return err
			}
			done, err := s.Restore(cmd.Context(), now, to, force)
			if errors.Is(err, checkpoint.ErrConflict) {
				err = usagef("%w; say --force to restore nevertheless", err)
			}
			if err != nil {
				return err
			}
			if asJSON {
				return a.json(map[string]any{"checkpoint": to.ID, "before": now.ID, "restored": append([]string{}, done...)})
			}
			return a.lines(a.screen().Good("restored") + fmt.Sprintf("  %d paths; to take it back: %s checkpoint restore %s", len(done), self(), now.ID))
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&dry, "dry-run", false, "only show what would change")
	flags.BoolVar(&force, "force", false, "restore although something would be lost that no checkpoint holds")
	flags.BoolVar(&yes, "yes", false, "do not ask")
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// registerSharing adds the flags about the workspace's files.
func registerSharing(flags *pflag.FlagSet, cfg *harness.Config) {
	flags.BoolVar(&cfg.ShareWorkspace, "share-workspace", false, "work here although another run does: neither can then be taken back safely")
	flags.IntVar(&cfg.RewindAfter, "rewind-after", 0, "after `N` failed verifications, set the files back to the last state that passed (default: never)")
	flags.StringVar(&cfg.EnvFiles, "env-files", "encrypt", "what checkpoints do with .env files: encrypt or leave_out")
}

// age reads 30d, or what Go reads as a duration.
func age(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseFloat(days, 64); err == nil && n >= 0 {
			return time.Duration(n * 24 * float64(time.Hour)), nil
		}
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, usagef("--older %q is no age: for example 30d or 12h", text)
	}
	return d, nil
}

func (a *app) eachStore(do func(*snapshot.Store) error) error {
	home, err := a.home()
	if err != nil {
		return err
	}
	all, err := snapshot.Workspaces(home)
	if err != nil {
		return err
	}
	for _, workspace := range all {
		s, err := harness.OpenCheckpoints(home, workspace, "")
		if err == nil {
			err = do(s)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", workspace, err)
		}
	}
	return nil
}

func (a *app) checkpointGCCommand() *cobra.Command {
	var dry, asJSON bool
	older := "30d"
	cmd := &cobra.Command{
		Use: "gc", Short: "Remove old checkpoints, of all workspaces", Args: exactly(0, ""), Example: "  belay checkpoint gc --dry-run\n  belay checkpoint gc --older 7d",
		RunE: func(*cobra.Command, []string) error {
			d, err := age(older)
			if err != nil {
				return err
			}
			swept := []snapshot.Swept{}
			err = a.eachStore(func(s *snapshot.Store) error {
				out, err := s.Collect(time.Now().Add(-d), dry)
				swept = append(swept, out)
				return err
			})
			if err != nil {
				return err
			}
			if asJSON {
				return a.json(swept)
			}
			verb := "removed"
			if dry {
				verb = "would remove"
			}
			var lines []string
			for _, w := range swept {
				lines = append(lines, fmt.Sprintf("%s %d checkpoints, kept %d, %d bytes  %s", verb, w.Checkpoints, w.Kept, w.Bytes, render.Line(w.Workspace)))
			}
			return a.lines(lines...)
		},
	}
	cmd.Flags().StringVar(&older, "older", older, "`age` from which they go")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say what would go")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) checkpointDUCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "du", Short: "Say what checkpoints take on the disk", Args: exactly(0, ""), Example: "  belay checkpoint du",
		RunE: func(*cobra.Command, []string) error {
			uses := []snapshot.Use{}
			if err := a.eachStore(func(s *snapshot.Store) error {
				u, err := s.Use()
				uses = append(uses, u)
				return err
			}); err != nil {
				return err
			}
			if asJSON {
				return a.json(uses)
			}
			var lines []string
			for _, u := range uses {
				lines = append(lines, fmt.Sprintf("%12d bytes  %12d borrowed  %5d checkpoints  %s", u.Bytes, u.Borrowed, u.Checkpoints, render.Line(u.Workspace)))
			}
			return a.lines(lines...)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
