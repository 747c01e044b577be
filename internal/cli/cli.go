// Package cli is the command line of belay: one file a verb, and the only place that turns outcomes into exit codes.
package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"belay/harness"
	"belay/internal/config"
	"belay/internal/family"
	"belay/internal/render"
	"belay/journal"
	"belay/loop"
	"belay/model"
)

// app is what every verb works with: the streams, and the harness.
type app struct {
	in       io.Reader
	out, err io.Writer
	run      starter
	resume   func(ctx context.Context, runID string, cfg harness.Config) (harness.Result, error)
	home     func() (string, error)
	userDir  func() (string, error) // of the person's own configuration
	environ  []string               // as os.Environ
	begun    bool                   // a command has begun: what failed before that is how it was called
}

// Main runs one command line and returns the exit code of the process.
func Main(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 1 && args[0] == family.First { // an eval's agent, see family
		fmt.Fprintln(stderr, "belay:", family.BeFirst(args[1:]))
		return int(loop.ExitFault)
	}
	a := &app{in: stdin, out: stdout, err: stderr, run: harness.Run, resume: harness.Resume, home: harness.DefaultHome, environ: os.Environ(),
		userDir: func() (string, error) { return config.UserDir(os.Getenv) }}
	return a.main(ctx, args)
}

func (a *app) main(ctx context.Context, args []string) (code int) {
	defer func() {
		if v := recover(); v != nil {
			code = a.crashed(v, args)
		}
	}()
	root := a.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil && !a.begun && exitCode(err) != loop.ExitUsage {
		err = usagef("%w. `belay --help` lists the commands", err)
	}
	return a.report(err, wantsJSON(args))
}

// outcome ends a command with an exit code and nothing more to say: everything was said before.
type outcome loop.Exit

func (o outcome) Error() string { return fmt.Sprintf("exit %d", int(o)) }

// exitCode is the one place where an error becomes an exit code.
func exitCode(err error) loop.Exit {
	var (
		done  outcome
		usage *harness.UsageError
		fault *model.Error
	)
	switch {
	case err == nil:
		return loop.ExitProved
	case errors.As(err, &done):
		return loop.Exit(done)
	case errors.As(err, &usage):
		return loop.ExitUsage
	case errors.Is(err, context.Canceled):
		return loop.ExitInterrupted
	case journal.NoSpace(err), errors.Is(err, syscall.EROFS):
		return loop.ExitEnvironment
	case errors.As(err, &fault) && fault.Class == model.Environment:
		return loop.ExitEnvironment
	}
	return loop.ExitFault
}

// report says what went wrong, once, and returns the exit code.
func (a *app) report(err error, asJSON bool) int {
	code := exitCode(err)
	var done outcome
	switch {
	case err == nil || errors.As(err, &done):
	case errors.Is(err, syscall.EPIPE): // the reader has seen enough
	case code == loop.ExitInterrupted && !asJSON:
		fmt.Fprintln(a.err, "belay: interrupted")
	case asJSON:
		f := failure{Error: render.Clean(err.Error()), Exit: int(code)}
		if begun := (*fault)(nil); errors.As(err, &begun) {
			f.Error, f.RunID = render.Clean(begun.err.Error()), begun.runID
		}
		a.json(f)
	default:
		text := strings.TrimSpace(render.Clean(err.Error()))
		fmt.Fprintln(a.err, "belay: "+text)
	}
	return int(code)
}

// failure is what `--json` prints where there is no result.
type failure struct {
	Error string `json:"error"`
	Exit  int    `json:"exit"`
	RunID string `json:"run_id,omitempty"` // where a run had started
}

// json prints one value as indented JSON.
func (a *app) json(v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("encode JSON: %w", err)
	}
	_, err := a.out.Write(b.Bytes())
	return err
}

// wantsJSON looks for --json where flags may not have been parsed at all.
func wantsJSON(args []string) bool {
	for _, arg := range args {
		switch arg {
		case "--json", "--json=true":
			return true
		case "--":
			return false
		}
	}
	return false
}

func usagef(format string, args ...any) error {
	return &harness.UsageError{Err: fmt.Errorf(format, args...)}
}

func (a *app) root() *cobra.Command {
	cobra.EnableCommandSorting = false
	root := &cobra.Command{
		Use:   `belay ["task"]`,
		Short: "Run AI agents that you can trust",
		Long: `belay runs a tool-calling model in a loop that you can trust. Every action is judged by a policy, contained by
a sandbox and recorded in a journal. "Finished" means proved by belay, never claimed by the model.`,
		Example: `  belay demo                                   watch a run from start to proof; needs no model and no network
  belay doctor                                 see what works on this machine
  belay run "make the tests pass"              work on a task in this folder
  belay resume last --max-turns 80             go on with a run that was paused
  belay show last                              read what happened`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          a.noSuchCommand,
	}
	f, plain := a.sessionFlags(root)
	root.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().NFlag() == 0 && len(args) == 0 && !(render.IsTerminal(a.in) && render.IsTerminal(a.out)) {
			return cmd.Help()
		}
		return a.converse(cmd.Context(), f, cmd.Flags().Changed, *plain, strings.Join(args, " "), "")
	}
	root.CompletionOptions.HiddenDefaultCmd = false
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetFlagErrorFunc(flagError)
	root.AddCommand( // one a line, in the order of the help
		a.demoCommand(),
		a.runCommand(),
		a.loopCommand(),
		a.resumeCommand(),
		a.rewindCommand(),
		a.forkCommand(),
		a.runsCommand(),
		a.showCommand(),
		a.diffCommand(),
		a.checkpointCommand(),
		a.effectsCommand(),
		a.compensateCommand(),
		a.verifyCommand(),
		a.proofCommand(),
		a.contextCommand(),
		a.planCommand(),
		a.compactCommand(),
		a.memoryCommand(),
		a.replayCommand(),
		a.journalCommand(),
		a.rehearseCommand(),
		a.modelCommand(),
		a.initCommand(),
		a.trustCommand(),
		a.configCommand(),
		a.policyCommand(),
		a.sandboxCommand(),
		a.doctorCommand(),
		a.evalCommand(),
		a.toolCommand(),
		a.answerCommand(),
		a.auditCommand(),
		a.attachCommand(),
		a.versionCommand(),
	)
	root.SetHelpFunc(a.help)
	root.SetHelpCommand(a.helpCommand())
	root.InitDefaultCompletionCmd()
	if completion, _, err := root.Find([]string{"completion"}); err == nil {
		completion.Args, completion.RunE = a.noSuchCommand, root.RunE
	}
	a.watch(root)
	return root
}

// watch notes when a command begins, on all commands below cmd.
func (a *app) watch(cmd *cobra.Command) {
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			a.begun = true
			return run(cmd, args)
		}
	}
	for _, sub := range cmd.Commands() {
		a.watch(sub)
	}
}

// helpCommand is cobra's, but a topic that does not exist is an error.
func (a *app) helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "help [command]",
		Short:   "Explain a command",
		Example: "  belay help run",
		RunE: func(cmd *cobra.Command, args []string) error {
			topic, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return a.noSuchCommand(topic, rest)
			}
			return topic.Help()
		},
	}
}

// noSuchCommand is the Args of a command that only has subcommands.
func (a *app) noSuchCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		return usagef("there is no command %q. Did you mean `%s %s`?", args[0], cmd.CommandPath(), near[0])
	}
	if !cmd.HasParent() && len(args) == 1 && strings.Contains(args[0], " ") && render.IsTerminal(a.in) && render.IsTerminal(a.out) {
		return nil // a task, for a session
	}
	if strings.Contains(args[0], " ") && !cmd.HasParent() {
		return usagef("there is no command %q. To give belay a task: belay run %q", args[0], args[0])
	}
	return usagef("there is no command %q. `%s --help` lists the commands", args[0], cmd.CommandPath())
}

// exactly wants n arguments and says what they are.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == n:
			return nil
		case n == 0:
			return usagef("`%s` takes no argument, and got %q", cmd.CommandPath(), args[0])
		}
		return usagef("`%s` takes %s, and got %s. For example:\n%s", cmd.CommandPath(), what, number(len(args)), cmd.Example)
	}
}

// between wants min to max arguments and says what they are.
func between(min, max int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= min && len(args) <= max {
			return nil
		}
		return exactly(min, what)(cmd, args)
	}
}

func number(n int) string {
	if n == 0 {
		return "none"
	}
	return fmt.Sprint(n)
}

// self is how this program can be started again by the person who reads a hint.
func self() string {
	path, err := os.Executable()
	if err == nil && builtByGoRun(path) {
		return "go run ./cmd/belay"
	}
	if arg0 := os.Args[0]; strings.ContainsRune(arg0, filepath.Separator) && !strings.ContainsAny(arg0, " '\"$`") {
		return arg0
	}
	return "belay"
}

// builtByGoRun recognises an executable that `go run` made: below go-build…/ in a temporary folder, or in the
// build cache in a folder <64 hex>-d.
func builtByGoRun(path string) bool {
	dir := filepath.Dir(path)
	if hash, ok := strings.CutSuffix(filepath.Base(dir), "-d"); ok && len(hash) == 64 && strings.Trim(hash, "0123456789abcdef") == "" {
		return true
	}
	return strings.HasPrefix(filepath.Base(filepath.Dir(filepath.Dir(dir))), "go-build") && filepath.Base(dir) == "exe"
}
