package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"belay/journal"
	"belay/tool"
	"belay/verify"
)

// Evidence is what the loop asks about the tree besides what its verifiers say. Each function may be nil.
type Evidence struct {
	// Keep keeps what the tree is before the run's first change.
	Keep func(context.Context) error
	// AsWas gives the files, by path, as they were then.
	AsWas func(paths []string) (verify.Over, error)
	// Circumvented finds what the run did to the files that judge it.
	Circumvented func(context.Context) ([]journal.Evasion, error)
	// Commit is the id of the tree that git would commit, and what lies beside it.
	Commit func(context.Context) (gitTree string, beside []journal.Input, err error)
}

// refusals is how many refused completions end the run.
func (s *session) refusals() int { return cmp.Or(s.Refusals, maxRefusals) }

// look reads the tree.
func (s *session) look(ctx context.Context) (verify.Tree, error) {
	tree, err := s.Tree(ctx)
	if err != nil {
		return tree, fmt.Errorf("look at the tree: %w", err)
	}
	return tree, nil
}

// how is in which way a verifier is run.
type how struct {
	base  bool         // on the tree before any change
	over  *verify.Over // with these files over it
	again bool         // it has just failed
	step  string       // of the plan, "" is the end of the task
}

// verify runs one verifier on the tree and records its report.
func (s *session) verify(ctx context.Context, v verify.Verifier, tree verify.Tree, how how) (verify.Report, error) {
	where := "the tree"
	switch {
	case how.base:
		where = "the tree before any change"
	case how.over != nil:
		where = "the tree with the tests as they were"
	case how.again:
		where = "the tree once more"
	}
	s.progress("verifying %s: %s", where, v.Name())
	var report verify.Report
	var err error
	if how.over != nil {
		report, err = v.(verify.Overlaid).VerifyOver(ctx, *how.over)
	} else {
		report, err = v.Verify(ctx)
	}
	if err != nil {
		return report, fmt.Errorf("verifier %q: %w", v.Name(), err)
	}
	p := journal.Verify{
		Verifier: v.Name(), Named: v.Named(), Base: how.base, OK: report.OK, Exit: report.Exit, Summary: report.Summary,
		Output: report.Output, LogHash: report.LogHash, Tree: tree.Digest, Sandbox: report.Sandbox, DurationMS: report.Duration.Milliseconds(),
		Level: int(verify.LevelOf(v)), Runner: report.Runner, Tests: counts(report.Tests), Flaky: how.again && report.OK, TestsAsWas: how.over != nil,
	}
	if f := report.Failure; f != nil {
		p.Failure = &journal.FailedAt{Test: f.Test, File: f.File, Line: f.Line, Message: f.Message, Expected: f.Expected, Got: f.Got}
	}
	entry := s.entry(journal.TypeVerify, p)
	entry.Step = how.step
	return report, s.record(entry)
}

func counts(t *verify.Tests) *journal.TestCounts {
	if t == nil {
		return nil
	}
	return &journal.TestCounts{Run: t.Run, Failed: t.Failed, Skipped: t.Skipped}
}

// keepBase looks at the tree before the first action that may change it: a verifier that belay detected by itself
// proves something only if it was red before, and one that counts tests must not execute fewer.
func (s *session) keepBase(ctx context.Context) (verify.Tree, error) {
	s.progress("reading the tree before any change")
	tree, err := s.look(ctx)
	if err != nil {
		return tree, err
	}
	if s.Evidence.Keep != nil {
		if err := s.Evidence.Keep(ctx); err != nil {
			return tree, fmt.Errorf("keep the files that judge this run: %w", err)
		}
	}
	for _, v := range s.Verifiers {
		if _, known := s.red[v.Name()]; known || v.Named() && !verify.Counts(v) {
			continue
		}
		if _, err := s.verify(ctx, v, tree, how{base: true}); err != nil {
			return tree, err
		}
	}
	return tree, ctx.Err() // the verifiers may have taken long: a person who left meanwhile wants no act
}

// judge runs every verifier on the tree. It returns how the run ends, or why it does not end yet.
func (s *session) judge(ctx context.Context) (*Outcome, *tool.Failure, error) {
	if len(s.Verifiers) == 0 {
		return &Outcome{Exit: ExitUnverified, Standing: verify.Unverified, Reason: "finished, unverified: no verifier was named and none was found"}, nil, nil
	}
	tree, err := s.look(ctx)
	if err != nil {
		return nil, nil, err
	}
	var edited []string // files that decide what passes, changed by the run
	if s.base.Digest != "" {
		edited = changed(s.base.Tests, tree.Tests)
	}
	findings, err := s.circumvented(ctx)
	if err != nil {
		return nil, nil, err
	}
	var proofs []journal.Proof
	var person string // why one is needed
	for _, v := range s.Verifiers {
		report, failure, err := s.passes(ctx, v, tree)
		if failure != nil || err != nil {
			return nil, failure, err
		}
		proof := journal.Proof{Command: v.Name(), Exit: report.Exit, Tree: tree.Digest, LogHash: report.LogHash, Level: int(verify.LevelOf(v)),
			DurationMS: report.Duration.Milliseconds(), Seq: s.guard.seq, RedBefore: s.red[v.Name()], TestsChanged: edited, Tests: counts(report.Tests)}
		if why := s.fewer(v, report, len(edited) > 0); why != nil {
			return nil, why, nil
		}
		if len(edited) > 0 {
			var why string
			if why, proof.TestsAsWas, err = s.asWas(ctx, v, tree, edited); err != nil {
				return nil, nil, err
			}
			person = cmp.Or(person, why)
		}
		proofs = append(proofs, proof)
	}
	now, err := s.look(ctx)
	if err != nil {
		return nil, nil, err
	}
	if tree.Digest != now.Digest || tree.Stamp != now.Stamp {
		return nil, &treeChanged, nil
	}
	for _, p := range proofs {
		if p.RedBefore && now.Digest == s.base.Digest || s.redOn[on{p.Command, now.Digest}] {
			return nil, flaky(p.Command), nil
		}
	}
	if s.Evidence.Commit != nil {
		gitTree, beside, err := s.Evidence.Commit(ctx)
		if err != nil {
			return nil, nil, fmt.Errorf("say what the proof is about: %w", err)
		}
		for i := range proofs {
			proofs[i].GitTree, proofs[i].Inputs = gitTree, beside
		}
	}
	out := s.standing(proofs)
	out.Circumvention = findings
	if out.Exit == ExitProved {
		for _, f := range findings {
			if f.Decisive {
				person = cmp.Or(person, fmt.Sprintf("%s in %s: a person is needed. It may be right, but no test of this run can tell", f.Kind, at(f)))
			}
		}
	}
	if person != "" {
		out.Exit, out.Standing, out.Reason = ExitWaiting, "", person
	}
	return out, nil, nil
}

func at(f journal.Evasion) string {
	if f.Line > 0 {
		return fmt.Sprintf("%s:%d", f.File, f.Line)
	}
	return f.File
}

// passes runs a verifier, and once more where it fails: one that then passes is flaky, and never clean.
func (s *session) passes(ctx context.Context, v verify.Verifier, tree verify.Tree) (verify.Report, *tool.Failure, error) {
	report, err := s.verify(ctx, v, tree, how{})
	if err != nil || report.OK {
		return report, nil, err
	}
	second, err := s.verify(ctx, v, tree, how{again: true})
	if err != nil {
		return report, nil, err
	}
	if second.OK {
		return second, flaky(v.Name()), nil
	}
	return report, &tool.Failure{Code: tool.Unverified, Message: fmt.Sprintf("not finished: the harness ran `%s` on the tree and it failed (%s).", v.Name(), report.Summary), Hint: hintOf(report)}, nil
}

// hintOf is what a model reads of a failed verification: the first failure, then what matters of the output.
func hintOf(report verify.Report) string {
	hint := relevant(report.Output)
	if report.Failure != nil {
		hint = "The first failure:\n" + report.Failure.String() + "\n\n" + hint
	}
	return hint
}

// fewer says that a pass executed fewer tests than before the run. With edited tests that is told from their former
// version, and not here.
func (s *session) fewer(v verify.Verifier, report verify.Report, edited bool) *tool.Failure {
	before := s.counted[v.Name()]
	if edited || report.Tests == nil || report.Tests.Run >= before {
		return nil
	}
	return &tool.Failure{Code: tool.Unverified, Message: fmt.Sprintf("not finished: `%s` passed, but it executed %d tests; before the run it executed %d. A test that is not executed proves nothing.", v.Name(), report.Tests.Run, before),
		Hint: "Find out what keeps the tests from being executed, or call ReportBlocker if that is what the task needs."}
}

// asWas runs a verifier with the files that decide what passes as they were before the run. The text says why a
// person is needed; ok that the former version passed too.
func (s *session) asWas(ctx context.Context, v verify.Verifier, tree verify.Tree, edited []string) (person string, ok bool, err error) {
	if _, can := v.(verify.Overlaid); !can || s.Evidence.AsWas == nil {
		return "", false, nil
	}
	over, err := s.Evidence.AsWas(edited)
	if err != nil {
		return fmt.Sprintf("tests changed: a person is needed. The run changed what decides whether `%s` passes (%s), and the former version is not kept: %v", v.Name(), someOf(edited), err), false, nil
	}
	report, err := s.verify(ctx, v, tree, how{over: &over})
	if errors.Is(err, errors.ErrUnsupported) {
		return "", false, nil
	}
	before := s.counted[v.Name()]
	switch {
	case err != nil:
		return "", false, err
	case !report.OK:
		return fmt.Sprintf("tests changed: a person is needed. With the tests as they were `%s` fails (%s); it passes with what the run made of %s", v.Name(), report.Summary, someOf(edited)), false, nil
	case report.Tests != nil && (report.Tests.Run < before || report.Tests.Run == 0):
		return fmt.Sprintf("tests changed: a person is needed. With the tests as they were `%s` executes %d tests (%d before the run); what passes is what the run made of %s", v.Name(), report.Tests.Run, before, someOf(edited)), false, nil
	}
	return "", true, nil
}

// circumvented looks for what the run did to the files that judge it, and records it.
func (s *session) circumvented(ctx context.Context) ([]journal.Evasion, error) {
	if s.Evidence.Circumvented == nil || s.base.Digest == "" {
		return nil, nil
	}
	findings, err := s.Evidence.Circumvented(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for circumvention: %w", err)
	}
	if len(findings) == 0 {
		return nil, nil
	}
	return findings, s.note(s.entry(journal.TypeCircumvention, journal.Circumvention{Findings: findings}))
}

// standing says how much passed verifiers prove: one that a person named, always; one that belay detected, where it
// was red on the base tree and the files that decide what passes judge it as they were. A model's judgement alone
// proves nothing.
func (s *session) standing(proofs []journal.Proof) *Outcome {
	out := &Outcome{Exit: ExitUnverified, Standing: verify.NoRegression, Reason: "finished, no regression: what passed before still passes", Proof: proofs}
	unsure := func(format string, args ...any) {
		out.Standing, out.Reason = verify.Unverified, "finished, unverified: "+fmt.Sprintf(format, args...)
	}
	judged := true
	for i, p := range proofs {
		judged = judged && verify.Level(p.Level) == verify.Judged
		switch {
		case p.Tests != nil && p.Tests.Run == 0:
			unsure("`%s` executed no test, so that it proves nothing", p.Command)
		case verify.Level(p.Level) == verify.Judged:
		case s.Verifiers[i].Named(), p.RedBefore && (len(p.TestsChanged) == 0 || p.TestsAsWas):
			if path := written(p.Inputs); path != "" {
				unsure("`%s` passes, but the run wrote %s, which no commit holds: what passes here may fail elsewhere", p.Command, path)
				return out
			}
			out.Exit, out.Standing, out.Reason = ExitProved, verify.Proved, "finished and proved: the harness ran the verifiers itself and they pass"
			return out
		case p.RedBefore:
			unsure("`%s` was red and is green, but the run itself changed what decides that (%s). Look at it, or name the verifier with --verify", p.Command, someOf(p.TestsChanged))
		}
	}
	if judged {
		out.Standing, out.Reason = verify.JudgedOnly, "finished and judged, not proved: a model finds that it meets the rubric, and nothing stronger was asked"
	}
	return out
}

// written is an input beside the tree that the run wrote, "" where there is none.
func written(inputs []journal.Input) string {
	for _, i := range inputs {
		if i.Changed {
			return i.Path
		}
	}
	return ""
}
