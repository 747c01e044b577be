package tool

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"
)

// BytesPerToken is the estimate by which budgets in tokens become bytes: about four for English and code.
const BytesPerToken = 4

// MaxErrorLines is how many error-looking lines outside the kept part a cut keeps; the rest of them are counted.
const MaxErrorLines = 50

// headShare is the head's part of a budget when both ends stay, in percent; the tail holds the outcome and gets the rest.
const headShare = 60

var errorLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(error|fatal|fail(ed|ure)?|panic|exception|traceback|undefined|cannot|denied|not found|no such file|segmentation fault)\b|^--- FAIL|^E\s`)
})

// CutText shortens a text to about budget tokens in whole lines and says honestly what is missing: how many lines
// and bytes, and that up to MaxErrorLines error-looking lines of the missing part stay. A text within the
// budget comes back unchanged.
func CutText(text string, budget int, cut Cut) (short string, truncated bool) {
	if budget <= 0 {
		budget = DefaultBudget
	}
	limit := budget * BytesPerToken
	if len(text) <= limit {
		return text, false
	}
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	// One long line must not push out everything else, nor be left out whole: it is cut by itself first.
	for i, line := range lines {
		if longest := limit / 3; len(line) > longest {
			whole, end := strings.CutSuffix(line, "\n")
			lines[i] = cutLine(whole, longest-longest/4, cut)
			if end {
				lines[i] += "\n"
			}
		}
	}
	// A quarter is kept back for error lines of the middle and the marker.
	room := limit - limit/4
	headRoom, tailRoom := room*headShare/100, room-room*headShare/100
	switch cut {
	case CutHead:
		headRoom, tailRoom = room, 0
	case CutTail:
		headRoom, tailRoom = 0, room
	}
	head := take(lines, headRoom, false)
	tail := take(lines[head:], tailRoom, true)
	middle := lines[head : len(lines)-tail]

	var b strings.Builder
	writeLines(&b, lines[:head])
	if len(middle) > 0 {
		writeMissing(&b, middle, limit/4)
	}
	writeLines(&b, lines[len(lines)-tail:])
	if head == 0 && tail == 0 {
		// Not one line fits: show the ends of what there is, cut inside the line and marked as such.
		b.Reset()
		b.WriteString(cutLine(text, room, cut))
	}
	return b.String(), true
}

// take counts the lines that fit into room, from the front or from the back.
func take(lines []string, room int, fromBack bool) int {
	n := 0
	for n < len(lines) {
		line := lines[n]
		if fromBack {
			line = lines[len(lines)-1-n]
		}
		if room -= len(line); room < 0 {
			break
		}
		n++
	}
	return n
}

func writeLines(b *strings.Builder, lines []string) {
	for _, line := range lines {
		b.WriteString(line)
	}
}

func writeMissing(b *strings.Builder, middle []string, room int) {
	size, errors := 0, 0
	var kept, dropped []string
	for _, line := range middle {
		size += len(line)
		if strings.HasPrefix(line, dropMark) {
			dropped = append(dropped, strings.TrimRight(line, "\n"))
			continue
		}
		if !errorLine().MatchString(line[:min(len(line), 400)]) {
			continue
		}
		if errors++; len(kept) < MaxErrorLines {
			kept = append(kept, strings.TrimRight(line, "\r\n"))
		}
	}
	shorten(kept, room)
	fmt.Fprintf(b, "[… %d lines (%d bytes) left out", len(middle), size)
	if errors > 0 {
		fmt.Fprintf(b, "; %d of them look like errors, %d shown here", errors, len(kept))
	}
	b.WriteString("]\n")
	for _, line := range append(dropped, kept...) {
		b.WriteString(line + "\n")
	}
	if len(kept) > 0 {
		b.WriteString("[… end of the shown errors]\n")
	}
}

// shorten cuts the longest lines until all of them take about room bytes. None is left out.
func shorten(lines []string, room int) {
	const shortest = 60 // of a line: less would not say what is wrong
	total := 0
	longest := 400
	for _, line := range lines {
		total += min(len(line), longest) + 1
	}
	if total > room && len(lines) > 0 {
		longest = max(shortest, room/len(lines))
	}
	for i, line := range lines {
		if len(line) <= longest {
			continue
		}
		end := longest - len("…")
		for end > 0 && !utf8.RuneStart(line[end]) {
			end--
		}
		lines[i] = line[:end] + "…"
	}
}

// cutLine keeps room bytes of a line, without splitting a character.
func cutLine(line string, room int, cut Cut) string {
	if len(line) <= room {
		return line
	}
	head, tail := room*headShare/100, room-room*headShare/100
	switch cut {
	case CutHead:
		head, tail = room, 0
	case CutTail:
		head, tail = 0, room
	}
	for head > 0 && !utf8.RuneStart(line[head]) {
		head--
	}
	from := len(line) - tail
	for from < len(line) && !utf8.RuneStart(line[from]) {
		from++
	}
	return fmt.Sprintf("%s[… %d bytes of this line left out …]%s", line[:head], from-head, line[from:])
}
