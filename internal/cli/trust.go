package cli

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"belay/internal/config"
	"belay/internal/render"
)

func (a *app) trustCommand() *cobra.Command {
	var list, revoke, asJSON bool
	cmd := &cobra.Command{
		Use:   "trust [DIR]",
		Short: "Let a project's own settings decide, not only tighten",
		Long: `Trust the files in the .belay folder of a project (default: the current folder) as they are now: its model, its
verifiers and its wider bounds then count. Read them first. When one of them changes, or the project moves, it is not
trusted any more, and belay says so.`,
		Example: "  belay trust\n  belay trust ~/src/project\n  belay trust --list\n  belay trust ~/src/project --revoke",
		Args:    atMostOne("a project's folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir, err := config.UserDir(os.Getenv)
			if err != nil {
				return usagef("%w", err)
			}
			trust := config.Trust{Dir: dir}
			switch {
			case list && (revoke || len(args) > 0):
				return usagef("--list stands alone")
			case asJSON && !list:
				return usagef("--json goes with --list")
			case list:
				return a.listTrusted(trust, asJSON)
			case revoke:
				return a.revokeTrust(trust, folder(args))
			}
			return a.grantTrust(trust, folder(args))
		},
	}
	cmd.Flags().BoolVar(&list, "list", false, "list what is trusted")
	cmd.Flags().BoolVar(&revoke, "revoke", false, "trust the project no more")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) grantTrust(trust config.Trust, dir string) error {
	p, err := config.ReadProject(dir)
	if err != nil {
		return usagef("%w", err)
	}
	r, err := trust.Grant(p, time.Now())
	if err != nil {
		return usagef("%w", err)
	}
	lines := []string{a.screen().Good("trusted") + "  " + render.Line(r.Workspace)}
	for _, name := range slices.Sorted(maps.Keys(r.Files)) {
		lines = append(lines, "  "+config.Folder+"/"+render.Line(name)+a.screen().Dim("  sha256 "+r.Files[name][:16]))
	}
	if len(r.Files) == 0 {
		lines = append(lines, "  it has no files for belay yet; belay asks again when it gets some")
	}
	return a.lines(lines...)
}

func (a *app) revokeTrust(trust config.Trust, dir string) error {
	was, err := trust.Revoke(dir)
	if err != nil {
		return usagef("%w", err)
	}
	if !was {
		return usagef("%s was not trusted. `%s trust --list` lists what is", dir, self())
	}
	return a.lines("trusted no more  " + render.Line(dir))
}

// trusted is one row of trust --list.
type trusted struct {
	Workspace string    `json:"workspace"`
	At        time.Time `json:"at"`
	Trusted   bool      `json:"trusted"` // still
	Why       string    `json:"why"`
}

func (a *app) listTrusted(trust config.Trust, asJSON bool) error {
	records, err := trust.List()
	if err != nil {
		return usagef("%w", err)
	}
	all := []trusted{}
	for _, r := range records {
		t := trusted{Workspace: r.Workspace, At: r.At}
		t.Trusted, t.Why = trust.Trusted(r.Workspace)
		all = append(all, t)
	}
	if asJSON {
		return a.json(all)
	}
	if len(all) == 0 {
		return a.lines("no project is trusted", "To trust one, read its "+filepath.Join(config.Folder, config.FileName)+", then: "+self()+" trust DIR")
	}
	rows := [][]string{{"PROJECT", "STATE"}}
	for _, t := range all {
		state := t.Why
		if !t.Trusted {
			state = fmt.Sprintf("not trusted: %s", t.Why)
		}
		rows = append(rows, []string{render.Line(t.Workspace), render.Line(state)})
	}
	return a.screen().Table(a.out, rows)
}
