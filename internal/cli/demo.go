package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"belay/harness"
	"belay/internal/demo"
	"belay/internal/render"
	"belay/model/rehearsal"
)

func (a *app) demoCommand() *cobra.Command {
	var keep string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch an agent fix a failing test, and see the proof",
		Long: `Copy a small project with a real bug and a failing test into a temporary folder and let an agent fix it. The model
is a script that comes with belay, so this needs no key and costs nothing; everything else is real: the policy, the
sandbox, the journal, the edits, and the tests that prove the result. Exit 0 only when it is proved.`,
		Example: "  belay demo\n  belay demo --keep ./demo\n  belay demo --json",
		Args:    exactly(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.runDemo(cmd.Context(), keep, asJSON)
		},
	}
	cmd.Flags().StringVar(&keep, "keep", "", "put the project into `folder` (new or empty) instead of a temporary one")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object at the end, and nothing else")
	return cmd
}

func (a *app) runDemo(ctx context.Context, keep string, asJSON bool) error {
	dir, err := demoFolder(keep)
	if err != nil {
		return err
	}
	if err := demo.Unpack(dir); err != nil {
		return fmt.Errorf("unpack the demo: %w", err)
	}
	script, err := rehearsal.Parse("demo.yaml", demo.Script())
	if err != nil {
		return fmt.Errorf("the demo's own script: %w", err)
	}
	before, err := readTree(dir)
	if err != nil {
		return err
	}
	cfg := harness.Config{Task: demo.Task, Workspace: dir, Client: rehearsal.New(script), Version: version()}
	if asJSON {
		result, err := a.quietly(ctx, cfg, nil, a.run)
		if err != nil {
			return err
		}
		after, err := readTree(dir)
		if err != nil {
			return err
		}
		return ended(result, a.json(struct {
			harness.Result
			Diff string `json:"diff"`
		}{result, diffTrees(before, after)}))
	}

	screen := a.screen()
	if err := a.lines(
		screen.Bold("belay demo")+": an agent fixes a failing test. The model is a script that comes with belay, not an AI;",
		"the policy, the sandbox, the journal, the edits and the tests are real. The project is a copy in "+dir,
		""); err != nil {
		return err
	}
	result, err := a.lively(ctx, cfg, a.run)
	if err != nil {
		return err
	}
	after, err := readTree(dir)
	if err != nil {
		return err
	}
	var lines []string
	if diff := diffTrees(before, after); diff != "" {
		lines = append(lines, "", screen.Bold("what changed"))
		lines = append(lines, screen.Diff(diff)...)
	}
	if len(result.Proof) > 0 {
		lines = append(lines, "", screen.Bold("proof")+screen.Dim("  (belay ran this itself, in a fresh sandbox)"))
		lines = append(lines, render.Proofs(screen, result.Proof)...)
	}
	lines = append(lines, "",
		"journal  "+filepath.Join(result.Dir, "journal.jsonl"),
		"project  "+dir,
		"", screen.Bold("what to type next"))
	for _, next := range [][2]string{
		{"show " + result.RunID, "the whole story"},
		{"replay --verify " + result.RunID, "prove what the model was sent at every turn"},
		{"journal verify " + result.RunID, "find any changed byte of the record"},
	} {
		lines = append(lines, "  "+self()+" "+next[0]+screen.Dim("   # "+next[1]))
	}
	return ended(result, a.lines(lines...))
}

// demoFolder makes the folder that the project is copied into.
func demoFolder(keep string) (string, error) {
	if keep == "" {
		dir, err := os.MkdirTemp("", "belay-demo-")
		if err != nil {
			return "", fmt.Errorf("make a temporary folder: %w", err)
		}
		return dir, nil
	}
	dir, err := filepath.Abs(keep)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", usagef("make the folder for --keep: %w", err)
	}
	file, err := os.Open(dir)
	if err != nil {
		return "", usagef("--keep: %w", err)
	}
	defer file.Close()
	switch _, err := file.Readdirnames(1); {
	case err == nil:
		return "", usagef("--keep: %s is not empty; name a new folder, so that nothing of yours is changed", dir)
	case !errors.Is(err, io.EOF):
		return "", usagef("--keep: %w", err)
	}
	return dir, nil
}
