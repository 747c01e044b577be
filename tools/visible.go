package tools

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

var (
	// escapes are terminal sequences: CSI, OSC and the like, and two-character ones.
	escapes = regexp.MustCompile("\x1b(\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(\x07|\x1b\\\\)|[PX^_][^\x1b]*\x1b\\\\|[ -/]*[0-~])")
)

// visible takes terminal sequences out, keeps the last state of a line that was rewritten in place, and shows bytes
// that are no text as escapes.
func visible(s string) string {
	s = escapes.ReplaceAllString(s, "")
	if strings.IndexByte(s, '\r') >= 0 {
		s = strings.ReplaceAll(s, "\r\n", "\n")
		lines := strings.Split(s, "\n")
		for i, line := range lines {
			line = strings.TrimRight(line, "\r")
			if cut := strings.LastIndexByte(line, '\r'); cut >= 0 {
				line = line[cut+1:]
			}
			lines[i] = line
		}
		s = strings.Join(lines, "\n")
	}
	return escapeBytes(s)
}

// escapeBytes shows invalid UTF-8 and control characters as \xNN; newlines and tabs stay.
func escapeBytes(s string) string {
	plain := true
	for i := 0; i < len(s); i++ {
		if b := s[i]; b < ' ' && b != '\n' && b != '\t' || b >= 0x7f {
			plain = false
			break
		}
	}
	if plain {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && size == 1, r < ' ' && r != '\n' && r != '\t', r == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		default:
			b.WriteString(s[i : i+size])
		}
		i += size
	}
	return b.String()
}
