package tui

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"belay/journal"
	"belay/message"
)

// pasteMost is the size in bytes above which a pasted text becomes an attachment.
const pasteMost = 4000

// press takes a key.
func (s *session) press(msg tea.KeyPressMsg) tea.Cmd {
	key := msg.String()
	s.note = ""
	switch key {
	case "ctrl+c":
		return s.interrupt()
	case "ctrl+d":
		if s.input.value() == "" && !s.busy {
			return tea.Quit
		}
	case "pgup":
		s.scroll(s.bodyHeight() - 2)
		return nil
	case "pgdown":
		s.scroll(2 - s.bodyHeight())
		return nil
	case "ctrl+home":
		s.scroll(len(s.seen.lines))
		return nil
	case "ctrl+end":
		s.up = 0
		return nil
	case "ctrl+o":
		s.seen.full = !s.seen.full
		return s.redraw()
	case "ctrl+p":
		s.showPlan = !s.showPlan
		return nil
	case "ctrl+g":
		return s.edit()
	}
	if len(s.cards) > 0 {
		return s.answer(s.cards[0], key, msg)
	}
	switch key {
	case "esc":
		if len(s.offers) > 0 {
			s.offers = nil
			return nil
		}
		if s.busy {
			s.stopWork()
			s.note = "stopping"
		}
		return nil
	case "shift+tab":
		return s.nextMode()
	case "tab":
		if len(s.offers) > 0 {
			s.accept()
			return nil
		}
	case "up":
		if len(s.offers) > 0 {
			s.offer = (s.offer + len(s.offers) - 1) % len(s.offers)
			return nil
		}
		if n, _ := s.input.line(); n == 0 {
			s.recall(-1)
			return nil
		}
	case "down":
		if len(s.offers) > 0 {
			s.offer = (s.offer + 1) % len(s.offers)
			return nil
		}
		if n, _ := s.input.line(); n == s.input.lines()-1 {
			s.recall(1)
			return nil
		}
	case "enter":
		if len(s.offers) > 0 && s.offers[s.offer] != s.word() {
			s.accept()
			return nil
		}
		s.offers = nil
		text := s.input.value()
		if strings.TrimSpace(text) == "" && len(s.queue) > 0 {
			s.inbox.put(s.queue...)
			s.queue, s.note = nil, "told at the next turn"
			return nil
		}
		s.input.reset()
		return s.submit(text)
	}
	if s.input.key(key, msg.Text) {
		s.offerWords()
	}
	return nil
}

// answer gives a key to the card on top.
func (s *session) answer(c *card, key string, msg tea.KeyPressMsg) tea.Cmd {
	typed := c.because || len(c.q.Options) == 0
	switch {
	case typed && key == "enter":
		text := s.input.value()
		if strings.TrimSpace(text) == "" && !c.because {
			return nil
		}
		s.input.reset()
		s.reply(c, c.words(text))
		return nil
	case typed && key == "esc" && c.because:
		c.because = false
		s.input.reset()
		return nil
	case typed:
		s.input.key(key, msg.Text)
		return nil
	}
	if choice, done := c.key(key, time.Now()); done {
		s.reply(c, journal.Answer{Choice: choice})
	}
	return nil
}

func (s *session) reply(c *card, a journal.Answer) {
	c.answer <- a
	s.cards = slices.DeleteFunc(s.cards, func(o *card) bool { return o == c })
	for _, next := range s.cards {
		next.opened = time.Now() // the guard holds for each
	}
}

// interrupt stops the turn the first time, and leaves the second.
func (s *session) interrupt() tea.Cmd {
	now := time.Now()
	second := now.Before(s.leaveBy)
	s.leaveBy = now.Add(2 * time.Second)
	switch {
	case second && s.busy:
		s.quitting = true
		s.stopWork()
		s.note = "leaving when the turn has stopped"
	case second:
		return tea.Quit
	case s.busy:
		s.stopWork()
		s.note = "stopping; Ctrl-C again leaves"
	case s.input.value() != "":
		s.input.reset()
		s.note = "Ctrl-C again leaves"
	default:
		s.note = "Ctrl-C again leaves"
	}
	return nil
}

func (s *session) recall(by int) {
	if len(s.history) == 0 {
		return
	}
	s.past = max(0, min(s.past+by, len(s.history)))
	text := ""
	if s.past < len(s.history) {
		text = s.history[s.past]
	}
	s.input.set(text)
}

func (s *session) nextMode() tea.Cmd {
	if s.SetMode == nil || len(s.Modes) == 0 {
		return nil
	}
	next := s.Modes[(slices.Index(s.Modes, s.Mode)+1)%len(s.Modes)]
	if err := s.SetMode(next); err != nil {
		s.note = err.Error()
		return nil
	}
	s.Mode = next
	s.note = "mode " + next
	if s.busy {
		s.note += " from the next message on"
	}
	return nil
}

// paste takes a text from the clipboard. A large one becomes a file that the agent can read.
func (s *session) paste(text string) tea.Cmd {
	if len(text) <= pasteMost {
		s.input.insert(strings.ReplaceAll(text, "\r", "\n"))
		s.offerWords()
		return nil
	}
	file, err := os.CreateTemp(s.Workspace, ".pasted-*.txt")
	if err == nil {
		_, err = file.WriteString(text)
		if closed := file.Close(); err == nil {
			err = closed
		}
	}
	if err != nil {
		s.note = "the pasted text cannot be kept: " + err.Error()
		return nil
	}
	s.input.insert("@" + strings.TrimPrefix(file.Name(), s.Workspace+"/") + " ")
	s.note = fmt.Sprintf("%d bytes were pasted into a file of the workspace", len(text))
	return nil
}

// edit opens the person's own editor for the text.
func (s *session) edit() tea.Cmd {
	words := strings.Fields(s.Editor)
	if len(words) == 0 {
		s.note = "no editor: set EDITOR"
		return nil
	}
	file, err := os.CreateTemp("", "belay-*.md")
	if err != nil {
		s.note = err.Error()
		return nil
	}
	_, err = file.WriteString(s.input.value())
	file.Close()
	if err != nil {
		s.note = err.Error()
		return nil
	}
	return tea.ExecProcess(exec.Command(words[0], append(words[1:], file.Name())...), func(err error) tea.Msg {
		defer os.Remove(file.Name())
		text, readErr := os.ReadFile(file.Name())
		if err == nil {
			err = readErr
		}
		return editedMsg{string(text), err}
	})
}

// word is what is typed at the end: what completions are about.
func (s *session) word() string {
	text := s.input.value()
	if at := strings.LastIndexAny(text, " \n"); at >= 0 {
		return text[at+1:]
	}
	return text
}

const mostOffers = 8

// offerWords looks for completions: commands behind a slash at the start, paths behind an @.
func (s *session) offerWords() {
	s.offers, s.offer = nil, 0
	word := s.word()
	switch {
	case strings.HasPrefix(word, "/") && word == s.input.value():
		for _, c := range s.allCommands() {
			if strings.HasPrefix("/"+c.Name, word) {
				s.offers = append(s.offers, "/"+c.Name)
			}
		}
	case strings.HasPrefix(word, "@") && s.Files != nil:
		for _, path := range s.Files(word[1:]) {
			s.offers = append(s.offers, "@"+path)
		}
	}
	if len(s.offers) > mostOffers {
		s.offers = s.offers[:mostOffers]
	}
}

func (s *session) accept() {
	text := s.input.value()
	chosen := s.offers[s.offer]
	text = strings.TrimSuffix(text, s.word()) + chosen
	if !strings.HasSuffix(chosen, "/") {
		text += " "
	}
	s.input.set(text)
	s.offers = nil
	if strings.HasSuffix(chosen, "/") {
		s.offerWords()
	}
}

// own are the commands of the session itself.
var own = []Command{
	{"help", "what can be typed here"}, {"plan", "show or hide the plan"}, {"mode", "what may happen without asking"}, {"cost", "what it took so far"},
	{"clear", "begin a new run with an empty context"}, {"quit", "leave; the run can be gone on with"},
}

func (s *session) allCommands() []Command {
	all := append(slices.Clone(own), s.Commands...)
	slices.SortFunc(all, func(a, b Command) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// command runs a slash command.
func (s *session) command(line string) tea.Cmd {
	name, rest, _ := strings.Cut(line, " ")
	switch name {
	case "quit", "exit":
		if s.busy {
			s.quitting = true
			s.stopWork()
			return nil
		}
		return tea.Quit
	case "help":
		s.follow(func() { s.shown(outputMsg{title: "help", text: s.helpText()}) })
		return nil
	case "plan":
		if rest == "" {
			s.showPlan = !s.showPlan
			if len(s.plan.Steps) == 0 {
				s.note = "there is no plan yet"
			}
			return nil
		}
	case "mode":
		if rest == "" {
			return s.nextMode()
		}
		if s.SetMode == nil {
			break
		}
		if err := s.SetMode(rest); err != nil {
			s.note = err.Error()
			return nil
		}
		s.Mode = rest
		return nil
	case "cost":
		s.follow(func() { s.shown(outputMsg{title: "cost", text: s.costText()}) })
		return nil
	}
	known := slices.ContainsFunc(s.allCommands(), func(c Command) bool { return c.Name == name })
	if !known || s.Command == nil {
		s.note = "there is no /" + name + "; /help lists the commands"
		return nil
	}
	if name == "clear" {
		if s.busy {
			s.note = "it is working; Esc stops it"
			return nil
		}
		s.runID, s.plan, s.turns, s.usage, s.cost, s.context = "", journal.Plan{}, 0, message.Usage{}, 0, 0
		s.seen.reset(s.width)
	}
	do := s.outside("/"+line, func(ctx context.Context) (string, error) { return s.Command(ctx, line) })
	if name != "resume" && name != "rewind" && name != "compact" {
		return do
	}
	return func() tea.Msg { // what has happened is another story now
		out := do().(outputMsg)
		out.anew = true
		return out
	}
}
