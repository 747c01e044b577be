package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"belay/journal"
	"belay/message"
	"belay/model"
	"belay/tool"
	"belay/verify"
)

// maxRefusals is how many refused completions end a run.
const maxRefusals = 3

// complete answers TaskComplete: a request, which the harness grants when its verifiers agree.
func (s *session) complete(ctx context.Context, call message.ToolCall) (*Outcome, error) {
	var args struct{ Summary, Evidence string }
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return nil, err // the schema was checked before
	}
	spec := tool.Spec{Cut: tool.CutBoth}
	out, failure, err := s.judge(ctx)
	if err != nil {
		return nil, err
	}
	if failure != nil {
		if err := s.settle(call.ID, spec, tool.Fail(*failure)); err != nil {
			return nil, err
		}
		return s.refusal(failure)
	}
	out.Summary = args.Summary
	if err := s.settle(call.ID, spec, tool.Result{Status: tool.Success, Summary: string(out.Standing), Text: out.Reason}); err != nil {
		return out, err
	}
	return s.hookStop(ctx, out)
}

// answered handles a reply that calls nothing: an answer, an unfinished sentence, or an unproved claim.
func (s *session) answered(ctx context.Context, reply model.Reply) (*Outcome, error) {
	text := message.PlainText(reply.Blocks)
	if strings.TrimSpace(text) == "" && !s.goneOn {
		s.goneOn = true
		return nil, s.tell(sayGoOn)
	}
	changed, err := s.changed(ctx)
	if err != nil {
		return nil, err
	}
	if !changed && !s.named() && s.refused == 0 {
		return s.hookStop(ctx, &Outcome{Exit: ExitUnverified, Standing: verify.Unverified, Summary: text, Reason: "answered; nothing was changed and nothing verified"})
	}
	if !s.urged {
		s.urged = true
		return nil, s.tell(sayUseTaskComplete)
	}
	out, failure, err := s.judge(ctx)
	if err != nil {
		return nil, err
	}
	if failure == nil {
		out.Summary = text
		return s.hookStop(ctx, out)
	}
	told, _ := tool.CutText(failure.Text(), 0, tool.CutBoth)
	if err := s.tell(told); err != nil {
		return nil, err
	}
	return s.refusal(failure)
}

// changed lists, sorted, the files that differ: changed, removed or added.
func changed(before, after map[string]string) []string {
	differ := map[string]bool{}
	for path, sum := range before {
		differ[path] = after[path] != sum
	}
	for path, sum := range after {
		differ[path] = before[path] != sum
	}
	maps.DeleteFunc(differ, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(differ))
}

// someOf names the first few.
func someOf(paths []string) string {
	const few = 3
	if len(paths) <= few {
		return strings.Join(paths, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(paths[:few], ", "), len(paths)-few)
}

// refusal counts a refused completion and ends the run at the last one.
func (s *session) refusal(why *tool.Failure) (*Outcome, error) {
	count := journal.Guard{Bound: "completions", Value: float64(s.refused + 1), Limit: float64(s.refusals()), Hard: s.refused+1 >= s.refusals()}
	if err := s.note(s.entry(journal.TypeGuard, count)); err != nil {
		return nil, err
	}
	if !count.Hard {
		return nil, s.backToGreen(context.Background(), s.refused, why.Message)
	}
	return &Outcome{Exit: ExitFailed, Reason: fmt.Sprintf("verification failed: %d completions were refused; the last one: %s", s.refused, why.Message)}, nil
}

// blocked ends the run with the model's reason why it cannot go on.
func (s *session) blocked(call message.ToolCall) (*Outcome, error) {
	var args struct{ Reason, Needs string }
	if err := json.Unmarshal(call.Args, &args); err != nil {
		return nil, err // the schema was checked before
	}
	reason := "blocked: " + args.Reason
	if args.Needs != "" {
		reason += " (needs: " + args.Needs + ")"
	}
	result := tool.Result{Status: tool.Success, Summary: "reported", Text: "A person was told."}
	return &Outcome{Exit: ExitFailed, Reason: reason}, s.settle(call.ID, tool.Spec{}, result)
}

// changed says whether the tree is another than before the run's first act.
func (s *session) changed(ctx context.Context) (bool, error) {
	if s.base.Digest == "" {
		return false, nil // nothing that could change it was ever allowed
	}
	now, err := s.Tree(ctx)
	if err != nil {
		return false, fmt.Errorf("look at the tree: %w", err)
	}
	return now.Digest != s.base.Digest, nil
}

// named says whether a person chose a verifier.
func (s *session) named() bool {
	for _, v := range s.Verifiers {
		if v.Named() {
			return true
		}
	}
	return false
}

// relevant cuts a verifier's output to what matters to a model: lines that look like errors, head and tail.
func relevant(output string) string {
	cut, _ := tool.CutText(strings.TrimRight(output, "\n"), 1500, tool.CutBoth)
	return cut
}
