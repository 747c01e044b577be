// Package harness builds a working agent from a Config: the one place that knows every part, and what an embedder calls.
package harness

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"belay/effect"
	"belay/handoff"
	"belay/internal/memory"
	"belay/internal/projection"
	"belay/internal/redact"
	"belay/internal/sandbox"
	"belay/internal/snapshot"
	"belay/internal/verifier"
	"belay/journal"
	"belay/loop"
	"belay/message"
	"belay/model"
	"belay/policy"
	"belay/tool"
	"belay/tools"
	"belay/verify"
)

// Config says what to run. Task is needed; everything else has a default.
type Config struct {
	Task      string
	RunID     string // of the run; "" makes one
	Workspace string // folder to work in; "" is the current one
	AllowWide bool   // let Workspace be / or the home directory

	OtherRepository bool // let a resumed run go on where its repository is another one

	Home     string                // belay's state; "" is DefaultHome()
	Model    string                // see model.ParseSpec; "" takes a local server that lists a model
	Roles    Roles                 // the models of the other parts
	Effort   string                // how much the model is to think, one of Efforts; "" leaves it to the model
	Known    map[string]model.Info // by "provider:name": window and price, instead of what belay knows
	Client   model.Client          // used instead of Model where it is set
	Verify   []string              // shell commands that must pass; none means: detect
	Mode     policy.Mode           // "" is policy.Edit
	Bounds   journal.Bounds        // zero fields take DefaultBounds
	Checks   []verify.Check        // that the configuration describes
	Hidden   []string              // folders outside the workspace whose files are laid over it for verification only
	Refusals int                   // completions refused that end a run; 0 is 3
	Tools    []tool.Tool           // in addition to the standard ones
	Only     []string              // names of the only tools that the model gets; none means: all
	KeyFiles map[string]string     // by provider: a file with its API key, where it is not in its usual place
	Protect  []string              // files and folders of the workspace that no agent changes, relative to it
	Version  string                // of the program, for the journal
	Sandbox  string                // one of Sandboxes: on, full, best-effort, off; "" is on
	Local    []uint16              // ports of services on this machine that commands can reach
	Domains  []string              // hosts that commands can reach, besides those of the rules

	ContextPolicy []byte // JSON: when a context is made smaller; nil is the preset for the model's window
	Fresh         bool   // let a resumed run begin an empty context, from map, state and handoff alone

	// Rules reads what people have written down about actions in a workspace; nil is nothing.
	Rules func(workspace string) (*policy.Rules, error)

	// Judge decides about every action; nil is policy.Judge. It may be stricter, and is called with nothing
	// that the built-in policy has not allowed.
	Judge func(policy.Action, policy.Situation) policy.Decision
	// Verifiers are asked in addition to the commands in Verify.
	Verifiers []verify.Verifier

	// MoneyMustHold refuses a model whose price is unknown: a bound in dollars that a person gave must hold.
	// Otherwise such a run is announced as degraded.
	MoneyMustHold bool

	wrapTools func(*tool.Registry) (*tool.Registry, error) // what is put around the tools, nil is nothing

	// Ask puts a question to a person who is there; nil is a run without one, in which what needs consent is refused, or, with
	// PauseToAsk, waits in the journal for Answer. Remember saves rules for always.
	Ask        func(context.Context, journal.Question) (journal.Answer, error)
	PauseToAsk bool
	Remember   func(rules []string) error
	// ApprovePlan has a person approve the plan before anything is changed; a run without one waits for that.
	ApprovePlan bool

	RefuseToAsk bool          // of a run that is resumed: no longer PauseToAsk
	Notify      NotifyCommand // tells a person of questions; zero is nothing

	Inbox func() []string // what the person says while it works, told at the next turn; nil is nothing

	// HookFiles are settings files that may name hooks, the least specific first; Hooks are those in Go.
	HookFiles []HookFile
	Hooks     []Hook

	ShareWorkspace bool   // work in a workspace in which another run works
	EnvFiles       string // what checkpoints do with files of secrets: "" or "encrypt", or "leave_out"
	RewindAfter    int    // failed verifications after which the files go back to the last green checkpoint; 0 is never

	Observe  func(journal.Event) // each event, once it is stored
	Delta    func(model.Event)   // pieces of a reply as they arrive
	Progress func(string)        // what takes long right now
}

// DefaultBounds are the limits of a run for which nobody gave others.
var DefaultBounds = journal.Bounds{Turns: 40, Tokens: 2_000_000, Money: 3 * message.Dollar, WallMS: 30 * 60 * 1000, MiB: 4096}

// Result is a run's outcome and where to read about it.
type Result struct {
	RunID     string `json:"run_id"`
	Dir       string `json:"dir"` // of the run, absolute
	Workspace string `json:"workspace"`
	loop.Outcome
}

// UsageError is a mistake in what the caller asked for: nothing was started.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// Run works on the task until it is proved, given up or out of bounds. An error means that there is no
// sound outcome: a *UsageError before anything started, else the harness's own fault.
func Run(ctx context.Context, cfg Config) (Result, error) {
	runID := cmp.Or(cfg.RunID, journal.NewRunID())
	a, err := build(ctx, cfg, runID)
	if err != nil {
		return Result{}, err
	}
	return a.begin(ctx, runID, cfg, loop.Run)
}

// begin makes the run's journal and has what is to be done in it done.
func (a *agent) begin(ctx context.Context, runID string, cfg Config, do looper) (Result, error) {
	opening, err := a.secrets.Entries(append(a.opening(cfg), mentions(a.place.Workspace, cfg.Task)...))
	if err != nil {
		return Result{}, err
	}
	log, events, err := journal.Create(a.home, runID, nil, opening...)
	if err != nil {
		return Result{}, err
	}
	defer log.Close()
	cfg.show(events)
	return a.work(ctx, log, do)
}

// looper is what works on a log that has begun.
type looper func(context.Context, loop.Config) (loop.Outcome, error)

// show hands what is stored to whoever observes the run.
func (cfg Config) show(events []journal.Event) {
	if cfg.Observe == nil {
		return
	}
	for _, e := range events {
		cfg.Observe(e)
	}
}

// work runs the loop on the log and keeps the note it leaves beside the journal.
func (a *agent) work(ctx context.Context, log *journal.File, do looper) (Result, error) {
	defer a.box.Close()
	defer a.closeFiles()
	if a.store != nil {
		a.loop.Checkpoints = keeper{a.store, log.RunID()}
	}
	say := a.loop.Progress
	if say == nil {
		say = func(string) {}
	}
	a.loop.Log = patient{Log: a.secrets.Log(log), ctx: ctx, say: say, sleep: pause}
	a.results.log = a.loop.Log
	a.loop.Plan = func(p journal.Plan) error {
		return os.WriteFile(filepath.Join(log.Dir(), planName), []byte(a.secrets.Text(PlanMarkdown(p))), 0o600)
	}
	a.loop.Hash = func(path string) string { return fileHash(a.place.Workspace, path) }
	a.loop.Handoff = func(n handoff.Note) (string, error) {
		return handoffName, os.WriteFile(filepath.Join(log.Dir(), handoffName), []byte(a.secrets.Text(string(n.Markdown()))), 0o600)
	}
	out, err := do(ctx, a.loop)
	out.Reason, out.Summary = a.secrets.Text(out.Reason), a.secrets.Text(out.Summary)
	return Result{RunID: log.RunID(), Dir: log.Dir(), Workspace: a.place.Workspace, Outcome: out}, err
}

// handoffName is the note for the next reader, in the run's directory.
const handoffName = "handoff.md"

// agent is what build makes: a loop that lacks only its log, and what its journal says about it.
type agent struct {
	home     string
	place    tool.Place
	box      *sandbox.Sandbox
	level    sandbox.Level
	mode     policy.Mode
	system   string
	specs    []model.Tool
	spec     string     // of the model, to ask for again
	roles    Roles      // the same of the other parts
	above    []*repoMap // instruction files of the person and of the folders above
	warnings []string
	repo     *repoMap // nil where the repository has none
	secrets  *redact.Redactor
	base     *base // what the workspace was; nil without a run
	results  *results
	loop     loop.Config
	network  network
	trifecta *journal.Trifecta
	store    *snapshot.Store // nil where the run changes no files
	unlock   func() error    // of the workspace
}

// isolated says whether commands run in a sandbox; where they do not, the run is read-only.
func (a *agent) isolated() bool {
	return a.level.Isolation != sandbox.None && a.level.Isolation != sandbox.Off
}

// build checks the configuration and assembles the parts. Nothing it does outlives it but caches.
func build(ctx context.Context, cfg Config, runID string) (*agent, error) {
	if strings.TrimSpace(cfg.Task) == "" {
		return nil, &UsageError{errors.New(`the task is empty: say what to do, as in belay run "fix the failing test"`)}
	}
	var err error
	a := &agent{mode: cfg.Mode, results: &results{}}
	if a.mode == "" {
		a.mode = policy.Edit
	}
	if a.home, err = stateDir(cfg.Home); err != nil {
		return nil, &UsageError{err}
	}
	if a.place, err = findWorkspace(cfg.Workspace, a.home, cfg.AllowWide); err != nil {
		return nil, &UsageError{err}
	}
	var rules *policy.Rules
	if cfg.Rules != nil {
		if rules, err = cfg.Rules(a.place.Workspace); err != nil {
			return nil, &UsageError{err}
		}
	}
	rules = allowDomains(rules, cfg.Domains)
	if a.secrets, err = openSecrets(a.home, runID, cfg.KeyFiles, injected(rules, os.Getenv)...); err != nil {
		return nil, err
	}
	client, spec, err := chooseModel(ctx, cfg)
	if err != nil {
		return nil, &UsageError{err}
	}
	if cfg.MoneyMustHold && client.Info().Price == nil {
		return nil, &UsageError{fmt.Errorf("the price of %s is unknown, so a bound in dollars cannot hold: leave it out, and bound the tokens", client.Info().ID())}
	}
	a.spec = spec
	a.roles = cfg.Roles.absolute()
	roles, err := chooseRoles(cfg)
	if err != nil {
		return nil, &UsageError{err}
	}
	notes := memory.Store{Home: a.home, Workspace: a.place.Workspace, Run: runID}
	contextPolicy, err := ParseContextPolicy(cfg.ContextPolicy, client.Info().ContextWindow)
	if err != nil {
		return nil, err
	}
	registry, err := registry(cfg, a.results.tool(), tools.Memory{Edit: a.memoryEdit(notes)})
	if err == nil {
		registry, err = a.secrets.Tools(registry)
	}
	if err == nil && cfg.wrapTools != nil {
		registry, err = cfg.wrapTools(registry)
	}
	if err != nil {
		return nil, &UsageError{err}
	}
	if cfg.Progress != nil {
		cfg.Progress("preparing the sandbox")
	}
	box, err := a.isolate(cfg, rules)
	if err != nil {
		return nil, err
	}
	tree := snapshot.New(a.place.Workspace, a.home)
	a.base = &base{}
	verifiers, err := a.verifiers(cfg, box)
	if err != nil {
		return nil, &UsageError{err}
	}
	var lines []string
	for _, v := range verifiers {
		lines = append(lines, v.Name())
	}
	for _, c := range cfg.Checks {
		lines = append(lines, c.Run)
	}
	decides := verifier.DecidesFor(append(lines, verifier.Recipes(a.place.Workspace)...)...)
	*a.base = *newBase(a.place.Workspace, a.home, runID, decides)
	var checks []string
	for _, v := range verifiers {
		checks = append(checks, v.Name())
	}
	if a.repo, err = readMap(a.place.Workspace); err != nil {
		return nil, &UsageError{err}
	}
	above, warnings := readInstructions(a.place.Workspace, a.place.Home)
	a.above = above
	if a.repo != nil {
		warnings = append(warnings, a.repo.warning()...)
	}
	a.warnings = warnings
	facts := promptFacts{Workspace: a.place.Workspace, Tools: names(registry.Specs()), Sandboxed: a.isolated(), Verify: checks, Map: a.repo}
	if a.system, err = systemPrompt(facts); err != nil {
		return nil, fmt.Errorf("system prompt: %w", err)
	}
	a.system += sections(above)
	if slices.Contains(facts.Tools, "Memory") {
		a.system += remembered(notes)
	}
	for _, spec := range registry.Specs() {
		a.specs = append(a.specs, model.Tool{Name: spec.Name, Description: spec.Description, Schema: spec.Schema})
	}
	if err := a.keepFiles(cfg, runID); err != nil {
		return nil, err
	}
	situation := policy.Situation{Mode: a.mode, Workspace: a.place.Workspace, Home: a.place.Home, StateDir: a.home,
		Sandboxed: a.isolated(), Off: a.level.Isolation == sandbox.Off, Headless: cfg.Ask == nil, Rules: rules}
	if a.store != nil {
		situation.Covered = a.store.Covered
	}
	a.trifecta = review(registry.Specs(), situation, a.isolated(), len(cfg.Local) > 0)
	hooks, err := a.hooks(cfg, runID, situation)
	if err != nil {
		return nil, err
	}
	a.loop = loop.Config{
		Hooks: hooks, PauseToAsk: cfg.PauseToAsk, ApprovePlan: cfg.ApprovePlan, Inbox: cfg.Inbox, StepVerifier: a.stepVerifier(cfg, box, registry, situation), Remember: cfg.Remember,
		Ask:  a.asker(cfg, runID),
		Left: a.left(runID), Notify: a.notify(cfg, runID), Auto: auto(a.mode, rules),
		Client: client, Light: roles.light, Judging: roles.judge, Fallback: roles.fallback, Tools: registry, Place: a.place, Verifiers: verifiers, Tree: look(tree, decides),
		Judge:       judge(cfg.Judge, situation),
		Env:         func(g effect.Grant) tool.Env { return a.secrets.Env(box.Env(g, a.place.Dir), len(g.Network) > 0) },
		Connections: a.network.take,
		Evidence:    a.base.evidence(), Refusals: cfg.Refusals, RewindAfter: cfg.RewindAfter,
		Bounds: withDefaults(cfg.Bounds), Context: contextPolicy, Nested: nested(a.place.Workspace), Observe: cfg.Observe, Delta: cfg.Delta, Progress: cfg.Progress,
	}
	return a, nil
}

// protected are the paths and patterns of the workspace that the rules keep read-only in the sandbox.
func protected(rules *policy.Rules) []string {
	if rules == nil {
		return nil
	}
	var paths []string
	for _, r := range rules.Protect {
		if !strings.HasPrefix(r.Spec, "//") && !strings.HasPrefix(r.Spec, "~") {
			p := strings.TrimPrefix(strings.TrimPrefix(r.Spec, "./"), "/")
			if filepath.IsLocal(p) && filepath.Clean(p) != "." {
				paths = append(paths, p)
			}
		}
	}
	return paths
}

// registry holds the tools that the model gets; own stand in the place of standard ones of their name.
func registry(cfg Config, own ...tool.Tool) (*tool.Registry, error) {
	standard := tools.Standard()
	for i, t := range standard {
		for _, mine := range own {
			if mine.Spec().Name == t.Spec().Name {
				standard[i] = mine
			}
		}
	}
	all, err := tool.NewRegistry(append(standard, cfg.Tools...)...)
	if err != nil || len(cfg.Only) == 0 {
		return all, err
	}
	var chosen []tool.Tool
	for _, name := range cfg.Only {
		t, ok := all.Lookup(name)
		if !ok {
			return nil, fmt.Errorf("there is no tool %q; the tools are %s", name, strings.Join(names(all.Specs()), ", "))
		}
		chosen = append(chosen, t)
	}
	for _, spec := range all.Specs() { // without these a run could not end, nor be remembered
		if (spec.Signal != tool.NoSignal || spec.Name == "SearchResult") && !slices.Contains(cfg.Only, spec.Name) {
			t, _ := all.Lookup(spec.Name)
			chosen = append(chosen, t)
		}
	}
	return tool.NewRegistry(chosen...)
}

// ToolNames lists the standard tools that Config.Only may choose from. Those that end a run are always there.
func ToolNames() []string {
	var names []string
	for _, t := range tools.Standard() {
		if spec := t.Spec(); spec.Signal == tool.NoSignal {
			names = append(names, spec.Name)
		}
	}
	return names
}

// judge puts an embedder's own judgement behind the built-in one: it can refuse more, and allow nothing more.
func judge(own func(policy.Action, policy.Situation) policy.Decision, situation policy.Situation) func(policy.Action) policy.Decision {
	return func(a policy.Action) policy.Decision {
		d := policy.Judge(a, situation)
		if own == nil || d.Verdict != effect.Allow {
			return d
		}
		if stricter := own(a, situation); stricter.Verdict != effect.Allow {
			d.Verdict, d.Rule, d.Reason = stricter.Verdict, stricter.Rule, stricter.Reason
		}
		return d
	}
}

// verifiers are the commands a person named, else the one that the project's files suggest.
func (a *agent) verifiers(cfg Config, box *sandbox.Sandbox) ([]verify.Verifier, error) {
	lines, named := cfg.Verify, len(cfg.Verify) > 0
	if !named && len(cfg.Verifiers) == 0 && len(cfg.Checks) == 0 {
		if found := verifier.Detect(a.place.Workspace); len(found) > 0 {
			lines = []string{found[0].Line}
		}
	}
	var all []verify.Verifier
	for _, line := range lines {
		all = append(all, a.command(cfg, box, verifier.Command{Line: line, Chosen: named}))
	}
	configured, err := a.checks(cfg, box)
	if err != nil {
		return nil, err
	}
	all = append(append(all, configured...), cfg.Verifiers...)
	for i, v := range all {
		all[i] = a.secrets.Verifier(v)
	}
	return all, nil
}

// opening is how a run's journal begins.
func (a *agent) opening(cfg Config) []journal.Entry {
	info := a.loop.Client.Info()
	specs, err := json.Marshal(a.specs)
	if err != nil {
		panic(err) // every schema was parsed before
	}
	start := journal.SessionStart{
		Version: cfg.Version, Workspace: a.place.Workspace, Head: headOf(a.place.Workspace),
		Model: journal.ModelInfo{ID: info.ID(), Spec: a.spec, Effort: cfg.Effort, Light: a.roles.Light, Judge: a.roles.Judge, Fallback: a.roles.Fallback, ContextWindow: info.ContextWindow, Price: info.Price, Scripted: info.Scripted},
		OnAsk: map[bool]string{true: "pause"}[cfg.PauseToAsk], Approve: map[bool]string{true: "plan"}[cfg.ApprovePlan], Trifecta: a.trifecta,
		Mode: string(a.mode), Sandbox: a.level.Name(), Projection: projection.Version,
		System: a.system, Tools: specs, Bounds: a.loop.Bounds, Protect: cfg.Protect,
		Context: policyJSON(a.loop.Context), Fresh: cfg.Fresh,
	}
	if a.repo != nil {
		start.Instructions = []journal.Instruction{{File: a.repo.Name, Hash: a.repo.Hash}}
	}
	for _, m := range a.above {
		start.Instructions = append(start.Instructions, journal.Instruction{File: m.Name, Hash: m.Hash})
	}
	for _, v := range a.loop.Verifiers {
		start.Verify = append(start.Verify, v.Name())
		start.Named = start.Named || v.Named()
	}
	entries := []journal.Entry{{Type: journal.TypeSessionStart, Payload: start}}
	entries = append(entries, a.losses()...)
	if info.Price == nil {
		entries = append(entries, journal.Entry{Type: journal.TypeDegraded, Payload: journal.Degraded{Component: "budget", Loss: "the price of " + info.ID() + " is unknown, so money is not bounded; turns, tokens and time are"}})
	}
	for _, w := range a.warnings {
		entries = append(entries, journal.Entry{Type: journal.TypeDegraded, Payload: journal.Degraded{Component: "instructions", Loss: w}})
	}
	if cfg.Task != "" {
		entries = append(entries, journal.Entry{Type: journal.TypeUserMessage, Payload: journal.UserMessage{Text: cfg.Task}})
	}
	return entries
}

// look shows the loop the workspace, with the files that decide what passes.
func look(tree *snapshot.Digester, decides func(string) bool) func(context.Context) (verify.Tree, error) {
	return func(ctx context.Context) (verify.Tree, error) {
		t, err := tree.Look(ctx, decides)
		return verify.Tree{Digest: t.Digest, Stamp: t.Stamp, Tests: t.Files}, err
	}
}

// TreeDigest is the digest of a workspace as it is now: the one that a proof names.
func TreeDigest(ctx context.Context, workspace, home string) (string, error) {
	return snapshot.New(workspace, home).Digest(ctx)
}

func withDefaults(b journal.Bounds) journal.Bounds {
	d := DefaultBounds
	return journal.Bounds{Turns: cmp.Or(b.Turns, d.Turns), Tokens: cmp.Or(b.Tokens, d.Tokens), Money: cmp.Or(b.Money, d.Money), WallMS: cmp.Or(b.WallMS, d.WallMS), MiB: cmp.Or(b.MiB, d.MiB)}
}
