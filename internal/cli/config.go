package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"belay/harness"
	"belay/internal/config"
	"belay/internal/render"
	"belay/policy"
)

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "config",
		Short:   "Show what is set, and where",
		Example: "  belay config show",
		Args:    a.noSuchCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.configShowCommand())
	return cmd
}

func (a *app) configShowCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show [DIR]",
		Short: "Show every setting with its value and where that came from",
		Long: `Show every setting of a project (default: the current folder) with its value and where that came from. Later ones
have the last word: defaults, ~/.config/belay/config.yaml, the project's .belay/config.yaml, BELAY_* variables, flags.
A project that you have not trusted (see belay trust) can tighten, never widen.`,
		Example: "  belay config show\n  belay config show --json | jq '.settings[] | select(.from == \"project\")'",
		Args:    atMostOne("a project's folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, notices, err := settings(folder(args), config.Settings{})
			if err != nil {
				return err
			}
			return a.showSettings(s, notices, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// shownSetting is one row of config show.
type shownSetting struct {
	Name      string `json:"name"`
	Value     string `json:"value,omitempty"` // as a file says it
	From      string `json:"from,omitempty"`  // default, user, project, environment or flag
	Place     string `json:"place,omitempty"`
	Env       string `json:"env,omitempty"`
	Flag      string `json:"flag,omitempty"`
	Doc       string `json:"doc"`
	Untrusted string `json:"untrusted"` // what a project that is not trusted may do
}

// shownNotice is what a person must be told.
type shownNotice struct {
	Place string `json:"place"`
	Key   string `json:"key,omitempty"`
	Text  string `json:"text"`
}

func (a *app) showSettings(s config.Settings, notices []config.Notice, asJSON bool) error {
	if asJSON {
		out := struct {
			Settings []shownSetting `json:"settings"`
			Notices  []shownNotice  `json:"notices"`
		}{Notices: []shownNotice{}}
		for _, row := range s.Rows() {
			shown := shownSetting{Name: row.Name, Value: row.Value, Place: row.Origin.Place, Env: row.Env, Flag: row.Flag, Doc: row.Doc, Untrusted: string(row.Untrusted)}
			if row.Value != "" {
				shown.From = row.Origin.Layer.String()
			}
			out.Settings = append(out.Settings, shown)
		}
		for _, n := range notices {
			out.Notices = append(out.Notices, shownNotice(n))
		}
		return a.json(out)
	}
	rows := [][]string{{"SETTING", "VALUE", "FROM"}}
	for _, row := range s.Rows() {
		value, from := row.Value, row.Origin.Place
		switch {
		case value == "":
			value, from = "-", "-"
		case from == "":
			from = row.Origin.Layer.String()
		}
		rows = append(rows, []string{row.Name, render.Cut(render.Line(value), 60), render.Line(from)})
	}
	if err := a.screen().Table(a.out, rows); err != nil {
		return err
	}
	a.notices(notices)
	return nil
}

// notices says on standard error what a person must be told.
func (a *app) notices(notices []config.Notice) {
	for _, n := range notices {
		fmt.Fprintln(a.err, "belay: "+render.Line(n.String()))
	}
}

// settings reads the settings for a workspace. Every mistake in them is one of usage.
func settings(workspace string, flags config.Settings) (config.Settings, []config.Notice, error) {
	dir, err := config.UserDir(os.Getenv)
	if err != nil {
		return config.Settings{}, nil, usagef("%w", err)
	}
	s, notices, err := config.Load(config.Sources{
		Workspace: workspace, UserDir: dir, Environ: os.Environ(), Flags: flags,
		Defaults: config.Settings{Mode: policy.Edit, Bounds: harness.DefaultBounds},
	})
	if err != nil {
		err = usagef("%w", err)
	}
	return s, notices, err
}

// settle completes what the flags of a run say with all other settings, and says what a person must be told.
func (a *app) settle(cfg harness.Config, modeGiven bool) (harness.Config, error) {
	flags := config.Settings{Model: cfg.Model, Verify: cfg.Verify, Bounds: cfg.Bounds, Tools: cfg.Only}
	if modeGiven {
		flags.Mode = cfg.Mode
	}
	workspace := cfg.Workspace
	if workspace == "" {
		workspace = "."
	}
	if info, err := os.Stat(workspace); err != nil || !info.IsDir() {
		return cfg, nil // the harness says what is wrong with it
	}
	s, notices, err := settings(workspace, flags)
	if err != nil {
		return cfg, err
	}
	a.notices(notices)
	cfg.Model, cfg.Mode, cfg.Verify, cfg.Bounds = standing(s.Model), s.Mode, s.Verify, s.Bounds
	cfg.Only, cfg.Protect = s.Tools, s.Protect
	return cfg, nil
}

// folder is the one that a command is about.
func folder(args []string) string {
	if len(args) > 0 {
		return args[0]
	}
	return "."
}

func atMostOne(what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 {
			return usagef("`%s` takes at most %s, and got %d. For example:\n%s", cmd.CommandPath(), what, len(args), cmd.Example)
		}
		return nil
	}
}
