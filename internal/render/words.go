package render

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// Duration says how long something took, in the precision that a person reads: 340ms, 1.2s, 2m03s, 1h02m.
func Duration(d time.Duration) string {
	switch {
	case d < 0:
		return "0ms"
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < time.Minute-50*time.Millisecond:
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	d = d.Round(time.Second)
	if d < time.Hour {
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

func millis(ms int64) string { return Duration(time.Duration(ms) * time.Millisecond) }

// Count shortens a number: 950, 12.3k, 1.2M.
func Count(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 999_950:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1e6)
}

// plural is "1 turn", "2 turns".
func plural(n int64, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return Count(n) + " " + word + "s"
}

// short cuts a hash to what a person compares.
func short(hash string) string {
	hash = Line(hash)
	if len(hash) > 12 {
		return hash[:12]
	}
	return hash
}

// runeWidth is how many columns a rune takes: close to what terminals do, and never less for what is wide.
func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
		r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1faff,
		r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}

// Width is how many columns a cleaned line takes.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += runeWidth(r)
	}
	return n
}

// Cut shortens a line to a number of columns, with "…" where something is missing. 0 or less is no limit.
func Cut(s string, columns int) string {
	if columns <= 0 || Width(s) <= columns {
		return s
	}
	n := 0
	for i, r := range s {
		if n+runeWidth(r) > columns-1 {
			return strings.TrimRight(s[:i], " ") + "…"
		}
		n += runeWidth(r)
	}
	return s
}

// wrap breaks each line of text at spaces so that it fits. 0 or less is no limit. Leading space is kept.
func wrap(text string, columns int) []string {
	var out []string
	for line := range strings.SplitSeq(strings.Trim(text, "\n"), "\n") {
		line = strings.ReplaceAll(strings.TrimRight(line, " \t"), "\t", "    ")
		if columns > 0 {
			out = wrapLine(out, line, columns)
		} else {
			out = append(out, line)
		}
	}
	return out
}

// wrapLine appends the pieces of one line. It takes time in proportion to the line, which a model or a tool may
// have made very long.
func wrapLine(out []string, line string, columns int) []string {
	start, space, width, word := 0, 0, 0, false // of the piece: where it starts, its last space, its columns, whether a word began
	for i, r := range line {
		if i < start {
			continue
		}
		if width+runeWidth(r) > columns && i > start {
			at := i
			if space > start && r != ' ' {
				at = space
			}
			out = append(out, strings.TrimRight(line[start:at], " "))
			for start = at; start < len(line) && line[start] == ' '; start++ {
			}
			if start > i {
				width, word = 0, false
				continue
			}
			width, word = Width(line[start:i]), start < i
		}
		if r != ' ' {
			word = true
		} else if word {
			space = i
		}
		width += runeWidth(r)
	}
	return append(out, line[start:])
}
