package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// param reads a parameter expansion.
func (a *analysis) param(b *builder, p *syntax.ParamExp, dirs []string, quoted bool) {
	name := ""
	if p.Param != nil {
		name = p.Param.Value
	}
	list := name == "@" || name == "*"
	if name == "" || p.Flags != nil || p.Width || p.IsSet || p.NestedParam != nil || p.Modifiers != nil {
		a.opaque("", "a parameter expansion with an operator that is not bash's")
		b.lose(true)
		return
	}
	if p.Index != nil {
		if lit := indexWord(p.Index); lit == "@" || lit == "*" {
			list = true
		} else {
			a.subscript(p.Index, dirs)
		}
	}
	if p.Excl && !(list && p.Index != nil) && p.Names == 0 {
		a.opaque("", "an indirect expansion, whose name is known only when it runs")
	}
	if p.Slice != nil {
		for _, x := range []syntax.ArithmExpr{p.Slice.Offset, p.Slice.Length} {
			if x != nil {
				a.arith(x, dirs)
			}
		}
	}
	if p.Repl != nil {
		for _, w := range []*syntax.Word{p.Repl.Orig, p.Repl.With} {
			if w != nil {
				a.word(w, dirs)
			}
		}
	}
	if p.Exp != nil {
		a.operator(name, p.Exp, dirs)
	}
	if p.Length {
		b.lose(false)
		return
	}
	switch name {
	case "#", "?", "$", "!":
		b.lose(false)
		return
	}
	v, assigned := a.get(name)
	b.number = b.number && v.number
	plain := !p.Excl && p.Slice == nil && p.Repl == nil && p.Names == 0 && p.Exp == nil && (p.Index == nil || list)
	switch {
	case !plain:
		b.number = false
	case v.number && v.alts == nil:
		if !b.unknown && len(b.texts) == 1 && b.texts[0] == "" {
			b.loseTame(false) // digits are one word and no option
		} else {
			b.lose(false)
		}
		return
	case v.tame:
		b.loseTame(!quoted)
		return
	case !assigned && name == "HOME" && a.place.Home != "" && (quoted || safeValue(a.place.Home)):
		b.add(a.place.Home)
		return
	case !assigned && name == "PWD" && len(dirs) == 1 && dirs[0] != "" && (quoted || safeValue(dirs[0])):
		b.add(dirs[0])
		return
	case !assigned && !list && identifier(name):
		b.loseOuter(!quoted)
		return
	case v.alts != nil && (quoted || !v.pattern && allSafe(v.alts)):
		b.choose(v.alts)
		if v.pattern {
			b.glob = true
		}
		if list {
			b.many = true
			if len(v.alts) == 1 { // still a list: never exactly one word
				b.texts = append(b.texts, b.texts...)
			}
		} else if len(b.texts) == 1 && v.pattern {
			b.texts = append(b.texts, b.texts...)
		}
		return
	}
	b.lose(!quoted || list)
}

func allSafe(alts []string) bool {
	for _, t := range alts {
		if !safeValue(t) {
			return false
		}
	}
	return true
}

// operator reads what stands behind a name in an expansion.
func (a *analysis) operator(name string, e *syntax.Expansion, dirs []string) {
	if e.Word != nil {
		a.word(e.Word, dirs)
	}
	switch e.Op {
	case syntax.AlternateUnset, syntax.AlternateUnsetOrNull, syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.ErrorUnset, syntax.ErrorUnsetOrNull,
		syntax.RemSmallSuffix, syntax.RemLargeSuffix, syntax.RemSmallPrefix, syntax.RemLargePrefix,
		syntax.UpperFirst, syntax.UpperAll, syntax.LowerFirst, syntax.LowerAll:
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if !harmless(name) {
			a.opaque(name, "an expansion that assigns %s, which can change what runs", name)
		}
		a.set(name, value{})
	default:
		if e.Op == syntax.OtherParamOps && e.Word != nil {
			switch e.Word.Lit() {
			case "Q", "U", "u", "L":
				return
			}
		}
		a.opaque("", "an expansion that may evaluate what it expands")
	}
}

func indexWord(x syntax.ArithmExpr) string {
	if w, ok := x.(*syntax.Word); ok {
		return w.Lit()
	}
	return ""
}

// subscript reads an array's subscript: a number, since anything else may be evaluated.
func (a *analysis) subscript(x syntax.ArithmExpr, dirs []string) {
	if lit := indexWord(x); lit == "@" || lit == "*" {
		return
	}
	a.arith(x, dirs)
}

// arith reads arithmetic. A variable in it is evaluated again, and a subscript in its value can run a command, so every
// one must be known to be a number.
func (a *analysis) arith(x syntax.ArithmExpr, dirs []string) {
	switch x := x.(type) {
	case nil:
	case *syntax.ParenArithm:
		a.arith(x.X, dirs)
	case *syntax.UnaryArithm:
		a.arith(x.X, dirs)
		if x.Op == syntax.Inc || x.Op == syntax.Dec {
			a.countUp(x.X)
		}
	case *syntax.BinaryArithm:
		switch x.Op {
		case syntax.Assgn:
			a.arith(x.Y, dirs)
			a.countUp(x.X)
			return
		case syntax.AddAssgn, syntax.SubAssgn, syntax.MulAssgn, syntax.QuoAssgn, syntax.RemAssgn, syntax.AndAssgn, syntax.OrAssgn, syntax.XorAssgn, syntax.ShlAssgn, syntax.ShrAssgn:
			a.arith(x.X, dirs)
			a.arith(x.Y, dirs)
			a.countUp(x.X)
			return
		}
		a.arith(x.X, dirs)
		a.arith(x.Y, dirs)
	case *syntax.Word:
		a.arithWord(x, dirs)
	default:
		a.opaque("", "arithmetic that is not read here")
	}
}

// countUp records that arithmetic assigns a variable.
func (a *analysis) countUp(x syntax.ArithmExpr) {
	name := indexWord(x)
	if !identifier(name) || !harmless(name) {
		a.opaque("", "arithmetic that assigns what is known only when it runs")
		return
	}
	a.set(name, value{number: true})
}

func identifier(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !(c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return s != ""
}

func (a *analysis) arithWord(w *syntax.Word, dirs []string) {
	if lit := w.Lit(); lit != "" {
		switch {
		case lit[0] >= '0' && lit[0] <= '9' && strings.Trim(lit, "0123456789abcdefABCDEFxX#") == "":
			return
		case identifier(lit):
			if v, ok := a.get(lit); ok && v.number || lit == "RANDOM" || lit == "SECONDS" || lit == "LINENO" {
				return
			}
			a.opaque(lit, "arithmetic evaluates %s, whose value is known only when it runs", clip(lit))
			return
		}
		a.opaque("", "arithmetic that is not read here")
		return
	}
	if len(w.Parts) == 1 {
		if p, ok := w.Parts[0].(*syntax.ParamExp); ok && p.Param != nil && (p.Param.Value == "#" || p.Param.Value == "?" || p.Length && p.Index == nil) && p.Exp == nil && p.Slice == nil && !p.Excl {
			return
		}
		if p, ok := w.Parts[0].(*syntax.ParamExp); ok && p.Length && p.Index != nil && (indexWord(p.Index) == "@" || indexWord(p.Index) == "*") {
			return
		}
	}
	_, number := a.expand(w, dirs, true)
	if !number {
		a.opaque("", "arithmetic evaluates a value that is known only when it runs")
	}
}
