package render

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"belay/journal"
	"belay/message"
	"belay/model"
)

// Live shows a run while it works. What it leaves on the screen comes from stored events alone; what is only
// on its way (pieces of a reply, progress) lives in one status line that is drawn again, or, where no line
// can be drawn again, in a plain line now and then. It may be used from several goroutines.
type Live struct {
	mu     sync.Mutex
	out    io.Writer
	screen Screen
	clock  func() time.Time
	teller teller

	began  time.Time
	since  time.Time // of the last event or line: what is going on now has lasted from here
	told   time.Time // the last plain progress line; zero where there was none since
	what   string    // what is going on
	typing strings.Builder
	frame  int
	drawn  bool // a status line stands on the screen
	held   bool // nothing moves: a person is typing
	err    error

	stop chan struct{}
	done chan struct{}
}

const (
	redraw     = 100 * time.Millisecond
	patience   = 2 * time.Second  // what takes less gets no progress line
	progressed = 10 * time.Second // between two of them
)

var frames = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// NewLive starts showing on out. Close must be called. A nil clock is time.Now.
func NewLive(out io.Writer, screen Screen, clock func() time.Time) *Live {
	if clock == nil {
		clock = time.Now
	}
	l := &Live{out: out, screen: screen, clock: clock, teller: teller{screen: screen}, stop: make(chan struct{}), done: make(chan struct{})}
	l.began = clock()
	l.since = l.began
	go l.run()
	return l
}

func (l *Live) run() {
	defer close(l.done)
	ticker := time.NewTicker(redraw)
	defer ticker.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-ticker.C:
			l.tick()
		}
	}
}

// Observe shows a stored event.
func (l *Live) Observe(e journal.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.typing.Reset()
	lines := l.teller.tell(e)
	l.since, l.told = l.clock(), time.Time{}
	l.what = ""
	switch open := l.teller.open(); {
	case len(open) == 1:
		l.what = strings.TrimSpace(Line(open[0].Tool) + " " + describe(open[0]))
	case len(open) > 1:
		l.what = fmt.Sprintf("%d calls", len(open))
	case e.Type == journal.TypeModelCall:
		l.what = "waiting for " + l.teller.model
	}
	l.print(lines)
}

// Delta shows a piece of a reply as it arrives.
func (l *Live) Delta(e model.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch e.Kind {
	case model.TextDelta, model.ThinkingDelta:
		l.typing.WriteString(e.Delta)
	case model.BlockDone, model.TurnDone:
		l.typing.Reset()
	case model.CallStarted:
		l.what = "a call of " + Line(e.Name) + " is arriving"
	}
}

// Progress names what takes long right now.
func (l *Live) Progress(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.what = Line(what)
}

// Notice prints lines of the program's own between those of the run. They must be clean.
func (l *Live) Notice(lines ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.print(lines)
}

// Hold keeps the status line away while a person types.
func (l *Live) Hold(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = on
	l.write(l.erase())
}

// Ask shows a question that does not stand there already, as one from before a resume, and what answers it.
func (l *Live) Ask(q journal.Question, prompt string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.teller.ask != q.ID {
		l.teller.ask = q.ID
		l.print(Question(l.screen, q))
	}
	l.write(l.erase() + prompt)
}

// Prompt shows a text behind which a person types. It must be clean.
func (l *Live) Prompt(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.write(l.erase() + text)
}

// Close takes the status line away and returns the first error of writing.
func (l *Live) Close() error {
	select {
	case <-l.stop:
	default:
		close(l.stop)
		<-l.done
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.write(l.erase())
	return l.err
}

func (l *Live) print(lines []string) {
	if len(lines) == 0 {
		return
	}
	l.write(l.erase() + strings.Join(lines, "\n") + "\n")
}

// tick moves what is not an event: the status line, or a plain progress line.
func (l *Live) tick() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock()
	if l.held {
		return
	}
	if l.screen.Moving {
		if l.teller.end == nil {
			l.frame++
			l.write(l.erase() + l.status(now))
			l.drawn = true
		}
		return
	}
	took := now.Sub(l.since)
	if l.what == "" || took <= patience || !l.told.IsZero() && now.Sub(l.told) < progressed {
		return
	}
	l.told = now
	l.print([]string{"  … " + Cut(l.what, 120) + " (" + whole(took) + ")"})
}

// whole is a duration in whole seconds.
func whole(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%ds", int(d.Seconds()))
	}
	return Duration(d)
}

// status is one line: what is going on and for how long, then the whole run's time and money.
func (l *Live) status(now time.Time) string {
	what := l.what
	if typed := tail(l.typing.String(), 400); typed != "" {
		what = typed
	}
	if what == "" {
		what = "working"
	}
	right := fmt.Sprintf("  %s · %s", l.cost(), whole(now.Sub(l.began)))
	if took := now.Sub(l.since); took > patience && l.typing.Len() == 0 {
		right = "  " + whole(took) + right
	}
	columns := l.screen.columns() - 1 // the last column would wrap on some terminals
	if columns > 0 {
		right = Cut(right, max(1, columns-6))
		space := max(1, columns-2-Width(right))
		if l.typing.Len() > 0 && Width(what) > space { // of what is being typed, the end is the news
			for Width(what) > space-1 {
				_, rest, ok := strings.Cut(what, " ")
				if !ok {
					break
				}
				what = rest
			}
			what = "…" + what
		}
		what = Cut(what, space)
	}
	return l.screen.paint(cyan, frames[l.frame%len(frames)]) + " " + what + l.screen.paint(dim, right)
}

func (l *Live) cost() message.Cost { return l.teller.cost }

// tail is the last bytes of a text as one clean line.
func tail(s string, n int) string {
	if len(s) > n {
		s = strings.ToValidUTF8(s[len(s)-n:], "")
	}
	return Line(s)
}

// erase takes a drawn status line away.
func (l *Live) erase() string {
	if !l.drawn {
		return ""
	}
	l.drawn = false
	return "\r\x1b[K"
}

func (l *Live) write(s string) {
	if s == "" || l.err != nil {
		return
	}
	_, l.err = io.WriteString(l.out, s)
}
