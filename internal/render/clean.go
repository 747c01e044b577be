package render

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean makes text that a model, a tool or a file wrote safe to show: no terminal control sequence, no control
// character but newline and tab, nothing invisible that could make text read differently from what it is, valid UTF-8.
func Clean(s string) string {
	if plain(s) {
		return s
	}
	s = strings.ReplaceAll(s, "\r\n", "\n")
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\x1b' || r >= 0x80 && r <= 0x9f:
			i += size + sequence(r, s[i+size:])
			continue
		case r == '\r' || r == '\u2028' || r == '\u2029' || r == '\v' || r == '\f':
			b.WriteByte('\n')
		case r == '\n' || r == '\t':
			b.WriteRune(r)
		case r == utf8.RuneError && size == 1:
			b.WriteRune(utf8.RuneError)
		case hidden(r):
		default:
			b.WriteRune(r)
		}
		i += size
	}
	return b.String()
}

// Line is Clean for one line: every run of white space is one space.
func Line(s string) string { return strings.Join(strings.Fields(Clean(s)), " ") }

// plain says that there is nothing to clean.
func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < ' ' && c != '\n' && c != '\t' || c >= 0x7f {
			return false
		}
	}
	return true
}

// hidden says that a rune is never shown: controls, bidirectional overrides, tags and other format
// characters. The two joiners stay, since scripts and emoji need them.
func hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) && r != '\u200c' && r != '\u200d'
}

// sequence measures in bytes what belongs to the control sequence that r began (ECMA-48): what remains of it
// would otherwise show as noise. An unterminated string is only its introducer, so that it hides no text.
func sequence(r rune, rest string) int {
	used := 0
	if r == '\x1b' {
		if rest == "" {
			return 0
		}
		kind := rest[0]
		if kind >= ' ' && kind <= '/' { // an nF sequence: intermediates and a final byte, such as ESC ( B
			for used < len(rest) && rest[used] >= ' ' && rest[used] <= '/' {
				used++
			}
			if used < len(rest) && rest[used] >= '0' && rest[used] <= '~' {
				used++
			}
			return used
		}
		if kind < '0' || kind > '~' {
			return 0
		}
		used = 1
		if kind < '@' || kind > '_' {
			return used
		}
		r = rune(kind) + 0x40 // the 8-bit form of the same control
	}
	switch r {
	case 0x9b: // CSI: parameters, intermediates, one final byte
		i := used
		for i < len(rest) && rest[i] >= ' ' && rest[i] <= '?' {
			i++
		}
		if i < len(rest) && rest[i] >= '@' && rest[i] <= '~' {
			i++
		}
		return i
	case 0x90, 0x98, 0x9d, 0x9e, 0x9f: // DCS, SOS, OSC, PM, APC: a string up to BEL, ST, or the end of the line
		for i := used; i < len(rest); i++ {
			switch {
			case rest[i] == '\a':
				return i + 1
			case rest[i] == '\x1b' && i+1 < len(rest) && rest[i+1] == '\\':
				return i + 2
			case strings.HasPrefix(rest[i:], "\u009c"):
				return i + len("\u009c")
			case rest[i] == '\n' || rest[i] == '\x1b' || rest[i] == 0xc2 && i+1 < len(rest) && rest[i+1] < 0xa0:
				return used // another control ends it: so each byte is looked at once
			}
		}
	}
	return used
}
