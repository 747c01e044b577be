package tui

import (
	"strings"
	"unicode"

	"belay/internal/render"
)

// editor is a text of several lines with a cursor.
type editor struct {
	text []rune
	at   int // of the cursor, from 0 to len(text)
}

// mostTyped is how many runes can be typed: more is data, and belongs into a file.
const mostTyped = 100_000

func (e *editor) value() string { return string(e.text) }

func (e *editor) set(s string) {
	e.text = []rune(s)
	e.at = len(e.text)
}

func (e *editor) reset() { e.text, e.at = nil, 0 }

// insert puts a text at the cursor. What cannot be shown is left out.
func (e *editor) insert(s string) {
	typed := []rune(render.Clean(strings.ReplaceAll(s, "\r\n", "\n")))
	if len(e.text)+len(typed) > mostTyped {
		return
	}
	e.text = append(e.text[:e.at:e.at], append(typed, e.text[e.at:]...)...)
	e.at += len(typed)
}

func (e *editor) cut(from, to int) {
	e.text = append(e.text[:from:from], e.text[to:]...)
	e.at = from
}

// line is the number of the cursor's line, from 0, and its start.
func (e *editor) line() (number, start int) {
	for i, r := range e.text[:e.at] {
		if r == '\n' {
			number, start = number+1, i+1
		}
	}
	return number, start
}

func (e *editor) lines() int { return 1 + strings.Count(string(e.text), "\n") }

// end is where the cursor's line ends.
func (e *editor) end() int {
	for i := e.at; i < len(e.text); i++ {
		if e.text[i] == '\n' {
			return i
		}
	}
	return len(e.text)
}

// before is where the word before the cursor starts, after where the next one ends.
func (e *editor) before() int {
	i := e.at
	for i > 0 && unicode.IsSpace(e.text[i-1]) {
		i--
	}
	for i > 0 && !unicode.IsSpace(e.text[i-1]) {
		i--
	}
	return i
}

func (e *editor) after() int {
	i := e.at
	for i < len(e.text) && unicode.IsSpace(e.text[i]) {
		i++
	}
	for i < len(e.text) && !unicode.IsSpace(e.text[i]) {
		i++
	}
	return i
}

// key takes a key that edits. It says whether it did anything.
func (e *editor) key(key, typed string) bool {
	_, start := e.line()
	switch key {
	case "left", "ctrl+b":
		e.at = max(0, e.at-1)
	case "right", "ctrl+f":
		e.at = min(len(e.text), e.at+1)
	case "alt+left", "ctrl+left", "alt+b":
		e.at = e.before()
	case "alt+right", "ctrl+right", "alt+f":
		e.at = e.after()
	case "home", "ctrl+a":
		e.at = start
	case "end", "ctrl+e":
		e.at = e.end()
	case "up", "down":
		e.move(key == "down")
	case "backspace", "ctrl+h":
		if e.at > 0 {
			e.cut(e.at-1, e.at)
		}
	case "delete":
		if e.at < len(e.text) {
			e.cut(e.at, e.at+1)
		}
	case "ctrl+w", "alt+backspace":
		e.cut(e.before(), e.at)
	case "ctrl+u":
		e.cut(start, e.at)
	case "ctrl+k":
		at := e.at
		e.cut(at, e.end())
	case "alt+enter", "ctrl+j", "shift+enter":
		e.insert("\n")
	default:
		if typed == "" {
			return false
		}
		e.insert(typed)
	}
	return true
}

// move goes a line up or down, in the same column where that is there.
func (e *editor) move(down bool) {
	_, start := e.line()
	column := e.at - start
	if down {
		if end := e.end(); end < len(e.text) {
			e.at = end + 1
			e.at = min(end+1+column, e.end())
		}
		return
	}
	if start > 0 {
		e.at = start - 1
		_, before := e.line()
		e.at = min(before+column, start-1)
	}
}

// view draws the text behind a mark, at most so many lines around the cursor.
func (e *editor) view(s render.Screen, width, most int, hint string) []string {
	const mark, next = "› ", "  "
	if len(e.text) == 0 {
		return []string{mark + cursor(s, " ") + s.Dim(render.Cut(hint, width-4))}
	}
	room := max(4, width-len(next)-1)
	var out []string
	row := 0
	line, columns, at := strings.Builder{}, 0, -1
	flush := func() {
		lead := next
		if len(out) == 0 {
			lead = mark
		}
		if at >= 0 {
			row = len(out)
		}
		out = append(out, lead+line.String())
		line.Reset()
		columns, at = 0, -1
	}
	for i := 0; i <= len(e.text); i++ {
		shown := " "
		if i < len(e.text) && e.text[i] != '\n' {
			shown = string(e.text[i])
			if e.text[i] == '\t' {
				shown = "    "
			}
		}
		if w := render.Width(shown); columns+w > room && i < len(e.text) {
			flush()
		}
		switch {
		case i == e.at:
			at = i
			line.WriteString(cursor(s, shown))
			columns += render.Width(shown)
		case i < len(e.text) && e.text[i] != '\n':
			line.WriteString(shown)
			columns += render.Width(shown)
		}
		if i == len(e.text) || e.text[i] == '\n' {
			flush()
		}
	}
	if len(out) > most {
		from := max(0, min(row-most/2, len(out)-most))
		out = out[from : from+most]
	}
	return out
}

// cursor marks a place; without colours by a bar, so that it is seen at all.
func cursor(s render.Screen, under string) string {
	if !s.Color {
		return "▏" + strings.TrimRight(under, " ")
	}
	return "\x1b[7m" + under + "\x1b[0m"
}
