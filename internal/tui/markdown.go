package tui

import (
	"regexp"
	"strings"
	"sync"

	"belay/internal/render"
)

// The inks of a set text, in the terminal's own sixteen colours, so that they fit light and dark.
const (
	inkBold, inkItalic, inkDim    = "1", "3", "2"
	inkCode, inkHead, inkLink     = "36", "1;35", "4"
	inkWord, inkString, inkNumber = "34", "32", "33"
)

func paint(color bool, ink, text string) string {
	if !color || text == "" {
		return text
	}
	return "\x1b[" + ink + "m" + text + "\x1b[0m"
}

// setMarkdown sets a text in the Markdown that models write: headings, lists, quotes, fenced code, and emphasis, code and links
// in a line. What it does not know stays as it is.
func setMarkdown(text string, width int, color bool) []string {
	var out []string
	fence, language := "", ""
	for line := range strings.SplitSeq(text, "\n") {
		bare := strings.TrimSpace(line)
		if mark := fenceOf(bare); mark != "" && (fence == "" || bare == fence) {
			if fence == "" {
				fence, language = mark, strings.ToLower(strings.TrimSpace(strings.TrimPrefix(bare, mark)))
			} else {
				fence = ""
			}
			continue
		}
		if fence != "" {
			out = append(out, "  "+paint(color, inkDim, "│ ")+highlight(strings.ReplaceAll(line, "\t", "    "), language, color))
			continue
		}
		out = append(out, setLine(line, bare, width, color)...)
	}
	return out
}

func fenceOf(line string) string {
	for _, mark := range []string{"```", "~~~"} {
		if strings.HasPrefix(line, mark) {
			return mark
		}
	}
	return ""
}

var listed = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(\s*)([-*+]|\d+[.)])\s+(.*)$`) })

func setLine(line, bare string, width int, color bool) []string {
	lead, rest := "  ", line
	switch {
	case strings.HasPrefix(bare, "#"):
		return []string{"  " + paint(color, inkHead, strings.TrimSpace(strings.TrimLeft(bare, "#")))}
	case strings.HasPrefix(bare, ">"):
		lead, rest = "  "+paint(color, inkDim, "▎ "), strings.TrimSpace(strings.TrimPrefix(bare, ">"))
	case bare == "---" || bare == "***":
		return []string{"  " + paint(color, inkDim, strings.Repeat("─", max(3, min(width-4, 40))))}
	default:
		if m := listed().FindStringSubmatch(line); m != nil {
			bullet := m[2]
			if len(bullet) == 1 && strings.ContainsAny(bullet, "-*+") {
				bullet = "•"
			}
			lead, rest = "  "+strings.ReplaceAll(m[1], "\t", "  ")+bullet+" ", m[3]
		}
	}
	var out []string
	indent := strings.Repeat(" ", render.Width(bareOf(lead)))
	for i, piece := range words(strings.TrimRight(rest, " "), max(16, min(width, 100)-render.Width(indent))) {
		if i > 0 {
			lead = indent
		}
		out = append(out, strings.TrimRight(lead+piece, " "))
	}
	for i := range out {
		out[i] = inline(out[i], color)
	}
	return out
}

// bareOf is a text without its colours.
func bareOf(s string) string { return escapes().ReplaceAllString(s, "") }

var escapes = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("\x1b\\[[0-9;]*m") })

// words breaks a line at spaces.
func words(line string, width int) []string {
	if render.Width(line) <= width {
		return []string{line}
	}
	var out []string
	current := ""
	for _, word := range strings.Split(line, " ") {
		if current != "" && render.Width(current)+1+render.Width(word) > width {
			out = append(out, current)
			current = word
			continue
		}
		if current != "" || len(out) == 0 && word == "" {
			word = " " + word
		}
		current += word
	}
	return append(out, folded(current, width)...)
}

var spans = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("`[^`]+`" + `|\*\*[^*]+\*\*|__[^_]+__|\[[^\]]+\]\([^)\s]+\)`)
})

// inline paints code, emphasis and links of a line.
func inline(line string, color bool) string {
	return spans().ReplaceAllStringFunc(line, func(span string) string {
		switch {
		case span[0] == '`':
			return paint(color, inkCode, strings.Trim(span, "`"))
		case span[0] == '[':
			label, target, _ := strings.Cut(span[1:len(span)-1], "](")
			return paint(color, inkLink, label) + paint(color, inkDim, " ("+target+")")
		}
		return paint(color, inkBold, span[2:len(span)-2])
	})
}

// tokens are strings, comments, numbers and words of the languages that are written most; what a language calls them differs
// little enough.
var tokens = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'` + "|`[^`]*`" + `|//.*$|#.*$|--\s.*$|\b\d[\w.]*\b|\b[A-Za-z_]\w*\b`)
})

var keywords = sync.OnceValue(func() map[string]bool {
	words := map[string]bool{}
	for _, w := range strings.Fields(`func function def class return if else elif for while switch case default break continue import from package type struct interface var let const
		public private protected static void new try catch except finally raise throw async await yield lambda match fn impl trait enum mod use pub mut self this nil null None true false True False
		go defer chan select range map with as in is not and or then fi do done esac echo export local`) {
		words[w] = true
	}
	return words
})

// highlight paints a line of code.
func highlight(line, language string, color bool) string {
	line = render.Clean(line)
	if !color || language == "text" || language == "diff" {
		if color && language == "diff" {
			switch {
			case strings.HasPrefix(line, "+"):
				return paint(color, inkString, line)
			case strings.HasPrefix(line, "-"):
				return paint(color, "31", line)
			}
		}
		return line
	}
	hash := language == "python" || language == "py" || language == "sh" || language == "bash" || language == "yaml" || language == "ruby" || language == "toml" || language == ""
	return tokens().ReplaceAllStringFunc(line, func(token string) string {
		switch {
		case strings.HasPrefix(token, "//") || strings.HasPrefix(token, "-- "), token[0] == '#' && hash:
			return paint(color, inkDim, token)
		case token[0] == '#':
			return token
		case strings.ContainsRune("\"'`", rune(token[0])):
			return paint(color, inkString, token)
		case token[0] >= '0' && token[0] <= '9':
			return paint(color, inkNumber, token)
		case keywords()[token]:
			return paint(color, inkWord, token)
		}
		return token
	})
}
