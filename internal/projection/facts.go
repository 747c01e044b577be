package projection

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"belay/journal"
)

// Sections are the parts of every summary, in their order.
var Sections = []string{"Objective and status", "Constraints", "Technical context", "Done, with evidence", "Decisions and why", "User preferences", "Files changed", "Open errors", "Next step"}

// Facts are what events say of a stretch of a run without any model: what a summary must not miss, and a summary of its
// own where no model makes a sound one.
type Facts struct {
	workspace string
	plan      journal.Plan
	task      string
	last      int64
	calls     map[string]string
	items     []fact
}

type fact struct {
	seq        int64
	kind, text string
}

// Apply takes the next event.
func (f *Facts) Apply(e journal.Event) error { return f.Take(e.Seq, e.Type, e) }

// Take is Apply for who has a payload decoded already.
func (f *Facts) Take(seq int64, t journal.Type, e Payload) error {
	f.last = seq
	add := func(kind, format string, args ...any) {
		f.items = append(f.items, fact{seq, kind, strings.ToValidUTF8(fmt.Sprintf(format, args...), "\uFFFD")})
	}
	switch t {
	case journal.TypeSessionStart:
		var p journal.SessionStart
		if err := e.Decode(&p); err != nil {
			return err
		}
		f.workspace = p.Workspace
	case journal.TypeUserMessage:
		var p journal.UserMessage
		if err := e.Decode(&p); err != nil {
			return err
		}
		if p.By == "" {
			if f.task == "" {
				f.task = p.Text
			} else {
				add("said", "%s", p.Text)
			}
		}
	case journal.TypePlan:
		var p journal.Plan
		if err := e.Decode(&p); err != nil {
			return err
		}
		f.plan = p
	case journal.TypeReplan:
		var p journal.Replan
		if err := e.Decode(&p); err != nil {
			return err
		}
		f.plan = p.New
		add("decision", "the plan was changed (%s, event %d)", p.Trigger, seq)
	case journal.TypeToolRequest:
		var p journal.ToolRequest
		if err := e.Decode(&p); err != nil {
			return err
		}
		if f.calls == nil {
			f.calls = map[string]string{}
		}
		f.calls[p.CallID] = strings.TrimSpace(p.Tool + " " + short(p.Summary, 120))
	case journal.TypeToolResult:
		var p journal.ToolResult
		if err := e.Decode(&p); err != nil {
			return err
		}
		call := f.calls[p.CallID]
		delete(f.calls, p.CallID)
		for _, path := range p.Wrote {
			add("file", "%s", f.rel(path))
		}
		switch {
		case p.Status == "error":
			add("error", "%s: %s (event %d)", call, short(p.Summary, 160), seq)
		case len(p.Wrote) > 0:
			add("done", "%s (event %d)", call, seq)
		case len(p.Read) > 0:
			for _, path := range p.Read {
				add("read", "%s", f.rel(path))
			}
		case p.Status == "success" && call != "":
			add("ran", "%s: %s", call, short(p.Summary, 100))
		}
	case journal.TypeVerify:
		var p journal.Verify
		if err := e.Decode(&p); err != nil {
			return err
		}
		word := "failed"
		if p.OK {
			word = "passed"
		}
		add("verify", "`%s` %s: %s (event %d)", p.Verifier, word, short(p.Summary, 160), seq)
	}
	return nil
}

func (f *Facts) rel(path string) string {
	if rel, err := filepath.Rel(f.workspace, path); err == nil && !strings.HasPrefix(rel, "..") && filepath.IsAbs(path) {
		return filepath.ToSlash(rel)
	}
	return path
}

func short(s string, n int) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > n {
		s = strings.ToValidUTF8(s[:n], "") + "…"
	}
	return s
}

// Changed are the files that were written after the event since up to the event until, relative to the workspace, each once.
func (f *Facts) Changed(since, until int64) []string { return f.of(since, until, "file", 0) }

// Ever says whether the run wrote a file.
func (f *Facts) Ever(path string) bool {
	return slices.ContainsFunc(f.items, func(x fact) bool { return x.kind == "file" && x.text == path })
}

// of lists the texts of a kind, each once, where n is above 0 the last n of them.
func (f *Facts) of(since, until int64, kind string, n int) []string {
	var all []string
	seen := map[string]bool{}
	for _, x := range f.items {
		if x.kind == kind && x.seq > since && x.seq <= until && !seen[x.text] {
			seen[x.text] = true
			all = append(all, x.text)
		}
	}
	if n > 0 && len(all) > n {
		all = append([]string{fmt.Sprintf("… %d earlier ones", len(all)-n)}, all[len(all)-n:]...)
	}
	return all
}

// Summary says in the fixed parts what happened after the event since up to the event until. No model makes it.
func (f *Facts) Summary(since, until int64) string {
	var b strings.Builder
	part := func(i int, items []string, none string) {
		fmt.Fprintf(&b, "## %s\n", Sections[i])
		if len(items) == 0 {
			items = []string{none}
		}
		for _, item := range items {
			b.WriteString("- " + strings.ReplaceAll(strings.TrimSpace(item), "\n", "\n  ") + "\n")
		}
	}
	var open []string
	done := f.of(since, until, "done", 15)
	for _, s := range f.plan.Steps {
		if s.Status == journal.StepDone {
			done = append(done, fmt.Sprintf("plan step %s: %s (as the plan says)", s.ID, short(s.Text, 100)))
		} else {
			open = append(open, fmt.Sprintf("step %s is %s: %s", s.ID, s.Status, short(s.Text, 100)))
		}
	}
	part(0, append([]string{"The objective stands in the recap, in full. This was written by the harness from its records."}, open...), "")
	part(1, nil, "As in the recap.")
	part(2, append(f.of(since, until, "read", 12), f.of(since, until, "ran", 8)...), "nothing was recorded")
	part(3, append(done, f.of(since, until, "verify", 5)...), "nothing was changed")
	part(4, append(slices.Clone(f.plan.Decisions), f.of(since, until, "decision", 5)...), "none was recorded")
	said := f.of(since, until, "said", 5)
	for i := range said {
		said[i] = short(said[i], 200)
	}
	part(5, said, "none was said")
	part(6, f.Changed(since, until), "none")
	part(7, append(f.of(since, until, "error", 5), f.plan.ErrorsMade...), "none")
	next := "Go on with the task."
	if s := f.plan.Current(); s.ID != "" {
		next = fmt.Sprintf("Step %s: %s", s.ID, s.Text)
	}
	part(8, []string{next}, "")
	return b.String()
}
