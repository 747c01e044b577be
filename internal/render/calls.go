package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"belay/effect"
	"belay/journal"
)

func (t *teller) request(p journal.ToolRequest) []string {
	if t.calls == nil {
		t.calls = map[string]journal.ToolRequest{}
	}
	t.calls[p.CallID] = p
	t.order = append(t.order, p.CallID)
	return nil
}

// open lists the calls without a result, as they came.
func (t *teller) open() []journal.ToolRequest {
	var open []journal.ToolRequest
	for _, id := range t.order {
		open = append(open, t.calls[id])
	}
	return open
}

func (t *teller) result(p journal.ToolResult) []string {
	request, ok := t.calls[p.CallID]
	if !ok {
		request = journal.ToolRequest{CallID: p.CallID, Tool: "call " + p.CallID}
	}
	delete(t.calls, p.CallID)
	t.order = slices.DeleteFunc(t.order, func(id string) bool { return id == p.CallID })

	symbol, color := "✓", green
	refused := request.Permission.Verdict == effect.Deny || request.Permission.Verdict == effect.Ask
	switch {
	case refused && request.Permission.By == "harness": // a mistake in the call, not a judgement of it
		symbol, color = "✗", red
		request.Permission.Verdict = ""
	case refused:
		symbol, color = "⊘", yellow
	case p.Status == "partial":
		symbol, color = "◐", yellow
	case p.Status != "success":
		symbol, color = "✗", red
	}
	outcome := Line(p.Summary)
	if symbol == "⊘" && request.Permission.Reason != "" {
		outcome = Line(request.Permission.Reason)
	}
	if outcome == "" || (outcome == p.Code && p.Text != "") {
		first, _, _ := strings.Cut(strings.TrimSpace(Clean(p.Text)), "\n")
		outcome = strings.Replace(strings.TrimPrefix(Line(first), "Error ("), "): ", ": ", 1)
	}
	took := ""
	if p.DurationMS > 0 {
		took = millis(p.DurationMS)
	}
	lines := t.callLine(symbol, color, request, took, outcome)
	for _, denied := range p.Denied {
		lines = append(lines, t.screen.paint(yellow, "    the sandbox refused: "+Line(denied)))
	}
	if t.full {
		lines = append(lines, t.indent("    args ", dim, Clean(arguments(request.Args)), 0)...)
		lines = append(lines, t.indent("    │ ", dim, Clean(p.Text), 0)...)
	}
	if t.gap {
		return t.block(lines)
	}
	return lines
}

// arguments shows a call's arguments as one "name: value" a line, in a fixed order; anything else as it is.
func arguments(args json.RawMessage) string {
	var object map[string]json.RawMessage
	if json.Unmarshal(args, &object) != nil {
		return string(args)
	}
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(object)) {
		var text string
		if json.Unmarshal(object[name], &text) != nil {
			text = string(object[name])
		}
		lines = append(lines, name+": "+text)
	}
	return strings.Join(lines, "\n")
}

// callLine is a call on one line: symbol, tool, what it does, class and verdict, duration, outcome.
func (t *teller) callLine(symbol string, color ink, p journal.ToolRequest, took, outcome string) []string {
	tool := Line(p.Tool)
	what := describe(p)
	judged := ""
	if p.Class != 0 {
		judged = fmt.Sprintf("class %d %s", p.Class, Line(string(p.Permission.Verdict)))
	} else if p.Permission.Verdict != "" {
		judged = Line(string(p.Permission.Verdict))
	}
	meta := strings.Join(slices.DeleteFunc([]string{judged, took}, func(s string) bool { return s == "" }), " · ")
	if meta != "" {
		meta = "  " + meta
	}
	columns := t.screen.columns()
	if columns > 0 {
		left := max(16, columns-1-Width("  ✓ "+tool+" ")-Width(meta)-len(" · "))
		half := left / 2
		switch w, o := Width(what), Width(outcome); {
		case w+o <= left:
		case o <= half:
			what = Cut(what, left-o)
		case w <= half:
			outcome = Cut(outcome, left-w)
		default:
			what, outcome = Cut(what, half), Cut(outcome, left-half)
		}
	} else {
		what, outcome = Cut(what, 160), Cut(outcome, 200)
	}
	line := "  " + t.screen.paint(color, symbol) + " " + t.screen.paint(bold, tool)
	if what != "" {
		line += " " + what
	}
	ink := dim
	if symbol == "⊘" {
		ink = yellow
	}
	line += t.screen.paint(ink, meta)
	switch {
	case outcome == "":
	case meta == "":
		line += "  " + outcome
	default:
		line += t.screen.paint(dim, " · ") + outcome
	}
	return []string{line}
}

// describe says what a call does: the tool's own summary, without its name where that would stand twice.
func describe(p journal.ToolRequest) string {
	what := Line(p.Summary)
	if rest, ok := strings.CutPrefix(strings.ToLower(what), strings.ToLower(p.Tool)+" "); ok {
		what = what[len(what)-len(rest):]
	}
	if strings.EqualFold(what, p.Tool) {
		return ""
	}
	return what
}

func (t *teller) verify(p journal.Verify) []string {
	verdict, color := "PASS", success
	if !p.OK {
		verdict, color = "FAIL", failure
	}
	if p.Base { // red before the change is what a proof needs, so it is no alarm
		verdict, color = verdict+" before any change", dim
	}
	lines := []string{"  " + t.screen.paint(cyan, "▸") + " verify " + t.screen.paint(bold, Line(p.Verifier)) + "  " +
		t.screen.paint(color, verdict) + t.screen.paint(dim, "  "+millis(p.DurationMS))}
	if p.Summary != "" {
		lines[0] += t.screen.paint(dim, " · ") + Cut(Line(p.Summary), 100)
	}
	switch {
	case t.full && strings.TrimSpace(Clean(p.Output)) != "":
		lines = append(lines, t.indent("    │ ", plainInk, Clean(p.Output), 0)...)
	case !p.OK && !p.Base:
		for _, line := range matters(Clean(p.Output), 8) {
			lines = append(lines, t.screen.paint(dim, "    │ ")+Cut(line, max(0, t.screen.columns()-7)))
		}
	}
	return lines
}

// telling finds the lines of a failing program's output that say what is wrong.
// It is compiled when it is first needed: the program's start must cost nothing.
var telling = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(\bfail|error|panic|fatal|assert|expected|\bwant|\bgot\b|cannot|undefined|not found|no such|denied|:\d+:)`)
})

// matters picks at most n lines of a failing output: those that look like a reason, else its end.
func matters(output string, n int) []string {
	var all, picked []string
	reason := telling()
	for line := range strings.SplitSeq(output, "\n") {
		line = strings.ReplaceAll(strings.TrimRight(line, " \t"), "\t", "    ")
		if strings.TrimSpace(line) == "" {
			continue
		}
		all = append(all, line)
		if reason.MatchString(line) && line != "FAIL" {
			picked = append(picked, line)
		}
	}
	if len(picked) == 0 {
		picked = all[max(0, len(all)-n):]
	}
	if len(picked) > n {
		rest := len(picked) - n + 1
		picked = append(picked[:n-1:n-1], fmt.Sprintf("… %s more", plural(int64(rest), "line")))
	}
	return picked
}
