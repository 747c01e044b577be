package cli

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"belay/harness"
	"belay/internal/config"
	"belay/internal/judge"
	"belay/internal/permissions"
	"belay/internal/render"
	"belay/message"
	"belay/model"
	"belay/policy"
)

// judgeMeasured is what `belay policy judge --json` prints.
type judgeMeasured struct {
	Model string        `json:"model"`
	Usage message.Usage `json:"usage"`
	Cost  message.Cost  `json:"cost_usd"`
	judge.Measured
}

func (a *app) policyJudgeCommand() *cobra.Command {
	var name, file, cases, effort string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "judge",
		Short: "Measure how well a model judges in autonomous mode, on labelled cases",
		Long: `In autonomous mode a model judges every call of class 3 before it runs. This asks it about labelled cases, those that ship or your
own, in the two stages in which a run asks it, with the rules under judge: of the policy files, and says how often it lets run
what must not (false allow) and blocks what may (false block). A case is one line of JSON:
{"id": "…", "label": "allow" or "block", "said": ["the person's words"], "earlier": [{"tool": "Bash", "runs": "…"}], "tool": "Bash", "runs": "…", "why": "…"}`,
		Example: `  belay policy judge --model anthropic:NAME
  belay policy judge --model openai:NAME --cases mine.jsonl --json | jq .false_allow_rate
  belay policy judge --policy .belay/permissions.yaml`,
		Args: exactly(0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, _, err := a.settings("", config.Settings{})
			if err != nil {
				return err
			}
			if name == "" {
				if name = s.Judge; name == "" {
					name = s.Model
				}
			}
			if name == "" {
				return usagef("name the model that judges: --model PROVIDER:NAME")
			}
			rules, err := judgeRules(file)
			if err != nil {
				return err
			}
			set, err := judge.Cases()
			if cases != "" {
				f, openErr := os.Open(cases)
				if openErr != nil {
					return usagef("%w", openErr)
				}
				defer f.Close()
				if set, err = judge.ReadCases(cases, f); err != nil {
					return usagef("%w", err)
				}
			}
			if err != nil {
				return err
			}
			known, err := a.known()
			if err != nil {
				return err
			}
			client, err := harness.Connect(harness.Config{Model: name, KeyFiles: s.KeyFiles, Known: known, Effort: effort})
			if err != nil {
				return err
			}
			result := judgeMeasured{Model: client.Info().ID()}
			var fault error
			result.Measured, err = judge.Measure(cmd.Context(), judge.Rules(rules), set, func(ctx context.Context, r model.Request) (model.Reply, error) {
				reply, err := insist(ctx, client, r)
				result.Usage = result.Usage.Add(reply.Usage)
				if price := client.Info().Price; price != nil {
					result.Cost += price.Of(reply.Usage)
				}
				if err != nil && fault == nil && !model.AsError(err).Retryable() {
					fault = err
				}
				return reply, err
			})
			if err == nil && fault != nil && result.Errors == result.Second+result.Cases { // nothing was ever answered
				err = fault
			}
			if err != nil {
				return err
			}
			if asJSON {
				return a.json(result)
			}
			return a.lines(result.lines(a.screen())...)
		},
	}
	cmd.Flags().StringVar(&name, "model", "", "the `model` that judges (default: the judge's of the settings, else the model itself)")
	cmd.Flags().StringVar(&effort, "effort", "", "how much it is to think")
	cmd.Flags().StringVar(&cases, "cases", "", "labelled cases of your own, a `file` with one a line (default: those that ship)")
	cmd.Flags().StringVar(&file, "policy", "", "rules of this policy `file` alone (default: of all that hold here)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// insist asks a model again where that may help.
func insist(ctx context.Context, client model.Client, r model.Request) (reply model.Reply, err error) {
	const tries = 5
	wait := time.Second
	for try := 1; ; try++ {
		reply, err = model.Collect(client.Stream(ctx, r), nil)
		if err == nil || try == tries || ctx.Err() != nil {
			return reply, err
		}
		failure := model.AsError(err)
		if !failure.Retryable() {
			return reply, err
		}
		select {
		case <-time.After(max(wait, min(failure.RetryAfter, time.Minute))):
		case <-ctx.Done():
		}
		wait *= 2
	}
}

// judgeRules are what the policy files tell the judge.
func judgeRules(file string) (policy.Prose, error) {
	dir, err := os.Getwd()
	if err != nil {
		return policy.Prose{}, err
	}
	if file != "" {
		f, err := permissions.ReadFile(file, dir)
		if err != nil {
			return policy.Prose{}, usagef("%w", err)
		}
		return f.Rules.Prose, nil
	}
	layers, err := policyLayers(dir)
	if err != nil {
		return policy.Prose{}, err
	}
	rules, _ := permissions.Merge(layers...)
	return rules.Prose, nil
}

func (m judgeMeasured) lines(s render.Screen) []string {
	var lines []string
	for _, w := range m.Wrong {
		word := s.Bad("let run ")
		if w.Label == "allow" {
			word = s.Alarm("blocked ")
		}
		lines = append(lines, word+" "+render.Line(w.ID)+"  "+render.Line(w.Runs), s.Dim("           a person: "+render.Line(w.Why)), s.Dim("           the judge: "+render.Line(w.Reason)))
	}
	return append(lines,
		s.Bold(render.Line(m.Model))+fmt.Sprintf(" on %d cases", m.Cases),
		fmt.Sprintf("  false allow  %5.1f %%  (%d of %d that must not run)", 100*m.AllowRate, m.FalseAllow, m.Block),
		fmt.Sprintf("  false block  %5.1f %%  (%d of %d that may run)", 100*m.BlockRate, m.FalseBlock, m.Allow),
		s.Dim(fmt.Sprintf("  second stage %d, lifted %d, errors %d · %s tokens in, %s out (%s from a cache) · %s", m.Second, m.Lifted, m.Errors,
			render.Count(m.Usage.Total()-m.Usage.Output), render.Count(m.Usage.Output), render.Count(m.Usage.CacheRead), m.Cost)))
}
