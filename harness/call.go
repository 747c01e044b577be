package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"

	"belay/effect"
	"belay/journal"
	"belay/loop"
	"belay/message"
	"belay/model"
	"belay/tool"
	"belay/tools"
)

// ToolCall is a call of a person's own.
type ToolCall struct {
	Name string          `json:"tool"`
	Args json.RawMessage `json:"args"`
}

// Envelope is what came of it: the result as the model would read it, and the judgement before it.
type Envelope struct {
	Tool    string         `json:"tool"`
	Class   effect.Class   `json:"class"`
	Verdict effect.Verdict `json:"verdict"`
	Rule    string         `json:"rule,omitempty"`
	Reason  string         `json:"reason,omitempty"`
	Effects effect.Set     `json:"effects"`
	tool.Result
	Truncated  bool         `json:"truncated,omitempty"` // Text is a cut of the whole, which Raw names
	Raw        *journal.Ref `json:"raw,omitempty"`
	DurationMS int64        `json:"duration_ms"`
}

// Call runs tool calls as the loop would (planned, judged, in the sandbox, recorded in a run of their own) and returns
// what came of each. Config.Task and a model are not needed.
func Call(ctx context.Context, cfg Config, calls []ToolCall) ([]Envelope, Result, error) {
	cfg.Client, cfg.Model, cfg.Verify = person{}, "", nil
	if len(calls) == 0 {
		return nil, Result{}, &UsageError{errors.New("there is no call to make")}
	}
	cfg.Task = "call " + calls[0].Name
	if n := len(calls); n > 1 {
		cfg.Task = fmt.Sprintf("%s and %d more", cfg.Task, n-1)
	}
	log := &callLog{results: map[string]tool.Result{}, shown: cfg.Observe}
	cfg.Observe, cfg.wrapTools = log.observe, log.wrap
	runID := journal.NewRunID()
	a, err := build(ctx, cfg, runID)
	if err != nil {
		return nil, Result{}, err
	}
	a.loop.Verifiers = nil
	result, err := a.begin(ctx, runID, cfg, func(ctx context.Context, c loop.Config) (loop.Outcome, error) {
		var asked []message.ToolCall
		for i, call := range calls {
			asked = append(asked, askedFor(i, call))
		}
		return loop.Call(ctx, c, asked)
	})
	return log.envelopes, result, err
}

func askedFor(i int, c ToolCall) message.ToolCall {
	call := message.ToolCall{ID: fmt.Sprintf("call_%d", i+1), Name: c.Name, Args: c.Args}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(c.Args, &object); err != nil || object == nil {
		call.BadArgs = "they are no JSON object"
		if err != nil {
			call.BadArgs = err.Error()
		}
		call.Args, _ = json.Marshal(string(c.Args)) // a string cannot fail
	}
	return call
}

// person stands where a model would: it is never asked.
type person struct{}

func (person) Info() model.Info {
	return model.Info{Provider: "person", Model: "calls", Scripted: true, Price: &message.Price{}}
}

func (person) Stream(context.Context, model.Request) iter.Seq2[model.Event, error] {
	return func(yield func(model.Event, error) bool) {
		yield(model.Event{}, &model.Error{Class: model.Environment, Message: "nobody is asked here: the calls are a person's"})
	}
}

// callLog puts together what the tools returned and what the journal says of it.
type callLog struct {
	mu        sync.Mutex
	results   map[string]tool.Result // by call id
	requests  []journal.ToolRequest
	envelopes []Envelope
	shown     func(journal.Event)
}

func (l *callLog) observe(e journal.Event) {
	if l.shown != nil {
		l.shown(e)
	}
	switch e.Type {
	case journal.TypeToolRequest:
		var p journal.ToolRequest
		if e.Decode(&p) == nil {
			l.requests = append(l.requests, p)
		}
	case journal.TypeToolResult:
		var p journal.ToolResult
		if e.Decode(&p) == nil {
			l.envelopes = append(l.envelopes, l.envelope(p))
		}
	}
}

// envelope completes what the journal keeps of a result with what only programs read.
func (l *callLog) envelope(p journal.ToolResult) Envelope {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := Envelope{Truncated: p.Truncated, Raw: p.Raw, DurationMS: p.DurationMS, Effects: effect.Set{}}
	for _, r := range l.requests {
		if r.CallID == p.CallID {
			out.Tool, out.Class, out.Verdict, out.Rule, out.Reason = r.Tool, r.Class, r.Permission.Verdict, r.Permission.Rule, r.Permission.Reason
			out.Effects = append(out.Effects, r.Effects...)
		}
	}
	result, ran := l.results[p.CallID]
	if !ran {
		result = tool.Result{Error: &tool.Failure{Code: tool.Code(p.Code), Message: p.Text}}
	}
	result.Status, result.Summary, result.Text = tool.Status(p.Status), p.Summary, p.Text
	result.Stats.Bytes, result.Stats.Exit, result.Stats.Denied = p.Size, p.Exit, p.Denied
	out.Result = result
	return out
}

func (l *callLog) wrap(registry *tool.Registry) (*tool.Registry, error) {
	var wrapped []tool.Tool
	for _, spec := range registry.Specs() {
		t, _ := registry.Lookup(spec.Name)
		wrapped = append(wrapped, heard{t, l})
	}
	return tool.NewRegistry(wrapped...)
}

// heard is a tool whose results are kept.
type heard struct {
	tool.Tool
	log *callLog
}

func (h heard) Run(ctx context.Context, env tool.Env, call tool.Call) (tool.Result, error) {
	result, err := h.Tool.Run(ctx, env, call)
	h.log.mu.Lock()
	defer h.log.mu.Unlock()
	h.log.results[call.ID] = result
	return result, err
}

// ToolSpecs describes the standard tools.
func ToolSpecs() []tool.Spec {
	var specs []tool.Spec
	for _, t := range tools.Standard() {
		specs = append(specs, t.Spec())
	}
	return specs
}
