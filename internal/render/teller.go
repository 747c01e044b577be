package render

import (
	"fmt"
	"strings"

	"belay/journal"
	"belay/message"
	"belay/verify"
)

// teller turns events into lines. Live and Story share it, so that a run reads the same while it works and later.
type teller struct {
	screen Screen
	full   bool // nothing is cut: arguments, outputs, thinking
	story  bool // with headings for turns

	calls  map[string]journal.ToolRequest // requested, without a result yet
	order  []string                       // their ids, as they came
	model  string
	script bool // the model is a script
	turn   int
	turns  int
	cost   message.Cost
	usage  message.Usage
	asks   int64  // questions to a person
	ask    string // the last question's id
	asked  bool   // the task was told
	end    *journal.SessionEnd

	connections []journal.Connection
	gap         bool // the next block wants an empty line before it
	written     bool
}

// tell is what a person reads about one event; nothing where it says nothing new.
func (t *teller) tell(e journal.Event) []string {
	lines, err := t.lines(e)
	if err != nil {
		return []string{t.screen.paint(failure, "! "+Line(err.Error()))}
	}
	return lines
}

func (t *teller) lines(e journal.Event) ([]string, error) {
	switch e.Type {
	case journal.TypeSessionStart:
		return decoded(e, t.start)
	case journal.TypeUserMessage:
		return decoded(e, t.say)
	case journal.TypeModelCall:
		return decoded(e, func(p journal.ModelCall) []string { return t.called(e, p) })
	case journal.TypeModelReply:
		return decoded(e, t.reply)
	case journal.TypeToolRequest:
		return decoded(e, t.request)
	case journal.TypeToolResult:
		return decoded(e, t.result)
	case journal.TypeVerify:
		return decoded(e, t.verify)
	case journal.TypeGuard:
		return decoded(e, t.guard)
	case journal.TypeDegraded:
		return decoded(e, func(p journal.Degraded) []string { return Degraded(t.screen, p) })
	case journal.TypeAgentStart:
		return decoded(e, func(p journal.AgentStart) []string {
			return t.block([]string{t.screen.paint(bold, "session") + " " + Line(p.Feature) + " " + Line(p.Task) + t.screen.paint(dim, "  run "+Line(p.Run))})
		})
	case journal.TypeAgentEnd:
		return decoded(e, func(p journal.AgentEnd) []string {
			what := fmt.Sprintf("  exit %d  %s", p.Exit, Line(p.Reason))
			if p.Commit != "" {
				what += t.screen.paint(dim, "  commit "+short(p.Commit))
			}
			return []string{what}
		})
	case journal.TypeHook:
		return decoded(e, t.hook)
	case journal.TypeQuestion:
		return decoded(e, t.question)
	case journal.TypeAnswer:
		return decoded(e, t.replied)
	case journal.TypePermission:
		return decoded(e, t.permitted)
	case journal.TypeJudge:
		return decoded(e, t.judgement)
	case journal.TypeEscalate:
		return decoded(e, t.escalation)
	case journal.TypeConnection:
		return decoded(e, t.connection)
	case journal.TypeMisjudged:
		return decoded(e, t.misjudged)
	case journal.TypeSessionEnd:
		return decoded(e, t.ended)
	case journal.TypeFork:
		return decoded(e, t.forked)
	case journal.TypeResume:
		return decoded(e, t.resumed)
	case journal.TypeWriterOpen, journal.TypeCheckpoint, journal.TypeExternal:
		return nil, nil
	case journal.TypeRewind:
		return decoded(e, t.rewound)
	}
	if t.story { // a type of a later version: kept by the journal, named here
		return []string{t.screen.paint(dim, "  · "+Line(string(e.Type)))}, nil
	}
	return nil, nil
}

// rewound says what went back, and what did not.
func (t *teller) rewound(p journal.Rewind) []string {
	what := "files and conversation"
	switch {
	case !p.Context:
		what = "files"
	case !p.Files:
		what = "conversation"
	}
	lines := []string{t.screen.paint(bold, "went back") + fmt.Sprintf(": %s, to event %d (checkpoint %s, %s)", what, p.ToSeq, Line(p.Checkpoint), plural(int64(len(p.Restored)), "path"))}
	for _, x := range p.Effects {
		lines = append(lines, "  stays: "+Line(x.Summary)+" ("+Line(x.Target)+")")
	}
	return t.block(lines)
}

func (t *teller) forked(p journal.Fork) []string {
	return t.block([]string{t.screen.paint(bold, "forked") + fmt.Sprintf(" from %s after its event %d", Line(p.Parent), p.Seq)})
}

// resumed says what was not as it was before.
func (t *teller) resumed(p journal.Resume) []string {
	lines := []string{t.screen.paint(bold, "resumed") + t.screen.paint(dim, ", and this is not as it was:")}
	for i, c := range p.Changes {
		if most := t.room(12); most > 0 && i == most {
			lines = append(lines, t.screen.paint(dim, fmt.Sprintf("  … %s more", plural(int64(len(p.Changes)-i), "change"))))
			break
		}
		lines = append(lines, "  "+t.screen.paint(yellow, "~")+" "+changed(c))
	}
	return t.block(lines)
}

// changed is one thing that is another than it was.
func changed(c journal.Change) string {
	what := Line(strings.TrimSpace(c.What + " " + c.Name))
	switch was, is := short(c.Was), short(c.Is); {
	case is == "":
		return what + " is gone"
	case was == "":
		return what + " is new"
	default:
		return what + ": " + was + " → " + is
	}
}

func decoded[P any](e journal.Event, tell func(P) []string) ([]string, error) {
	var p P
	if err := e.Decode(&p); err != nil {
		return nil, err
	}
	return tell(p), nil
}

// block puts an empty line before what begins something new.
func (t *teller) block(lines []string) []string {
	if len(lines) == 0 {
		return nil
	}
	if t.written {
		lines = append([]string{""}, lines...)
	}
	t.written, t.gap = true, false
	return lines
}

func (t *teller) start(p journal.SessionStart) []string {
	t.model = Line(p.Model.ID)
	kind := ""
	if t.script = p.Model.Scripted; t.script {
		kind = " (a script, not a model)"
	}
	lines := []string{
		t.screen.paint(bold, t.model) + kind + t.screen.paint(dim, " · mode "+Line(p.Mode)+" · in "+Line(p.Workspace)),
		t.screen.paint(dim, Cut("sandbox: "+Line(p.Sandbox), t.screen.columns())),
	}
	if len(p.Verify) > 0 {
		how := "detected"
		if p.Named {
			how = "named"
		}
		lines = append(lines, t.screen.paint(dim, Cut("done when: "+Line(strings.Join(p.Verify, " · "))+" ("+how+")", t.screen.columns())))
	}
	return t.block(lines)
}

func (t *teller) say(p journal.UserMessage) []string {
	if p.By != "" {
		return t.block(t.indent("↪ "+Line(p.By)+": ", dim, Clean(p.Text), t.room(12)))
	}
	mark := "» "
	if !t.asked {
		mark = "task: "
	}
	t.asked = true
	return t.block(t.indent(mark, bold, Clean(p.Text), t.room(12)))
}

// room is how many lines of a text are shown.
func (t *teller) room(lines int) int {
	if t.full {
		return 0
	}
	return lines
}

// indent wraps text behind a mark. most is the number of lines shown, 0 is all.
func (t *teller) indent(mark string, i ink, text string, most int) []string {
	width := t.screen.reading()
	if width > 0 {
		width = max(20, width-Width(mark))
	}
	lines := wrap(text, width)
	if most > 0 && len(lines) > most {
		rest := len(lines) - most
		lines = append(lines[:most:most], fmt.Sprintf("… %s more", plural(int64(rest), "line")))
	}
	for n, line := range lines {
		lead := strings.Repeat(" ", Width(mark))
		if n == 0 {
			lead = mark
		}
		lines[n] = strings.TrimRight(lead+t.screen.paint(i, line), " ")
	}
	return lines
}

func (t *teller) called(e journal.Event, p journal.ModelCall) []string {
	if p.Purpose != "" || e.Turn == t.turn {
		return nil
	}
	t.turn = e.Turn
	t.turns++
	if !t.story {
		t.gap = true
		return nil
	}
	return t.block([]string{t.screen.paint(bold, fmt.Sprintf("turn %d", e.Turn)) +
		t.screen.paint(dim, fmt.Sprintf("  %s, about %s tokens", plural(int64(p.Messages), "message"), Count(p.Estimate)))})
}

func (t *teller) reply(p journal.ModelReply) []string {
	t.cost += p.Cost
	t.usage = t.usage.Add(p.Usage)
	if p.Purpose != "" && !t.full {
		return nil
	}
	var lines []string
	for _, b := range p.Blocks {
		switch {
		case b.Kind == message.KindText && strings.TrimSpace(Clean(b.Text)) != "":
			lines = append(lines, t.indent("  ", plainInk, Clean(b.Text), 0)...)
		case b.Kind == message.KindThinking && t.full && strings.TrimSpace(Clean(b.Text)) != "":
			lines = append(lines, t.indent("  ~ ", dim, Clean(b.Text), 0)...)
		}
	}
	switch p.Stop {
	case message.StopError:
		lines = append(lines, t.screen.paint(red, "  ! the model call failed: "+Line(p.Error)))
	case message.StopRefusal:
		lines = append(lines, t.screen.paint(yellow, "  ! the model declined"))
	case message.StopLength:
		lines = append(lines, t.screen.paint(yellow, "  ! the reply was cut by the output limit; nothing in it was executed"))
	}
	if t.full {
		lines = append(lines, t.screen.paint(dim, fmt.Sprintf("  %s · %s in, %s out · %s", millis(p.DurationMS),
			Count(p.Usage.Total()-p.Usage.Output), Count(p.Usage.Output), p.Cost)))
	}
	if t.gap && len(lines) > 0 {
		return t.block(lines)
	}
	return lines
}

func (t *teller) guard(p journal.Guard) []string {
	bound := Line(p.Bound)
	limit := fmt.Sprintf("%s: %s of %s", bound, amount(bound, p.Value), amount(bound, p.Limit))
	if p.Note != "" && !(p.Hard && !t.full) { // where a run stops, its end says the same
		limit += " · " + Line(p.Note)
	}
	if p.Hard {
		return []string{t.screen.paint(failure, "  ! bound reached") + ": " + limit}
	}
	return []string{t.screen.paint(yellow, "  ! near a bound") + ": " + limit}
}

func amount(bound string, v float64) string {
	switch bound {
	case "usd":
		return message.USD(v).String()
	case "tokens":
		return Count(int64(v))
	}
	return fmt.Sprintf("%g", v)
}

// hook is told where it decided something, failed or was slow; with full, always.
func (t *teller) hook(p journal.Hook) []string {
	mark := t.screen.paint(dim, "·")
	switch {
	case p.Verdict == "deny", p.Verdict == "ask":
		mark = t.screen.paint(yellow, "⚑")
	case p.Verdict == "failed":
		mark = t.screen.paint(red, "!")
	case !t.full && !p.Slow && !p.Rewrote:
		return nil
	}
	line := "  " + mark + " hook " + p.Event + " `" + Cut(Line(p.Command), 60) + "` "
	if p.Verdict != "" {
		line += Line(p.Verdict) + " "
	}
	if p.Rewrote {
		line += "rewrote the call "
	}
	line += t.screen.paint(dim, "· "+millis(p.DurationMS))
	if p.Reason != "" {
		line += ": " + Line(p.Reason)
	}
	return []string{line}
}

// Degraded is what a person is told about a weaker mode: loudly.
func Degraded(s Screen, p journal.Degraded) []string {
	return []string{s.paint(alarm, "!! DEGRADED "+Line(p.Component)+": "+Line(p.Loss))}
}

func (t *teller) ended(p journal.SessionEnd) []string {
	t.end = &p
	if p.Exit == 1 && !t.story {
		p.Reason = "" // the program itself says it last, on standard error
	}
	return t.block(t.ending(p))
}

// ending is the last word on a session: what may be claimed, why, and what it took.
func (t *teller) ending(p journal.SessionEnd) []string {
	s := t.screen
	word, color := "stopped", failure
	switch {
	case p.Exit == 0 && p.Standing == string(verify.Proved):
		word, color = "proved", success
	case p.Standing != "":
		word, color = Line(p.Standing), alarm
	case p.Exit == 1:
		word = "fault"
	case p.Exit == 4:
		word = "failed"
	case p.Exit == 5:
		word = "out of bounds"
	case p.Exit == 6:
		word = "waiting"
	case p.Exit == 130:
		word, color = "interrupted", alarm
	}
	line := s.paint(color, word)
	if p.Reason != "" && p.Reason != word {
		line += "  " + Line(p.Reason)
	}
	spent := t.spent(int64(p.Turns), p.Usage, p.Cost)
	if t.asks > 0 {
		spent += " · " + plural(t.asks, "interruption")
	}
	return append([]string{line, s.paint(dim, spent+fmt.Sprintf(" · exit %d", p.Exit))}, t.reached()...)
}

func (t *teller) spent(turns int64, u message.Usage, c message.Cost) string {
	s := fmt.Sprintf("%s · %s tokens in, %s out · %s", plural(turns, "turn"), Count(u.Total()-u.Output), Count(u.Output), c)
	if t.script && c != 0 {
		s += " pretended (a script costs nothing)"
	}
	return s
}

// Proofs is the evidence a run leaves, one verifier after the other.
func Proofs(s Screen, proofs []journal.Proof) []string {
	var lines []string
	for _, p := range proofs {
		was := ""
		if p.RedBefore {
			was = s.paint(dim, " · ") + s.paint(red, "red before") + " → " + s.paint(green, "green now")
		}
		lines = append(lines,
			"  "+s.paint(green, "✓")+" "+s.paint(bold, Line(p.Command))+s.paint(dim, fmt.Sprintf("  exit %d · %s", p.Exit, millis(p.DurationMS)))+was,
			s.paint(dim, fmt.Sprintf("    tree %s · log %s · event %d", short(p.Tree), short(p.LogHash), p.Seq)))
		if n := len(p.TestsChanged); n > 0 {
			few := min(n, 5)
			changed := strings.Join(p.TestsChanged[:few], ", ")
			if n > few {
				changed += fmt.Sprintf(" and %d more", n-few)
			}
			lines = append(lines, "    "+s.paint(yellow, "the run itself changed what decides this: ")+Line(changed))
		}
	}
	return lines
}
