package harness_test

import (
	"context"
	"strings"
	"testing"

	"belay/harness"
	"belay/journal"
	"belay/loop"
	"belay/policy"
)

// Every way in which a run comes to need a person ends it with exit 6, with a reason that says what to do, and with an event that
// a person or a program finds; where a person is not waited for, it is refused and less is claimed.
func TestWhatNeedsAPerson(t *testing.T) {
	const asks = "turns:\n  - calls: [{tool: Bash, args: {command: \"git branch -D old\"}}]\n  - say: done\n"
	for name, row := range map[string]struct {
		script   string
		set      func(*harness.Config)
		exit     loop.Exit
		reason   string
		question string // its kind
		escalate string // its kind
	}{
		"permission, refused":      {script: asks, exit: loop.ExitUnverified},
		"permission, paused":       {script: asks, set: func(c *harness.Config) { c.PauseToAsk = true }, exit: loop.ExitWaiting, reason: "belay answer", question: "permission"},
		"question":                 {script: "turns:\n  - calls: [{tool: AskUser, args: {question: \"Which?\"}}]\n", exit: loop.ExitWaiting, reason: "belay answer", question: "question"},
		"question, with a default": {script: "turns:\n  - calls: [{tool: AskUser, args: {question: \"Which?\", options: [{id: a, label: A}], default: a, timeout: 1, on_timeout: default}}]\n  - say: done\n", exit: loop.ExitUnverified, question: "question"},
		"plan": {script: "turns:\n  - calls: [{tool: UpdatePlan, args: {steps: [{id: s, text: write, verify: \"cat a\", status: in_progress}]}}]\n  - calls: [{tool: Write, args: {file_path: a, content: a}}]\n",
			set: func(c *harness.Config) { c.ApprovePlan = true }, exit: loop.ExitWaiting, reason: "belay answer", question: "plan"},
		"judge": {script: "turns:\n  - repeat: {times: 3, calls: [{tool: Bash, args: {command: \"git branch -D old{{n}}\"}}]}\nwhen:\n  - {purpose: judge, say: block}\n",
			set: func(c *harness.Config) { c.Mode = policy.Autonomous }, exit: loop.ExitWaiting, reason: "belay answer", question: "permission", escalate: "judge"},
		"errors":  {script: "turns:\n  - repeat: {times: 9, say: \"Now differently {{n}}.\", calls: [{tool: Read, args: {file_path: \"missing-{{n}}\"}}]}\n", exit: loop.ExitWaiting, reason: "escalated", escalate: "bound"},
		"refusal": {script: "turns:\n  - {say: \"I will not.\", stop: refusal}\n", exit: loop.ExitWaiting, reason: "the model refused"},
		"class 5": {script: "turns:\n  - calls: [{tool: Bash, args: {command: \"cat ~/.ssh/id_rsa\"}}]\n  - say: done\n", exit: loop.ExitUnverified, escalate: "class 5"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := situated(t, row.script)
			if cfg.Sandbox == "off" && name == "judge" {
				row.exit, row.reason, row.question, row.escalate = loop.ExitUnverified, "", "", "" // autonomous needs a sandbox
				cfg = situated(t, asks)
			}
			if row.set != nil {
				row.set(&cfg)
			}
			r, err := harness.Run(context.Background(), cfg)
			if err != nil || r.Exit != row.exit || !strings.Contains(r.Reason, row.reason) {
				t.Fatalf("%+v %v", r, err)
			}
			questions, escalations := events[journal.Question](t, r, journal.TypeQuestion), events[journal.Escalation](t, r, journal.TypeEscalate)
			if row.question == "" && len(questions) > 0 || row.question != "" && (len(questions) != 1 || questions[0].Kind != row.question) || r.Asked != len(questions) {
				t.Errorf("%d interruptions, %+v", r.Asked, questions)
			}
			if row.exit == loop.ExitWaiting && row.question != "" {
				if open, err := harness.OpenQuestions(r.Dir); err != nil || len(open) != 1 || open[0].ID != r.Question {
					t.Errorf("%+v %v", open, err)
				}
			}
			if row.escalate == "" && len(escalations) > 0 || row.escalate != "" && (len(escalations) != 1 || escalations[0].Kind != row.escalate) {
				t.Errorf("%+v", escalations)
			}
			if (row.escalate == "class 5") != (len(r.Attempts) == 1) {
				t.Errorf("%v", r.Attempts)
			}
		})
	}
}
