package journal

import (
	"belay/effect"
	"belay/message"
)

const (
	TypeJudge     Type = "judge"
	TypeEscalate  Type = "escalate"
	TypeMisjudged Type = "misjudged"
)

// Judgement is what a model that judges says about a call that the policy allows in autonomous mode.
type Judgement struct {
	CallID   string         `json:"call_id"`
	Model    string         `json:"model"`
	Verdict  effect.Verdict `json:"verdict"`             // allow or deny
	Rule     string         `json:"rule,omitempty"`      // hard_deny, soft_deny or none: what the second stage found
	LiftedBy string         `json:"lifted_by,omitempty"` // allow, intent: what lifted a soft_deny
	Quote    string         `json:"quote,omitempty"`     // the person's words or the exception that did
	Reason   string         `json:"reason"`
	Stages   []JudgeStage   `json:"stages"`
	Row      int            `json:"in_a_row,omitempty"` // blocks since the last call that passed
	All      int            `json:"in_all,omitempty"`   // blocks since the person last spoke
}

// JudgeStage is one answer of the judge.
type JudgeStage struct {
	Answer string        `json:"answer"`
	Error  string        `json:"error,omitempty"`
	Usage  message.Usage `json:"usage"`
	Cost   message.Cost  `json:"cost_usd"`
}

// Escalation is something that a person has to look at.
type Escalation struct {
	Why    string       `json:"why"`
	To     string       `json:"to"`   // person
	Kind   string       `json:"kind"` // class 5, judge, bound
	CallID string       `json:"call_id,omitempty"`
	Class  effect.Class `json:"class,omitempty"`
	Rule   string       `json:"rule,omitempty"`
}

// Misjudged says that the sandbox refused what the plan of a call had not named: the plan was wrong.
type Misjudged struct {
	CallID string       `json:"call_id"`
	Class  effect.Class `json:"class"` // that the call was given
	Denied []string     `json:"denied"`
}

// Explanation is what a model says about a call that a person is asked about.
type Explanation struct {
	Risk string `json:"risk"` // low, medium, high
	Text string `json:"text"`
	By   string `json:"by"` // the model
}

// Trifecta is the review of what an agent could do together: read what is private, read what strangers wrote, and send.
type Trifecta struct {
	Private   []string `json:"private"`   // tools that read private data
	Untrusted []string `json:"untrusted"` // tools that read what strangers may have written
	Sends     []string `json:"sends"`     // ways out, each with what holds it
	Complete  bool     `json:"complete"`  // all three: data could leave on a stranger's word
	Note      string   `json:"note"`
}
