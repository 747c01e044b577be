// Package conformance asks a model small questions of which the right call is known, and says which ones it got right.
package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"belay/message"
	"belay/model"
)

// Outcome is what became of one probe.
type Outcome struct {
	Probe string  `json:"probe"`
	About string  `json:"about"`
	OK    bool    `json:"ok"`
	Why   string  `json:"why,omitempty"`
	Error bool    `json:"error,omitempty"` // the model could not be asked: says nothing about it
	MS    int64   `json:"ms"`
	USD   float64 `json:"usd"`
}

// probe is a conversation of one or more requests. Each step looks at a reply and gives the results of its calls, nil to end.
type probe struct {
	name, about string
	tools       []model.Tool
	system      string
	ask         string
	choice      model.Choice
	oneCall     bool
	answer      json.RawMessage
	look        []func(model.Reply) ([]message.ToolResult, error)
}

// Count is how many probes there are.
func Count() int { return len(probes()) }

// Run asks every probe, and tells of each when it is done. It ends early with ctx's error. Requests are numbered through all probes,
// whatever became of the ones before, so that a script's turns can be one after the other.
func Run(ctx context.Context, client model.Client, tell func(Outcome)) ([]Outcome, error) {
	var all []Outcome
	asked := 0
	for _, p := range probes() {
		start := time.Now()
		o := Outcome{Probe: p.name, About: p.about}
		err := p.run(ctx, client, asked, &o)
		asked += len(p.look)
		if ctx.Err() != nil {
			return all, ctx.Err()
		}
		var refused *model.Error
		if o.OK = err == nil; err != nil {
			o.Why, o.Error = err.Error(), errors.As(err, &refused)
		}
		o.MS = time.Since(start).Milliseconds()
		all = append(all, o)
		if tell != nil {
			tell(o)
		}
	}
	return all, nil
}

func (p probe) run(ctx context.Context, client model.Client, asked int, o *Outcome) error {
	system := p.system
	if system == "" {
		system = "You call tools exactly as you are asked to. Do not explain."
	}
	req := model.Request{System: system, Tools: p.tools, Messages: []message.Message{message.UserText(p.ask)}, Choice: p.choice, OneCall: p.oneCall, Answer: p.answer}
	for i, look := range p.look {
		req.Replies = asked + i
		reply, err := model.Collect(client.Stream(ctx, req), nil)
		if price := client.Info().Price; price != nil {
			o.USD += price.Of(reply.Usage).Dollars()
		}
		if err != nil {
			return fmt.Errorf("request %d: %w", i+1, err)
		}
		results, err := look(reply)
		if err != nil {
			if len(p.look) > 1 {
				err = fmt.Errorf("reply %d: %w", i+1, err)
			}
			return err
		}
		if results == nil {
			continue
		}
		answers := message.Message{Role: message.User}
		for _, r := range results {
			answers.Blocks = append(answers.Blocks, message.Block{Kind: message.KindResult, Result: &r})
		}
		req.Messages = append(req.Messages, message.Message{Role: message.Assistant, Blocks: reply.Blocks}, answers)
	}
	return nil
}

func object(properties string, required ...string) json.RawMessage {
	need, _ := json.Marshal(required)
	return json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{` + properties + `},"required":` + string(need) + `}`)
}

var (
	echo = func() model.Tool {
		return model.Tool{Name: "echo", Description: "Returns its text unchanged.", Schema: object(`"text":{"type":"string"}`, "text")}
	}
	add = func() model.Tool {
		return model.Tool{Name: "add", Description: "Adds two integers.", Schema: object(`"a":{"type":"integer"},"b":{"type":"integer"}`, "a", "b")}
	}
	lookup = func() model.Tool {
		return model.Tool{Name: "lookup", Description: "Looks up the value of a key in a table.", Schema: object(`"key":{"type":"string"}`, "key")}
	}
	weather = func() model.Tool {
		return model.Tool{Name: "weather", Description: "The weather in a city now.", Schema: object(`"city":{"type":"string"},"unit":{"type":"string","enum":["celsius","fahrenheit"]}`, "city", "unit")}
	}
	clock = func() model.Tool {
		return model.Tool{Name: "clock", Description: "The time now. Takes no arguments.", Schema: object("")}
	}
	order = func() model.Tool {
		return model.Tool{Name: "order", Description: "Orders items.", Schema: object(`"customer":{"type":"object","additionalProperties":false,"properties":{"name":{"type":"string"},"vip":{"type":"boolean"}},"required":["name","vip"]},"items":{"type":"array","items":{"type":"object","additionalProperties":false,"properties":{"sku":{"type":"string"},"count":{"type":"integer"}},"required":["sku","count"]}}`, "customer", "items")}
	}
	set = func() model.Tool {
		return model.Tool{Name: "set", Description: "Sets options.", Schema: object(`"on":{"type":"boolean"},"ratio":{"type":"number"},"label":{"type":["string","null"]}`, "on", "ratio", "label")}
	}
)

// calls wants exactly these calls, in any order where there are several: name and arguments in turn.
func calls(want ...string) func(model.Reply) ([]message.ToolResult, error) {
	return callsThen(nil, want...)
}

// callsThen is calls, and answers each of them with a text.
func callsThen(answer func(call message.ToolCall) message.ToolResult, want ...string) func(model.Reply) ([]message.ToolResult, error) {
	return func(r model.Reply) ([]message.ToolResult, error) {
		got := message.Calls(r.Blocks)
		if len(got) != len(want)/2 {
			return nil, fmt.Errorf("%d calls, want %d%s", len(got), len(want)/2, saying(r))
		}
		if r.Stop != message.StopToolUse {
			return nil, fmt.Errorf("it called and stopped with %q", r.Stop)
		}
		left := append([]string(nil), want...)
		ids := map[string]bool{}
		results := []message.ToolResult{}
		for _, call := range got {
			if call.ID == "" || ids[call.ID] {
				return nil, fmt.Errorf("the call id %q is empty or there twice", call.ID)
			}
			ids[call.ID] = true
			if call.BadArgs != "" {
				return nil, fmt.Errorf("the arguments of %s are no JSON object: %s", call.Name, call.BadArgs)
			}
			found := -1
			for i := 0; i < len(left); i += 2 {
				if left[i] == call.Name && equalJSON(call.Args, left[i+1]) {
					found = i
					break
				}
			}
			if found < 0 {
				return nil, fmt.Errorf("called %s(%s), want %s", call.Name, cut(string(call.Args), 120), cut(strings.Join(left, " "), 120))
			}
			left = append(left[:found], left[found+2:]...)
			if answer != nil {
				results = append(results, answer(call))
			}
		}
		if answer == nil {
			return nil, nil
		}
		return results, nil
	}
}

func equalJSON(a json.RawMessage, b string) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

// says wants a text without a call that holds all of these, whatever their case.
func says(want ...string) func(model.Reply) ([]message.ToolResult, error) {
	return func(r model.Reply) ([]message.ToolResult, error) {
		if n := len(message.Calls(r.Blocks)); n > 0 {
			return nil, fmt.Errorf("%d calls, want none", n)
		}
		text := message.PlainText(r.Blocks)
		for _, w := range want {
			if !strings.Contains(strings.ToLower(text), strings.ToLower(w)) {
				return nil, fmt.Errorf("it says %q, want %q in it", cut(text, 120), w)
			}
		}
		return nil, nil
	}
}

func saying(r model.Reply) string {
	if text := message.PlainText(r.Blocks); text != "" {
		return fmt.Sprintf("; it says %q", cut(text, 80))
	}
	return ""
}

func answer(text string, failed bool) func(message.ToolCall) message.ToolResult {
	return func(c message.ToolCall) message.ToolResult {
		return message.ToolResult{CallID: c.ID, Text: text, Error: failed}
	}
}

func cut(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

func quoted(s string) string { b, _ := json.Marshal(s); return string(b) }
