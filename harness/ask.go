package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"belay/journal"
	"belay/loop"
)

// answersDir holds, in a run's directory, answers from elsewhere that a waiting run takes up.
const answersDir = "answers"

// lookEvery is how often a waiting run looks for them.
const lookEvery = 200 * time.Millisecond

// asker asks the person who is there, and takes an answer that comes from elsewhere before.
func (a *agent) asker(cfg Config, runID string) func(context.Context, journal.Question) (journal.Answer, error) {
	if cfg.Ask == nil {
		return nil
	}
	type said struct {
		answer journal.Answer
		err    error
	}
	notify, left := a.notify(cfg, runID), a.left(runID)
	told := map[string]bool{}
	return func(ctx context.Context, q journal.Question) (journal.Answer, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		answered := make(chan said, 2)
		go func() {
			answer, err := cfg.Ask(ctx, q)
			answered <- said{a.own(answer), err}
		}()
		if notify != nil && !told[q.ID] {
			told[q.ID] = true
			go func() {
				if answer, found := notify(ctx, q); found {
					answered <- said{answer, nil}
				}
			}()
		}
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		for {
			select {
			case s := <-answered:
				return s.answer, s.err
			case <-ticker.C:
				answer, found, err := left(q)
				if found || err != nil {
					return answer, err
				}
			case <-ctx.Done():
				return journal.Answer{}, ctx.Err()
			}
		}
	}
}

// own is an answer of the person who started this process.
func (a *agent) own(answer journal.Answer) journal.Answer {
	answer.Who, answer.Reason = account(), a.secrets.Text(answer.Reason)
	return answer
}

// account is the name under which this process runs.
func account() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return os.Getenv("USER")
}

// left takes answers that were left in the run's directory.
func (a *agent) left(runID string) func(journal.Question) (journal.Answer, bool, error) {
	dir := filepath.Join(journal.RunsDir(a.home), runID)
	return func(q journal.Question) (journal.Answer, bool, error) {
		answer, found, err := takeAnswer(dir, q)
		answer.Reason = a.secrets.Text(answer.Reason)
		return answer, found, err
	}
}

func answerFile(dir, id string) string { return filepath.Join(dir, answersDir, id+".json") }

// takeAnswer reads an answer that another process, or a person, has left, and removes it. One that is none stays nowhere: the
// question is still open.
func takeAnswer(dir string, q journal.Question) (a journal.Answer, found bool, err error) {
	data, err := os.ReadFile(answerFile(dir, q.ID))
	if errors.Is(err, fs.ErrNotExist) {
		return a, false, nil
	}
	if err != nil {
		return a, false, fmt.Errorf("read the answer to %s: %w", q.ID, err)
	}
	if err := os.Remove(answerFile(dir, q.ID)); err != nil {
		return a, false, fmt.Errorf("take the answer to %s: %w", q.ID, err)
	}
	if json.Unmarshal(data, &a) != nil || fits(q, a.Choice) != nil {
		return journal.Answer{}, false, nil
	}
	a.ID, a.By = q.ID, "user"
	return a, true, nil
}

// fits says why a choice is no answer to a question.
func fits(q journal.Question, choice string) error {
	var ids []string
	for _, o := range q.Options {
		ids = append(ids, o.ID)
	}
	switch {
	case strings.TrimSpace(choice) == "":
		return errors.New("an answer says something")
	case len(ids) == 0 || slices.Contains(ids, choice):
		return nil
	case choice == loop.AnswerExplain && q.Kind == "permission":
		return nil
	}
	return fmt.Errorf("%q is no answer to %s: choose one of %s", choice, q.ID, strings.Join(ids, ", "))
}

// OpenQuestions lists the questions of a run that have no answer yet, the oldest first.
func OpenQuestions(dir string) ([]journal.Question, error) {
	var open []journal.Question
	for e, err := range journal.Read(dir) {
		if err != nil {
			return nil, err
		}
		switch e.Type {
		case journal.TypeQuestion:
			var q journal.Question
			if err := e.Decode(&q); err != nil {
				return nil, err
			}
			open = slices.DeleteFunc(open, func(o journal.Question) bool { return o.ID == q.ID })
			open = append(open, q)
		case journal.TypeAnswer:
			var a journal.Answer
			if err := e.Decode(&a); err != nil {
				return nil, err
			}
			open = slices.DeleteFunc(open, func(o journal.Question) bool { return o.ID == a.ID })
		case journal.TypeUserMessage: // the person has spoken: that says whether it happened
			var m journal.UserMessage
			if err := e.Decode(&m); err != nil {
				return nil, err
			}
			open = slices.DeleteFunc(open, func(o journal.Question) bool { return o.Kind == "outcome" && m.By == "" })
		case journal.TypeToolResult: // a call that is settled needs no answer
			var r journal.ToolResult
			if err := e.Decode(&r); err != nil {
				return nil, err
			}
			open = slices.DeleteFunc(open, func(o journal.Question) bool { return o.CallID != "" && o.CallID == r.CallID })
		}
	}
	return open, nil
}

// Answer answers a question of a run: into its journal where nobody writes it, else to the process that waits. Live says
// which. It can be answered once; a choice must be one of its options where there are any.
func Answer(home, runID string, a journal.Answer) (live bool, err error) {
	home, err = stateDir(home)
	if err != nil {
		return false, &UsageError{err}
	}
	dir := filepath.Join(journal.RunsDir(home), runID)
	open, err := OpenQuestions(dir)
	if err != nil {
		return false, err
	}
	at := slices.IndexFunc(open, func(q journal.Question) bool { return q.ID == a.ID })
	if at < 0 {
		var ids []string
		for _, q := range open {
			ids = append(ids, q.ID)
		}
		if len(ids) == 0 {
			return false, &UsageError{fmt.Errorf("run %s asks nothing", runID)}
		}
		return false, &UsageError{fmt.Errorf("run %s does not ask %s; open are: %s", runID, a.ID, strings.Join(ids, ", "))}
	}
	if err := fits(open[at], a.Choice); err != nil {
		return false, &UsageError{err}
	}
	a.By, a.Who = "user", account()
	log, err := journal.Open(dir, nil)
	if errors.Is(err, journal.ErrBusy) {
		return true, leaveAnswer(dir, a)
	}
	if err != nil {
		return false, err
	}
	defer log.Close()
	if a.Choice == loop.AnswerExplain {
		return false, &UsageError{fmt.Errorf("run %s does not wait right now, so nothing explains it: resume it on a terminal and answer ? there", runID)}
	}
	secrets, err := openSecrets(home, runID, nil)
	if err != nil {
		return false, err
	}
	_, err = secrets.Log(log).Append(journal.Entry{Type: journal.TypeAnswer, Payload: a})
	return false, err
}

// leaveAnswer puts an answer where the process that waits for it looks. One that is there already stays.
func leaveAnswer(dir string, a journal.Answer) error {
	if err := os.MkdirAll(filepath.Join(dir, answersDir), 0o700); err != nil {
		return err
	}
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Join(dir, answersDir), ".new-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(text)
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Link(tmp.Name(), answerFile(dir, a.ID))
	}
	err = errors.Join(err, os.Remove(tmp.Name()))
	if errors.Is(err, fs.ErrExist) {
		return &UsageError{fmt.Errorf("%s was answered already, and the run is about to read it", a.ID)}
	}
	return err
}
