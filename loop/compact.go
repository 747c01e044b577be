package loop

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"belay/internal/failpoint"
	"belay/internal/projection"
	"belay/journal"
	"belay/message"
	"belay/model"
	"belay/tool"
)

//go:embed compact.md
var compactPrompt string

// contextPolicy is the policy of the context; where none was given, the preset for the model's window.
func (s *session) contextPolicy() projection.Policy {
	if s.Context.Window > 0 {
		return s.Context
	}
	return projection.PolicyFor(s.Client.Info().ContextWindow)
}

// ready makes the context fit for the next request: identical errors become one, what is due is erased or summarised,
// and the goal is said again where that is due. It is looked at before every call of the model and never during one. The
// outcome is the stop of a run whose context cannot be made small enough.
func (s *session) ready(ctx context.Context) (*Outcome, error) {
	if len(s.fold.Open()) > 0 {
		return nil, nil
	}
	if e, ok := s.plans.repeats(); ok {
		e.Before = s.fold.Estimate()
		e.After = e.Before
		if err := s.note(s.entry(journal.TypeErase, e)); err != nil {
			return nil, err
		}
	}
	if err := s.critiqued(); err != nil {
		return nil, err
	}
	if err := s.shrink(ctx, false); err != nil {
		return nil, err
	}
	if err := s.remind(); err != nil {
		return nil, err
	}
	policy := s.contextPolicy()
	if estimate := s.fold.Estimate(); estimate > policy.Limit() {
		if err := s.shrink(ctx, true); err != nil {
			return nil, err
		}
		if err := s.remind(); err != nil {
			return nil, err
		}
		if estimate = s.fold.Estimate(); estimate > policy.Limit() {
			return s.tooLarge(estimate, policy.Limit())
		}
	}
	return nil, nil
}

// tooLarge ends a run whose context cannot be made smaller.
func (s *session) tooLarge(estimate, limit int64) (*Outcome, error) {
	reason := fmt.Sprintf("paused: the context has about %d tokens, at most %d fit, and nothing more can be erased or summarised. `belay resume %s --fresh` goes on with an empty context and the handoff", estimate, limit, s.Log.RunID())
	return s.pause(ExitBound, reason, journal.Guard{Bound: "context", Value: float64(estimate), Limit: float64(limit), Hard: true})
}

// shrink does what the policy wants done, as long as it makes progress. With force it does not wait.
func (s *session) shrink(ctx context.Context, force bool) error {
	for range 3 {
		before := s.fold.Estimate()
		erase, compact := s.fold.Due(s.contextPolicy(), force)
		switch {
		case erase != nil:
			if err := s.note(s.entry(journal.TypeErase, *erase)); err != nil {
				return err
			}
		case compact:
			if done, err := s.compact(ctx, map[bool]string{false: "size", true: "overflow"}[force], ""); err != nil || !done {
				return err
			}
		default:
			return nil
		}
		failpoint.Hit("context.after-break")
		if s.fold.Estimate() > before-before/20 {
			return nil // what gains nothing is not done again
		}
		if !force {
			continue
		}
		if s.fold.Estimate() <= s.contextPolicy().Limit() {
			return nil
		}
	}
	return nil
}

// overflowed handles a request that the provider found too large, whatever the estimate said. It says whether the context
// is smaller now.
func (s *session) overflowed(ctx context.Context, err error) (bool, error) {
	var failure *model.Error
	if !errors.As(err, &failure) || !failure.ContextTooLarge && failure.Kind != model.ContextOverflow {
		return false, nil
	}
	before := s.fold.Estimate()
	if err := s.shrink(ctx, true); err != nil {
		return false, err
	}
	if err := s.remind(); err != nil {
		return false, err
	}
	return s.fold.Estimate() < before-before/20, nil
}

// compact puts a summary in the place of the older part of the context. It says whether it did: what is not smaller is
// no summary.
func (s *session) compact(ctx context.Context, reason, focus string) (bool, error) {
	policy := s.contextPolicy()
	keep, rounds := s.fold.Cut(policy)
	if keep == 0 {
		return false, nil
	}
	since, until := s.fold.Since(), s.fold.Until(keep)
	size := s.fold.MiddleBytes(keep)
	s.progress("summarising the older part of the context")
	c := journal.Compaction{From: since + 1, To: until, Keep: keep, Rounds: rounds, Reason: reason, Focus: focus, Before: s.fold.Estimate()}
	files := s.facts.Changed(since, until)
	flaws := ""
	for c.Tries = 1; c.Tries <= 2; c.Tries++ {
		text, by, err := s.summarise(ctx, policy, s.fold.Middle(keep), files, focus, flaws)
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if err == nil {
			if flaws = s.flaws(text, files, size); flaws == "" {
				c.Summary, c.By = text, by
				break
			}
		} else {
			var store *storeError
			if errors.As(err, &store) {
				return false, store.err
			}
			flaws = err.Error()
		}
		c.Flaws = flaws
	}
	c.Tries = min(c.Tries, 2)
	if c.Summary == "" {
		c.By, c.Summary = "harness", s.facts.Summary(since, until)
		if int64(len(c.Summary)) >= size {
			c.Summary, _ = tool.CutText(c.Summary, int(size/tool.BytesPerToken/2), tool.CutTail)
		}
		if int64(len(c.Summary)) >= size {
			return false, nil
		}
		loss := "no model made a sound summary of the older part of the context (" + flaws + "), so belay wrote one from its records"
		if err := s.note(s.entry(journal.TypeDegraded, journal.Degraded{Component: "context", Loss: loss})); err != nil {
			return false, err
		}
	}
	c.Drop = s.fold.DropFor(policy, c.Summary)
	c.After = c.Before - (size-int64(len(c.Summary)))*c.Before/max(s.fold.Text(), 1)
	return true, s.record(s.entry(journal.TypeCompaction, c))
}

// storeError says that a summary could not be recorded, which is no flaw of it.
type storeError struct{ err error }

func (e *storeError) Error() string { return e.err.Error() }

// summarise asks the light model for a summary, once.
func (s *session) summarise(ctx context.Context, policy projection.Policy, middle []message.Message, files []string, focus, flaws string) (text, by string, err error) {
	client := s.Light
	if client == nil {
		client = s.Client
	}
	window := client.Info().ContextWindow
	if window == 0 {
		window = policy.Window
	}
	room := min(window, policy.Window)*7/10 - policy.Reserve
	if room < 1000 {
		room = min(window, policy.Window) / 2
	}
	transcript, _ := tool.CutText(projection.Transcript(middle), int(room), tool.CutBoth)
	var ask strings.Builder
	fmt.Fprintf(&ask, "The objective, which the agent is told again in any case:\n%s\n\n", firstLine(s.plans.objective))
	if len(files) > 0 {
		fmt.Fprintf(&ask, "Files that were changed in this stretch: %s\n\n", strings.Join(files, ", "))
	} else {
		ask.WriteString("No file was changed in this stretch.\n\n")
	}
	if focus != "" {
		fmt.Fprintf(&ask, "The person wants above all this kept: %s\n\n", focus)
	}
	if flaws != "" {
		fmt.Fprintf(&ask, "Your last summary could not be taken: %s\n\n", flaws)
	}
	ask.WriteString("The stretch:\n<stretch>\n" + transcript + "</stretch>\n\nWrite the nine parts.")
	request := model.Request{System: strings.TrimSpace(compactPrompt), Messages: []message.Message{message.UserText(ask.String())},
		MaxOutput: max(policy.Episodes/2, 1000), Purpose: model.Compaction, Choice: model.ChooseNone, Replies: s.fold.Replies()}
	by = client.Info().ID()
	hash, size, err := projection.Digest(request)
	if err != nil {
		return "", by, err
	}
	call := journal.ModelCall{Model: by, Purpose: string(model.Compaction), CtxHash: hash, PrefixHash: hash, Messages: 1, Bytes: size, Estimate: size / 4}
	if err := s.note(s.entry(journal.TypeModelCall, call)); err != nil {
		return "", by, &storeError{err}
	}
	started := time.Now()
	timed, cancel := context.WithTimeoutCause(ctx, time.Duration(policy.Seconds)*time.Second, errSummaryLate)
	defer cancel()
	reply, err := s.collectOnce(timed, client, request)
	if err != nil && ctx.Err() == nil && timed.Err() != nil {
		err = errSummaryLate
	}
	record := journal.ModelReply{Purpose: string(model.Compaction), Blocks: reply.Blocks, Stop: reply.Stop, Usage: reply.Usage, DurationMS: time.Since(started).Milliseconds(), Attempts: 1}
	if err != nil {
		record.Stop, record.Error, record.Blocks = message.StopError, err.Error(), nil
	}
	// A call in it is none: nothing of a summary is ever run.
	record.Blocks = slices.DeleteFunc(record.Blocks, func(b message.Block) bool { return b.Kind != message.KindText })
	if price := client.Info().Price; price != nil {
		record.Cost = price.Of(reply.Usage)
	}
	if storeErr := s.note(s.entry(journal.TypeModelReply, record)); storeErr != nil {
		return "", by, &storeError{storeErr}
	}
	if err != nil {
		return "", by, err
	}
	if reply.Stop != message.StopEnd {
		return "", by, fmt.Errorf("it ended with %q", reply.Stop)
	}
	return strings.TrimSpace(message.PlainText(record.Blocks)), by, nil
}

var errSummaryLate = errors.New("it took too long")

func (s *session) collectOnce(ctx context.Context, client model.Client, request model.Request) (reply model.Reply, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errClientPanic, p)
		}
	}()
	return model.Collect(client.Stream(ctx, request), nil)
}

// pathLine finds the file that a line under "Files changed" speaks of.
var pathLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("^[-*] +`?([^`:]+?)`?(?::| \\(| — | - |$)") })

// flaws says why a summary cannot be taken, "" where it can.
func (s *session) flaws(text string, files []string, size int64) string {
	var wrong []string
	if int64(len(text)) >= size {
		wrong = append(wrong, fmt.Sprintf("it has %d bytes, and what it replaces has %d", len(text), size))
	}
	parts := map[string]string{}
	name := ""
	for line := range strings.Lines(text) {
		if heading, ok := strings.CutPrefix(strings.TrimSpace(line), "## "); ok {
			name = strings.ToLower(strings.TrimRight(strings.TrimSpace(heading), ":"))
			continue
		}
		parts[name] += line
	}
	for _, section := range projection.Sections {
		if strings.TrimSpace(parts[strings.ToLower(section)]) == "" {
			wrong = append(wrong, "the part \""+section+"\" is missing or empty")
		}
	}
	for _, file := range files {
		if !strings.Contains(text, file) {
			wrong = append(wrong, "it does not name the changed file "+file)
		}
	}
	for line := range strings.Lines(parts["files changed"]) {
		m := pathLine().FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		file := strings.TrimSpace(m[1])
		if strings.ContainsAny(file, " ") || !strings.ContainsAny(file, "./") {
			continue // words, not a path
		}
		if !s.facts.Ever(file) && !s.facts.Ever(strings.TrimPrefix(file, "./")) {
			wrong = append(wrong, "it says that "+file+" was changed, and it was not")
		}
	}
	if strings.Contains(text, "<recap>") || strings.Contains(text, "</summary>") {
		wrong = append(wrong, "it imitates the harness")
	}
	return strings.Join(wrong, "; ")
}

// Compact summarises the older part of a run's context on a person's wish, without going on with the run. Done says
// whether there was anything to gain.
func Compact(ctx context.Context, cfg Config, focus string) (done bool, err error) {
	s, err := open(cfg)
	if err != nil {
		return false, err
	}
	if open := s.fold.Open(); len(open) > 0 {
		return false, fmt.Errorf("the call %s has no result yet: resume the run first", open[0].ID)
	}
	s.turns = s.guard.turns
	if done, err = s.compact(ctx, "person", focus); err != nil || !done {
		return done, err
	}
	return true, s.remind()
}
