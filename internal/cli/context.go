package cli

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"belay/internal/projection"
	"belay/internal/render"
	"belay/journal"
	"belay/loop"
)

// sent is what --json prints about one request.
type sent struct {
	RunID string `json:"run_id"`
	projection.Context
	Request json.RawMessage `json:"request"` // canonical: what the context's hash is made of
}

func (a *app) contextCommand() *cobra.Command {
	var asJSON bool
	var turn int
	var policy policyFlag
	cmd := &cobra.Command{
		Use:   "context RUN",
		Short: "Show the exact request that the model was sent at a turn",
		Long: `Show the exact request that the model was sent at a turn: system prompt, tools and messages, recomputed from the
journal alone and compared with the hash that was recorded when it was sent. Exit 1 where they differ.

With --context-policy, show what another policy would have sent there instead: answers and results as they were, and a
summary by belay itself where the policy wants one.

With --json, "request" is the canonical JSON that ctx_hash is made of; docs/contracts/journal.md says how.`,
		Example:           "  belay context last\n  belay context last --turn 3\n  belay context r_01k5 --turn 3 --context-policy 1m\n  belay context r_01k5 --turn 3 --json | jq '.request.messages[-1]'",
		Args:              oneRun,
		ValidArgsFunction: a.completeRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("turn") && turn < 1 {
				return usagef("--turn counts from 1; leave it out for the last turn")
			}
			runID, dir, err := a.find(args[0])
			if err == nil {
				err = readable(dir)
			}
			if err != nil {
				return err
			}
			if policy.file != "" {
				return a.showOther(runID, dir, turn, policy, asJSON)
			}
			return a.showContext(runID, dir, turn, asJSON)
		},
	}
	cmd.Flags().IntVar(&turn, "turn", 0, "the turn `N`, from 1 (default: the last)")
	policy.register(cmd.Flags(), "show what this policy would have sent: a `file`, or 200k or 1m")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	a.completeFlags(cmd)
	return cmd
}

func (a *app) showContext(runID, dir string, turn int, asJSON bool) error {
	request, found, err := projection.At(journal.Read(dir), turn)
	if errors.Is(err, projection.ErrNoTurn) {
		return usagef("run %s: %w", runID, err)
	}
	if err != nil {
		return damaged(err, runID)
	}
	canonical, err := projection.Canonical(request)
	if err != nil {
		return err
	}
	if asJSON {
		b, encodeErr := compact(sent{runID, found, canonical})
		if err = encodeErr; err == nil {
			_, err = a.out.Write(b)
		}
	} else {
		screen := a.screen()
		verdict := screen.Bad(string(found.Verdict)) + "  " + render.Line(found.Detail)
		if found.Verdict == projection.Proved {
			verdict = screen.Good(string(found.Verdict)) + "  the journal gives the very context that was recorded when it was sent"
		}
		lines := []string{
			screen.Bold(fmt.Sprintf("turn %d", found.Turn)) + screen.Dim(fmt.Sprintf("  of %s · event %d · %d messages · %s bytes", runID, found.Seq, len(request.Messages), render.Count(int64(len(canonical))))),
			"context " + render.Line(found.CtxHash),
			verdict, "",
		}
		err = a.lines(append(lines, render.Request(screen, request)...)...)
	}
	if err == nil && found.Verdict != projection.Proved {
		return outcome(loop.ExitFault)
	}
	return err
}
