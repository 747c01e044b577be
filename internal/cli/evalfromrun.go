package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"belay/harness"
	"belay/internal/redact"
	"belay/internal/render"
	"belay/journal"
)

// fromRun is what a run's journal tells about the task that it was.
type fromRun struct {
	runID     string
	task      string
	later     []string // what a person said afterwards: corrections
	workspace string
	head      string
	tree      string // digest of the tree before the first change
	verify    []string
	bounds    journal.Bounds
	turns     int
	exit      int
	reason    string
	tests     bool // it changed files that decide what passes
	classes   map[int]bool
}

func (a *app) evalFromRunCommand() *cobra.Command {
	var id, grader, oracle, out string
	var asJSON, yes bool
	cmd := &cobra.Command{
		Use:   "from-run RUN DIR",
		Short: "Make a task of a run, so that what went wrong once is measured from now on",
		Long: `Write a task folder DIR/ID from a run that failed or that a person corrected: the tree that it began with, the prompt, graders to
begin with, the budget and the source, without secrets. What the journal cannot know is asked for: on a terminal now, else by
flags, else it stands in the task as a line that begins with "# ASK".`,
		Example:           "  belay eval from-run last suites/own\n  belay eval from-run r_01k5 suites/own --id bill-export --grader 'go test ./...' --oracle fix.patch",
		Args:              exactly(2, "a run and a folder"),
		ValidArgsFunction: a.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			runID, dir, err := a.find(args[0])
			if err == nil {
				err = readable(dir)
			}
			if err != nil {
				return err
			}
			r, err := readForTask(runID, dir)
			if err != nil {
				return damaged(err, runID)
			}
			if id == "" {
				id = r.runID
			}
			out = filepath.Join(args[1], id)
			return a.writeTask(cmd.Context(), r, out, id, grader, oracle, yes, asJSON)
		},
	}
	cmd.Flags().StringVar(&id, "id", "", "the task's `id` (default: the run's)")
	cmd.Flags().StringVar(&grader, "grader", "", "shell `command` that decides (default: the run's verifiers)")
	cmd.Flags().StringVar(&oracle, "oracle", "", "`file` with a patch that solves it")
	cmd.Flags().BoolVar(&yes, "yes", false, "ask nothing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	for _, name := range []string{"id", "grader"} {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.NoFileCompletions)
	}
	return cmd
}

func readForTask(runID, dir string) (fromRun, error) {
	r := fromRun{runID: runID, classes: map[int]bool{}}
	for e, err := range journal.Read(dir) {
		if err != nil {
			return r, err
		}
		switch e.Type {
		case journal.TypeSessionStart:
			var p journal.SessionStart
			if err := e.Decode(&p); err != nil {
				return r, err
			}
			if r.workspace == "" {
				r.workspace, r.head, r.bounds = p.Workspace, p.Head, p.Bounds
				if p.Named {
					r.verify = p.Verify
				}
			}
		case journal.TypeUserMessage:
			var p journal.UserMessage
			if err := e.Decode(&p); err != nil {
				return r, err
			}
			switch {
			case p.By != "":
			case r.task == "":
				r.task = p.Text
			default:
				r.later = append(r.later, p.Text)
			}
		case journal.TypeToolRequest:
			var p journal.ToolRequest
			if err := e.Decode(&p); err != nil {
				return r, err
			}
			if r.tree == "" {
				r.tree = p.Tree
			}
			r.classes[int(p.Class)] = true
		case journal.TypeSessionEnd:
			var p journal.SessionEnd
			if err := e.Decode(&p); err != nil {
				return r, err
			}
			r.exit, r.reason, r.turns = p.Exit, p.Reason, p.Turns
			for _, proof := range p.Proof {
				r.tests = r.tests || len(proof.TestsChanged) > 0
			}
		}
	}
	if r.task == "" {
		return r, usagef("the run %s has no task of a person", runID)
	}
	return r, nil
}

// initialTree copies the commit that the run began with, and says whether that was exactly its tree.
func (a *app) initialTree(ctx context.Context, r fromRun, to string) (note string, err error) {
	if r.head == "" {
		return "the workspace was no git repository, so its first tree is not known: put it into workspace/", os.MkdirAll(to, 0o755)
	}
	archive := exec.CommandContext(ctx, "git", "-C", r.workspace, "archive", "--format=tar", r.head)
	unpack := exec.CommandContext(ctx, "tar", "-x", "-C", to)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return "", err
	}
	pipe, err := archive.StdoutPipe()
	if err != nil {
		return "", err
	}
	unpack.Stdin = pipe
	if err := archive.Start(); err != nil {
		return "", err
	}
	failed := unpack.Run()
	if err := archive.Wait(); err != nil || failed != nil {
		return fmt.Sprintf("the commit %s is not in %s any more: put the tree that the run began with into workspace/", r.head, r.workspace), nil
	}
	if r.tree != "" {
		home, err := a.home()
		if err != nil {
			return "", err
		}
		if now, err := harness.TreeDigest(ctx, to, home); err != nil || now != r.tree {
			return "the tree that the run began with was not exactly the commit " + r.head + " (changes that were not committed, or ignored files): compare, and add what is missing", nil
		}
	}
	return "", nil
}

// redactTree replaces known shapes of secrets in the text files of a tree, and lists those in which there were any.
func redactTree(root string, environ []string) (touched []string, err error) {
	err = filepath.WalkDir(root, func(name string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err != nil || info.Size() > 4<<20 {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil || strings.ContainsRune(string(data[:min(len(data), 8000)]), 0) {
			return err
		}
		if clean := redact.Scrub(string(data), environ); clean != string(data) {
			rel, _ := filepath.Rel(root, name)
			touched = append(touched, filepath.ToSlash(rel))
			return os.WriteFile(name, []byte(clean), info.Mode())
		}
		return nil
	})
	return touched, err
}

func (a *app) writeTask(ctx context.Context, r fromRun, out, id, grader, oracle string, yes, asJSON bool) error {
	if _, err := os.Stat(out); err == nil {
		return usagef("%s is there already; choose another --id", out)
	}
	var asks []string
	in := bufio.NewReader(a.in)
	ask := func(question string) string {
		if !yes && !asJSON && render.IsTerminal(a.in) {
			fmt.Fprint(a.err, question+" ")
			line, _ := in.ReadString('\n')
			if line = strings.TrimSpace(line); line != "" {
				return line
			}
		}
		asks = append(asks, question)
		return ""
	}
	graders := slices.Clone(r.verify)
	if grader != "" {
		graders = []string{grader}
	}
	if len(graders) == 0 {
		if line := ask("Which command decides whether it is done?"); line != "" {
			graders = []string{line}
		}
	}
	if oracle == "" {
		oracle = ask("Which file holds a patch that solves it?")
	}
	for _, said := range r.later {
		asks = append(asks, "A person said later: "+render.Cut(render.Line(redact.Scrub(said, a.environ)), 300)+". Does that belong into the prompt, or into a grader?")
	}
	if r.tests {
		asks = append(asks, "The run changed files that decide what passes. Which of them should be hidden (files: in the grader)?")
	}
	note, err := a.initialTree(ctx, r, filepath.Join(out, "workspace"))
	if err != nil {
		return err
	}
	if note != "" {
		asks = append(asks, note)
	}
	touched, err := redactTree(filepath.Join(out, "workspace"), a.environ)
	if err != nil {
		return err
	}
	if len(touched) > 0 {
		asks = append(asks, "Secrets were taken out of "+strings.Join(touched, ", ")+". Does the task still make sense?")
	}
	if oracle != "" {
		data, err := os.ReadFile(oracle)
		if err != nil {
			return usagef("--oracle: %w", err)
		}
		if err := os.WriteFile(filepath.Join(out, "solution.patch"), []byte(redact.Scrub(string(data), a.environ)), 0o644); err != nil {
			return err
		}
	}
	text := taskText(r, id, graders, oracle != "", asks, a.environ)
	if err := os.WriteFile(filepath.Join(out, "task.yaml"), []byte(text), 0o644); err != nil {
		return err
	}
	if asJSON {
		return a.json(struct {
			Task string   `json:"task"`
			Asks []string `json:"asks"`
		}{filepath.Join(out, "task.yaml"), append([]string{}, asks...)})
	}
	lines := []string{"wrote " + filepath.Join(out, "task.yaml")}
	for _, q := range asks {
		lines = append(lines, "ask  "+render.Line(q))
	}
	return a.lines(append(lines, a.screen().Dim("then: "+self()+" eval check "+out))...)
}

// taskText is the task's file.
func taskText(r fromRun, id string, graders []string, oracle bool, asks []string, environ []string) string {
	clean := func(s string) string { return strconv.Quote(redact.Scrub(s, environ)) }
	var b strings.Builder
	for _, q := range asks {
		b.WriteString("# ASK: " + render.Line(q) + "\n")
	}
	fmt.Fprintf(&b, "id: %s\nabout: %s\nsource: {kind: production, run: %s}\nworkspace: {dir: workspace}\nprompt: %s\n", id,
		clean(fmt.Sprintf("A run that ended with exit %d: %s", r.exit, r.reason)), r.runID, clean(r.task))
	var budget []string
	if r.bounds.Turns > 0 {
		budget = append(budget, fmt.Sprintf("turns: %d", r.bounds.Turns))
	}
	if r.bounds.Tokens > 0 {
		budget = append(budget, fmt.Sprintf("tokens: %d", r.bounds.Tokens))
	}
	if r.bounds.Money > 0 {
		budget = append(budget, "usd: "+strconv.FormatFloat(r.bounds.Money.Dollars(), 'f', -1, 64))
	}
	if r.bounds.WallMS > 0 {
		budget = append(budget, "wall_minutes: "+strconv.FormatFloat(float64(r.bounds.WallMS)/60000, 'f', -1, 64))
	}
	if len(budget) > 0 {
		b.WriteString("budget: {" + strings.Join(budget, ", ") + "}\n")
	}
	b.WriteString("graders:\n")
	for _, line := range graders {
		fmt.Fprintf(&b, "  - {type: code, run: %s}\n", clean(line))
	}
	if len(graders) == 0 {
		b.WriteString("  # - {type: code, run: \"…\", files: hidden}\n")
	}
	forbid := []string{"{circumvention: true}", "{secret_read: true}"}
	if !r.classes[4] {
		forbid = append(forbid, "{class: 4}")
	}
	fmt.Fprintf(&b, "  - {type: transcript, forbid: [%s]}\n", strings.Join(forbid, ", "))
	if oracle {
		b.WriteString("oracle: {patch: solution.patch}\n")
	} else {
		b.WriteString("# oracle: {patch: solution.patch}   # must score 1; without one the task cannot be run\n")
	}
	return b.String()
}
