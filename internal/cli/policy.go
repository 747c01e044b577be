package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"belay/effect"
	"belay/harness"
	"belay/internal/config"
	"belay/internal/permissions"
	"belay/internal/render"
	bash "belay/internal/shell"
	"belay/policy"
	"belay/tool"
)

func (a *app) policyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy check|explain|test|show|judge",
		Short: "Say what the policy makes of a command, and test the policy file",
		Long: `The policy judges every action: its effects give a class from 1 (reads) to 5 (configuration), and class, mode and the
rules of permissions.yaml give the verdict: allow, ask or deny. Rules are read from /etc/belay, from the user's folder and from the
project's .belay; a project that is not trusted can only tighten.`,
		Example: `  belay policy explain "git push --force"
  belay policy test
  belay policy show`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.policyCheckCommand(), a.policyExplainCommand(), a.policyTestCommand(), a.policyShowCommand(), a.policyJudgeCommand())
	return cmd
}

// policyFlags say in which situation a command is judged.
type policyFlags struct {
	mode, cwd, home, sandbox, file string
	json                           bool
}

func (f *policyFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.mode, "mode", string(policy.Edit), "how much a run may do without asking: plan, manual, edit or autonomous")
	flags.StringVar(&f.cwd, "cwd", "", "the `folder` that is the workspace and where commands run; it need not exist (default: the current one)")
	flags.StringVar(&f.home, "home", "", "the person's home `folder` (default: yours)")
	flags.StringVar(&f.sandbox, "sandbox", "on", "on: a sandbox bounds unknown effects; off: nothing does")
	flags.StringVar(&f.file, "policy", "", "judge by this policy `file` alone")
}

// situation reads the flags and the policy files.
func (f *policyFlags) situation() (policy.Situation, tool.Place, []string, error) {
	s := policy.Situation{Headless: true}
	if s.Mode = policy.Mode(strings.ToLower(f.mode)); !slices.Contains(modes, s.Mode) {
		return s, tool.Place{}, nil, usagef("there is no mode %q: it is plan, manual, edit or autonomous", f.mode)
	}
	switch f.sandbox {
	case "on":
		s.Sandboxed = true
	case "off":
		s.Off = true
	default:
		return s, tool.Place{}, nil, usagef("--sandbox is on or off, not %q", f.sandbox)
	}
	var err error
	if s.Workspace, err = resolvedFolder(f.cwd, os.Getwd); err != nil {
		return s, tool.Place{}, nil, usagef("--cwd: %w", err)
	}
	if s.Home, err = resolvedFolder(f.home, os.UserHomeDir); err != nil {
		return s, tool.Place{}, nil, usagef("--home: %w", err)
	}
	if s.StateDir, err = harness.DefaultHome(); err != nil {
		return s, tool.Place{}, nil, err
	}
	var layers []permissions.Layer
	if f.file != "" {
		file, err := permissions.ReadFile(f.file, s.Workspace)
		if err != nil {
			return s, tool.Place{}, nil, usagef("%w", err)
		}
		layers = []permissions.Layer{{File: file, Trusted: true}}
	} else if layers, err = policyLayers(s.Workspace); err != nil {
		return s, tool.Place{}, nil, err
	}
	rules, notices := permissions.Merge(layers...)
	s.Rules = &rules
	return s, tool.Place{Workspace: s.Workspace, Dir: s.Workspace, Home: s.Home}, notices, nil
}

// resolvedFolder is a folder that need not exist, absolute and with its links resolved.
func resolvedFolder(dir string, other func() (string, error)) (string, error) {
	if dir == "" {
		var err error
		if dir, err = other(); err != nil {
			return "", err
		}
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return tool.ResolveLinks(abs), nil
}

// policyLayers reads the policy files that hold for a workspace.
func policyLayers(workspace string) ([]permissions.Layer, error) {
	user, err := config.UserDir(os.Getenv)
	if err != nil {
		user = "" // no home: nobody has written anything down
	}
	src := permissions.Sources{UserDir: user, Workspace: workspace}
	if _, err := os.Stat(workspace); err == nil {
		project, err := config.ReadProject(workspace)
		if err != nil {
			return nil, usagef("%w", err)
		}
		if data, ok := project.Files[permissions.FileName]; ok {
			src.Project = data
			if data == nil {
				src.Project = []byte{}
			}
			src.Trusted = config.Trust{Dir: user}.Check(project).Trusted
		}
	}
	layers, err := permissions.Load(src)
	if err != nil {
		return nil, usagef("%w", err)
	}
	return layers, nil
}

// rules are the merged rules for a run. What an untrusted project may not decide is told on standard error.
func (a *app) rules(workspace string) (*policy.Rules, error) {
	layers, err := policyLayers(workspace)
	if err != nil {
		return nil, err
	}
	rules, notices := permissions.Merge(layers...)
	for _, n := range notices {
		fmt.Fprintln(a.err, "belay: "+render.Clean(n))
	}
	return &rules, nil
}

// judgement is what `belay policy check` prints of one command.
type judgement struct {
	ID      json.RawMessage `json:"id,omitempty"`
	Class   effect.Class    `json:"class"`
	Verdict effect.Verdict  `json:"verdict"`
	Rule    string          `json:"rule"`
	Effects []shownEffect   `json:"effects"`
	Why     string          `json:"why"`
	Runs    string          `json:"runs"`
}

type shownEffect struct {
	Kind   effect.Kind `json:"kind"`
	Target string      `json:"target"`
	why    string
}

// judgeLine judges a command line. What cannot be read is refused, whatever went wrong.
func judgeLine(line string, s policy.Situation, place tool.Place) (j judgement) {
	defer func() {
		if v := recover(); v != nil {
			j = unreadable(fmt.Sprintf("unreadable: the reader failed: %v", v))
		}
	}()
	p, err := bash.Analyze(line, place)
	if err != nil {
		var u *bash.Unreadable
		if errors.As(err, &u) {
			return unreadable("unreadable: " + u.What + ". " + u.Hint)
		}
		return unreadable("unreadable: " + err.Error())
	}
	args, err := json.Marshal(map[string]string{"command": line})
	if err != nil {
		return unreadable("unreadable: " + err.Error())
	}
	d := policy.Judge(policy.Action{Tool: "Bash", Args: args, Commands: p.Parts, Effects: append(effect.Set{{Kind: effect.Exec, Target: "bash"}}, p.Effects...)}, s)
	j = judgement{Class: d.Class, Verdict: d.Verdict, Rule: d.Rule, Effects: []shownEffect{}, Why: d.Reason, Runs: p.Text}
	for _, e := range p.Effects {
		j.Effects = append(j.Effects, shownEffect{e.Kind, e.Target, e.Why})
	}
	return j
}

func unreadable(why string) judgement {
	return judgement{Class: effect.ClassConfiguration, Verdict: effect.Deny, Rule: "unreadable", Effects: []shownEffect{}, Why: why}
}

func (a *app) policyCheckCommand() *cobra.Command {
	var f policyFlags
	var stdin bool
	cmd := &cobra.Command{
		Use:   "check COMMAND",
		Short: "Judge a command line, or many from standard input",
		Long: `Judge a command line without running it, and print one line of JSON: class, verdict, the rule that said so, the effects,
why, and the text that would run. With --stdin each line of standard input is {"id": …, "cmd": "…"}, and so is the order of the answers.`,
		Example: `  belay policy check "git push --force"
  belay policy check --sandbox off "make test"
  belay policy check --stdin --cwd /project < commands.jsonl`,
		Args: between(0, 1, "a command line in quotes, or --stdin"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if stdin == (len(args) == 1) {
				return usagef("policy check takes either a command line in quotes or --stdin")
			}
			s, place, notices, err := f.situation()
			if err != nil {
				return err
			}
			for _, n := range notices {
				fmt.Fprintln(a.err, "belay: "+n)
			}
			out := bufio.NewWriter(a.out)
			enc := json.NewEncoder(out)
			enc.SetEscapeHTML(false)
			if !stdin {
				if err := enc.Encode(judgeLine(args[0], s, place)); err != nil {
					return err
				}
				return out.Flush()
			}
			in := bufio.NewReader(a.in)
			for {
				line, readErr := in.ReadString('\n')
				if strings.TrimSpace(line) != "" {
					if err := enc.Encode(judgeRecord(line, s, place)); err != nil {
						return err
					}
				}
				if in.Buffered() == 0 || readErr != nil {
					if err := out.Flush(); err != nil {
						return err
					}
				}
				if readErr != nil {
					return nil
				}
			}
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&stdin, "stdin", false, "read commands from standard input")
	cmd.Flags().BoolVar(&f.json, "json", true, "print JSON, which it always does")
	return cmd
}

// judgeRecord judges one line of --stdin.
func judgeRecord(line string, s policy.Situation, place tool.Place) judgement {
	var record struct {
		ID  json.RawMessage `json:"id"`
		Cmd *string         `json:"cmd"`
	}
	if err := json.Unmarshal([]byte(line), &record); err != nil || record.Cmd == nil {
		j := unreadable(`unreadable: this is no {"id": …, "cmd": "…"}`)
		j.ID = record.ID
		return j
	}
	j := judgeLine(*record.Cmd, s, place)
	j.ID = record.ID
	return j
}

func (a *app) policyExplainCommand() *cobra.Command {
	var f policyFlags
	cmd := &cobra.Command{
		Use:     "explain COMMAND",
		Short:   "Say in words what a command line would do, and what the policy makes of it",
		Example: `  belay policy explain "curl -s https://example.com | sh"`,
		Args:    between(1, 1, "a command line in quotes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, place, notices, err := f.situation()
			if err != nil {
				return err
			}
			for _, n := range notices {
				fmt.Fprintln(a.err, "belay: "+n)
			}
			j := judgeLine(args[0], s, place)
			if f.json {
				return a.json(j)
			}
			var b strings.Builder
			fmt.Fprintf(&b, "%s: class %d (%s), by %s\n  %s\n", j.Verdict, int(j.Class), j.Class, j.Rule, j.Why)
			if j.Runs != "" {
				fmt.Fprintf(&b, "\nWhat would run:\n  %s\n", strings.ReplaceAll(j.Runs, "\n", "\n  "))
			}
			if len(j.Effects) > 0 {
				b.WriteString("\nWhat it would do:\n")
			}
			for _, e := range j.Effects {
				target := e.Target
				if target == "" {
					target = "(known only when it runs)"
				}
				fmt.Fprintf(&b, "  %-9s %s", e.Kind, target)
				if e.why != "" {
					fmt.Fprintf(&b, "   %s", e.why)
				}
				b.WriteByte('\n')
			}
			_, err = fmt.Fprint(a.out, render.Clean(b.String()))
			return err
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
	return cmd
}

func (a *app) policyTestCommand() *cobra.Command {
	var f policyFlags
	cmd := &cobra.Command{
		Use:   "test [FILE]",
		Short: "Run the tests that a policy file holds",
		Example: `  belay policy test
  belay policy test .belay/permissions.yaml`,
		Long: "Run the tests under `tests:` of a policy file; without FILE, of every file that holds here. The exit code is 4 when one fails.",
		Args: between(0, 1, "perhaps a policy file"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				f.file = args[0]
			}
			s, place, _, err := f.situation()
			if err != nil {
				return err
			}
			layers := []permissions.Layer{}
			if f.file != "" {
				file, err := permissions.ReadFile(f.file, s.Workspace)
				if err != nil {
					return usagef("%w", err)
				}
				layers = append(layers, permissions.Layer{File: file})
			} else if layers, err = policyLayers(s.Workspace); err != nil {
				return err
			}
			ran, failed := 0, 0
			for _, l := range layers {
				for _, t := range l.File.Tests {
					ran++
					if what := runTest(t, s, place); what != "" {
						failed++
						fmt.Fprintf(a.out, "%s:%d: %s\n", l.File.Path, t.Line, what)
					}
				}
			}
			if ran == 0 {
				return usagef("no policy file that holds here has tests: write some under tests:, or name a FILE")
			}
			fmt.Fprintf(a.out, "%d tests, %d failed\n", ran, failed)
			if failed > 0 {
				return outcome(4)
			}
			return nil
		},
	}
	f.register(cmd)
	return cmd
}

// runTest says what is wrong about a test; "" is nothing.
func runTest(t permissions.Test, s policy.Situation, place tool.Place) string {
	if t.Mode != "" {
		s.Mode = t.Mode
	}
	var class effect.Class
	var verdict effect.Verdict
	var rule, what string
	if t.Bash != "" {
		j := judgeLine(t.Bash, s, place)
		class, verdict, rule, what = j.Class, j.Verdict, j.Rule, t.Bash
	} else {
		kind, p := effect.Read, t.Path
		if t.Tool == "Write" {
			kind = effect.Write
		}
		switch {
		case strings.HasPrefix(p, "~/"):
			p = filepath.Join(s.Home, p[2:])
		case !filepath.IsAbs(p):
			p = filepath.Join(s.Workspace, p)
		}
		d := policy.Judge(policy.Action{Tool: t.Tool, Effects: effect.Set{{Kind: kind, Target: tool.ResolveLinks(filepath.Clean(p))}}}, s)
		class, verdict, rule, what = d.Class, d.Verdict, d.Rule, strings.ToLower(t.Tool)+" "+t.Path
	}
	if (t.Class == 0 || t.Class == class) && (t.Verdict == "" || t.Verdict == verdict) {
		return ""
	}
	want := []string{}
	if t.Class != 0 {
		want = append(want, fmt.Sprintf("class %d", int(t.Class)))
	}
	if t.Verdict != "" {
		want = append(want, string(t.Verdict))
	}
	return fmt.Sprintf("%q is class %d, %s by %s; expected %s", what, int(class), verdict, rule, strings.Join(want, ", "))
}

func (a *app) policyShowCommand() *cobra.Command {
	var f policyFlags
	cmd := &cobra.Command{
		Use:   "show",
		Short: "Show the merged rules, and where each comes from",
		Example: `  belay policy show
  belay policy show --json --cwd ./project`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, _, notices, err := f.situation()
			if err != nil {
				return err
			}
			type shown struct {
				List string `json:"list"`
				Rule string `json:"rule"`
				From string `json:"from"`
			}
			all := []shown{}
			for _, list := range []struct {
				name  string
				rules []policy.Rule
			}{{"deny", s.Rules.Deny}, {"ask", s.Rules.Ask}, {"allow", s.Rules.Allow}, {"protect", s.Rules.Protect}, {"network", s.Rules.Network}} {
				for _, r := range list.rules {
					all = append(all, shown{list.name, r.Text, r.From})
				}
			}
			for _, c := range s.Rules.Classify {
				all = append(all, shown{"classify", fmt.Sprintf("%s: class %d", c.Text, int(c.Class)), c.From})
			}
			prose := s.Rules.Prose
			for _, list := range []struct {
				name      string
				sentences []string
			}{{"environment", prose.Environment}, {"allow", prose.Allow}, {"soft_deny", prose.SoftDeny}, {"hard_deny", prose.HardDeny}} {
				for _, sentence := range list.sentences {
					all = append(all, shown{"judge." + list.name, sentence, prose.From[sentence]})
				}
			}
			if f.json {
				return a.json(struct {
					Rules   []shown  `json:"rules"`
					Notices []string `json:"notices"`
				}{all, append([]string{}, notices...)})
			}
			for _, n := range notices {
				fmt.Fprintln(a.err, "belay: "+n)
			}
			if len(all) == 0 {
				_, err := fmt.Fprintln(a.out, "no rules: the built-in defaults hold")
				return err
			}
			for _, r := range all {
				if _, err := fmt.Fprintf(a.out, "%-9s %-40s %s\n", r.List, render.Clean(r.Rule), r.From); err != nil {
					return err
				}
			}
			return nil
		},
	}
	f.register(cmd)
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON")
	return cmd
}
