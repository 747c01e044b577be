package loop

import (
	"context"
	"errors"
	"fmt"
	"math"
	"syscall"
	"time"

	"belay/internal/projection"
	"belay/journal"
	"belay/message"
	"belay/model"
	"belay/verify"
)

// session is one context's life in a run. What it knows is folded from the journal, so that a resumed
// session knows what the first one did.
type session struct {
	Config
	fold  *projection.Fold
	guard *guard
	turns int // number of the running turn, from 1; it counts through all sessions

	said      []message.Block // the last reply, as it is recorded
	base      verify.Tree     // before the run's first act; without a digest until there is one
	red       map[string]bool // whether a detected verifier failed on it
	counted   map[string]int  // tests that a verifier executed on it
	redOn     map[on]bool     // what failed in this session: a pass on the same tree proves nothing
	once      once
	plans     planner
	facts     projection.Facts
	keep      keeper   // what the next reader must know
	refused   int      // completions that the verifiers refused
	urged     bool     // a reply without a call was answered with "use TaskComplete"
	goneOn    bool     // an empty reply was asked to go on
	stops     int      // how often hooks refused an end
	halt      string   // why a hook stops the run
	fresh     bool     // the person has said something in this session
	advice    []string // what hooks say to the model before a call's result
	people    people
	jury      jury
	attempts  []string // at what no agent may touch
	answering bool     // a call is taken up that a person has decided about
	points    points
}

// on is a verifier, by name, and the digest of a tree that it looked at.
type on struct{ verifier, tree string }

// Run goes on with the run in the log (its session.start and the user's message are there) until it ends.
// The error is the harness's own fault; the outcome then says so too.
func Run(ctx context.Context, cfg Config) (Outcome, error) {
	s, err := open(cfg)
	if err != nil {
		return Outcome{Exit: ExitFault, Reason: err.Error()}, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeLeft(), errTimeUp)
	defer cancel()
	out, err := s.settleOpen(ctx)
	if out == nil && err == nil {
		out, err = s.askWhetherItHappened(ctx)
	}
	if out == nil && err == nil {
		out, err = s.hookOpen(ctx)
	}
	for {
		if out == nil && err == nil {
			out, err = s.turn(ctx)
		}
		if err != nil {
			out, err = s.failed(ctx, err)
		}
		if out != nil {
			return s.end(*out, err)
		}
	}
}

// open folds what the log holds.
func open(cfg Config) (*session, error) {
	s := &session{Config: cfg, fold: &projection.Fold{}, guard: newGuard(cfg.Bounds), red: map[string]bool{}, redOn: map[on]bool{}, counted: map[string]int{}}
	for e, err := range cfg.Log.Events() {
		if err == nil {
			err = s.apply(e)
		}
		if err != nil {
			return s, err
		}
	}
	return s, nil
}

// errTimeUp is why a context ends when the run's time is used up.
var errTimeUp = errors.New("the run's time is used up")

// timeLeft is how long the session may work. A call that runs then is stopped.
func (s *session) timeLeft() time.Duration {
	if s.Bounds.WallMS == 0 {
		return math.MaxInt64
	}
	return s.guard.wall() - s.guard.elapsed()
}

// failed turns an error into the outcome it means. Only a fault of the harness stays an error.
func (s *session) failed(ctx context.Context, err error) (*Outcome, error) {
	var modelErr *model.Error
	switch {
	case errors.Is(context.Cause(ctx), errTimeUp):
		return s.reached(s.guard.timeBound())
	case ctx.Err() != nil:
		return &Outcome{Exit: ExitInterrupted, Reason: "interrupted"}, nil
	case errors.As(err, &modelErr) && modelErr.Class == model.Script:
		return &Outcome{Exit: ExitFault, Reason: modelErr.Error()}, err
	case journal.NoSpace(err), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EIO):
		return &Outcome{Exit: ExitEnvironment, Reason: "the disk cannot be used: " + err.Error()}, err
	case errors.As(err, &modelErr) && (modelErr.ContextTooLarge || modelErr.Kind == model.ContextOverflow):
		return s.tooLarge(s.fold.Estimate(), s.contextPolicy().Limit())
	case errors.As(err, &modelErr):
		return &Outcome{Exit: ExitEnvironment, Reason: "the model cannot be used: " + modelErr.Error()}, nil
	}
	return &Outcome{Exit: ExitFault, Reason: err.Error()}, err
}

// end records the outcome. A fault is returned even where it could not be recorded.
func (s *session) end(out Outcome, fault error) (Outcome, error) {
	fault = errors.Join(fault, s.hookEnd(out), s.drift(&out))
	out.Asked, out.Attempts = s.people.count, s.attempts
	out.Turns, out.Usage, out.Cost = s.guard.turns, s.guard.usage, s.guard.cost
	var keepErr error
	if fault == nil {
		keepErr = s.preserve(context.Background(), "session end", false, out.Exit == ExitProved)
	}
	handoff, handoffErr := s.handOff(out)
	err := s.record(s.entry(journal.TypeSessionEnd, journal.SessionEnd{
		Reason: out.Reason, Exit: int(out.Exit), Standing: string(out.Standing), Summary: out.Summary,
		Proof: out.Proof, Turns: out.Turns, Usage: out.Usage, Cost: out.Cost, Handoff: handoff,
	}))
	if err != nil {
		out.Exit, out.Standing, out.Proof = ExitFault, "", nil // what is not recorded is not claimed
		out.Reason += "; and the end of the run could not be recorded"
	}
	return out, errors.Join(fault, err, handoffErr, keepErr)
}

// entry makes a journal entry of the running turn.
func (s *session) entry(t journal.Type, payload any) journal.Entry {
	return journal.Entry{Type: t, Session: s.guard.session, Turn: s.turns, Step: s.plans.plan.Current().ID, Payload: payload}
}

// record makes events durable before anything that depends on them is done.
func (s *session) record(entries ...journal.Entry) error {
	events, err := s.Log.Append(entries...)
	return s.took(events, err)
}

// note stores events on which no act depends: they are durable with the next record.
func (s *session) note(entries ...journal.Entry) error {
	events, err := s.Log.Write(entries...)
	return s.took(events, err)
}

func (s *session) took(events []journal.Event, err error) error {
	if err != nil {
		return err
	}
	for _, e := range events {
		if err := s.apply(e); err != nil {
			return err
		}
		if s.Observe != nil {
			s.Observe(e)
		}
	}
	return nil
}

func (s *session) apply(e journal.Event) error {
	d := &decoded{Event: e}
	err := errors.Join(s.fold.From(e.Seq).Take(e.Type, d), s.plans.apply(d), s.facts.Take(e.Seq, e.Type, d), s.guard.apply(d), s.keep.apply(d), s.once.apply(d), s.people.apply(d), s.jury.apply(d), s.escalated(d), s.remember(d), s.points.apply(d, s.Place.Workspace))
	if err != nil {
		return fmt.Errorf("event %d: %w", e.Seq, err)
	}
	return nil
}

// remember takes what the session itself must know: the last reply, the tree before the run changed it, and the
// completions that were refused.
func (s *session) remember(e *decoded) error {
	switch e.Type {
	case journal.TypeUserMessage:
		var p journal.UserMessage
		if err := e.Decode(&p); err != nil {
			return err
		}
		s.fresh = s.fresh || p.By == ""
	case journal.TypeSessionStart:
		s.fresh = false
		clear(s.redOn) // a person may have repaired what is around the tree
	case journal.TypeModelReply:
		var p journal.ModelReply
		if err := e.Decode(&p); err != nil {
			return err
		}
		if p.Purpose == "" {
			s.said = p.Blocks
		}
	case journal.TypeVerify:
		var p journal.Verify
		if err := e.Decode(&p); err != nil {
			return err
		}
		if p.Base {
			s.red[p.Verifier] = !p.OK
			if p.Tests != nil {
				s.counted[p.Verifier] = p.Tests.Run
			}
		}
		if !p.OK && !p.TestsAsWas {
			s.redOn[on{p.Verifier, p.Tree}] = true
		}
	case journal.TypeGuard:
		var p journal.Guard
		if err := e.Decode(&p); err != nil {
			return err
		}
		if p.Bound == "completions" {
			s.refused = int(p.Value)
		}
	case journal.TypeToolRequest:
		var p journal.ToolRequest
		if err := e.Decode(&p); err != nil {
			return err
		}
		if p.Tree != "" {
			s.base = verify.Tree{Digest: p.Tree, Tests: p.Tests}
		}
	}
	return nil
}

// tell speaks to the model in the harness's voice.
func (s *session) tell(text string) error {
	return s.record(s.entry(journal.TypeUserMessage, journal.UserMessage{Text: text, By: "harness"}))
}

func (s *session) progress(format string, args ...any) {
	if s.Progress != nil {
		s.Progress(fmt.Sprintf(format, args...))
	}
}
