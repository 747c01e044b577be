package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// word is what is known of one word of a command before it is expanded.
type word struct {
	text  string // its value, or the pattern when glob
	known bool   // text is known; it is one word unless glob
	glob  bool   // a pattern: any number of file names
	many  bool   // unknown, and may become several words
	why   string // a part that can change what runs; it makes the line opaque
}

// option says that the word may be taken for an option.
func (w word) option() bool {
	if w.known {
		return strings.HasPrefix(w.text, "-") || w.glob && strings.IndexAny(w.text, "*?[") == 0
	}
	return true
}

// one says that the word is known to be exactly one word.
func (w word) one() bool { return w.known && !w.glob }

// reader turns syntax words into words.
type reader struct {
	home string
	pwd  string // "" when it is not certain
}

func (r reader) word(w *syntax.Word) word {
	out := word{known: true}
	var text strings.Builder
	for i, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			r.lit(&out, &text, part.Value, i == 0, len(w.Parts) > 1)
		case *syntax.SglQuoted:
			if part.Dollar {
				value, ok := ansiC(part.Value)
				if !ok {
					out.fail("a $'…' string with escapes that are not read here")
				}
				text.WriteString(value)
			} else {
				text.WriteString(part.Value)
			}
		case *syntax.DblQuoted:
			if part.Dollar {
				out.fail(`a translated $"…" string`)
			}
			for _, inner := range part.Parts {
				switch inner := inner.(type) {
				case *syntax.Lit:
					text.WriteString(unescapeQuoted(inner.Value))
				case *syntax.ParamExp:
					r.param(&out, &text, inner, true)
				default:
					out.fail(partName(inner))
				}
			}
		case *syntax.ParamExp:
			r.param(&out, &text, part, false)
		default:
			out.fail(partName(part))
		}
	}
	out.text = text.String()
	if !out.known {
		out.glob = false
	}
	return out
}

func (w *word) fail(why string) {
	if w.why == "" {
		w.why = why
	}
	w.known, w.many = false, true
}

// lit reads an unquoted part: backslashes, a leading tilde, globs and braces.
func (r reader) lit(out *word, text *strings.Builder, value string, first, more bool) {
	if first && strings.HasPrefix(value, "~") {
		user, _, slash := strings.Cut(value[1:], "/")
		if user != "" || r.home == "" || !slash && more {
			out.fail("a tilde that names another folder")
		} else {
			text.WriteString(r.home)
			value = value[1:]
		}
	}
	if brace := strings.IndexByte(value, '{'); brace >= 0 && value != "{}" {
		// A brace expansion may also be spread over quoted parts; anything that could be one counts.
		if more || strings.Contains(value[brace:], ",") || strings.Contains(value[brace:], "..") {
			out.fail("a brace expansion")
		}
	}
	for i := 0; i < len(value); i++ {
		switch c := value[i]; c {
		case '\\':
			if i++; i < len(value) && value[i] != '\n' {
				text.WriteByte(value[i])
			}
		case '*', '?', '[':
			if c == '[' && value == "[" && !more {
				text.WriteByte(c)
				continue
			}
			out.glob = true
			text.WriteByte(c)
		default:
			text.WriteByte(c)
		}
	}
}

// param reads a parameter expansion. Only the plain forms cannot change what runs; a few values are known.
func (r reader) param(out *word, text *strings.Builder, p *syntax.ParamExp, quoted bool) {
	plain := p.Param != nil && p.Flags == nil && !p.Excl && !p.Width && !p.IsSet && p.NestedParam == nil && p.Index == nil &&
		p.Modifiers == nil && p.Slice == nil && p.Repl == nil && p.Names == 0 && p.Exp == nil
	if !plain {
		out.fail("a parameter expansion with an operator")
		return
	}
	if !p.Length {
		switch {
		case p.Param.Value == "HOME" && r.home != "" && safeValue(r.home):
			text.WriteString(r.home)
			return
		case p.Param.Value == "PWD" && r.pwd != "" && safeValue(r.pwd):
			text.WriteString(r.pwd)
			return
		}
	}
	out.known = false
	if !quoted || p.Param.Value == "@" || p.Param.Value == "*" {
		out.many = true
	}
}

// safeValue says that a value stays one word without globs even where it is not quoted.
func safeValue(s string) bool { return !strings.ContainsAny(s, " \t\n*?[\\") }

func unescapeQuoted(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\\n", s[i+1]) >= 0 {
			if i++; s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// ansiC reads the few escapes of $'…' that every shell agrees on.
func ansiC(s string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		if i++; i == len(s) {
			return "", false
		}
		switch s[i] {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case '\\', '\'', '"':
			b.WriteByte(s[i])
		default:
			return "", false
		}
	}
	return b.String(), true
}

func partName(part syntax.WordPart) string {
	switch part.(type) {
	case *syntax.CmdSubst:
		return "a command substitution"
	case *syntax.ProcSubst:
		return "a process substitution"
	case *syntax.ArithmExp:
		return "an arithmetic expansion"
	case *syntax.ExtGlob:
		return "an extended glob"
	}
	return "an expansion that is not read here"
}
