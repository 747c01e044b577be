package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"belay/internal/memory"
	"belay/internal/render"
)

func (a *app) memoryCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "memory",
		Short:   "Show or remove what agents have noted for later sessions",
		Example: "  belay memory ls\n  belay memory show\n  belay memory forget MEMORY.md",
		Args:    a.noSuchCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var asJSON, user, all bool
	var workspace string
	scope := func() string {
		if user {
			return memory.User
		}
		return memory.Workspace
	}
	store := func() (memory.Store, error) {
		home, err := a.home()
		if err != nil {
			return memory.Store{}, err
		}
		if resolved, err := filepath.EvalSymlinks(home); err == nil {
			home = resolved
		}
		dir, err := filepath.Abs(workspace)
		if err == nil {
			dir, err = filepath.EvalSymlinks(dir)
		}
		if err != nil {
			return memory.Store{}, usagef("the workspace: %w", err)
		}
		return memory.Store{Home: home, Workspace: dir}, nil
	}
	type entry struct {
		Scope string `json:"scope"`
		Path  string `json:"path"`
		Text  string `json:"text,omitempty"`
	}
	ls := &cobra.Command{
		Use: "ls", Short: "List the notes", Example: "  belay memory ls\n  belay memory ls --json", Args: exactly(0, ""),
		RunE: func(*cobra.Command, []string) error {
			s, err := store()
			if err != nil {
				return err
			}
			entries := []entry{}
			var lines []string
			for _, sc := range []string{memory.Workspace, memory.User} {
				files, err := s.Files(sc)
				if err != nil {
					return err
				}
				for _, f := range files {
					entries = append(entries, entry{Scope: sc, Path: f})
					lines = append(lines, fmt.Sprintf("%s  %s", sc, render.Line(f)))
				}
			}
			if asJSON {
				return a.json(entries)
			}
			if len(lines) == 0 {
				lines = []string{"nothing is noted"}
			}
			return a.lines(lines...)
		},
	}
	show := &cobra.Command{
		Use: "show [FILE]", Short: "Show a note (default: MEMORY.md)", Example: "  belay memory show\n  belay memory show notes/db.md --user", Args: between(0, 1, "at most one file"),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := store()
			if err != nil {
				return err
			}
			name := memory.Index
			if len(args) > 0 {
				name = args[0]
			}
			text, err := s.Read(scope(), name)
			if errors.Is(err, fs.ErrNotExist) {
				return usagef("there is no note %s; `belay memory ls` lists them", render.Line(name))
			}
			if err != nil {
				return err
			}
			if asJSON {
				return a.json(entry{scope(), name, text})
			}
			return a.lines(strings.Split(strings.TrimRight(render.Clean(text), "\n"), "\n")...)
		},
	}
	forget := &cobra.Command{
		Use: "forget [FILE]", Short: "Remove a note, or all with --all", Example: "  belay memory forget MEMORY.md\n  belay memory forget --all --user", Args: between(0, 1, "at most one file"),
		RunE: func(_ *cobra.Command, args []string) error {
			s, err := store()
			if err != nil {
				return err
			}
			name := ""
			switch {
			case len(args) == 1 && all, len(args) == 0 && !all:
				return usagef("name one note, or say --all")
			case len(args) == 1:
				name = args[0]
			}
			if err := s.Forget(scope(), name); errors.Is(err, fs.ErrNotExist) {
				return usagef("there is no note %s; `belay memory ls` lists them", render.Line(name))
			} else if err != nil {
				return err
			}
			if asJSON {
				return a.json(map[string]any{"forgot": name, "all": all, "scope": scope()})
			}
			return a.lines("forgotten")
		},
	}
	for _, sub := range []*cobra.Command{ls, show, forget} {
		sub.Flags().StringVar(&workspace, "workspace", ".", "`folder` whose notes are meant")
		sub.Flags().BoolVar(&asJSON, "json", false, "print JSON")
		cmd.AddCommand(sub)
	}
	show.Flags().BoolVar(&user, "user", false, "the notes for all workspaces")
	forget.Flags().BoolVar(&user, "user", false, "the notes for all workspaces")
	forget.Flags().BoolVar(&all, "all", false, "all notes of the workspace, or with --user those for all workspaces")
	return cmd
}
