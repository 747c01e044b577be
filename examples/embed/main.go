// Command embed is an agent in thirty lines: a tool, a policy and a verifier of its own, and belay around them.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"belay"
	"belay/effect"
	"belay/harness"
	"belay/policy"
	"belay/tool"
	"belay/verify"
)

func main() {
	belay.Init() // first: the sandbox runs this program again as its helper
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: embed WORKSPACE MODEL")
		os.Exit(2)
	}
	workspace, model := os.Args[1], os.Args[2]
	result, err := harness.Run(context.Background(), harness.Config{
		Task: "Write the weather in Oslo into weather.txt.", Workspace: workspace, Model: model,
		Tools: []tool.Tool{weather{}}, Judge: onlyText, Verifiers: []verify.Verifier{hasWeather{workspace}},
	})
	fmt.Printf("%s: %s\n", result.Standing, result.Reason)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(int(result.Exit))
}

// onlyText refuses to write anything but text files: more than the built-in policy does.
func onlyText(a policy.Action, _ policy.Situation) policy.Decision {
	for _, e := range a.Effects {
		if e.Kind == effect.Write && len(e.Target) > 4 && e.Target[len(e.Target)-4:] != ".txt" {
			return policy.Decision{Verdict: effect.Deny, Rule: "only-text", Reason: "this agent writes text files"}
		}
	}
	return policy.Decision{Verdict: effect.Allow}
}

// weather is a tool: what it is, what a call would do, and doing it.
type weather struct{}

func (weather) Spec() tool.Spec {
	return tool.Spec{Name: "Weather", Description: "The weather in a city. Example: {\"city\": \"Oslo\"}", Replay: tool.Pure,
		Schema: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}`)}
}

func (weather) Plan(_ tool.Place, call tool.Call) (tool.Plan, error) {
	return tool.Plan{Summary: string(call.Args)}, nil // it touches nothing
}

func (weather) Run(context.Context, tool.Env, tool.Call) (tool.Result, error) {
	return tool.Result{Status: tool.Success, Text: "snow, -3 °C"}, nil
}

// hasWeather is a verifier that a person chose: the file must say what the tool said.
type hasWeather struct{ workspace string }

func (hasWeather) Name() string { return "weather.txt says snow" }
func (hasWeather) Named() bool  { return true }

func (v hasWeather) Verify(context.Context) (verify.Report, error) {
	text, err := os.ReadFile(v.workspace + "/weather.txt")
	return verify.Report{Verifier: v.Name(), OK: err == nil && string(text) == "snow\n", Summary: "looked into the file", Output: string(text)}, nil
}
