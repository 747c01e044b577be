package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"belay/effect"
	"belay/harness"
	"belay/internal/render"
	"belay/internal/sandbox"
	"belay/journal"
	"belay/tool"
)

// Exit codes of `belay sandbox` that are not the command's own.
const (
	exitTimeout       = 124
	exitSandboxFailed = 125
)

// sandboxFlags say what a command gets.
type sandboxFlags struct {
	readOnly, json       bool
	write, read, protect []string
	mem, disk            string
	pids, openFiles      int
	files                int64
	cpu, timeout         time.Duration
	level                string
	local                []uint16
	domains              []string
	debug                bool
}

func (a *app) sandboxCommand() *cobra.Command {
	var f sandboxFlags
	cmd := &cobra.Command{
		Use:   "sandbox [flags] -- CMD [ARG]...",
		Short: "Run a command in belay's sandbox, by itself",
		Long: `Run a command in the sandbox that belay's runs use. The current folder is the workspace: writable, unless --ro is given,
apart from what would run outside later (git's hooks and settings, editor, CI and agent settings). Nothing else of this
machine can be written, of its files only programs can be read, and there is no network but the hosts of --allow-domain. Every
process of the command ends with it. What the command writes is passed on; belay adds nothing but, where a limit ended it, a
line that says so, and with --allow-domain a line for each host that was asked for.`,
		Annotations: map[string]string{exitStatus: "the command's own · 124 --timeout ended it · 125 the sandbox could not be had · 126, 127 the command cannot be run, or found · 128+n signal n ended it · 2 usage"},
		Example: `  belay sandbox -- make test
  belay sandbox --ro -- grep -rn TODO .
  belay sandbox --mem 512m --pids 64 --timeout 60s -- ./untrusted.sh
  belay sandbox --json --protect 'golden/**' -- npm test
  belay sandbox --allow-domain proxy.golang.org --allow-domain sum.golang.org -- go mod download`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("`belay sandbox` needs a command, after --. For example:\n%s", cmd.Example)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return a.sandbox(cmd.Context(), f, args) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.SetInterspersed(false) // what follows the command is its own
	flags.BoolVar(&f.readOnly, "ro", false, "show the current folder read-only")
	flags.StringArrayVar(&f.write, "rw", nil, "let the command write to this `folder` too; can be repeated")
	flags.StringArrayVar(&f.read, "read", nil, "let the command read this `folder` or file too; can be repeated")
	flags.StringArrayVar(&f.protect, "protect", nil, "keep what matches this `glob` in the current folder as it is; can be repeated")
	flags.Var(&ports{&f.local}, "allow-local", "let the command reach the service on this `port` of this machine; can be repeated")
	flags.StringArrayVar(&f.domains, "allow-domain", nil, "let the command reach this `host` over HTTP and HTTPS, or all below one (*.cdn.example.com); can be repeated. What can be reached can be sent to")
	flags.BoolVar(&f.debug, "allow-debug", false, "let the command trace its own processes, for debuggers")
	flags.StringVar(&f.mem, "mem", "", "end the command when it uses more memory than this `size`, such as 512m (default: three quarters of this machine's)")
	flags.IntVar(&f.pids, "pids", 0, "let the command have at most `N` processes and threads (default 4096)")
	flags.DurationVar(&f.cpu, "cpu", 0, "end the command when it has used this much processor `time`, such as 30s (default: no limit)")
	flags.DurationVar(&f.timeout, "timeout", 0, "end the command after this `duration`, such as 60s (default: no limit)")
	flags.StringVar(&f.disk, "disk", "", "end the command when it has written more than this `size` to the disk, such as 100m (default 16g)")
	flags.Int64Var(&f.files, "files", 0, "end the command when it has made more than `N` files (default 500000)")
	flags.IntVar(&f.openFiles, "open-files", 0, "let each process have at most `N` files open (default 65536)")
	flags.StringVar(&f.level, "sandbox", "on", "on: namespaces at least; full: also cgroups and Landlock, or refuse; best-effort: with less than full, the folder is read-only")
	flags.BoolVar(&f.json, "json", false, "print a JSON report that holds what the command wrote")
	return cmd
}

// sandboxReport is what --json prints.
type sandboxReport struct {
	Exit       int      `json:"exit"`
	Signal     string   `json:"signal,omitempty"`
	TimedOut   bool     `json:"timed_out"`
	Limit      string   `json:"limit,omitempty"` // which limit ended the command
	DurationMS int64    `json:"duration_ms"`
	Stdout     string   `json:"stdout"`
	Stderr     string   `json:"stderr"`
	Truncated  bool     `json:"truncated"` // stdout or stderr was longer than 4 MiB: the beginning is kept
	Denied     []string `json:"denied"`
	Sandbox    string   `json:"sandbox"` // full, no cgroup, no landlock
	Error      string   `json:"error,omitempty"`

	Connections []journal.Connection `json:"connections"`
}

func (a *app) sandbox(ctx context.Context, f sandboxFlags, argv []string) error {
	cfg, grant, err := f.config(a.environ)
	if err != nil {
		return err
	}
	failed := func(err error) error {
		if f.json {
			a.json(sandboxReport{Exit: exitSandboxFailed, Denied: []string{}, Connections: []journal.Connection{}, Error: render.Clean(err.Error())})
		} else {
			fmt.Fprintln(a.err, "belay: "+render.Clean(err.Error()))
		}
		return outcome(exitSandboxFailed)
	}
	if cfg.Home, err = a.home(); err != nil {
		return failed(err)
	}
	connections := []journal.Connection{}
	cfg.Network.Connected = func(list []sandbox.Connection) { connections = append(connections, harness.Connections(list)...) }
	box, err := sandbox.New(cfg)
	if err != nil {
		return failed(err)
	}
	defer box.Close()
	level := box.Level()
	if level.Isolation == sandbox.None {
		return failed(fmt.Errorf("there is no sandbox here, and the command was not run: %s", level.Reason))
	}

	if level.Name() != "full" {
		switch f.level {
		case "full":
			return failed(fmt.Errorf("the sandbox here is not full but: %s; the command was not run. --sandbox best-effort runs it read-only", level.Name()))
		case "best-effort":
			grant.Workspace = effect.ReadOnly
		}
	}

	ctx, caught, stop := untilSignal(ctx)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	call := sandbox.Call{Command: tool.Command{Argv: argv, Timeout: f.timeout}}
	var out, diagnostics beginning
	if f.json {
		call.Output, call.Errors = &out, &diagnostics
	} else {
		call.Output, call.Errors = &until{a.out, cancel}, &until{a.err, cancel}
	}
	if !empty(a.in) {
		call.Stdin = a.in
	}
	exit, err := box.Call(ctx, grant, call)
	switch code := exit.Code; {
	case caught() != 0:
		exit.Code, exit.Signal = 128+int(caught()), caught().String()
	case err != nil && ctx.Err() != nil: // nobody reads what the command writes
		exit.Code, exit.Signal = 128+int(syscall.SIGPIPE), syscall.SIGPIPE.String()
	case err != nil:
		return failed(err)
	case exit.TimedOut:
		exit.Code = exitTimeout
	default:
		exit.Code = code
	}
	if f.json {
		return errors.Join(a.json(sandboxReport{Exit: exit.Code, Signal: exit.Signal, TimedOut: exit.TimedOut, DurationMS: exit.Duration.Milliseconds(),
			Stdout: out.String(), Stderr: diagnostics.String(), Truncated: out.cut || diagnostics.cut,
			Denied: append([]string{}, exit.Denied...), Limit: limitOf(exit), Sandbox: level.Name(), Connections: connections}), endWith(exit.Code))
	}
	if exit.TimedOut {
		fmt.Fprintf(a.err, "belay: ended after %s, as --timeout says\n", shortDuration(f.timeout))
	}
	for _, d := range exit.Denied {
		if len(connections) == 0 || !strings.HasPrefix(d, "connect ") {
			fmt.Fprintln(a.err, "belay: "+render.Clean(d))
		}
	}
	for _, line := range render.Connections(connections) {
		fmt.Fprintln(a.err, "belay: "+line)
	}
	return endWith(exit.Code)
}

// limitOf is the limit that ended a command, "" where none did.
func limitOf(exit tool.Exit) string {
	for _, d := range exit.Denied {
		if rest, ok := strings.CutPrefix(d, "limit "); ok {
			name, _, _ := strings.Cut(rest, ":")
			return name
		}
	}
	return ""
}

// endWith ends the process with a command's exit code.
func endWith(code int) error {
	if code == 0 {
		return nil
	}
	return outcome(code)
}

func (f *sandboxFlags) config(environ []string) (sandbox.Config, effect.Grant, error) {
	cfg := sandbox.Config{Environ: environ, Read: f.read, Write: f.write, Protect: f.protect}
	grant := effect.Grant{Workspace: effect.ReadWrite}
	if f.readOnly {
		grant.Workspace = effect.ReadOnly
	}
	var err error
	if cfg.Workspace, err = os.Getwd(); err != nil {
		return cfg, grant, usagef("the current folder: %w", err)
	}
	for _, size := range []struct {
		name, text string
		to         *int64
	}{{"mem", f.mem, &cfg.Limits.Memory}, {"disk", f.disk, &cfg.Limits.Disk}} {
		if size.text == "" {
			continue
		}
		if *size.to, err = bytesOf(size.text); err != nil {
			return cfg, grant, usagef("--%s: %w", size.name, err)
		}
	}
	for _, n := range []struct {
		name  string
		value float64
	}{{"pids", float64(f.pids)}, {"cpu", float64(f.cpu)}, {"timeout", float64(f.timeout)}, {"files", float64(f.files)}, {"open-files", float64(f.openFiles)}} {
		if n.value < 0 {
			return cfg, grant, usagef("--%s must be above 0", n.name)
		}
	}
	cfg.Limits.Processes, cfg.Limits.CPU, cfg.Limits.Files, cfg.Limits.OpenFiles = f.pids, f.cpu, f.files, f.openFiles
	cfg.Local = f.local
	for _, host := range f.domains {
		if err := sandbox.CheckHost(host); err != nil {
			return cfg, grant, usagef("--allow-domain: %w", err)
		}
	}
	cfg.Network.Allow, grant.Network = f.domains, f.domains
	cfg.Debug = f.debug
	switch f.level {
	case "on", "full", "best-effort":
	default:
		return cfg, grant, usagef("--sandbox is on, full or best-effort, not %q", f.level)
	}
	return cfg, grant, nil
}

var sizeForm = regexp.MustCompile(`^(?i)([0-9]+(?:\.[0-9]+)?)([kmgt]?)(?:i?b)?$`)

// bytesOf reads a size such as 512m, 1.5G or 4096, in powers of 1024.
func bytesOf(text string) (int64, error) {
	m := sizeForm.FindStringSubmatch(strings.TrimSpace(text))
	if m == nil {
		return 0, fmt.Errorf("%q is no size: write a number and k, m, g or t, such as 512m", text)
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0, err
	}
	n *= math.Pow(1024, float64(strings.Index(" kmgt", strings.ToLower(m[2]))*btoi(m[2] != "")))
	if n < 1 || n > 1<<62 {
		return 0, fmt.Errorf("%s is out of range", text)
	}
	return int64(n), nil
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// untilSignal cancels the context at the first signal that ends programs, and says which it was.
func untilSignal(ctx context.Context) (_ context.Context, caught func() syscall.Signal, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	pipe := make(chan os.Signal, 1)
	signal.Notify(pipe, syscall.SIGPIPE)
	var mu sync.Mutex
	var which syscall.Signal
	done := make(chan struct{})
	go func() {
		select {
		case s := <-signals:
			mu.Lock()
			which, _ = s.(syscall.Signal)
			mu.Unlock()
			cancel()
		case <-done:
		}
	}()
	return ctx, func() syscall.Signal { mu.Lock(); defer mu.Unlock(); return which }, func() {
		signal.Stop(signals)
		signal.Stop(pipe)
		close(done)
		cancel()
	}
}

// until passes output on and, where nobody takes it any more, ends the command, as SIGPIPE would.
type until struct {
	to     io.Writer
	cancel func()
}

func (u *until) Write(p []byte) (int, error) {
	n, err := u.to.Write(p)
	if err != nil {
		u.cancel()
	}
	return n, err
}

// keptBytes is how much of stdout, and of stderr, a JSON report holds.
const keptBytes = 4 << 20

// beginning keeps the beginning of what is written.
type beginning struct {
	bytes.Buffer
	cut bool
}

func (k *beginning) Write(p []byte) (int, error) {
	take := min(len(p), keptBytes-k.Len())
	k.cut = k.cut || take < len(p)
	k.Buffer.Write(p[:take])
	return len(p), nil
}

// empty says that nothing can be read, so that nobody need wait for it.
func empty(in io.Reader) bool {
	f, ok := in.(*os.File)
	if !ok {
		return in == nil
	}
	info, err := f.Stat()
	if err != nil {
		return true
	}
	null, err := os.Stat(os.DevNull)
	return err == nil && os.SameFile(info, null)
}
