package shell

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// word is what is known of one word of a command before it is expanded.
type word struct {
	text  string   // its value, or the pattern when glob
	known bool     // text is known; it is one word unless glob
	glob  bool     // a pattern: any number of file names
	many  bool     // unknown, and may become several words
	alts  []string // of an unknown word: all it can be, each a value or a pattern; nil when that is not known
	head  string   // of an unknown word that stays one: how it begins
	tame  bool     // unknown, but nothing it becomes begins with a dash or names a device: an object or a branch of git
	outer bool     // unknown, but it comes from the environment that the line was given
	arg   int      // where it stands in the tree's command; -1 when it does not
}

func literal(text string) word { return word{text: text, known: true, arg: -1} }

// option says that the word may be taken for an option.
func (w word) option() bool {
	switch {
	case w.known:
		return dashed(w.text, w.glob)
	case w.tame:
		return false
	case w.many && w.alts == nil:
		return true
	case w.alts != nil:
		for _, a := range w.alts {
			if dashed(a, true) {
				return true
			}
		}
		return false
	}
	return w.head == "" || dashed(w.head, false)
}

func dashed(text string, glob bool) bool {
	return strings.HasPrefix(text, "-") || glob && strings.IndexAny(text, "*?[") == 0
}

// one says that the word is known to be exactly one word.
func (w word) one() bool { return w.known && !w.glob }

// maxAlts bounds how many values a word is followed with.
const maxAlts = 16

// builder puts a word together from its parts.
type builder struct {
	texts   []string // what it can be so far
	unknown bool
	glob    bool
	many    bool
	number  bool // it is an arithmetic expansion or digits, and nothing else
	head    string
	tame    bool
	outer   bool
}

func (b *builder) add(text string) {
	if b.unknown {
		b.tame = b.tame && !strings.HasPrefix(text, "-") && !strings.HasPrefix(text, "/")
		return
	}
	for i := range b.texts {
		b.texts[i] += text
	}
}

func (b *builder) lose(many bool) {
	if !b.unknown && len(b.texts) == 1 && !b.glob {
		b.head = b.texts[0]
	}
	b.unknown, b.tame, b.outer = true, false, false
	b.many = b.many || many
}

// loseTame loses the text to something that begins neither with a dash nor with a slash.
func (b *builder) loseTame(many bool) {
	first := !b.unknown && len(b.texts) == 1 && b.texts[0] == ""
	b.lose(many)
	b.tame = first
}

// loseOuter loses the text to a variable that the line does not set.
func (b *builder) loseOuter(many bool) {
	outer := !b.unknown || b.outer
	b.lose(many)
	b.outer = outer
}

func (b *builder) choose(alts []string) {
	if b.unknown {
		return
	}
	if len(alts)*len(b.texts) > maxAlts {
		b.lose(true)
		return
	}
	var out []string
	for _, t := range b.texts {
		for _, a := range alts {
			out = append(out, t+a)
		}
	}
	b.texts = out
}

func (b *builder) word() word {
	switch {
	case b.unknown && b.many:
		return word{many: true, tame: b.tame, outer: b.outer, arg: -1}
	case b.unknown:
		return word{head: b.head, tame: b.tame, outer: b.outer, arg: -1}
	case len(b.texts) != 1:
		return word{alts: b.texts, many: b.many, arg: -1}
	}
	return word{text: b.texts[0], known: true, glob: b.glob, arg: -1}
}

// word reads one word and adds the effects of what is substituted in it.
func (a *analysis) word(w *syntax.Word, dirs []string) word {
	out, _ := a.expand(w, dirs, false)
	return out
}

// expand reads a word; number says that it can be nothing but a decimal number. In an assignment words are not split.
func (a *analysis) expand(w *syntax.Word, dirs []string, assigned bool) (out word, number bool) {
	if len(w.Parts) == 1 {
		if lit, ok := w.Parts[0].(*syntax.Lit); ok && plain(lit.Value) {
			return literal(lit.Value), lit.Value != "" && strings.Trim(lit.Value, "0123456789") == ""
		}
	}
	b := &builder{texts: []string{""}, number: true}
	for i, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			a.lit(b, part.Value, i == 0, len(w.Parts) > 1, assigned)
		case *syntax.SglQuoted:
			b.number = b.number && part.Value != "" && strings.Trim(part.Value, "0123456789") == ""
			if !part.Dollar {
				b.add(part.Value)
			} else if value, ok := ansiC(part.Value); ok {
				b.add(value)
			} else {
				b.lose(false)
			}
		case *syntax.DblQuoted:
			if part.Dollar {
				a.opaque("", `a translated $"…" string`)
				b.lose(false)
			}
			if len(part.Parts) == 0 {
				b.number = false
			}
			for _, inner := range part.Parts {
				if lit, ok := inner.(*syntax.Lit); ok {
					text := unescapeQuoted(lit.Value)
					b.number = b.number && text != "" && strings.Trim(text, "0123456789") == ""
					b.add(text)
				} else {
					a.substituted(b, inner, dirs, true)
				}
			}
		default:
			a.substituted(b, part, dirs, assigned)
		}
	}
	if len(w.Parts) == 0 {
		b.number = false
	}
	return b.word(), b.number
}

// plain says that an unquoted text is its own value.
func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\', '*', '?', '[', '~', '{', '=':
			return false
		}
	}
	return true
}

// substituted reads a part that the shell replaces.
func (a *analysis) substituted(b *builder, part syntax.WordPart, dirs []string, quoted bool) {
	switch part := part.(type) {
	case *syntax.ParamExp:
		a.param(b, part, dirs, quoted)
	case *syntax.CmdSubst:
		if part.TempFile || part.ReplyVar {
			a.opaque("", "a substitution that runs in the shell itself")
		}
		a.inSubshell(func() { a.stmts(part.Stmts, dirs) })
		if !countsLines(part) {
			b.number = false
		}
		if namesObject(part) {
			b.loseTame(!quoted)
		} else {
			b.lose(!quoted)
		}
	case *syntax.ArithmExp:
		a.arith(part.X, dirs)
		b.lose(false) // it may be negative
	case *syntax.ProcSubst:
		a.inSubshell(func() { a.stmts(part.Stmts, dirs) })
		b.number = false
		b.add("/dev/fd/63")
	case *syntax.ExtGlob:
		// The pattern holds no expansions that the parser tells apart: anything that could be one counts.
		if strings.ContainsAny(part.Pattern.Value, "$`") {
			a.opaque("", "an extended glob with an expansion")
		}
		b.number = false
		b.lose(true)
	default:
		a.opaque("", "an expansion that is not read here")
		b.lose(true)
	}
}

// namesObject says that a substitution prints nothing but names of git's objects, branches or tags, none of which begins
// with a dash.
func namesObject(s *syntax.CmdSubst) bool {
	if len(s.Stmts) != 1 {
		return false
	}
	call, ok := s.Stmts[0].Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) < 2 || len(call.Assigns) > 0 && call.Assigns[0].Name.Value != "GIT_ALLOW_PROTOCOL" {
		return false
	}
	var args []string
	for _, w := range call.Args {
		lit := ""
		for _, p := range w.Parts {
			switch p := p.(type) {
			case *syntax.Lit:
				lit += p.Value
			case *syntax.SglQuoted:
				lit += p.Value
			default:
				lit += "?"
			}
		}
		args = append(args, lit)
	}
	if args[0] != "git" {
		return false
	}
	sub := gitSub(literals(args[1:]))
	at := 1
	for at < len(args) && args[at] != sub {
		at++
	}
	if sub == "" || at >= len(args) {
		return false
	}
	for _, a := range args[at+1:] {
		if !strings.HasPrefix(a, "-") {
			continue
		}
		switch {
		case sub == "rev-parse" && (a == "--short" || a == "--verify" || a == "-q" || a == "--abbrev-ref"), sub == "describe" && (a == "--tags" || a == "--abbrev=0" || a == "--always"),
			sub == "branch" && (a == "--show-current" || a == "--format=%(refname:short)" || a == "--format=%(refname)"), sub == "symbolic-ref" && (a == "--short" || a == "-q"), sub == "merge-base" && a == "--fork-point":
		default:
			return false
		}
	}
	switch sub {
	case "rev-parse", "merge-base", "describe", "symbolic-ref":
		return true
	case "branch":
		return slices.Contains(args, "--show-current") || slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "--format=") })
	}
	return false
}

func literals(texts []string) []word {
	var out []word
	for _, t := range texts {
		out = append(out, literal(t))
	}
	return out
}

// countsLines says that a substitution prints one number: its last command is wc with one count and no file.
func countsLines(s *syntax.CmdSubst) bool {
	if len(s.Stmts) != 1 {
		return false
	}
	st := s.Stmts[0]
	for {
		pipe, ok := st.Cmd.(*syntax.BinaryCmd)
		if !ok || pipe.Op != syntax.Pipe {
			break
		}
		st = pipe.Y
	}
	call, ok := st.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) != 2 || call.Args[0].Lit() != "wc" {
		return false
	}
	opt := call.Args[1].Lit()
	return opt == "-l" || opt == "-c" || opt == "-w" || opt == "-m"
}

// lit reads an unquoted part: backslashes, a leading tilde, globs and braces.
func (a *analysis) lit(b *builder, value string, first, more, assigned bool) {
	b.number = b.number && value != "" && strings.Trim(value, "0123456789") == ""
	if first && strings.HasPrefix(value, "~") {
		user, _, slash := strings.Cut(value[1:], "/")
		if user != "" || a.place.Home == "" || !slash && more {
			b.lose(false)
		} else {
			b.add(a.place.Home)
			value = value[1:]
		}
	}
	if strings.Contains(value, "=~") || strings.Contains(value, ":~") {
		b.lose(false)
	}
	if brace := strings.IndexByte(value, '{'); brace >= 0 && value != "{}" && !assigned {
		if alts, ok := braces(value); ok && !more {
			b.glob = strings.ContainsAny(value, "*?[")
			b.choose(alts)
			b.many = true
			return
		}
		// A brace expansion may also be spread over quoted parts; anything that could be one counts.
		if more || strings.Contains(value[brace:], ",") || strings.Contains(value[brace:], "..") {
			b.lose(true)
		}
	}
	if !strings.ContainsAny(value, `\*?[`) {
		b.add(value)
		return
	}
	var text strings.Builder
	for i := 0; i < len(value); i++ {
		switch c := value[i]; c {
		case '\\':
			if i++; i < len(value) && value[i] != '\n' {
				text.WriteByte(value[i])
			}
		case '*', '?', '[':
			if !(c == '[' && value == "[" && !more) && !assigned {
				b.glob = true
			}
			text.WriteByte(c)
		default:
			text.WriteByte(c)
		}
	}
	b.add(text.String())
	if b.glob && len(b.texts) > 1 {
		b.many = true
	}
}

// braces expands one simple group of alternatives or one range, in a text without quotes.
func braces(s string) ([]string, bool) {
	open, end := strings.IndexByte(s, '{'), strings.IndexByte(s, '}')
	if end < open || strings.Count(s, "{") != 1 || strings.Count(s, "}") != 1 || strings.ContainsAny(s, "\\'\"$`") {
		return nil, false
	}
	before, inner, after := s[:open], s[open+1:end], s[end+1:]
	var out []string
	if from, to, ok := strings.Cut(inner, ".."); ok {
		x, err1 := strconv.Atoi(from)
		y, err2 := strconv.Atoi(to)
		if err1 != nil || err2 != nil || x < 0 || x > y || y-x >= maxAlts || len(from) != len(strconv.Itoa(x)) || len(to) != len(strconv.Itoa(y)) {
			return nil, false
		}
		for i := x; i <= y; i++ {
			out = append(out, before+strconv.Itoa(i)+after)
		}
		return out, true
	}
	if !strings.Contains(inner, ",") {
		return nil, false
	}
	for _, alt := range strings.Split(inner, ",") {
		out = append(out, before+alt+after)
	}
	return out, len(out) <= maxAlts
}

// safeValue says that a value stays one word without globs even where it is not quoted.
func safeValue(s string) bool { return s != "" && !strings.ContainsAny(s, " \t\n*?[\\") }

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
