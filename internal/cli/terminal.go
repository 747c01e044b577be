package cli

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"belay/internal/render"
	"belay/journal"
	"belay/loop"
)

// terminal asks the person in front of the screen, in plain lines.
type terminal struct {
	live  *render.Live
	once  sync.Once
	in    io.Reader
	lines chan string
	one   bool // a line is read only when one is wanted: others read from the same place
}

// guardTime is how long after a question nothing that is typed counts: a stray key accepts nothing.
const guardTime = 400 * time.Millisecond

func (t *terminal) read() {
	t.lines = make(chan string)
	go func() {
		in := bufio.NewScanner(t.in)
		for in.Scan() {
			t.lines <- in.Text()
		}
		close(t.lines)
	}()
}

// ask waits for an answer that is one of the question's, or for words where it has no options. The question itself is on the
// screen already.
func (t *terminal) ask(ctx context.Context, q journal.Question) (journal.Answer, error) {
	if t.one {
		return t.askOnce(q)
	}
	t.once.Do(t.read)
	t.live.Hold(true)
	defer t.live.Hold(false)
	opened := time.Now()
	t.live.Prompt(prompt(q))
	for {
		select {
		case <-ctx.Done():
			return journal.Answer{}, ctx.Err()
		case line, more := <-t.lines:
			if !more {
				return journal.Answer{}, errors.New("the terminal is gone")
			}
			if time.Since(opened) < guardTime {
				continue
			}
			if a, ok := readAnswer(q, line); ok {
				return a, nil
			}
			var ids []string
			for _, o := range q.Options {
				ids = append(ids, o.ID)
			}
			hint := ""
			if q.Kind == "permission" {
				hint = "; `no, because …` says why, ? explains"
			}
			t.live.Prompt("  it is one of " + strings.Join(ids, ", ") + hint + ". Your answer: ")
		}
	}
}

// prompt names the keys that answer.
func prompt(q journal.Question) string {
	if q.Kind != "permission" {
		return "  your answer: "
	}
	keys := "y once"
	for _, o := range q.Options {
		switch o.ID {
		case loop.AnswerRun:
			keys += " · r for this run"
		case loop.AnswerAlways:
			keys += " · a always"
		}
	}
	return "  " + keys + " · n no, because … · ? explain: "
}

// readAnswer reads "once", "o", "no, because it is late", or the person's own words.
func readAnswer(q journal.Question, line string) (journal.Answer, bool) {
	line = strings.TrimSpace(line)
	if line == "" && q.Default != "" {
		line = q.Default
	}
	if line == "" {
		return journal.Answer{}, false
	}
	if len(q.Options) == 0 {
		return journal.Answer{Choice: line}, true
	}
	if line == "?" && q.Kind == "permission" {
		return journal.Answer{Choice: loop.AnswerExplain}, true
	}
	word, rest, _ := strings.Cut(line, " ")
	word = strings.ToLower(strings.TrimRight(word, ",:;."))
	var fits []string
	for _, o := range q.Options {
		id := strings.ToLower(o.ID)
		if id == word {
			fits = []string{o.ID}
			break
		}
		if strings.HasPrefix(id, word) {
			fits = append(fits, o.ID)
		}
	}
	if q.Kind == "permission" && word == "yes" || word == "y" && len(fits) == 0 {
		fits = []string{"once"}
	}
	if len(fits) != 1 {
		return journal.Answer{}, false
	}
	reason := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(rest), "because"))
	return journal.Answer{Choice: fits[0], Reason: reason}, true
}

// askOnce reads line by line from a place that is not its own.
func (t *terminal) askOnce(q journal.Question) (journal.Answer, error) {
	in, ok := t.in.(*bufio.Reader)
	if !ok {
		in = bufio.NewReader(t.in)
	}
	t.live.Hold(true)
	defer t.live.Hold(false)
	for {
		t.live.Prompt(prompt(q))
		line, err := in.ReadString('\n')
		if a, ok := readAnswer(q, line); ok {
			return a, nil
		}
		if err != nil {
			return journal.Answer{}, errors.New("the input has ended, and nobody answered")
		}
	}
}
