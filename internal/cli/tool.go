package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"belay/effect"
	"belay/harness"
	"belay/internal/render"
	"belay/loop"
	"belay/policy"
	"belay/tool"
)

func (a *app) toolCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "tool",
		Short:   "Look at the tools a model gets, and call them yourself",
		Example: "  belay tool ls\n  belay tool call Read --args '{\"file_path\": \"go.mod\"}'",
		Args:    a.noSuchCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.toolListCommand(), a.toolCallCommand())
	return cmd
}

// toolFacts is what is told about a tool.
type toolFacts struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
	Classes     []effect.Class  `json:"classes"`
	Budget      int             `json:"budget_tokens"`
	Cut         string          `json:"cut"`
	Replay      string          `json:"replay"`
	NeedsKey    bool            `json:"needs_idempotency_key,omitempty"`
	Signal      bool            `json:"acts_on_the_run,omitempty"`
	OnDemand    bool            `json:"on_demand"` // would be told to a model only when it asks
}

// toldMost is how many tools a model is told of from the start.
const toldMost = 20

func toolsFacts() []toolFacts {
	var all []toolFacts
	for i, s := range harness.ToolSpecs() {
		f := toolFacts{Name: s.Name, Description: s.Description, Schema: s.Schema, Classes: s.Classes, Budget: s.Budget, Cut: string(s.Cut), Replay: string(s.Replay),
			NeedsKey: s.NeedsKey, Signal: s.Signal != tool.NoSignal, OnDemand: i >= toldMost}
		if f.Budget == 0 {
			f.Budget = tool.DefaultBudget
		}
		if f.Cut == "" {
			f.Cut = string(tool.CutBoth)
		}
		all = append(all, f)
	}
	return all
}

func (a *app) toolListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "ls",
		Short:   "List the tools with their classes and budgets",
		Long:    "List the tools with the classes their calls can have, how many tokens of a result a model reads and which part of a longer one\nstays, and what happens to a call whose outcome a crash has lost. --json adds descriptions and schemas as a model gets them.",
		Example: "  belay tool ls\n  belay tool ls --json | jq '.[] | select(.name == \"Grep\").schema'",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			all := toolsFacts()
			if asJSON {
				return a.json(all)
			}
			rows := [][]string{{"TOOL", "CLASSES", "TOKENS", "CUT", "AFTER A CRASH", "WHAT IT DOES"}}
			for _, f := range all {
				first, _, _ := strings.Cut(f.Description, "\n")
				classes := strings.Trim(fmt.Sprint(intsOf(f.Classes)), "[]")
				if f.OnDemand {
					f.Name += " (on demand)"
				}
				rows = append(rows, []string{f.Name, classes, fmt.Sprint(f.Budget), f.Cut, f.Replay, render.Line(first)})
			}
			return a.screen().Table(a.out, rows)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func intsOf(classes []effect.Class) []int {
	var ints []int
	for _, c := range classes {
		ints = append(ints, int(c))
	}
	return ints
}

func (a *app) toolCallCommand() *cobra.Command {
	var args []string
	var file, cwd, mode string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "call NAME --args JSON",
		Short: "Call a tool as the loop would: planned, judged, in the sandbox, recorded",
		Long: `Call a tool as the loop would: its call is planned and judged, runs in the sandbox under the grant of the verdict, and is
recorded in a run of its own. Printed is what a model would read; --json prints the whole envelope, also where the call is
refused (status "error", code "DENIED"). The exit code is 0 wherever there is an envelope.

Several --args call the same tool again in the same run, one after the other. --calls FILE makes different calls: a JSON object
{"tool": NAME, "args": {…}} on each line; "-" reads standard input. Then --json prints an array.`,
		Example: `  belay tool call Grep --args '{"pattern": "func main"}'
  belay tool call Bash --args '{"command": "ls"}' --cwd /tmp/project --json
  belay tool call --calls calls.jsonl --json | jq '.[].status'`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			var names []string
			for _, s := range harness.ToolSpecs() {
				names = append(names, s.Name)
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, names []string) error {
			calls, err := a.toolCalls(names, args, file)
			if err != nil {
				return err
			}
			f := runFlags{cfg: harness.Config{Workspace: cwd, AllowWide: true}, mode: mode}
			cfg, err := a.configure(&f, func(flag string) bool { return flag == "mode" && cmd.Flags().Changed("mode") })
			if err != nil {
				return err
			}
			cfg.Version, cfg.Rules = version(), a.rules
			ctx, _, stop := interruptible(cmd.Context(), func(text string) { fmt.Fprintln(a.err, text) })
			defer stop()
			envelopes, result, err := harness.Call(ctx, cfg, calls)
			if err != nil {
				return faulty(result, err)
			}
			switch {
			case asJSON && len(calls) == 1 && file == "" && len(envelopes) == 1:
				err = a.json(envelopes[0])
			case asJSON:
				err = a.json(envelopes)
			default:
				err = a.tellEnvelopes(envelopes)
			}
			if err == nil && result.Exit == loop.ExitInterrupted {
				return outcome(result.Exit)
			}
			if err == nil && len(envelopes) < len(calls) {
				return fmt.Errorf("only %d of %d calls were made: %s", len(envelopes), len(calls), result.Reason)
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&args, "args", nil, "the arguments, a `JSON` object; may be repeated")
	flags.StringVar(&file, "calls", "", "make the calls that `FILE` holds, one JSON object a line")
	flags.StringVar(&cwd, "cwd", "", "`folder` to work in, which is the workspace (default: the current one)")
	flags.StringVar(&mode, "mode", string(policy.Edit), "what may happen without asking: plan, manual, edit or autonomous")
	flags.BoolVar(&asJSON, "json", false, "print the envelope as JSON")
	a.completeFlags(cmd)
	return cmd
}

// toolCalls are the calls that a command line asks for.
func (a *app) toolCalls(names, args []string, file string) ([]harness.ToolCall, error) {
	switch {
	case file != "" && (len(names) > 0 || len(args) > 0):
		return nil, usagef("--calls names the tools itself: give no tool and no --args beside it")
	case file != "":
		return a.readCalls(file)
	case len(names) == 0:
		return nil, usagef("name a tool; `%s tool ls` lists them", self())
	case len(args) == 0:
		return nil, usagef("--args is missing: the arguments as a JSON object, {} where there are none")
	}
	var calls []harness.ToolCall
	for _, text := range args {
		calls = append(calls, harness.ToolCall{Name: names[0], Args: json.RawMessage(text)})
	}
	return calls, nil
}

func (a *app) readCalls(file string) ([]harness.ToolCall, error) {
	in, err := a.input(file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	lines := bufio.NewReader(in)
	var calls []harness.ToolCall
	for number := 1; ; number++ {
		line, err := lines.ReadString('\n')
		if strings.TrimSpace(line) != "" {
			var call harness.ToolCall
			if bad := json.Unmarshal([]byte(line), &call); bad != nil {
				return nil, usagef("%s:%d: %w", file, number, bad)
			}
			if call.Name == "" {
				return nil, usagef("%s:%d: it names no tool", file, number)
			}
			if len(call.Args) == 0 {
				call.Args = json.RawMessage("{}")
			}
			calls = append(calls, call)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, usagef("read %s: %w", file, err)
		}
	}
	if len(calls) == 0 {
		return nil, usagef("%s holds no call", file)
	}
	return calls, nil
}

func (a *app) tellEnvelopes(envelopes []harness.Envelope) error {
	s := a.screen()
	for _, e := range envelopes {
		status := s.Good(string(e.Status))
		if e.Status != tool.Success {
			status = s.Bad(string(e.Status))
		}
		about := fmt.Sprintf("class %d %s", e.Class, e.Verdict)
		if e.Summary != "" {
			about += " · " + render.Line(e.Summary)
		}
		if err := a.lines(s.Bold(e.Tool)+" "+status+s.Dim("  "+about), strings.TrimRight(render.Clean(e.Text), "\n")); err != nil {
			return err
		}
	}
	return nil
}
