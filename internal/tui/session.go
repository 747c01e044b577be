package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"belay/internal/render"
	"belay/journal"
	"belay/message"
	"belay/model"
)

// session is the state of the screen. Everything that counts is in the journal.
type session struct {
	Config
	ctx     context.Context
	send    func(tea.Msg)
	working sync.WaitGroup

	width, height int
	seen          transcript
	up            int // lines that the view is scrolled up from the end
	input         editor
	history       []string
	past          int // place in history, len(history) is the new text
	cards         []*card
	queue         []string // said while it works, for afterwards
	inbox         *inbox   // for the next turn
	offers        []string // completions of the word at the cursor
	offer         int

	busy     bool
	stop     context.CancelFunc
	began    time.Time
	what     string
	typing   strings.Builder
	frame    int
	ended    string
	note     string    // one line for the person, until the next key
	leaveBy  time.Time // a second Ctrl-C until then leaves
	blurred  bool
	quitting bool

	runID    string
	plan     journal.Plan
	showPlan bool
	usage    message.Usage
	cost     message.Cost
	turns    int
	context  int64 // tokens of the last request
	cached   float64
	level    string
}

// inbox holds what the next turn is told.
type inbox struct {
	mu    sync.Mutex
	texts []string
}

func (b *inbox) put(texts ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.texts = append(b.texts, texts...)
}

func (b *inbox) take() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	texts := b.texts
	b.texts = nil
	return texts
}

// What arrives from outside.
type (
	eventMsg    struct{ e journal.Event }
	deltaMsg    struct{ e model.Event }
	progressMsg string
	askMsg      struct {
		q      journal.Question
		answer chan<- journal.Answer
	}
	askedMsg struct{ id string } // a question that was answered elsewhere, or is no longer asked
	endedMsg struct {
		ended Ended
		err   error
	}
	outputMsg struct {
		title, text string
		err         error
		anew        bool // the run is to be drawn again
	}
	tickMsg   time.Time
	editedMsg struct {
		text string
		err  error
	}
	loadedMsg struct {
		seen  transcript
		state *session
		err   error
	}
)

func newSession(ctx context.Context, cfg Config) *session {
	s := &session{Config: cfg, ctx: ctx, send: func(tea.Msg) {}, inbox: &inbox{}, showPlan: true}
	s.seen = transcript{color: cfg.Color}
	s.resize(80, 24)
	return s
}

func (s *session) Init() tea.Cmd {
	cmds := []tea.Cmd{s.tick()}
	if s.Sandbox != nil {
		cmds = append(cmds, func() tea.Msg { return levelMsg(s.Sandbox(s.ctx)) })
	}
	if s.Events != nil && s.Events() != nil {
		cmds = append(cmds, s.load())
	}
	if s.Prompt != "" {
		text := s.Prompt
		cmds = append(cmds, func() tea.Msg { return submitMsg(text) })
	}
	return tea.Batch(cmds...)
}

// levelMsg is what the sandbox would be, until a run says what it is.
type levelMsg string

// submitMsg says something as if it had been typed.
type submitMsg string

func (s *session) tick() tea.Cmd {
	return tea.Tick(100*time.Millisecond, func(t time.Time) tea.Msg { return tickMsg(t) })
}

// load draws the run from its journal, away from the screen.
func (s *session) load() tea.Cmd {
	seen, events := s.seen, s.Events
	width := s.width
	return func() tea.Msg {
		seen.reset(width)
		state := &session{Config: s.Config, inbox: &inbox{}}
		var texts int
		for e, err := range events() {
			if err != nil {
				return loadedMsg{err: err}
			}
			if e.Type == journal.TypeModelReply {
				texts++
			}
		}
		n := 0
		for e, err := range events() {
			if err != nil {
				return loadedMsg{err: err}
			}
			if e.Type == journal.TypeModelReply {
				n++
			}
			state.take(e)
			seen.add(e, texts-n < setMost)
		}
		return loadedMsg{seen: seen, state: state}
	}
}

// take keeps what the status shows of an event.
func (s *session) take(e journal.Event) {
	s.runID = e.RunID
	switch e.Type {
	case journal.TypeSessionStart:
		var p journal.SessionStart
		if e.Decode(&p) == nil {
			s.level, s.Mode = p.Sandbox, p.Mode
			s.Model, s.Bounds = p.Model.ID, p.Bounds
			if p.Model.ContextWindow > 0 {
				s.Window = p.Model.ContextWindow
			}
		}
	case journal.TypeModelCall:
		var p journal.ModelCall
		if e.Decode(&p) == nil && p.Purpose == "" {
			s.context = p.Estimate
		}
	case journal.TypeModelReply:
		var p journal.ModelReply
		if e.Decode(&p) == nil {
			s.usage, s.cost = s.usage.Add(p.Usage), s.cost+p.Cost
			if read := p.Usage.Input + p.Usage.CacheRead + p.Usage.CacheWrite; p.Purpose == "" && read > 0 {
				s.context, s.cached = read, float64(p.Usage.CacheRead)/float64(read)
				s.turns++
			}
		}
	case journal.TypePlan:
		var p journal.Plan
		if e.Decode(&p) == nil {
			s.plan = p
		}
	}
}

func (s *session) resize(width, height int) {
	s.width, s.height = max(20, width), max(8, height)
	if s.seen.teller == nil {
		s.seen.reset(s.width)
	}
}

// Update takes what happens. It never waits.
func (s *session) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		changed := msg.Width != s.width
		s.resize(msg.Width, msg.Height)
		if changed {
			return s, s.redraw()
		}
	case tea.FocusMsg:
		s.blurred = false
	case tea.BlurMsg:
		s.blurred = true
	case tea.MouseWheelMsg:
		if msg.Button == tea.MouseWheelUp {
			s.scroll(3)
		} else {
			s.scroll(-3)
		}
	case tea.PasteMsg:
		return s, s.paste(msg.Content)
	case tea.KeyPressMsg:
		return s, s.press(msg)
	case levelMsg:
		if s.level == "" {
			s.level = string(msg)
			return s, s.redraw()
		}
	case submitMsg:
		return s, s.submit(string(msg))
	case loadedMsg:
		return s, s.loaded(msg)
	case eventMsg:
		s.typing.Reset()
		s.take(msg.e)
		s.follow(func() { s.seen.add(msg.e, true) })
		s.what = ""
		if open := s.seen.teller.Open(); len(open) == 1 {
			s.what = open[0]
		} else if len(open) > 1 {
			s.what = fmt.Sprintf("%d calls", len(open))
		}
	case deltaMsg:
		switch msg.e.Kind {
		case model.TextDelta, model.ThinkingDelta:
			s.typing.WriteString(msg.e.Delta)
		case model.CallStarted:
			s.what = "a call of " + render.Line(msg.e.Name) + " is arriving"
		}
	case progressMsg:
		s.what = render.Line(string(msg))
	case askMsg:
		s.cards = append(s.cards, &card{q: msg.q, answer: msg.answer, opened: time.Now(), details: msg.q.Explanation != nil})
		return s, s.notify("belay asks: " + render.Cut(render.Line(msg.q.Text), 80))
	case askedMsg:
		s.cards = slices.DeleteFunc(s.cards, func(c *card) bool { return c.q.ID == msg.id })
	case endedMsg:
		return s, s.finished(msg)
	case outputMsg:
		if msg.anew && msg.err == nil && s.Events != nil {
			s.note = render.Line(msg.title) + " is done"
			return s, s.load()
		}
		s.follow(func() { s.shown(msg) })
	case editedMsg:
		if msg.err != nil {
			s.note = msg.err.Error()
		} else {
			s.input.set(strings.TrimRight(msg.text, "\n"))
		}
	case tickMsg:
		s.frame++
		return s, s.tick()
	}
	return s, nil
}

// redraw tells everything anew for another width, or in full.
func (s *session) redraw() tea.Cmd {
	if s.Events == nil || s.Events() == nil {
		if len(s.seen.lines) == 0 {
			s.seen.reset(s.width)
		}
		return nil
	}
	return s.load()
}

func (s *session) loaded(msg loadedMsg) tea.Cmd {
	if msg.err != nil {
		s.note = "the journal cannot be drawn: " + msg.err.Error()
		return nil
	}
	if msg.seen.width != s.width || msg.seen.full != s.seen.full {
		return s.load() // it has changed meanwhile
	}
	s.seen = msg.seen
	o := msg.state
	s.runID, s.plan, s.usage, s.cost, s.turns, s.context, s.cached, s.level = o.runID, o.plan, o.usage, o.cost, o.turns, o.context, o.cached, o.level
	if o.Model != "" {
		s.Model, s.Bounds, s.Window = o.Model, o.Bounds, o.Window
	}
	return nil
}

// follow keeps the view where it is while lines are added below, and at the end where it was there.
func (s *session) follow(add func()) {
	before := len(s.seen.lines)
	add()
	if s.up > 0 {
		s.up += max(0, len(s.seen.lines)-before)
	}
}

func (s *session) scroll(lines int) {
	s.up = max(0, min(s.up+lines, len(s.seen.lines)-1))
}

// submit takes what was typed: a command, a shell line, a note, or words for the agent.
func (s *session) submit(text string) tea.Cmd {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil
	}
	s.history = append(s.history, text)
	s.past = len(s.history)
	s.up = 0
	switch {
	case strings.HasPrefix(text, "/"):
		return s.command(strings.TrimSpace(text[1:]))
	case strings.HasPrefix(text, "!") && s.Shell != nil:
		line := strings.TrimSpace(text[1:])
		return s.outside("! "+line, func(ctx context.Context) (string, error) { return s.Shell(ctx, line) })
	case strings.HasPrefix(text, "#") && s.Config.Remember != nil:
		note := strings.TrimSpace(text[1:])
		return s.outside("remembered", func(context.Context) (string, error) { return note, s.Config.Remember(note) })
	case s.busy:
		s.queue = append(s.queue, text)
		s.note = "queued; Enter once more tells it at the next turn"
		return nil
	}
	return s.start(text)
}

// outside does something beside the agent and shows what came of it.
func (s *session) outside(title string, do func(context.Context) (string, error)) tea.Cmd {
	return func() tea.Msg {
		text, err := do(s.ctx)
		return outputMsg{title: title, text: text, err: err}
	}
}

func (s *session) shown(msg outputMsg) {
	screen := render.Screen{Color: s.Color}
	s.seen.push("", screen.Bold("  "+render.Line(msg.title)))
	for line := range strings.SplitSeq(strings.TrimRight(render.Clean(msg.text), "\n"), "\n") {
		if line != "" {
			s.seen.push("  " + render.Cut(strings.ReplaceAll(line, "\t", "    "), max(20, s.width-3)))
		}
	}
	if msg.err != nil {
		s.seen.push("  " + screen.Bad("! "+render.Line(msg.err.Error())))
	}
}

// start has the agent work.
func (s *session) start(text string) tea.Cmd {
	ctx, cancel := context.WithCancel(s.ctx)
	s.busy, s.stop, s.began, s.what, s.ended = true, cancel, time.Now(), "starting", ""
	s.working.Add(1)
	send := s.send
	with := Work{
		Observe:  func(e journal.Event) { send(eventMsg{e}) },
		Delta:    func(e model.Event) { send(deltaMsg{e}) },
		Progress: func(what string) { send(progressMsg(what)) },
		Inbox:    s.inbox.take,
		Ask: func(ctx context.Context, q journal.Question) (journal.Answer, error) {
			answer := make(chan journal.Answer, 1)
			send(askMsg{q, answer})
			select {
			case a := <-answer:
				return a, nil
			case <-ctx.Done():
				send(askedMsg{q.ID})
				return journal.Answer{}, ctx.Err()
			}
		},
	}
	work := s.Work
	return func() tea.Msg {
		defer s.working.Done()
		defer cancel()
		ended, err := work(ctx, text, with)
		return endedMsg{ended, err}
	}
}

// stopWork asks the agent to stop in order.
func (s *session) stopWork() {
	if s.stop != nil {
		s.stop()
	}
}

func (s *session) finished(msg endedMsg) tea.Cmd {
	s.busy, s.what, s.stop, s.note = false, "", nil, ""
	s.cards = nil
	s.typing.Reset()
	if msg.ended.RunID != "" {
		s.runID = msg.ended.RunID
	}
	s.ended = msg.ended.Reason
	if msg.err != nil {
		s.follow(func() { s.seen.push("", "  "+render.Screen{Color: s.Color}.Bad("! "+render.Line(msg.err.Error()))) })
	}
	if s.quitting {
		return tea.Quit
	}
	said := append(s.inbox.take(), s.queue...)
	s.queue = nil
	if len(said) > 0 && msg.err == nil {
		return s.start(strings.Join(said, "\n\n"))
	}
	return s.notify("belay has stopped: " + render.Cut(render.Line(s.ended), 80))
}

// notify rings where the person looks elsewhere.
func (s *session) notify(text string) tea.Cmd {
	if !s.blurred {
		return nil
	}
	return tea.Raw("\x07\x1b]9;" + strings.ReplaceAll(text, "\x07", "") + "\x07")
}
