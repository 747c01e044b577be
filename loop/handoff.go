package loop

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"belay/handoff"
	"belay/journal"
	"belay/message"
	"belay/tool"
)

// keeper folds events into what a reader without context needs to know.
type keeper struct {
	said     []string // by the person; the first is the objective
	tree     handoff.Tree
	done     []handoff.Done
	failed   []string // the latest last
	lastWord string   // of the model
	lastCall string
	calls    map[string]string
	refs     []string
}

// keptFailures is how many of the latest failures a note tells.
const keptFailures = 5

// prompt is what the person said last.
func (k *keeper) prompt() string {
	if len(k.said) == 0 {
		return ""
	}
	return k.said[len(k.said)-1]
}

func (k *keeper) apply(e *decoded) error {
	switch e.Type {
	case journal.TypeSessionStart:
		var p journal.SessionStart
		if err := e.Decode(&p); err != nil {
			return err
		}
		k.tree.Commit = p.Head
	case journal.TypeUserMessage:
		var p journal.UserMessage
		if err := e.Decode(&p); err != nil {
			return err
		}
		if p.By == "" {
			k.said = append(k.said, p.Text)
		}
	case journal.TypeModelReply:
		var p journal.ModelReply
		if err := e.Decode(&p); err != nil {
			return err
		}
		if p.Purpose != "" {
			break
		}
		if text := strings.TrimSpace(message.PlainText(p.Blocks)); text != "" {
			k.lastWord = text
		}
	case journal.TypeToolRequest:
		var p journal.ToolRequest
		if err := e.Decode(&p); err != nil {
			return err
		}
		if k.calls == nil {
			k.calls = map[string]string{}
		}
		k.lastCall = strings.TrimSpace(p.Tool + " " + p.Summary)
		k.calls[p.CallID] = strings.TrimSpace(p.Tool + " " + p.Summary)
	case journal.TypeToolResult:
		var p journal.ToolResult
		if err := e.Decode(&p); err != nil {
			return err
		}
		k.result(e.Seq, p)
	case journal.TypeVerify:
		var p journal.Verify
		if err := e.Decode(&p); err != nil {
			return err
		}
		k.verified(e.Seq, p)
	}
	return nil
}

func (k *keeper) result(seq int64, p journal.ToolResult) {
	call := k.calls[p.CallID]
	delete(k.calls, p.CallID)
	switch {
	case p.Status == string(tool.Error) && p.Code != string(tool.Unverified):
		k.fail(fmt.Sprintf("%s: %s (event %d)", call, orNothing(p.Summary), seq))
	case len(p.Wrote) > 0:
		k.done = append(k.done, handoff.Done{What: call, Evidence: fmt.Sprintf("event %d", seq)})
		for _, file := range p.Wrote {
			if !slices.Contains(k.tree.Changed, file) {
				k.tree.Changed = append(k.tree.Changed, file)
			}
		}
	}
	if p.Raw != nil {
		k.refs = append(k.refs, fmt.Sprintf("whole output of %s: blob %s (event %d)", call, p.Raw.Hash, seq))
	}
}

func (k *keeper) verified(seq int64, p journal.Verify) {
	word := "failed"
	if p.OK {
		word = "passed"
	}
	line := fmt.Sprintf("`%s` %s (%s, event %d)", p.Verifier, word, p.Summary, seq)
	if p.Base {
		line += " on the tree before any change"
	} else if !p.OK {
		k.fail(line)
	}
	k.tree.Tests = line
}

// fail keeps the latest failures, each once.
func (k *keeper) fail(what string) {
	k.failed = append(k.failed, what)
	if len(k.failed) > keptFailures {
		k.failed = k.failed[1:]
	}
}

// handOff writes the note for the next reader and returns its file name, "" where nobody keeps notes.
func (s *session) handOff(out Outcome) (string, error) {
	if s.Handoff == nil {
		return "", nil
	}
	k := s.keep
	n := handoff.Note{
		Run: s.Log.RunID(), Seq: s.guard.seq, Reason: out.Reason, Exit: int(out.Exit), Workspace: s.Place.Workspace,
		Done: k.done, Tree: k.tree, Failed: k.failed, Refs: append(k.refs, "the whole story: `belay show "+s.Log.RunID()+"`"),
	}
	if len(k.said) > 0 {
		n.Objective, n.Constraints = k.said[0], k.said[1:]
	}
	for i, file := range n.Tree.Changed {
		if rel, err := filepath.Rel(s.Place.Workspace, file); err == nil {
			n.Tree.Changed[i] = rel
		}
	}
	if out.Exit != ExitInterrupted { // reading a large tree would keep the person waiting
		if tree, err := s.Tree(context.Background()); err == nil {
			n.Tree.Digest = tree.Digest
			if s.base.Digest != "" && tree.Digest != s.base.Digest && len(n.Tree.Changed) == 0 {
				n.Done = append(n.Done, handoff.Done{What: "commands changed files: compare the tree with the one before, or ask git", Evidence: "the tree's digest was " + s.base.Digest})
			}
		}
	}
	s.plans.tell(&n)
	for _, v := range s.Verifiers {
		n.Verify = append(n.Verify, v.Name())
	}
	switch {
	case out.Exit == ExitProved:
	case k.lastWord != "":
		n.Next = "Go on where the model stopped; its last words were: " + k.lastWord
	case k.lastCall != "":
		n.Next = "Go on where the model stopped; its last call was: " + k.lastCall
	}
	switch out.Exit {
	case ExitWaiting, ExitFailed:
		n.Questions = []string{out.Reason}
	}
	return s.Handoff(n)
}
