package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"belay/internal/projection"
	"belay/journal"
	"belay/loop"
	"belay/tool"
	"belay/tools"
)

// ParseContextPolicy reads a context policy in JSON. What it does not say is as in the preset for the window, 0 where that
// is unknown.
func ParseContextPolicy(data []byte, window int64) (projection.Policy, error) {
	base := projection.PolicyFor(window)
	if len(data) == 0 {
		return base, nil
	}
	p, err := projection.ParsePolicy(data, base)
	if err != nil {
		return p, &UsageError{err}
	}
	return p, nil
}

// planName is the plan as people read it, in the run's directory.
const planName = "plan.md"

// PlanMarkdown is a plan as people read it.
func PlanMarkdown(p journal.Plan) string {
	var b strings.Builder
	b.WriteString("# Plan\n\n## Objective\n\n" + strings.TrimSpace(p.Objective) + "\n\n## Steps\n\n")
	for _, s := range p.Steps {
		mark := map[string]string{journal.StepDone: "x", journal.StepActive: ">", journal.StepBlocked: "!"}[s.Status]
		if mark == "" {
			mark = " "
		}
		fmt.Fprintf(&b, "- [%s] %s: %s\n  - verify: %s\n", mark, s.ID, s.Text, s.Verify)
	}
	for _, part := range []struct {
		title string
		items []string
	}{{"Constraints", p.Constraints}, {"Decisions", p.Decisions}, {"Assumptions", p.Assumptions}, {"Errors made", p.ErrorsMade}, {"References", p.References}} {
		if len(part.items) == 0 {
			continue
		}
		b.WriteString("\n## " + part.title + "\n\n")
		for _, item := range part.items {
			b.WriteString("- " + strings.ReplaceAll(strings.TrimSpace(item), "\n", "\n  ") + "\n")
		}
	}
	return b.String()
}

// PlanOf is the plan that a run has now, with the objective that holds; ok says whether a plan was made.
func PlanOf(events func(func(journal.Event, error) bool)) (plan journal.Plan, ok bool, err error) {
	task := ""
	for e, err := range events {
		if err != nil {
			return plan, ok, err
		}
		switch e.Type {
		case journal.TypeUserMessage:
			var m journal.UserMessage
			if err := e.Decode(&m); err != nil {
				return plan, ok, err
			}
			if m.By == "" && task == "" {
				task = m.Text
			}
		case journal.TypePlan:
			plan = journal.Plan{}
			if err := e.Decode(&plan); err != nil {
				return plan, ok, err
			}
			ok = true
		case journal.TypeReplan:
			var r journal.Replan
			if err := e.Decode(&r); err != nil {
				return plan, ok, err
			}
			plan, ok = r.New, true
		}
	}
	if plan.Objective == "" {
		plan.Objective = task
	}
	return plan, ok, nil
}

// EditPlan replaces the plan of a run by a person's. It is a replan event: the next request says so.
func EditPlan(home, runID string, next journal.Plan) error {
	dir := filepath.Join(journal.RunsDir(home), runID)
	log, err := journal.Open(dir, nil)
	if err != nil {
		if errors.Is(err, journal.ErrBusy) || errors.Is(err, fs.ErrNotExist) {
			return &UsageError{err}
		}
		return err
	}
	defer log.Close()
	secrets, err := openSecrets(home, runID, nil)
	if err != nil {
		return err
	}
	old, _, err := PlanOf(log.Events())
	if err != nil {
		return err
	}
	session := 1
	for e, err := range log.Events() {
		if err != nil {
			return err
		}
		session = max(session, e.Session)
	}
	if _, err := secrets.Log(log).Append(journal.Entry{Type: journal.TypeReplan, Session: session, Payload: journal.Replan{Old: old, New: next, Trigger: "the user edited it", By: "user"}}); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, planName), []byte(secrets.Text(PlanMarkdown(next))), 0o600)
}

// Compact summarises the older part of a run's context now. Done says whether there was anything to gain.
func Compact(ctx context.Context, runID string, cfg Config, focus string) (done bool, err error) {
	home, err := stateDir(cfg.Home)
	if err != nil {
		return false, &UsageError{err}
	}
	cfg.Home = home
	log, err := journal.Open(filepath.Join(journal.RunsDir(home), runID), nil)
	if err != nil {
		if errors.Is(err, journal.ErrBusy) || errors.Is(err, fs.ErrNotExist) {
			return false, &UsageError{err}
		}
		return false, err
	}
	defer log.Close()
	secrets, err := openSecrets(home, runID, cfg.KeyFiles)
	if err != nil {
		return false, err
	}
	past, err := recall(log, secrets)
	if err != nil {
		return false, err
	}
	a, err := build(ctx, past.fill(cfg), runID)
	if err != nil {
		return false, err
	}
	defer a.box.Close()
	a.loop.Log = a.secrets.Log(log)
	return loop.Compact(ctx, a.loop, focus)
}

// results finds stored results for the tool that looks into them. It gets its log when the run has one.
type results struct{ log journal.Log }

// tool is SearchResult over what is stored.
func (r *results) tool() tool.Tool { return tools.SearchResult{Stored: r.find} }

func (r *results) find(ref string) (string, bool, error) {
	if r.log == nil {
		return "", false, nil
	}
	ref = strings.TrimSpace(ref)
	for e, err := range r.log.Events() {
		if err != nil {
			return "", false, err
		}
		if e.Type != journal.TypeToolResult {
			continue
		}
		var p journal.ToolResult
		if err := e.Decode(&p); err != nil {
			return "", false, err
		}
		if p.CallID != ref && (p.Raw == nil || len(ref) < 8 || !strings.HasPrefix(p.Raw.Hash, ref)) {
			continue
		}
		if p.Raw == nil {
			return p.Text, true, nil
		}
		whole, err := r.log.Blob(*p.Raw)
		return string(whole), err == nil, err
	}
	return "", false, nil
}

func policyJSON(p projection.Policy) json.RawMessage {
	b, err := json.Marshal(p)
	if err != nil {
		panic(err) // numbers and a name
	}
	return b
}

// freshNote is what a context begins with that knows nothing: the note that the one before it has left.
func freshNote(dir string) (string, error) {
	note, err := os.ReadFile(filepath.Join(dir, handoffName))
	if errors.Is(err, fs.ErrNotExist) {
		return "", &UsageError{errors.New("this run has left no handoff, so a fresh context would know nothing: resume it without --fresh")}
	}
	if err != nil {
		return "", fmt.Errorf("read the handoff: %w", err)
	}
	return "You go on with a task that another context began. You know nothing of it but what stands here and in the files. This is its handoff, written by the harness; look at the tree before you rely on it.\n\n" + string(note), nil
}

// PlanFlaw says what is wrong with the form of a plan, "" where nothing is.
func PlanFlaw(p journal.Plan) string { return tools.PlanFlaw(p) }
