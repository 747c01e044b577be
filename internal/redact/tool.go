package redact

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"belay/tool"
	"belay/verify"
)

// hiding is a tool whose results hold placeholders before anybody cuts or stores them.
type hiding struct {
	tool.Tool
	r *Redactor
}

// Tools wraps every tool of a registry.
func (r *Redactor) Tools(registry *tool.Registry) (*tool.Registry, error) {
	var all []tool.Tool
	for _, spec := range registry.Specs() {
		t, _ := registry.Lookup(spec.Name)
		all = append(all, hiding{t, r})
	}
	return tool.NewRegistry(all...)
}

// Run hides what the tool itself brings, which may be none of what its environment gave it. A placeholder that the
// environment refused is the model's mistake, and not the harness's.
func (h hiding) Run(ctx context.Context, env tool.Env, call tool.Call) (tool.Result, error) {
	result, err := h.Tool.Run(ctx, env, call)
	var mistake *tool.Mistake
	if errors.As(err, &mistake) {
		result, err = tool.Fail(mistake.Failure), nil
	}
	if err != nil {
		return result, err
	}
	result.Summary, result.Text = h.r.Text(result.Summary), h.r.Text(result.Text)
	if len(result.Data) > 0 {
		result.Data = mapStrings(result.Data, h.r.member)
	}
	if result.Error != nil {
		failure := *result.Error
		failure.Message, failure.Hint = h.r.Text(failure.Message), h.r.Text(failure.Hint)
		result.Error = &failure
	}
	return result, nil
}

// verifier is a verifier whose name and report hold placeholders.
type verifier struct {
	verify.Verifier
	r *Redactor
}

// Verifier wraps a verifier.
func (r *Redactor) Verifier(v verify.Verifier) verify.Verifier { return verifier{v, r} }

func (v verifier) Name() string { return v.r.Text(v.Verifier.Name()) }

func (v verifier) Level() verify.Level { return verify.LevelOf(v.Verifier) }

func (v verifier) Counts() bool { return verify.Counts(v.Verifier) }

func (v verifier) Verify(ctx context.Context) (verify.Report, error) {
	return v.hide(v.Verifier.Verify(ctx))
}

func (v verifier) VerifyOver(ctx context.Context, over verify.Over) (verify.Report, error) {
	o, ok := v.Verifier.(verify.Overlaid)
	if !ok {
		return verify.Report{}, errors.ErrUnsupported
	}
	return v.hide(o.VerifyOver(ctx, over))
}

func (v verifier) hide(report verify.Report, err error) (verify.Report, error) {
	if f := report.Failure; f != nil {
		hidden := verify.Failure{Test: v.r.Text(f.Test), File: v.r.Text(f.File), Line: f.Line, Message: v.r.Text(f.Message), Expected: v.r.Text(f.Expected), Got: v.r.Text(f.Got)}
		report.Failure = &hidden
	}
	report.Verifier, report.Summary = v.r.Text(report.Verifier), v.r.Text(report.Summary)
	if hidden := v.r.Text(report.Output); hidden != report.Output {
		sum := sha256.Sum256([]byte(hidden))
		report.Output, report.LogHash = hidden, hex.EncodeToString(sum[:])
	}
	return report, err
}
