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

// typed is a line that a person typed, and when it came.
type typed struct {
	text string
	at   time.Time
}

// keyboard reads lines as they come. What was typed ahead stays in order for whoever reads next.
type keyboard struct {
	in    io.Reader
	once  sync.Once
	lines chan typed
	ahead []typed // read, and not an answer: they came before the question
}

// typedAhead is how many lines may wait.
const typedAhead = 1024

func newKeyboard(in io.Reader) *keyboard {
	return &keyboard{in: in, lines: make(chan typed, typedAhead)}
}

func (k *keyboard) read() {
	go func() {
		in := bufio.NewReader(k.in)
		for {
			text, err := in.ReadString('\n')
			if err == nil || text != "" {
				k.lines <- typed{strings.TrimRight(text, "\r\n"), time.Now()}
			}
			if err != nil {
				close(k.lines)
				return
			}
		}
	}()
}

// next is the next line, whenever it was typed. It ends with io.EOF.
func (k *keyboard) next(ctx context.Context) (string, error) {
	if len(k.ahead) > 0 {
		line := k.ahead[0]
		k.ahead = k.ahead[1:]
		return line.text, nil
	}
	line, err := k.receive(ctx)
	return line.text, err
}

// after is the next line that was typed after a moment. Those before it stay for next.
func (k *keyboard) after(ctx context.Context, moment time.Time) (string, error) {
	for {
		line, err := k.receive(ctx)
		if err != nil || line.at.After(moment) {
			return line.text, err
		}
		k.ahead = append(k.ahead, line)
	}
}

func (k *keyboard) receive(ctx context.Context) (typed, error) {
	k.once.Do(k.read)
	select {
	case <-ctx.Done():
		return typed{}, ctx.Err()
	case line, more := <-k.lines:
		if !more {
			return typed{}, io.EOF
		}
		return line, nil
	}
}

// terminal asks the person in front of the screen, in plain lines.
type terminal struct {
	live *render.Live
	keys *keyboard
}

// guardTime is how long after a question nothing that is typed counts: a stray key accepts nothing.
const guardTime = 400 * time.Millisecond

// ask waits for an answer that is one of the question's, or for words where it has no options. The question itself is on the
// screen already. What was typed before it is no answer.
func (t *terminal) ask(ctx context.Context, q journal.Question) (journal.Answer, error) {
	t.live.Hold(true)
	defer t.live.Hold(false)
	opened := time.Now().Add(guardTime)
	t.live.Ask(q, prompt(q))
	for {
		line, err := t.keys.after(ctx, opened)
		if errors.Is(err, io.EOF) {
			return journal.Answer{}, loop.ErrNobody
		}
		if err != nil {
			return journal.Answer{}, err
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

// readAnswer reads "once", "o", "no, because it is late", or the person's own words. Behind a choice other than no stands nothing,
// or a reason after a comma, a colon or "because": a sentence that only begins like a choice is none.
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
	bare := strings.TrimRight(word, ",:;.")
	rest = strings.TrimSpace(rest)
	reasoned := rest == "" || bare != word || strings.HasPrefix(rest, "because")
	word = strings.ToLower(bare)
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
	if len(fits) != 1 || !reasoned && fits[0] != loop.AnswerNo {
		return journal.Answer{}, false
	}
	reason := strings.TrimSpace(strings.TrimPrefix(rest, "because"))
	return journal.Answer{Choice: fits[0], Reason: reason}, true
}
