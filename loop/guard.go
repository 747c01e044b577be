package loop

import (
	"crypto/sha256"
	"fmt"
	"regexp"
	"time"

	"belay/effect"
	"belay/journal"
	"belay/message"
)

// How often the same call may give the same result while nothing changes: at the first figure the model is
// told, at the second the run ends.
const (
	repeatNudge = 3
	repeatStop  = 5
)

// guard counts what a run has used, by folding its events.
type guard struct {
	bounds journal.Bounds
	seq    int64 // of the last event
	start  time.Time
	now    time.Time // of the last event
	turns  int
	usage  message.Usage
	cost   message.Cost

	asked    map[string]journal.ToolRequest // open calls
	known    map[signature]bool             // every call-and-result seen
	repeated map[signature]int              // since something may have changed
	worst    int                            // the highest count, of the last result
	nudged   int                            // the count at which the model was told
}

// signature is a call with its result.
type signature [32]byte

func newGuard(b journal.Bounds) *guard {
	return &guard{bounds: b, asked: map[string]journal.ToolRequest{}, known: map[signature]bool{}, repeated: map[signature]int{}}
}

func (g *guard) apply(e journal.Event) error {
	g.seq, g.now = e.Seq, e.TS.Time
	if g.start.IsZero() {
		g.start = g.now
	}
	switch e.Type {
	case journal.TypeModelReply:
		var p journal.ModelReply
		if err := e.Decode(&p); err != nil {
			return err
		}
		g.turns++
		g.usage, g.cost = g.usage.Add(p.Usage), g.cost+p.Cost
	case journal.TypeToolRequest:
		var p journal.ToolRequest
		if err := e.Decode(&p); err != nil {
			return err
		}
		g.asked[p.CallID] = p
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

// count notes a call and its result. A call that may have changed the tree, seen for the first time, starts
// all counts afresh; seen again with the same result, it is a repetition like any other.
func (g *guard) count(request journal.ToolRequest, result journal.ToolResult) {
	sig := sign(request, result)
	if len(result.Wrote) > 0 || request.Class >= effect.ClassReversible && !g.known[sig] {
		clear(g.repeated)
		g.nudged = 0
	}
	g.known[sig] = true
	g.repeated[sig]++
	g.worst = g.repeated[sig]
}

// volatile matches what differs between two runs of the same command that say the same: times and addresses.
var volatile = regexp.MustCompile(`\b[0-9.]+(ns|µs|ms|s)\b|0x[0-9a-f]+`)

func sign(request journal.ToolRequest, result journal.ToolResult) signature {
	text := volatile.ReplaceAllString(result.Text, "~")
	return sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%s", request.Tool, request.Args, result.Status, text))
}

// bounded ends the run where a bound is reached.
func (s *session) bounded() (*Outcome, error) {
	g, b := s.guard, s.guard.bounds
	elapsed := time.Since(g.start)
	for _, bound := range []struct {
		name, flag   string
		value, limit float64
		show         string
	}{
		{"turns", "--max-turns", float64(g.turns), float64(b.Turns), fmt.Sprintf("%d turns", b.Turns)},
		{"usd", "--budget-usd", g.cost.Dollars(), b.Money.Dollars(), b.Money.String()},
		{"tokens", "--max-tokens", float64(g.usage.Total()), float64(b.Tokens), fmt.Sprintf("%d tokens", b.Tokens)},
		{"time", "--timeout", elapsed.Seconds(), float64(b.WallMS) / 1e3, (time.Duration(b.WallMS) * time.Millisecond).String()},
		{"repetition", "", float64(g.worst), repeatStop, fmt.Sprintf("the same call with the same result %d times", repeatStop)},
	} {
		if bound.limit == 0 || bound.value < bound.limit {
			continue
		}
		reason := "bound reached: " + bound.show
		if bound.flag != "" {
			reason += " (raise it with " + bound.flag + ")"
		}
		err := s.note(s.entry(journal.TypeGuard, journal.Guard{Bound: bound.name, Value: bound.value, Limit: bound.limit, Hard: true}))
		return &Outcome{Exit: ExitBound, Reason: reason}, err
	}
	return nil, nil
}

// noticeRepetition tells the model, once, that it goes in circles.
func (s *session) noticeRepetition() error {
	g := s.guard
	if g.worst < repeatNudge || g.nudged > 0 {
		return nil
	}
	g.nudged = g.worst
	guarded := journal.Guard{Bound: "repetition", Value: float64(g.worst), Limit: repeatStop}
	if err := s.note(s.entry(journal.TypeGuard, guarded)); err != nil {
		return err
	}
	return s.tell(fmt.Sprintf(sayRepetition, g.worst))
}
