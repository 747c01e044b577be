package cli

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"belay/harness"
	"belay/internal/render"
	"belay/journal"
)

// completedRuns is how many runs a shell is offered: more would be slow to describe and useless to look at.
const completedRuns = 20

// completeRun offers runs as the first argument, each with its task.
func (a *app) completeRun(_ *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	home, err := a.home()
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ids, _ := journal.Runs(home)
	offers := []string{"last\tthe newest run"}
	for _, id := range ids {
		if len(offers) > completedRuns {
			break
		}
		if strings.HasPrefix(id, typed) {
			s := summarize(filepath.Join(journal.RunsDir(home), id))
			offers = append(offers, id+"\t"+render.Cut(s.end()+": "+render.Line(s.Task), 72))
		}
	}
	return offers, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completeFlags offers values for those of the command's flags that have known ones.
func (a *app) completeFlags(cmd *cobra.Command) {
	offers := map[string]cobra.CompletionFunc{
		"model": completeModel,
		"tools": completeTools,
		"workspace": func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		"mode": func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"plan\treads only", "manual\treads; everything else needs a person", "edit\treads and reversible writes",
				"autonomous\talso irreversible local writes, in a sandbox"}, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		},
	}
	none := func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, bound := range []string{"max-turns", "max-tokens", "budget-usd", "timeout", "verify", "turn", "addr", "limit"} {
		offers[bound] = none
	}
	for name, offer := range offers {
		if cmd.Flags().Lookup(name) != nil {
			_ = cmd.RegisterFlagCompletionFunc(name, offer) // it fails only where the flag is missing
		}
	}
}

// completeModel offers the beginnings of a model's name, and the files of a rehearsal.
func completeModel(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	file, scripted := strings.CutPrefix(typed, "rehearsal:")
	if !scripted {
		return []string{"anthropic:\ta model at Anthropic", "openai:\ta model at OpenAI; with @URL at a server that speaks like it",
			"rehearsal:\ta scripted model, from a file"}, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
	}
	var offers []string
	for _, pattern := range []string{"*.yaml", "*.yml"} {
		paths, _ := filepath.Glob(escapeGlob(file) + pattern)
		for _, path := range paths {
			offers = append(offers, "rehearsal:"+path)
		}
	}
	folders, _ := filepath.Glob(escapeGlob(file) + "*" + string(filepath.Separator))
	for _, folder := range folders {
		offers = append(offers, "rehearsal:"+folder)
	}
	return offers, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

// escapeGlob makes what a person typed a pattern that matches itself alone.
func escapeGlob(s string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(s)
}

// completeTools offers the names that are not in the list yet.
func completeTools(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	before := ""
	if i := strings.LastIndexByte(typed, ','); i >= 0 {
		before = typed[:i+1]
	}
	var offers []string
	for _, name := range harness.ToolNames() {
		if !strings.Contains(","+before, ","+name+",") {
			offers = append(offers, before+name)
		}
	}
	return offers, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}
