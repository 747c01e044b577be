package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"belay/harness"
	"belay/internal/render"
	"belay/journal"
	"belay/loop"
)

func (a *app) verifyCommand() *cobra.Command {
	var f runFlags
	var here, asJSON bool
	cmd := &cobra.Command{
		Use:   "verify [RUN|--here]",
		Short: "Run a project's verifiers now, as the harness would",
		Long: `Run the verifiers of the project in this folder, or those of a run in its workspace: in a fresh sandbox, over a view
of the tree that is thrown away. A failure is run once more; one that then passes is flaky, and no pass.

Ends with 0 when all pass, with 4 when one fails, and with 3 when there is none or none that executed a test.`,
		Example:           "  belay verify\n  belay verify --here --verify \"go vet ./...\" --json\n  belay verify last",
		Args:              between(0, 1, "at most one run: its id, a unique beginning of it, or `last`"),
		ValidArgsFunction: a.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			if here && len(args) > 0 {
				return usagef("--here verifies this folder, and a run its own: say one of them")
			}
			var cfg harness.Config
			if len(args) == 1 {
				start, err := a.startOf(args[0])
				if err != nil {
					return err
				}
				f.cfg.Workspace, f.cfg.AllowWide = start.Workspace, true
				if len(f.cfg.Verify) == 0 && start.Named {
					f.cfg.Verify = start.Verify
				}
			}
			cfg, err := a.configure(&f, cmd.Flags().Changed)
			if err != nil {
				return err
			}
			if !asJSON {
				cfg.Progress = func(what string) { fmt.Fprintln(a.err, render.Line(what)) }
			}
			got, err := harness.VerifyNow(cmd.Context(), cfg)
			if err != nil {
				return err
			}
			if asJSON {
				err = a.json(got)
			} else {
				err = a.lines(a.verified(got)...)
			}
			if err != nil {
				return err
			}
			return outcome(exitOf(got))
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.BoolVar(&here, "here", false, "verify this folder (the default without a run)")
	flags.StringArrayVar(&f.cfg.Verify, "verify", nil, "shell `command` that must pass, instead of the configured ones; may be repeated")
	flags.StringVar(&f.cfg.Workspace, "workspace", "", "`folder` to verify (default: the current one)")
	flags.BoolVar(&asJSON, "json", false, "print the result as JSON")
	return cmd
}

func exitOf(c harness.Checked) loop.Exit {
	exit := loop.ExitProved
	if len(c.Checks) == 0 {
		return loop.ExitUnverified
	}
	for _, check := range c.Checks {
		switch {
		case check.OK:
		case check.Exit == 0 && !check.Flaky && check.Tests != nil:
			if exit == loop.ExitProved {
				exit = loop.ExitUnverified
			}
		default:
			exit = loop.ExitFailed
		}
	}
	return exit
}

func (a *app) verified(c harness.Checked) []string {
	s := a.screen()
	if len(c.Checks) == 0 {
		return []string{"no verifier was named, and none was found here. Name one: " + self() + ` verify --verify "make test"`}
	}
	var lines []string
	for _, check := range c.Checks {
		mark := s.Good("passed")
		switch {
		case check.Flaky:
			mark = s.Bold("flaky ")
		case !check.OK:
			mark = s.Bold("failed")
		}
		lines = append(lines, fmt.Sprintf("%s  %s  %s", mark, render.Line(check.Verifier), s.Dim(check.Summary+" · "+check.LevelName)))
		if f := check.Failure; f != nil {
			for l := range strings.Lines(f.String()) {
				lines = append(lines, "        "+render.Line(l))
			}
		}
	}
	return append(lines, s.Dim("tree "+c.Tree[:12]+" · git tree "+c.GitTree))
}

// startOf is how the last session of a run began.
func (a *app) startOf(name string) (journal.SessionStart, error) {
	p, err := a.proofOf(name)
	return p.start, err
}

// proof is a run's proof as it is printed and checked.
type proof struct {
	Version   int             `json:"version"` // 1
	RunID     string          `json:"run_id"`
	Workspace string          `json:"workspace"`
	Head      string          `json:"head,omitempty"` // commit that the work began on
	Standing  string          `json:"standing"`
	Exit      int             `json:"exit"`
	GitTree   string          `json:"git_tree,omitempty"` // what git would commit: the same id in every clone
	Tree      string          `json:"tree"`               // of the whole workspace
	Sum       string          `json:"sum"`                // of the journal's last event
	At        string          `json:"at"`                 // when the run ended, RFC 3339 in UTC
	Verifiers []proofVerifier `json:"verifiers"`
	Inputs    []journal.Input `json:"inputs"` // what the verifiers could read beside GitTree

	Circumvention []journal.Evasion `json:"circumvention,omitempty"`

	start journal.SessionStart
}

type proofVerifier struct {
	journal.Proof
	LevelName string `json:"level_name"`
	Sandbox   string `json:"sandbox"`
	At        string `json:"at"`
}

var levelNames = map[int]string{0: "deterministic", 1: "deterministic", 2: "property", 3: "judge", 4: "person"}

// proofOf reads a run's proof out of its journal.
func (a *app) proofOf(name string) (proof, error) {
	runID, dir, err := a.find(name)
	if err == nil {
		err = readable(dir)
	}
	if err != nil {
		return proof{}, err
	}
	p := proof{Version: 1, RunID: runID, Verifiers: []proofVerifier{}, Inputs: []journal.Input{}}
	reports := map[int64]journal.Event{}
	for e, err := range journal.Read(dir) {
		if err != nil {
			return p, damaged(err, runID)
		}
		p.Sum = e.Sum
		switch e.Type {
		case journal.TypeSessionStart:
			p.start = journal.SessionStart{}
			if err := e.Decode(&p.start); err != nil {
				return p, err
			}
			p.Workspace, p.Head = p.start.Workspace, p.start.Head
			p.Verifiers, p.Inputs, p.Standing, p.Circumvention, p.Tree, p.GitTree = []proofVerifier{}, []journal.Input{}, "", nil, "", ""
		case journal.TypeVerify:
			reports[e.Seq] = e
		case journal.TypeCircumvention:
			var c journal.Circumvention
			if err := e.Decode(&c); err != nil {
				return p, err
			}
			p.Circumvention = c.Findings
		case journal.TypeSessionEnd:
			var end journal.SessionEnd
			if err := e.Decode(&end); err != nil {
				return p, err
			}
			p.Standing, p.Exit, p.At = end.Standing, end.Exit, e.TS.UTC().Format("2006-01-02T15:04:05Z")
			for _, one := range end.Proof {
				v := proofVerifier{Proof: one, LevelName: levelNames[one.Level]}
				if report, ok := reports[one.Seq]; ok {
					var r journal.Verify
					if err := report.Decode(&r); err != nil {
						return p, err
					}
					v.Sandbox, v.At = r.Sandbox, report.TS.UTC().Format("2006-01-02T15:04:05Z")
				}
				p.Tree, p.GitTree = one.Tree, one.GitTree
				if one.Inputs != nil {
					p.Inputs = one.Inputs
				}
				v.Inputs, v.GitTree = nil, ""
				p.Verifiers = append(p.Verifiers, v)
			}
		}
	}
	return p, nil
}

func (a *app) proofCommand() *cobra.Command {
	var asJSON, trailer bool
	cmd := &cobra.Command{
		Use:   "proof RUN",
		Short: "Show what proves a run, and check it against a tree",
		Long: `Show what proves a run: each verifier's command, exit code, level, time and the hash of its output, the tree it saw, the
id that git gives that tree, and what lay beside it. --json is a file that belay proof check reads elsewhere; --trailer
is text for a commit message. Ends with 3 where a run has no proof.`,
		Example:           "  belay proof last\n  belay proof last --json > proof.json\n  belay proof check proof.json --rerun\n  git commit -m \"Fix the sum\" -m \"$(belay proof last --trailer)\"",
		Args:              oneRun,
		ValidArgsFunction: a.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.proofOf(args[0])
			if err != nil {
				return err
			}
			switch {
			case asJSON:
				err = a.json(p)
			case len(p.Verifiers) == 0:
				err = a.lines("run " + p.RunID + " has no proof: " + orText(p.Standing, "nothing was claimed for it"))
			case trailer:
				err = a.lines(p.trailer()...)
			default:
				err = a.lines(a.proofLines(p)...)
			}
			if err == nil && (len(p.Verifiers) == 0 || p.Standing != "proved") {
				return outcome(loop.ExitUnverified)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the proof as JSON, for proof check")
	cmd.Flags().BoolVar(&trailer, "trailer", false, "print it as trailers of a commit message")
	cmd.AddCommand(a.proofCheckCommand())
	return cmd
}

func orText(text, other string) string {
	if text == "" {
		return other
	}
	return text
}

func (a *app) proofLines(p proof) []string {
	s := a.screen()
	lines := []string{s.Bold(p.Standing) + s.Dim("  run "+p.RunID+" · "+p.At)}
	for _, v := range p.Verifiers {
		lines = append(lines, fmt.Sprintf("  %s  %s", render.Line(v.Command), s.Dim(fmt.Sprintf("exit %d · %s · %s · log %s", v.Exit, v.LevelName, v.At, v.LogHash))))
		if len(v.TestsChanged) > 0 {
			lines = append(lines, "    the run changed what decides this: "+render.Line(strings.Join(v.TestsChanged, ", ")))
		}
	}
	lines = append(lines, s.Dim("  git tree "+orText(p.GitTree, "unknown")), s.Dim("  tree "+p.Tree))
	for _, i := range p.Inputs {
		lines = append(lines, s.Dim("  beside it: "+render.Line(i.Path)+" "+i.Digest))
	}
	return append(lines, a.evasions(p.Circumvention)...)
}

// evasions tells what a run did to the files that judge it.
func (a *app) evasions(found []journal.Evasion) []string {
	if len(found) == 0 {
		return nil
	}
	s := a.screen()
	lines := []string{s.Bold("what the run did to what judges it:")}
	for _, f := range found {
		where := f.File
		if f.Line > 0 {
			where += fmt.Sprintf(":%d", f.Line)
		}
		lines = append(lines, "  "+f.Kind+"  "+s.Dim(render.Line(where+"  "+f.Text)))
	}
	return lines
}

func (p proof) trailer() []string {
	lines := []string{"Belay-Run: " + p.RunID, "Belay-Standing: " + p.Standing}
	for _, v := range p.Verifiers {
		lines = append(lines, fmt.Sprintf("Belay-Verified: %s (exit %d, %s, log %s)", render.Line(v.Command), v.Exit, v.LevelName, v.LogHash))
	}
	return append(lines, "Belay-Tree: "+orText(p.GitTree, p.Tree), "Belay-Sum: "+p.Sum)
}

// proofChecked is what proof check --json prints.
type proofChecked struct {
	OK       bool             `json:"ok"`
	RunID    string           `json:"run_id"`
	Dir      string           `json:"dir"`
	Tree     string           `json:"tree"` // of dir as it is
	Want     string           `json:"want"`
	Findings []string         `json:"findings"`
	Rerun    *harness.Checked `json:"rerun,omitempty"`
}

func (a *app) proofCheckCommand() *cobra.Command {
	var rerun, asJSON bool
	var dir string
	cmd := &cobra.Command{
		Use:   "check FILE|RUN",
		Short: "Check that a proof belongs to the tree in a folder",
		Long: `Check that a proof belongs to the tree in this folder: that git would commit the very tree that was proved. With --rerun
the proof's commands are run again, as the harness would. Works in any clone of the commit. Ends with 4 where it does not hold.`,
		Example: "  belay proof check last\n  belay proof check proof.json --dir . --rerun",
		Args:    exactly(1, "one proof: a file that `belay proof RUN --json` made, or a run"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, err := a.readProof(args[0])
			if err != nil {
				return err
			}
			got, err := a.checkProof(cmd.Context(), p, dir, rerun)
			if err != nil {
				return err
			}
			if asJSON {
				err = a.json(got)
			} else if got.OK {
				err = a.lines(a.screen().Good("holds") + "  the proof of " + p.RunID + " belongs to this tree (" + got.Tree + ")")
			} else {
				err = a.lines(append([]string{a.screen().Bold("does not hold")}, got.Findings...)...)
			}
			if err == nil && !got.OK {
				return outcome(loop.ExitFailed)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "dir", ".", "the `folder` whose tree is compared")
	cmd.Flags().BoolVar(&rerun, "rerun", false, "run the proof's commands again on that tree")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return cmd
}

// readProof reads a proof from a file, else from a run.
func (a *app) readProof(name string) (proof, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return a.proofOf(name)
	}
	var p proof
	if err := json.Unmarshal(data, &p); err != nil {
		return p, usagef("%s is no proof: %w", name, err)
	}
	if p.Version != 1 || p.RunID == "" {
		return p, usagef("%s is no proof of version 1, as `belay proof RUN --json` makes it", name)
	}
	return p, nil
}

func (a *app) checkProof(ctx context.Context, p proof, dir string, rerun bool) (proofChecked, error) {
	home, err := a.home()
	if err != nil {
		return proofChecked{}, err
	}
	out := proofChecked{RunID: p.RunID, Dir: dir, Findings: []string{}}
	find := func(format string, args ...any) { out.Findings = append(out.Findings, fmt.Sprintf(format, args...)) }
	if dir, err = resolvedFolder(dir, os.Getwd); err != nil {
		return out, usagef("--dir: %w", err)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return out, usagef("--dir: %s is no folder", dir)
	}
	out.Dir = dir
	if out.Want = p.GitTree; out.Want != "" {
		out.Tree, err = harness.GitTree(ctx, dir, home)
	} else {
		out.Want = p.Tree
		out.Tree, err = harness.TreeDigest(ctx, dir, home)
	}
	switch {
	case err != nil:
		return out, err
	case len(p.Verifiers) == 0:
		find("it proves nothing: no verifier passed in run %s", p.RunID)
	case p.Standing != "proved":
		find("the run was not proved: %s", orText(p.Standing, "nothing was claimed for it"))
	case out.Tree == "":
		find("the tree cannot be named: there is no git program")
	case out.Tree != out.Want:
		find("it belongs to another tree: this one is %s, the proved one %s", out.Tree, out.Want)
	}
	if rerun && len(out.Findings) == 0 {
		cfg := harness.Config{Workspace: dir, AllowWide: true}
		for _, v := range p.Verifiers {
			if v.Sandbox != "harness" { // what looks at a change has none to look at in a clone
				cfg.Verify = append(cfg.Verify, v.Command)
			}
		}
		again, err := harness.VerifyNow(ctx, cfg)
		if err != nil {
			return out, err
		}
		out.Rerun = &again
		for _, c := range again.Checks {
			if !c.OK {
				find("`%s` does not pass here: %s", c.Verifier, c.Summary)
			}
		}
	}
	out.OK = len(out.Findings) == 0
	return out, nil
}
