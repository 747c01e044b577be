package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"belay/effect"
	"belay/internal/render"
	"belay/journal"
)

// decided is one decision of a run: what was to happen, what was decided, by which rule, by whom and when.
type decided struct {
	RunID   string         `json:"run_id"`
	Seq     int64          `json:"seq"`
	When    journal.Time   `json:"when"`
	Kind    string         `json:"kind"` // call, escalate, misjudged
	CallID  string         `json:"call_id,omitempty"`
	Tool    string         `json:"tool,omitempty"`
	Summary string         `json:"summary,omitempty"`
	Class   effect.Class   `json:"class,omitempty"`
	Verdict effect.Verdict `json:"verdict,omitempty"`
	Rule    string         `json:"rule,omitempty"`
	By      string         `json:"by,omitempty"`
	Who     string         `json:"who,omitempty"` // the account of a person who answered
	Effects effect.Set     `json:"effects,omitempty"`
	Reason  string         `json:"reason,omitempty"`

	Asked      *journal.Question  `json:"asked,omitempty"`
	Answer     *journal.Answer    `json:"answer,omitempty"`
	Remembered []string           `json:"remembered,omitempty"` // rules
	Judged     *journal.Judgement `json:"judged,omitempty"`
	Denied     []string           `json:"denied,omitempty"` // by the sandbox
}

func (d decided) refused() bool { return d.Kind != "call" || d.Verdict != effect.Allow }

// audited is what --json prints.
type audited struct {
	Runs      int       `json:"runs"`
	Decisions []decided `json:"decisions"`
	Counts    struct {
		Calls       int         `json:"calls"`
		Allowed     int         `json:"allowed"`
		Denied      int         `json:"denied"`
		Waiting     int         `json:"waiting"`
		Questions   int         `json:"questions"`
		Judged      int         `json:"judged"`
		Blocked     int         `json:"blocked_by_judge"`
		Escalations int         `json:"escalations"`
		Faults      int         `json:"classifier_faults"`
		ByClass     map[int]int `json:"by_class"`
	} `json:"counts"`
	Damaged []string `json:"damaged,omitempty"` // runs that could be read in part only
}

func (a *app) auditCommand() *cobra.Command {
	var all, asJSON, denied bool
	var class int
	cmd := &cobra.Command{
		Use:   "audit [RUN...]",
		Short: "List what was decided about every action, by which rule, by whom and when",
		Long: `List what was decided about every action of runs: class, verdict, the rule that said so, who decided (policy, hook, judge
or a person, with the account), what was asked and answered, which rules were remembered, what was escalated, and where the
sandbox refused what the plan of a call had not named, which is a fault of belay's own classifier.

Counts are over all decisions of the runs; --denied and --class only choose what is listed.`,
		Example: `  belay audit last
  belay audit --all --denied
  belay audit last --class 4 --json | jq -r '.decisions[].summary'`,
		ValidArgsFunction: a.completeRun,
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case all == (len(args) > 0):
				return usagef("audit takes runs, such as `%s audit last`, or --all", self())
			case class < 0 || class > 5:
				return usagef("--class is from 1 to 5")
			}
			dirs, err := a.auditDirs(args, all)
			if err != nil {
				return err
			}
			report := audited{Decisions: []decided{}}
			report.Counts.ByClass = map[int]int{}
			for _, dir := range dirs {
				list, questions, err := decisions(dir)
				if err != nil {
					if !all {
						return damaged(err, filepath.Base(dir))
					}
					report.Damaged = append(report.Damaged, filepath.Base(dir)+": "+err.Error())
				}
				report.Runs++
				report.Counts.Questions += questions
				for _, d := range list {
					report.count(d)
					if (!denied || d.refused()) && (class == 0 || d.Class == effect.Class(class)) {
						report.Decisions = append(report.Decisions, d)
					}
				}
			}
			if asJSON {
				return a.json(report)
			}
			return a.lines(report.lines(a.screen(), len(dirs) > 1)...)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "all runs of this machine's state folder")
	cmd.Flags().BoolVar(&denied, "denied", false, "only what did not happen, escalations and faults")
	cmd.Flags().IntVar(&class, "class", 0, "only this class, from 1 to 5")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) auditDirs(args []string, all bool) ([]string, error) {
	if !all {
		var dirs []string
		for _, arg := range args {
			_, dir, err := a.find(arg)
			if err == nil {
				err = readable(dir)
			}
			if err != nil {
				return nil, err
			}
			if !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
		return dirs, nil
	}
	home, err := a.home()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(journal.RunsDir(home))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	var dirs []string
	for _, e := range entries {
		if e.IsDir() {
			dirs = append(dirs, filepath.Join(journal.RunsDir(home), e.Name()))
		}
	}
	return dirs, nil
}

// decisions folds a run's journal. What was read before an error comes with it.
func decisions(dir string) (list []decided, questions int, err error) {
	runID := filepath.Base(dir)
	at := map[string]int{}    // call id -> index of its decision
	asked := map[string]int{} // question id -> index
	seen := map[string]bool{}
	judged := map[string]journal.Judgement{} // before the request is on record
	for e, err := range journal.Read(dir) {
		if err != nil {
			return list, questions, err
		}
		d := decided{RunID: runID, Seq: e.Seq, When: e.TS}
		switch e.Type {
		case journal.TypeToolRequest:
			var p journal.ToolRequest
			if err := e.Decode(&p); err != nil {
				return list, questions, err
			}
			d.Kind, d.CallID, d.Tool, d.Summary, d.Class, d.Effects = "call", p.CallID, p.Tool, p.Summary, p.Class, p.Effects
			d.Verdict, d.Rule, d.By, d.Reason = p.Permission.Verdict, p.Permission.Rule, p.Permission.By, p.Permission.Reason
			if j, ok := judged[p.CallID]; ok {
				d.Judged = &j
			}
			at[p.CallID] = len(list)
			list = append(list, d)
		case journal.TypeJudge:
			var p journal.Judgement
			if err := e.Decode(&p); err != nil {
				return list, questions, err
			}
			judged[p.CallID] = p
		case journal.TypeQuestion:
			var q journal.Question
			if err := e.Decode(&q); err != nil {
				return list, questions, err
			}
			if !seen[q.ID] {
				seen[q.ID] = true
				questions++
			}
			if i, ok := at[q.CallID]; ok && q.Kind == "permission" {
				list[i].Asked, asked[q.ID] = &q, i
			}
		case journal.TypeAnswer:
			var p journal.Answer
			if err := e.Decode(&p); err != nil {
				return list, questions, err
			}
			if i, ok := asked[p.ID]; ok {
				list[i].Answer = &p
			}
		case journal.TypePermission:
			var p journal.Permitted
			if err := e.Decode(&p); err != nil {
				return list, questions, err
			}
			if i, ok := at[p.CallID]; ok {
				list[i].Verdict, list[i].By, list[i].Who, list[i].Remembered = p.Verdict, p.By, p.Who, p.Rules
				if p.Reason != "" {
					list[i].Reason = p.Reason
				}
			}
		case journal.TypeToolResult:
			var p journal.ToolResult
			if err := e.Decode(&p); err != nil {
				return list, questions, err
			}
			if i, ok := at[p.CallID]; ok && list[i].Verdict == effect.Ask && list[i].Answer == nil { // nobody could be asked
				list[i].Verdict, list[i].By = effect.Deny, "nobody to ask"
			}
		case journal.TypeEscalate:
			var p journal.Escalation
			if err := e.Decode(&p); err != nil {
				return list, questions, err
			}
			d.Kind, d.CallID, d.Class, d.Rule, d.Reason, d.By = "escalate", p.CallID, p.Class, p.Rule, p.Why, p.Kind
			list = append(list, d)
		case journal.TypeMisjudged:
			var p journal.Misjudged
			if err := e.Decode(&p); err != nil {
				return list, questions, err
			}
			d.Kind, d.CallID, d.Class, d.Denied = "misjudged", p.CallID, p.Class, p.Denied
			d.Reason, d.By = "the sandbox refused what the plan did not name", "sandbox"
			if i, ok := at[p.CallID]; ok {
				d.Tool, d.Summary = list[i].Tool, list[i].Summary
			}
			list = append(list, d)
		}
	}
	return list, questions, nil
}

func (r *audited) count(d decided) {
	switch d.Kind {
	case "escalate":
		r.Counts.Escalations++
		return
	case "misjudged":
		r.Counts.Faults++
		return
	}
	r.Counts.Calls++
	if d.Class > 0 {
		r.Counts.ByClass[int(d.Class)]++
	}
	switch d.Verdict {
	case effect.Allow:
		r.Counts.Allowed++
	case effect.Ask:
		r.Counts.Waiting++
	default:
		r.Counts.Denied++
	}
	if d.Judged != nil {
		r.Counts.Judged++
		if d.Judged.Verdict != effect.Allow {
			r.Counts.Blocked++
		}
	}
}

func (r *audited) lines(s render.Screen, several bool) []string {
	var lines []string
	run := ""
	for _, d := range r.Decisions {
		if several && d.RunID != run {
			run = d.RunID
			lines = append(lines, s.Bold(run))
		}
		lines = append(lines, d.lines(s)...)
	}
	c := r.Counts
	total := fmt.Sprintf("%d calls: %d allowed, %d denied, %d waiting · %d questions · %d judged, %d blocked · %d escalations · %d classifier faults",
		c.Calls, c.Allowed, c.Denied, c.Waiting, c.Questions, c.Judged, c.Blocked, c.Escalations, c.Faults)
	for _, d := range r.Damaged {
		lines = append(lines, s.Bad("damaged")+" "+render.Line(d))
	}
	return append(lines, s.Bold(total))
}

func (d decided) lines(s render.Screen) []string {
	when := s.Dim(fmt.Sprintf("%5d  %s  ", d.Seq, d.When.Local().Format("01-02 15:04:05")))
	switch d.Kind {
	case "escalate":
		return []string{when + s.Alarm("escalated") + "  " + render.Line(d.Reason)}
	case "misjudged":
		return []string{when + s.Bad("classifier fault") + "  " + render.Line(d.Summary) + ": " + render.Line(strings.Join(d.Denied, "; "))}
	}
	word := s.Good("allow")
	switch d.Verdict {
	case effect.Deny:
		word = s.Bad("deny ")
	case effect.Ask:
		word = s.Alarm("wait ")
	}
	by := d.By
	if d.Who != "" {
		by += " (" + d.Who + ")"
	}
	lines := []string{when + word + fmt.Sprintf("  %d  ", d.Class) + render.Line(d.Tool+": "+d.Summary), s.Dim("       by " + render.Line(by+", "+d.Rule) + ": " + render.Line(d.Reason))}
	if d.Answer != nil {
		text := "asked, and answered " + d.Answer.Choice
		if d.Answer.Reason != "" {
			text += ": " + d.Answer.Reason
		}
		lines = append(lines, s.Dim("       "+render.Line(text)))
	}
	if len(d.Remembered) > 0 {
		lines = append(lines, s.Dim("       remembered: "+render.Line(strings.Join(d.Remembered, " "))))
	}
	if d.Judged != nil {
		lines = append(lines, s.Dim("       judged by "+render.Line(d.Judged.Model)+": "+string(d.Judged.Verdict)+": "+render.Line(d.Judged.Reason)))
	}
	return lines
}
