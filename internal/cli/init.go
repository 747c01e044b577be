package cli

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"belay/harness"
	"belay/internal/config"
	"belay/internal/render"
	"belay/internal/verifier"
	"belay/policy"
)

func (a *app) initCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "init [DIR]",
		Short: "Begin a project: write a commented .belay/config.yaml",
		Long: `Write a commented .belay/config.yaml into a project (default: the current folder). The command by which the project
tests itself becomes its named verifier, where belay finds one. A file that exists is never changed. What was written
is trusted at once, unless the project already had files for belay.`,
		Example: "  belay init\n  belay init ~/src/project",
		Args:    atMostOne("a project's folder"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.initProject(folder(args)) },
	}
}

func (a *app) initProject(dir string) error {
	before, err := config.ReadProject(dir)
	if err != nil {
		return usagef("%w", err)
	}
	var suggestions []config.Suggestion
	for _, c := range verifier.Detect(before.Workspace) {
		suggestions = append(suggestions, config.Suggestion{Command: c.Line, Reason: c.Reason})
	}
	written, err := config.Init(before.Workspace, suggestions, config.Settings{Mode: policy.Edit, Bounds: harness.DefaultBounds})
	if err != nil {
		return usagef("%w", err)
	}
	var lines []string
	for _, path := range written {
		lines = append(lines, a.screen().Good("written")+"  "+render.Line(path))
	}
	if len(suggestions) > 0 {
		lines = append(lines, fmt.Sprintf("  a task is proved when this passes: %s (%s)", render.Line(suggestions[0].Command), render.Line(suggestions[0].Reason)))
	} else {
		lines = append(lines, "  nothing says how this project tests itself: name a command under verify")
	}
	if len(before.Files) > 0 || before.Odd != "" {
		return a.lines(append(lines, "  not trusted yet, because other files were there: read them, then "+self()+" trust")...)
	}
	user, err := config.UserDir(os.Getenv)
	if err != nil {
		return usagef("%w", err)
	}
	// Read again, so that what is trusted is what lies there; only what this command wrote may be.
	p, err := config.ReadProject(before.Workspace)
	if err == nil && len(p.Files) == len(written) {
		_, err = config.Trust{Dir: user}.Grant(p, time.Now())
	}
	if err != nil {
		return usagef("%s was written, but is not trusted: %w", render.Line(written[0]), err)
	}
	return a.lines(append(lines, "  trusted as it is; after you edit it, say "+self()+" trust")...)
}
