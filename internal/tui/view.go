package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"belay/internal/render"
	"belay/journal"
)

// inputHint stands where nothing is typed yet.
const inputHint = "Say what to do. / for commands, @ for files, ! for a shell line"

var frames = []string{"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"}

// View draws the screen: what has happened, what is going on, the plan, a question or the input, and the state.
func (s *session) View() tea.View {
	foot := s.foot()
	body := s.body(s.height - len(foot))
	v := tea.NewView(strings.Join(append(body, foot...), "\n"))
	v.AltScreen, v.ReportFocus, v.MouseMode = true, true, tea.MouseModeCellMotion
	v.WindowTitle = "belay"
	return v
}

func (s *session) screen() render.Screen { return render.Screen{Color: s.Color} }

func (s *session) bodyHeight() int { return max(1, s.height-len(s.foot())) }

// body is the visible part of the transcript, with what is just arriving at its end.
func (s *session) body(height int) []string {
	if height <= 0 {
		return nil
	}
	lines := s.seen.lines
	if len(lines) == 0 && s.typing.Len() == 0 {
		lines = s.welcome()
	}
	end := max(0, len(lines)-s.up)
	if s.up == 0 && s.typing.Len() > 0 {
		arriving := s.arriving(height / 2)
		lines = append(lines[:len(lines):len(lines)], arriving...)
		end = len(lines)
	}
	start := max(0, end-height)
	out := make([]string, 0, height)
	for _, line := range lines[start:end] {
		out = append(out, fit(line, s.width))
	}
	for len(out) < height {
		out = append(out, "")
	}
	return out
}

// arriving is the end of the text that is being written.
func (s *session) arriving(most int) []string {
	text := s.typing.String()
	if over := len(text) - 8000; over > 0 {
		text = strings.ToValidUTF8(text[over:], "")
	}
	var lines []string
	for line := range strings.SplitSeq(render.Clean(text), "\n") {
		lines = append(lines, folded("  "+strings.ReplaceAll(line, "\t", "    "), s.width-1)...)
	}
	return lines[max(0, len(lines)-most):]
}

// folded breaks a line into pieces that fit.
func folded(line string, width int) []string {
	var out []string
	for render.Width(line) > width && width > 0 {
		cut := strings.TrimSuffix(render.Cut(line, width+1), "…")
		if cut == "" {
			break
		}
		out = append(out, cut)
		line = strings.TrimPrefix(line[len(cut):], " ")
	}
	return append(out, line)
}

// fit shortens a painted line to the screen: its escape sequences take no room.
func fit(line string, width int) string {
	if !strings.Contains(line, "\x1b") {
		return render.Cut(line, width)
	}
	var b strings.Builder
	room := width
	for i := 0; i < len(line); {
		if line[i] == '\x1b' {
			end := strings.IndexByte(line[i:], 'm')
			if end < 0 {
				break
			}
			b.WriteString(line[i : i+end+1])
			i += end + 1
			continue
		}
		next := strings.IndexByte(line[i:], '\x1b')
		if next < 0 {
			next = len(line) - i
		}
		part := line[i : i+next]
		if w := render.Width(part); w > room {
			b.WriteString(strings.TrimRight(render.Cut(part, room), " ") + "\x1b[0m")
			return b.String()
		} else {
			room -= w
		}
		b.WriteString(part)
		i += next
	}
	return b.String()
}

func (s *session) welcome() []string {
	p := s.screen()
	return []string{"", "  " + p.Bold("belay") + p.Dim("  the model proposes, the harness disposes"), "",
		p.Dim("  in    ") + render.Cut(s.Workspace, s.width-10), p.Dim("  model ") + orNone(s.Model), p.Dim("  mode  ") + s.Mode + p.Dim("  (Shift-Tab changes it)"), p.Dim("  box   ") + s.level, "",
		p.Dim("  Say what to do. /help lists what else can be typed.")}
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// foot is everything below the transcript.
func (s *session) foot() []string {
	p := s.screen()
	rule := p.Dim(strings.Repeat("─", s.width))
	var lines []string
	if s.up > 0 {
		lines = append(lines, p.Dim(render.Cut(fmt.Sprintf("── %d more lines below · Ctrl-End goes there ", s.up), s.width)))
	}
	if s.busy {
		what := s.what
		if what == "" {
			what = "working"
		}
		took := render.Duration(time.Since(s.began).Round(time.Second))
		lines = append(lines, fit(frames[s.frame%len(frames)]+" "+render.Cut(what, max(10, s.width-24))+p.Dim("  "+took+" · Esc stops"), s.width))
	}
	if s.showPlan {
		lines = append(lines, s.planLines()...)
	}
	for _, text := range s.queue {
		lines = append(lines, p.Dim(render.Cut("  queued: "+render.Line(text), s.width)))
	}
	lines = append(lines, rule)
	if len(s.cards) > 0 {
		for _, line := range s.cardLines() {
			lines = append(lines, fit(line, s.width))
		}
	} else {
		for i, offer := range s.offers {
			mark := "  "
			if i == s.offer {
				mark = "› "
			}
			help := ""
			for _, c := range s.allCommands() {
				if "/"+c.Name == offer {
					help = "  " + c.Help
				}
			}
			lines = append(lines, fit(mark+offer+p.Dim(help), s.width))
		}
		lines = append(lines, s.input.view(s.screen(), s.width, 8, inputHint)...)
	}
	return append(lines, rule, s.status())
}

// cardLines is the question on top, as much of it as half the screen holds.
func (s *session) cardLines() []string {
	c := s.cards[0]
	p := s.screen()
	lines := c.lines(p)
	if most := max(6, s.height/2); len(lines) > most {
		lines = append(lines[:most-len(c.q.Options)-1], append([]string{p.Dim("  …")}, lines[len(lines)-len(c.q.Options):]...)...)
	}
	if c.because || len(c.q.Options) == 0 {
		lines = append(lines, s.input.view(s.screen(), s.width, 8, inputHint)...)
	}
	more := ""
	if n := len(s.cards) - 1; n > 0 {
		more = fmt.Sprintf(" · %d more after this", n)
	}
	return append(lines, p.Dim("  "+c.hint()+more))
}

var marks = map[string]string{journal.StepPending: "○", journal.StepActive: "◐", journal.StepDone: "●", journal.StepBlocked: "✗"}

func (s *session) planLines() []string {
	p := s.screen()
	steps := s.plan.Steps
	const most = 6
	from := 0
	for i, step := range steps {
		if step.Status == journal.StepActive {
			from = max(0, min(i-2, len(steps)-most))
		}
	}
	var lines []string
	for i := from; i < len(steps) && i < from+most; i++ {
		line := "  " + marks[steps[i].Status] + " " + render.Cut(render.Line(steps[i].Text), max(10, s.width-6))
		switch steps[i].Status {
		case journal.StepActive:
			line = p.Bold(line)
		case journal.StepDone:
			line = p.Dim(line)
		}
		lines = append(lines, line)
	}
	return lines
}

// status is the state at a glance.
func (s *session) status() string {
	p := s.screen()
	if s.note != "" {
		return fit(p.Alarm(render.Line(s.note)), s.width)
	}
	parts := []string{s.Mode, orNone(s.Model)}
	if s.level != "" {
		parts = slices.Insert(parts, 1, s.level)
	}
	if s.Window > 0 && s.context > 0 {
		parts = append(parts, fmt.Sprintf("context %d%% (%.0f%% cached)", s.context*100/s.Window, s.cached*100))
	}
	money := s.cost.String()
	if s.Bounds.Money > 0 {
		money += " of " + s.Bounds.Money.String()
	}
	turns := fmt.Sprintf("turn %d", s.turns)
	if s.Bounds.Turns > 0 {
		turns += fmt.Sprintf("/%d", s.Bounds.Turns)
	}
	parts = append(parts, turns, money)
	if s.ended != "" && !s.busy {
		parts = append([]string{render.Line(s.ended)}, parts...)
	}
	return fit(p.Dim(render.Cut(strings.Join(parts, " · "), s.width)), s.width)
}

func (s *session) costText() string {
	u := s.usage
	return fmt.Sprintf("%s · %d turns\n%s tokens read (%s from the cache), %s written", s.cost, s.turns, render.Count(u.Input+u.CacheRead+u.CacheWrite), render.Count(u.CacheRead), render.Count(u.Output))
}

func (s *session) helpText() string {
	var b strings.Builder
	for _, c := range s.allCommands() {
		fmt.Fprintf(&b, "/%-12s %s\n", c.Name, c.Help)
	}
	b.WriteString(`
@path        offers files · !line runs a shell line of your own in the sandbox · #note remembers it
Enter        sends; while it works, the text waits for the end, and Enter once more tells it at the next turn
Alt-Enter    a new line · ↑ ↓ what you said before · Ctrl-G your editor
Esc, Ctrl-C  stop the turn; Ctrl-C twice leaves, and belay resume last goes on
Shift-Tab    another mode · Ctrl-P the plan · Ctrl-O everything in full · PgUp PgDn and the wheel scroll
`)
	return b.String()
}
