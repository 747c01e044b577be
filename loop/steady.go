package loop

import (
	"strings"
)

// steady replaces by "~" what differs between two runs of the same command that say the same: times ("0.12s", "3 ms")
// and addresses ("0xc0000140"). In words of a regular expression: \b[0-9.]+ ?(ns|µs|ms|s)\b|0x[0-9a-f]+ . It is its own
// scanner since every result of a run is looked at when the run is resumed, and the expression takes twenty times as long.
func steady(text string) string {
	var b strings.Builder
	copied := 0
	replace := func(from, to int) {
		b.WriteString(text[copied:from])
		b.WriteByte('~')
		copied = to
	}
	for i := 0; i < len(text); {
		if !numeral(text[i]) {
			i++
			continue
		}
		end := i + 1
		for end < len(text) && numeral(text[end]) {
			end++
		}
		if after := unitEnd(text, end); after > 0 {
			// It begins where a word does, or ends: "x1.5s" has its boundary before the point.
			for i < end && i > 0 && word(text[i-1]) == word(text[i]) {
				i++
			}
			if i == 0 && !word(text[0]) {
				for i++; i < end && word(text[i-1]) == word(text[i]); {
					i++
				}
			}
			if i < end {
				replace(i, after)
			}
			i = max(end, copied)
			continue
		}
		if after := hexEnd(text, end); after > 0 {
			replace(end-1, after)
			end = after
		}
		i = end
	}
	if copied == 0 {
		return text
	}
	b.WriteString(text[copied:])
	return b.String()
}

func numeral(c byte) bool { return '0' <= c && c <= '9' || c == '.' }

func word(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_'
}

// unitEnd is where a unit of time ends that begins at i, after at most one blank; 0 where there is none.
func unitEnd(text string, i int) int {
	rest := strings.TrimPrefix(text[i:], " ")
	for _, unit := range []string{"ns", "µs", "ms", "s"} {
		if after, ok := strings.CutPrefix(rest, unit); ok && (after == "" || !word(after[0])) {
			return len(text) - len(after)
		}
	}
	return 0
}

// hexEnd is where a number ends whose "0x" has its x at i; 0 where there is none.
func hexEnd(text string, i int) int {
	if text[i-1] != '0' || i >= len(text) || text[i] != 'x' {
		return 0
	}
	end := i + 1
	for end < len(text) && ('0' <= text[end] && text[end] <= '9' || 'a' <= text[end] && text[end] <= 'f') {
		end++
	}
	if end == i+1 {
		return 0
	}
	return end
}
