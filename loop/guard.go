package loop

import (
	"crypto/sha256"
	"fmt"
	"time"

	"belay/effect"
	"belay/journal"
	"belay/message"
	"belay/tool"
)

// How a run that goes nowhere is noticed: at the first figure the model is told, at the second a person.
const (
	repeatNudge = 3 // the same result of the same call, or the same error of any, on an unchanged tree
	repeatStop  = 5
	errorsNudge = 3 // failed calls in a row
	errorsStop  = 5
	stallNudge  = 6 // turns without a change or anything new
	stallStop   = 8
	softPercent = 80 // of a bound
)

// guard counts what a run has used and whether it gets anywhere, by folding its events.
type guard struct {
	bounds journal.Bounds
	seq    int64 // of the last event

	session int // the running one's number
	start   time.Time
	last    time.Time     // of the last event
	before  time.Duration // of the sessions before
	turns   int
	usage   message.Usage
	cost    message.Cost
	kept    int64              // bytes on the disk, when last looked at
	warned  map[string]float64 // bound -> the limit of whose soft threshold the model was told

	stop     message.StopReason             // of the last reply
	ids      map[string]bool                // every call id of the run
	asked    map[string]journal.ToolRequest // open calls
	known    map[signature]bool             // everything that was ever learned
	repeated map[signature]int              // since something may have changed
	worst    int                            // the highest count among the last turn's results
	errors   int                            // failed calls in a row
	failing  map[string]signature           // how each program, by its call, last failed
	idle     int                            // turns without a change or anything new
	nudged   map[string]bool                // what the model was told since things last went well
}

// signature is what a call and its result say, without times and addresses.
type signature [32]byte

func newGuard(b journal.Bounds) *guard {
	return &guard{bounds: b, warned: map[string]float64{}, ids: map[string]bool{}, asked: map[string]journal.ToolRequest{}, known: map[signature]bool{}, failing: map[string]signature{},
		repeated: map[signature]int{}, nudged: map[string]bool{}}
}

func (g *guard) apply(e *decoded) error {
	if e.Type == journal.TypeSessionStart {
		if !g.start.IsZero() {
			g.before += g.last.Sub(g.start)
		}
		g.session, g.start = e.Session, e.TS.Time
	}
	g.seq, g.last = e.Seq, e.TS.Time
	switch e.Type {
	case journal.TypeUserMessage:
		var p journal.UserMessage
		if err := e.Decode(&p); err != nil {
			return err
		}
		if p.By == "" {
			g.progress() // a person has looked at it
		}
	case journal.TypeModelReply:
		var p journal.ModelReply
		if err := e.Decode(&p); err != nil {
			return err
		}
		if p.Purpose != "" {
			g.usage, g.cost = g.usage.Add(p.Usage), g.cost+p.Cost
			break
		}
		if p.Stop != message.StopError {
			g.turns++
			g.idle++
			g.stop = p.Stop
		}
		for _, call := range message.Calls(p.Blocks) {
			g.ids[call.ID] = true
		}
		g.worst = 0
		g.usage, g.cost = g.usage.Add(p.Usage), g.cost+p.Cost
		if p.Wasted != nil {
			g.usage = g.usage.Add(*p.Wasted)
		}
	case journal.TypePlan, journal.TypeReplan:
		g.idle = 0
	case journal.TypeToolRequest:
		var p journal.ToolRequest
		if err := e.Decode(&p); err != nil {
			return err
		}
		g.asked[p.CallID] = p
	case journal.TypePermission:
		var p journal.Permitted
		if err := e.Decode(&p); err != nil {
			return err
		}
		if r, open := g.asked[p.CallID]; open {
			r.Permission.Verdict, r.Permission.By = p.Verdict, p.By
			g.asked[p.CallID] = r
		}
	case journal.TypeToolResult:
		var p journal.ToolResult
		if err := e.Decode(&p); err != nil {
			return err
		}
		g.count(g.asked[p.CallID], p)
		delete(g.asked, p.CallID)
	}
	return nil
}

// progress starts afresh all counts of going nowhere.
func (g *guard) progress() {
	clear(g.repeated)
	clear(g.nudged)
	g.idle, g.errors, g.worst = 0, 0, 0
}

// count notes a call and its result. A call that may have changed the tree, seen for the first time, starts
// the counts of repetition afresh; seen again with the same result, it is a repetition like any other.
func (g *guard) count(request journal.ToolRequest, result journal.ToolResult) {
	sig := sign(request.Tool, string(request.Args), result)
	failed := result.Status == string(tool.Error)
	changed := len(result.Wrote) > 0 || request.Class >= effect.ClassReversible && !failed && !g.known[sig]
	switch {
	case changed:
		g.progress()
	case !g.known[sig]:
		g.idle = 0
	}
	g.known[sig] = true
	g.repeated[sig]++
	g.worst = max(g.worst, g.repeated[sig])
	if failed {
		// The same error of varied calls is a repetition too, whatever was asked.
		any := sign("", "", result)
		g.repeated[any]++
		g.worst = max(g.worst, g.repeated[any])
	}
	switch {
	case !failed:
		g.errors = 0
	case result.Code == string(tool.ExitStatus) && g.newFailure(request, result):
		// The same tests failing in another way than before: that is what work looks like.
	default:
		g.errors++
	}
}

// newFailure says whether a program that has failed before now fails in another way.
func (g *guard) newFailure(request journal.ToolRequest, result journal.ToolResult) bool {
	call, now := request.Tool+"\x00"+string(request.Args), sign("", "", result)
	before, again := g.failing[call]
	g.failing[call] = now
	return again && before != now
}

func sign(name, args string, result journal.ToolResult) signature {
	text := steady(result.Text)
	return sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%s", name, args, result.Status, text))
}

// bound is one limit of a run and how much of it is used.
type bound struct {
	name  string // in guard events
	what  string // for a model
	flag  string
	value float64
	limit float64 // 0 is none
	show  string  // the limit, for a person
}

// elapsed is how long the run has been worked on, pauses left out.
func (g *guard) elapsed() time.Duration { return g.before + time.Since(g.start) }

func (g *guard) wall() time.Duration { return time.Duration(g.bounds.WallMS) * time.Millisecond }

func (g *guard) timeBound() bound {
	return bound{"time", "time", "--timeout", g.elapsed().Seconds(), g.wall().Seconds(), g.wall().String()}
}

func (g *guard) boundList() []bound {
	b := g.bounds
	return []bound{
		{"turns", "turns", "--max-turns", float64(g.turns), float64(b.Turns), fmt.Sprintf("%d turns", b.Turns)},
		{"usd", "money", "--budget-usd", g.cost.Dollars(), b.Money.Dollars(), b.Money.String()},
		{"tokens", "tokens", "--max-tokens", float64(g.usage.Total()), float64(b.Tokens), fmt.Sprintf("%d tokens", b.Tokens)},
		g.timeBound(),
		{"mib", "disk space for the journal", "--max-journal-mb", float64(g.kept) / (1 << 20), float64(b.MiB), fmt.Sprintf("%d MiB of journal", b.MiB)},
	}
}

// bounded ends the run where a bound is reached, and warns the model, once, where one is near.
func (s *session) bounded() (*Outcome, error) {
	if s.Bounds.MiB > 0 {
		size, err := s.Log.Size()
		if err != nil {
			return nil, err
		}
		s.guard.kept = size
	}
	for _, b := range s.guard.boundList() {
		switch {
		case b.limit == 0:
		case b.value >= b.limit:
			return s.reached(b)
		case b.value*100 >= b.limit*softPercent && s.guard.warned[b.name] != b.limit:
			s.guard.warned[b.name] = b.limit
			text := fmt.Sprintf(saySoft, int(b.value*100/b.limit), b.what, b.show)
			if err := s.nudge(journal.Guard{Bound: b.name, Value: b.value, Limit: b.limit}, text); err != nil {
				return nil, err
			}
		}
	}
	return nil, nil
}

// reached pauses the run at a bound. It stands until a resume gets a higher total.
func (s *session) reached(b bound) (*Outcome, error) {
	reason := fmt.Sprintf("paused: the bound of %s is reached; `belay resume %s %s HIGHER` goes on", b.show, s.Log.RunID(), b.flag)
	return s.pause(ExitBound, reason, journal.Guard{Bound: b.name, Value: b.value, Limit: b.limit, Hard: true})
}

// pause ends the session with its reason on record.
func (s *session) pause(exit Exit, reason string, why journal.Guard) (*Outcome, error) {
	why.Note = reason
	entries := []journal.Entry{s.entry(journal.TypeGuard, why), s.entry(journal.TypeDegraded, journal.Degraded{Component: "run", Loss: "it stands still: " + reason})}
	if exit == ExitWaiting {
		entries = append(entries, s.entry(journal.TypeEscalate, journal.Escalation{Why: reason, To: "person", Kind: "bound", Rule: why.Bound}))
	}
	err := s.note(entries...)
	return &Outcome{Exit: exit, Reason: reason}, err
}

// noticed looks at whether the run gets anywhere: first the model is told, then the run pauses.
func (s *session) noticed() (*Outcome, error) {
	g := s.guard
	for _, sign := range []struct {
		name        string
		value       int
		nudge, stop int
		say         string
		exit        Exit
		reason      string
	}{
		{"repetition", g.worst, repeatNudge, repeatStop, sayRepetition, ExitBound, "paused: the model saw the same result %d times and nothing changed in between"},
		{"errors", g.errors, errorsNudge, errorsStop, sayReplan, ExitWaiting, "escalated: %d calls in a row failed; a person should look at it"},
		{"stall", g.idle, stallNudge, stallStop, sayStall, ExitWaiting, "escalated: for %d turns nothing changed and nothing new was learned; a person should look at it"},
	} {
		guarded := journal.Guard{Bound: sign.name, Value: float64(sign.value), Limit: float64(sign.stop)}
		switch {
		case sign.value >= sign.nudge && !g.nudged[sign.name]:
			g.nudged[sign.name] = true
			return nil, s.nudge(guarded, fmt.Sprintf(sign.say, sign.value))
		case sign.value >= sign.stop:
			guarded.Hard = true
			return s.pause(sign.exit, fmt.Sprintf(sign.reason, sign.value), guarded)
		}
	}
	return nil, nil
}

// nudge tells the model what the guard has seen.
func (s *session) nudge(seen journal.Guard, text string) error {
	if err := s.note(s.entry(journal.TypeGuard, seen)); err != nil {
		return err
	}
	return s.tell(text)
}
