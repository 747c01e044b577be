package cli

import (
	"strings"

	"github.com/spf13/cobra"

	"belay/internal/config"
	"belay/internal/render"
)

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Show the settings, and where each comes from",
		Long: `Settings come from, the last word last: belay's defaults, your ~/.config/belay/config.yaml, the project's
.belay/config.yaml, BELAY_… variables, flags. A project that you have not said "belay trust" for can make them
stricter, never wider.`,
		Example: "  belay config show\n  belay config show --json | jq '.settings[] | select(.layer == \"project\")'",
		Args:    a.noSuchCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.configShowCommand())
	return cmd
}

// shownSetting is one setting as --json prints it.
type shownSetting struct {
	Name  string `json:"name"`
	Value string `json:"value"` // as a file says it; "" where nobody set it
	Layer string `json:"layer"` // default, user, project, environment; "" where nobody set it
	Place string `json:"place,omitempty"`
	Env   string `json:"env,omitempty"`
	Flag  string `json:"flag,omitempty"`
	Doc   string `json:"doc"`
}

// shownNotice is one notice as --json prints it.
type shownNotice struct {
	Place string `json:"place"`
	Key   string `json:"key,omitempty"`
	Text  string `json:"text"`
}

func (a *app) configShowCommand() *cobra.Command {
	var asJSON bool
	var workspace string
	cmd := &cobra.Command{
		Use:     "show",
		Short:   "List every setting with its value and where it comes from",
		Example: "  belay config show\n  belay config show --workspace ./project --json",
		Args:    exactly(0, ""),
		RunE: func(*cobra.Command, []string) error {
			s, notices, err := a.settings(workspace, config.Settings{})
			if err != nil {
				return err
			}
			if asJSON {
				return a.json(showSettings(s, notices))
			}
			a.tell(notices)
			rows := [][]string{{"SETTING", "VALUE", "FROM", "MEANING"}}
			for _, row := range s.Rows() {
				value, from := row.Value, strings.TrimSpace(row.Origin.Layer.String()+" "+row.Origin.Place)
				if value == "" {
					value, from = "-", "-"
				}
				rows = append(rows, []string{row.Name, render.Cut(render.Line(value), 60), render.Line(from), row.Doc})
			}
			return a.screen().Table(a.out, rows)
		},
	}
	cmd.Flags().StringVar(&workspace, "workspace", "", "`folder` of the project (default: the current one)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	a.completeFlags(cmd)
	return cmd
}

func showSettings(s config.Settings, notices []config.Notice) any {
	shown := struct {
		Settings []shownSetting `json:"settings"`
		Notices  []shownNotice  `json:"notices"`
	}{Notices: []shownNotice{}}
	for _, row := range s.Rows() {
		one := shownSetting{Name: row.Name, Value: row.Value, Env: row.Env, Flag: row.Flag, Doc: row.Doc}
		if row.Value != "" {
			one.Layer, one.Place = row.Origin.Layer.String(), row.Origin.Place
		}
		shown.Settings = append(shown.Settings, one)
	}
	for _, n := range notices {
		shown.Notices = append(shown.Notices, shownNotice{n.Place, n.Key, n.Text})
	}
	return shown
}
