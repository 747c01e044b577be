package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"belay/harness"
	"belay/internal/config"
	"belay/internal/render"
	"belay/internal/verifier"
	"belay/policy"
)

func (a *app) initCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "init [FOLDER]",
		Short: "Write the settings that a project begins with",
		Long: `Write .belay/config.yaml into a project (default: the current folder), with the check that its files suggest and every
other setting as a comment, and a first map for agents, AGENTS.md, by looking at the repository. A file that exists is
left as it is.`,
		Example: "  belay init\n  belay init ./project && belay trust ./project",
		Args:    between(0, 1, "at most one folder"),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := folder(args)
			var suggestions []config.Suggestion
			for _, c := range verifier.Detect(dir) {
				suggestions = append(suggestions, config.Suggestion{Command: c.Line, Reason: c.Reason})
			}
			written, err := config.Init(dir, suggestions, config.Settings{Mode: policy.Edit, Bounds: harness.DefaultBounds})
			if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
				return usagef("%w", err)
			}
			if err != nil {
				return err
			}
			var checks []string
			for _, s := range suggestions {
				checks = append(checks, s.Command)
			}
			first, err := initMap(dir, checks)
			if err != nil {
				return err
			}
			if first != "" {
				written = append(written, first)
			}
			if asJSON {
				return a.json(struct {
					Written []string `json:"written"`
				}{written})
			}
			var lines []string
			for _, file := range written {
				lines = append(lines, "wrote "+file)
			}
			check := "No check was found: name one under `verify` in it."
			if len(suggestions) > 0 {
				check = "A task there is done when `" + render.Line(suggestions[0].Command) + "` passes."
			}
			return a.lines(append(lines, check, "Read it; what it decides counts once you say: "+self()+" trust"+argument(args))...)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// folder is the argument of a command that works on one, by default the current one.
func folder(args []string) string {
	if len(args) == 0 {
		return "."
	}
	return args[0]
}

func argument(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return " " + args[0]
}

// trusted is what --json prints about one project.
type trusted struct {
	Workspace string            `json:"workspace"`
	Trusted   bool              `json:"trusted"`
	Why       string            `json:"why,omitempty"`
	Files     map[string]string `json:"files,omitempty"` // SHA-256 by path below .belay
}

func (a *app) trustCommand() *cobra.Command {
	var asJSON, list, revoke, check bool
	cmd := &cobra.Command{
		Use:   "trust [FOLDER]",
		Short: "Let a project's own settings decide",
		Long: `Trust the files in a project's .belay folder (default: of the current folder) as they are now. Before that, and as soon
as one of them changes, they can make belay stricter and never wider: which model is asked, what counts as proof and
which key is used are then yours alone. Read the files first: they are listed, and lie in plain sight.`,
		Example: "  belay trust\n  belay trust --check ./project\n  belay trust --revoke ./project\n  belay trust --list",
		Args:    between(0, 1, "at most one folder"),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := a.userDir()
			if err != nil {
				return usagef("%w", err)
			}
			t := config.Trust{Dir: dir}
			switch n := count(list, revoke, check); {
			case n > 1:
				return usagef("--list, --check and --revoke are three commands: choose one")
			case list && len(args) > 0:
				return usagef("--list takes no folder")
			case list:
				return a.trustList(t, asJSON)
			case revoke:
				return a.trustRevoke(t, folder(args), asJSON)
			}
			return a.trustProject(t, folder(args), check, asJSON)
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolVar(&check, "check", false, "say whether the project is trusted; change nothing")
	cmd.Flags().BoolVar(&revoke, "revoke", false, "trust the project no more")
	cmd.Flags().BoolVar(&list, "list", false, "list the projects that are trusted")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func count(flags ...bool) (n int) {
	for _, f := range flags {
		if f {
			n++
		}
	}
	return n
}

func (a *app) trustProject(t config.Trust, dir string, check, asJSON bool) error {
	p, err := config.ReadProject(dir)
	if err != nil {
		return usagef("%w", err)
	}
	if len(p.Files) == 0 && p.Odd == "" {
		return usagef("%s has no files in a %s folder, so there is nothing to trust. To make one: %s init", p.Workspace, config.Folder, self())
	}
	verdict := t.Check(p)
	if !check && !verdict.Trusted {
		if _, err := t.Grant(p, time.Now()); err != nil {
			return usagef("%w", err)
		}
		verdict = t.Check(p)
	}
	sums := p.Sums()
	if asJSON {
		return a.json(trusted{p.Workspace, verdict.Trusted, verdict.Why, sums})
	}
	screen := a.screen()
	word := screen.Good("trusted")
	if !verdict.Trusted {
		word = screen.Alarm("not trusted")
	}
	lines := []string{word + "  " + render.Line(p.Workspace) + screen.Dim("  "+render.Line(verdict.Why))}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		lines = append(lines, "  "+render.Line(filepath.Join(config.Folder, filepath.FromSlash(name)))+screen.Dim("  "+sums[name][:12]))
	}
	return a.lines(lines...)
}

func (a *app) trustRevoke(t config.Trust, dir string, asJSON bool) error {
	was, err := t.Revoke(dir)
	if err != nil {
		return err
	}
	path, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if asJSON {
		return a.json(trusted{Workspace: path})
	}
	if !was {
		return a.lines(render.Line(path) + " was not trusted")
	}
	return a.lines("no longer trusted  " + render.Line(path))
}

func (a *app) trustList(t config.Trust, asJSON bool) error {
	records, err := t.List()
	if err != nil {
		return err
	}
	all := make([]trusted, 0, len(records))
	var lines []string
	for _, r := range records {
		one := trusted{Workspace: r.Workspace, Files: r.Files}
		if one.Trusted, one.Why = t.Trusted(r.Workspace); !one.Trusted {
			if _, err := os.Stat(r.Workspace); errors.Is(err, fs.ErrNotExist) {
				one.Why = "it is not there any more"
			}
		}
		all = append(all, one)
		lines = append(lines, fmt.Sprintf("%s  %s", render.Line(r.Workspace), a.screen().Dim(render.Line(one.Why))))
	}
	if asJSON {
		return a.json(all)
	}
	if len(lines) == 0 {
		lines = []string{"no project is trusted"}
	}
	return a.lines(lines...)
}
