package journal

// The events by which a context keeps its goal and its size.
const (
	TypePlan       Type = "plan"
	TypeReplan     Type = "replan"
	TypeRecap      Type = "recap"
	TypeErase      Type = "erase"
	TypeCompaction Type = "compaction"
)

// Plan is the plan as a whole, each time. It is an artefact of the run and no part of the conversation.
type Plan struct {
	Objective   string   `json:"objective,omitempty"` // "" leaves it as it is
	Constraints []string `json:"constraints,omitempty"`
	Steps       []Step   `json:"steps"`
	Decisions   []string `json:"decisions,omitempty"`
	Assumptions []string `json:"assumptions,omitempty"`
	ErrorsMade  []string `json:"errors_made,omitempty"`
	References  []string `json:"references,omitempty"`
}

// Step is one step of a plan: one possible verification.
type Step struct {
	ID     string `json:"id"`
	Text   string `json:"text"`
	Verify string `json:"verify"` // a command, or a check that is stated
	Status string `json:"status"` // one of the Step states
}

// States of a step. At most one is in progress.
const (
	StepPending = "pending"
	StepActive  = "in_progress"
	StepDone    = "done"
	StepBlocked = "blocked"
)

// Current is the step in progress, else the first one that is open; its ID is "" where there is none.
func (p Plan) Current() Step {
	var first Step
	for _, s := range p.Steps {
		switch {
		case s.Status == StepActive:
			return s
		case s.Status != StepDone && first.ID == "":
			first = s
		}
	}
	return first
}

// Replan is a change of the plan's steps or of its objective, and what it came from.
type Replan struct {
	Old     Plan   `json:"old"`
	New     Plan   `json:"new"`
	Trigger string `json:"trigger"`
	By      string `json:"by"` // model or user
}

// Recap is what the end of a context says about the goal. Text is what the model reads.
type Recap struct {
	Objective   string   `json:"objective"`
	Constraints []string `json:"constraints,omitempty"`
	Said        []string `json:"said,omitempty"` // what the person has said since the task
	Steps       []Step   `json:"steps,omitempty"`
	Left        []Left   `json:"left,omitempty"`
	Why         string   `json:"why"` // start, plan, budget, erase, compaction, person
	Text        string   `json:"text"`
}

// Left is how much of a bound is left, in tenths, rounded up.
type Left struct {
	Bound  string `json:"bound"`
	Tenths int    `json:"tenths"`
	Of     string `json:"of"`
}

// Erase takes texts out of the context. The results themselves stay in the journal.
type Erase struct {
	Reason  string   `json:"reason"` // size, errors or overflow
	Results []Erased `json:"results"`
	Before  int64    `json:"before"` // estimate in tokens
	After   int64    `json:"after"`
}

// Erased is a result whose text in the context is another one from here on.
type Erased struct {
	CallID string `json:"call_id"`
	Text   string `json:"text"`
}

// Compaction puts a summary in the place of the messages before the last Keep ones. The first message, which is the
// task, stays. Earlier summaries stay too, but for the oldest Drop of them.
type Compaction struct {
	From    int64  `json:"from"` // events that are summarised
	To      int64  `json:"to"`
	Summary string `json:"summary"`
	Keep    int    `json:"keep"` // messages at the end
	Rounds  int    `json:"rounds"`
	Drop    int    `json:"drop,omitempty"`
	By      string `json:"by"` // the model, or "harness" where none made a sound summary
	Reason  string `json:"reason"`
	Focus   string `json:"focus,omitempty"`
	Tries   int    `json:"tries"`
	Before  int64  `json:"before"` // estimate in tokens
	After   int64  `json:"after"`
	Flaws   string `json:"flaws,omitempty"` // what was wrong with a model's summary
}
