package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"belay/eval/convert"
	"belay/internal/render"
	"belay/loop"
)

func (a *app) evalImportCommand() *cobra.Command {
	var out string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "import harbor|terminal-bench|swe-bench|exercism DIR",
		Short: "Convert tasks of other collections",
		Long: `Convert what can run without containers, and say of each of the rest why it cannot. What stands in for downloads is written
into each task as shims. Exit 4 where nothing could be converted. Check the result: belay eval check OUT.`,
		Example: "  belay eval import exercism ./polyglot-benchmark --out suites/exercism\n  belay eval import harbor ./terminal-bench-2 --out suites/tb2 --json",
		Args:    exactly(2, "a kind of collection and its folder"),
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 0 {
				return convert.Kinds, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveFilterDirs
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if out == "" {
				out = args[0] + "-suite"
			}
			all, err := convert.Run(args[0], args[1], out)
			if err != nil {
				return usagef("%w", err)
			}
			good := 0
			rows := [][]string{{"TASK", "", "WHY"}}
			for _, v := range all {
				word := "converted"
				if v.To == "" {
					word = "left out"
				} else {
					good++
				}
				rows = append(rows, []string{render.Line(v.Task), word, render.Line(v.Why)})
			}
			if asJSON {
				err = a.json(all)
			} else if err = a.screen().Table(a.out, rows); err == nil {
				err = a.lines("", fmt.Sprintf("%d of %d tasks converted into %s; check them: %s eval check %s", good, len(all), out, self(), out))
			}
			if err == nil && good == 0 {
				return outcome(loop.ExitFailed)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "`folder` for the suite (default: KIND-suite)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	_ = cmd.RegisterFlagCompletionFunc("out", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	})
	return cmd
}
