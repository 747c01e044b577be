package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"belay/journal"
)

// NotifyCommand is a person's own command that tells somebody of a question. It gets the question as JSON on standard input, and
// may print an answer as JSON.
type NotifyCommand struct {
	Line    string        // for sh
	Timeout time.Duration // 0 is DefaultNotifyTimeout; a question's own timeout holds where it has one
}

// DefaultNotifyTimeout is how long a notify command may take.
const DefaultNotifyTimeout = time.Minute

// maxNotified bounds what is read of its output.
const maxNotified = 64 << 10

// notify runs the person's command for a question; nil where there is none. It runs as the person, outside the sandbox. What
// goes wrong with it is told, and is no answer.
func (a *agent) notify(cfg Config, runID string) func(context.Context, journal.Question) (journal.Answer, bool) {
	if strings.TrimSpace(cfg.Notify.Line) == "" {
		return nil
	}
	say := cfg.Progress
	if say == nil {
		say = func(string) {}
	}
	return func(ctx context.Context, q journal.Question) (journal.Answer, bool) {
		text, err := json.Marshal(struct {
			RunID     string           `json:"run_id"`
			Workspace string           `json:"workspace"`
			Question  journal.Question `json:"question"`
			Answer    string           `json:"answer_with"` // a command
			File      string           `json:"answer_file"` // or a file {"choice": …, "reason": …}
		}{runID, a.place.Workspace, q, "belay answer " + runID + " " + q.ID + " CHOICE", answerFile(filepath.Join(journal.RunsDir(a.home), runID), q.ID)})
		if err != nil {
			return journal.Answer{}, false
		}
		limit := cfg.Notify.Timeout
		if q.TimeoutMS > 0 {
			limit = time.Duration(q.TimeoutMS) * time.Millisecond
		} else if limit == 0 {
			limit = DefaultNotifyTimeout
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		cmd := exec.CommandContext(ctx, "sh", "-c", cfg.Notify.Line)
		cmd.Dir, cmd.Env, cmd.Stdin = a.place.Home, os.Environ(), bytes.NewReader([]byte(a.secrets.Text(string(text))))
		cmd.WaitDelay = time.Second
		out := &capped{limit: maxNotified}
		cmd.Stdout = out
		if err := cmd.Run(); err != nil {
			if ctx.Err() == nil {
				say("the notify command failed: " + err.Error())
			}
			return journal.Answer{}, false
		}
		said := bytes.TrimSpace(out.Bytes())
		if len(said) == 0 {
			return journal.Answer{}, false
		}
		var answer journal.Answer
		if err := json.Unmarshal(said, &answer); err != nil || fits(q, answer.Choice) != nil {
			say("the notify command printed no answer: it is {\"choice\": …} with one of the question's options")
			return journal.Answer{}, false
		}
		return journal.Answer{Choice: answer.Choice, Reason: a.secrets.Text(answer.Reason), By: "notify", Who: answer.Who}, true
	}
}

// capped keeps the beginning of what is written.
type capped struct {
	bytes.Buffer
	limit int
}

func (c *capped) Write(p []byte) (int, error) {
	if room := c.limit - c.Len(); room > 0 {
		c.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
