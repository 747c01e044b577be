package render

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"strings"

	"belay/journal"
)

// Story is one run told from its journal.
type Story struct {
	Screen Screen
	Full   bool // nothing is cut: arguments, outputs, thinking
	Follow bool // each event is shown as it comes
	// Holds is asked whether the workspace is still the tree that the proofs are about; nil is never asked.
	Holds func(start journal.SessionStart, proofs []journal.Proof) (bool, error)
}

// Tell writes the story of the events. The error of reading them comes back after what could be told.
func (s Story) Tell(w io.Writer, runID string, events iter.Seq2[journal.Event, error]) error {
	out := bufio.NewWriter(w)
	t := &teller{screen: s.Screen, full: s.Full, story: true}
	put := func(lines []string) {
		for _, line := range lines {
			out.WriteString(line)
			out.WriteByte('\n')
		}
	}
	var start journal.SessionStart
	var damage error
	for e, err := range events {
		if err != nil {
			damage = err
			break
		}
		if e.Seq == 1 {
			put([]string{s.Screen.Bold(runID) + s.Screen.Dim("  started "+e.TS.Local().Format("2006-01-02 15:04:05"))})
		}
		if e.Type == journal.TypeSessionStart && e.Decode(&start) != nil {
			start = journal.SessionStart{}
		}
		put(t.tell(e))
		if s.Follow {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
	for _, call := range t.open() {
		put(t.callLine("…", yellow, call, "no result", "running, or its outcome is unknown"))
	}
	switch {
	case damage != nil:
	case t.end == nil:
		put(t.block([]string{s.Screen.paint(alarm, "unfinished") + "  it is still running, or its process ended without a word",
			s.Screen.Dim(t.spent(int64(t.turns), t.usage, t.cost))}))
	default:
		if t.end.Summary != "" {
			put(t.block(append([]string{s.Screen.Bold("the model's own words")}, t.indent("  ", plainInk, Clean(t.end.Summary), 0)...)))
		}
		if len(t.end.Proof) > 0 {
			put(t.block(append([]string{s.Screen.Bold("proof")}, Proofs(s.Screen, t.end.Proof)...)))
			put(s.standing(start, t.end.Proof))
		}
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return damage
}

// standing says whether the proof still speaks of the workspace as it is now.
func (s Story) standing(start journal.SessionStart, proofs []journal.Proof) []string {
	if s.Holds == nil {
		return nil
	}
	holds, err := s.Holds(start, proofs)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return []string{"  " + s.Screen.Dim("the workspace is gone; the proof is about what it was")}
	case err != nil:
		return []string{"  " + s.Screen.paint(yellow, "whether it still holds is unknown: "+Line(err.Error()))}
	case holds:
		return []string{"  " + s.Screen.paint(green, "the workspace is still the proved tree")}
	}
	return []string{"  " + s.Screen.paint(alarm, "proof void: the workspace has changed since")}
}

// Table writes rows in columns that are as wide as they must be; the last one is cut to the screen. The first row is the heading.
func (s Screen) Table(w io.Writer, rows [][]string) error {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Width(cell))
		}
	}
	out := bufio.NewWriter(w)
	for n, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(cell)
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-Width(cell)+2))
			}
		}
		line := Cut(b.String(), s.columns())
		if n == 0 {
			line = s.Dim(line)
		}
		fmt.Fprintln(out, line)
	}
	return out.Flush()
}

// Diff colours a unified diff.
func (s Screen) Diff(diff string) []string {
	var lines []string
	for line := range strings.SplitSeq(strings.TrimRight(Clean(diff), "\n"), "\n") {
		switch {
		case strings.HasPrefix(line, "+++") || strings.HasPrefix(line, "---"):
			line = s.paint(bold, line)
		case strings.HasPrefix(line, "@@"):
			line = s.paint(cyan, line)
		case strings.HasPrefix(line, "+"):
			line = s.paint(green, line)
		case strings.HasPrefix(line, "-"):
			line = s.paint(red, line)
		}
		lines = append(lines, line)
	}
	return lines
}
