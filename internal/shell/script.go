package shell

import (
	"strings"
)

// sedReads says that a script of sed only reads: it has no w, W, e, r-from-a-device or s///e and s///w, and can be read
// to its end. Everything that a version of sed could read differently is refused.
func sedReads(script string) bool {
	s := &sedScript{text: script}
	for {
		s.skip(" \t\n;")
		if s.done() {
			return true
		}
		if !s.address() {
			return false
		}
		s.skip(" \t")
		for s.peek() == '!' {
			s.at++
			s.skip(" \t")
		}
		if s.done() {
			return false
		}
		c := s.next()
		switch c {
		case '{', '}':
			continue
		case '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z', 'F':
		case 'q', 'Q', 'l', 'L':
			s.skip(" \t")
			s.skip("0123456789")
		case 's':
			if !s.substitute() {
				return false
			}
		case 'y':
			d := s.next()
			if !plainDelimiter(d) || !s.until(d, false) || !s.until(d, false) {
				return false
			}
		case 'a', 'i', 'c':
			return s.insert()
		case '#':
			return !strings.Contains(s.text[s.at:], "\n")
		case ':', 'b', 't', 'T':
			s.skip(" \t")
			for !s.done() && (s.peek() == '_' || s.peek() >= 'a' && s.peek() <= 'z' || s.peek() >= 'A' && s.peek() <= 'Z' || s.peek() >= '0' && s.peek() <= '9') {
				s.at++
			}
		default:
			return false
		}
		s.skip(" \t")
		if !s.done() && s.peek() != ';' && s.peek() != '\n' && s.peek() != '}' {
			return false
		}
	}
}

type sedScript struct {
	text string
	at   int
}

func (s *sedScript) done() bool { return s.at >= len(s.text) }

func (s *sedScript) peek() byte {
	if s.done() {
		return 0
	}
	return s.text[s.at]
}

func (s *sedScript) next() byte {
	c := s.peek()
	s.at++
	return c
}

func (s *sedScript) skip(chars string) {
	for !s.done() && strings.IndexByte(chars, s.text[s.at]) >= 0 {
		s.at++
	}
}

func plainDelimiter(d byte) bool {
	return d != 0 && strings.IndexByte("/|,#@:!%+_~^&=;", d) >= 0
}

// until reads to the delimiter. Brackets are where versions of sed differ: a delimiter in them is refused.
func (s *sedScript) until(d byte, pattern bool) bool {
	bracket := false
	for !s.done() {
		c := s.next()
		switch {
		case c == '\\':
			if s.done() {
				return false
			}
			s.at++
		case c == '\n':
			return false
		case c == d:
			return !bracket
		case pattern && c == '[' && !bracket:
			bracket = true
			if s.peek() == '^' {
				s.at++
			}
			if s.peek() == ']' {
				s.at++
			}
		case pattern && bracket && c == '[' && strings.IndexByte(":.=", s.peek()) >= 0 && !s.done():
			end := strings.Index(s.text[s.at+1:], s.text[s.at:s.at+1]+"]")
			if end < 0 {
				return false
			}
			s.at += 1 + end + 2
		case c == ']':
			bracket = false
		}
	}
	return false
}

func (s *sedScript) address() bool {
	for i := range 2 {
		switch c := s.peek(); {
		case c >= '0' && c <= '9':
			s.skip("0123456789")
			if s.peek() == '~' {
				s.at++
				s.skip("0123456789")
			}
		case c == '$':
			s.at++
		case (c == '+' || c == '~') && i == 1:
			s.at++
			s.skip("0123456789")
		case c == '/':
			s.at++
			if !s.until('/', true) {
				return false
			}
			s.skip("IM")
		case c == '\\':
			s.at++
			d := s.next()
			if !plainDelimiter(d) || !s.until(d, true) {
				return false
			}
			s.skip("IM")
		default:
			return i == 0
		}
		s.skip(" \t")
		if i == 0 {
			if s.peek() != ',' {
				return true
			}
			s.at++
			s.skip(" \t")
		}
	}
	return true
}

func (s *sedScript) substitute() bool {
	d := s.next()
	if !plainDelimiter(d) || !s.until(d, true) || !s.until(d, false) {
		return false
	}
	s.skip("gpIi0123456789mM")
	return true
}

// insert reads the text of a, i and c, which goes on to the end of the line, and with a backslash beyond it.
func (s *sedScript) insert() bool {
	rest := s.text[s.at:]
	if strings.HasSuffix(rest, `\`) {
		return false
	}
	return !strings.Contains(rest, "\n") || strings.HasPrefix(rest, "\\\n") && strings.Count(rest, "\n") == 1
}

// awkReads says that a program of awk only reads: no system, no pipe, no getline, no output to a file, nothing loaded. It
// is read token by token; where a slash could begin a pattern or divide, the program is refused.
func awkReads(program string) bool {
	const (
		start   = iota // what precedes is no value: a slash begins a pattern
		operand        // a slash divides
		closing        // behind a parenthesis: it could be either
	)
	previous := start
	depth, printing := 0, -1 // depth of parentheses, and the depth at which a print stands
	for i := 0; i < len(program); {
		c := program[i]
		switch {
		case c == ' ' || c == '\t':
			i++
		case c == '\\':
			if i+1 >= len(program) || program[i+1] != '\n' {
				return false
			}
			i += 2
		case c == '\n' || c == ';' || c == '{' || c == '}':
			printing, previous = -1, start
			i++
		case c == '#':
			for i < len(program) && program[i] != '\n' {
				i++
			}
		case c == '"':
			end := awkString(program, i+1, '"')
			if end < 0 {
				return false
			}
			i, previous = end, operand
		case c == '/':
			switch previous {
			case closing:
				return false
			case operand:
				i, previous = i+1, start
			default:
				end := awkString(program, i+1, '/')
				if end < 0 {
					return false
				}
				i, previous = end, operand
			}
		case c == '|':
			if i+1 >= len(program) || program[i+1] != '|' {
				return false
			}
			i, previous = i+2, start
		case c == '>':
			if printing >= 0 && depth <= printing {
				rest := strings.TrimLeft(strings.TrimLeft(program[i+1:], ">"), " \t")
				ok := false
				for _, to := range []string{`"/dev/stderr"`, `"/dev/stdout"`, `"/dev/null"`} {
					if after, found := strings.CutPrefix(rest, to); found {
						after = strings.TrimLeft(after, " \t")
						ok = after == "" || strings.IndexByte(";}\n", after[0]) >= 0
					}
				}
				if !ok {
					return false
				}
			}
			i, previous = i+1, start
		case c == '@' || c == '`' || c == '\'':
			return false
		case c == '(':
			depth, previous = depth+1, start
			i++
		case c == ')':
			depth, previous = depth-1, closing
			i++
		case c == ']':
			previous = operand
			i++
		case c == '+' || c == '-':
			if i+1 < len(program) && program[i+1] == c {
				i++ // after ++ and -- a slash divides if there is one at all
				previous = closing
			} else {
				previous = start
			}
			i++
		case c == '$':
			previous = start
			i++
		case c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			from := i
			for i < len(program) && (program[i] == '_' || program[i] >= 'a' && program[i] <= 'z' || program[i] >= 'A' && program[i] <= 'Z' || program[i] >= '0' && program[i] <= '9') {
				i++
			}
			previous = operand
			switch program[from:i] {
			case "system", "getline", "extension":
				return false
			case "print", "printf":
				printing, previous = depth, start
			case "in", "return", "else", "do", "case", "exit", "delete":
				previous = start
			}
		case c >= '0' && c <= '9' || c == '.':
			for i < len(program) && (program[i] >= '0' && program[i] <= '9' || program[i] == '.') {
				i++
			}
			previous = operand
		case c > 0x7e || c < ' ':
			return false
		default:
			i++
			previous = start
		}
	}
	return true
}

// awkString returns the place behind the closing mark.
func awkString(s string, i int, mark byte) int {
	bracket := false
	for ; i < len(s); i++ {
		switch {
		case s[i] == '\n':
			return -1
		case s[i] == '\\':
			i++
		case s[i] == mark:
			if bracket {
				return -1 // versions of awk differ about a slash in brackets
			}
			return i + 1
		case mark == '/' && s[i] == '[' && !bracket:
			bracket = true
			if i+1 < len(s) && s[i+1] == '^' {
				i++
			}
			if i+1 < len(s) && s[i+1] == ']' {
				i++
			}
		case mark == '/' && s[i] == ']':
			bracket = false
		}
	}
	return -1
}
