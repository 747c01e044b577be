package shell

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"belay/effect"
)

// command is one simple command with its words.
type command struct {
	*analysis
	node    *syntax.CallExpr
	words   []word // words[0] names the command
	dirs    []string
	touched *bool // words were put into the tree, so that word.arg is no longer true
	part    int   // which of the line's commands it belongs to; -1 for none
}

// systemFolders are where a command given by its path is the one that its name says.
var systemFolders = map[string]bool{"/bin": true, "/usr/bin": true, "/usr/local/bin": true, "/sbin": true, "/usr/sbin": true}

// commandName takes a system folder off a command's path. Any other path stays, and is then in no table.
func commandName(text string) string {
	if strings.IndexByte(text, '/') < 0 {
		return text
	}
	if dir, base := path.Split(text); dir != "" && systemFolders[path.Clean(dir)] {
		return base
	}
	return text
}

func (c *command) run() flow {
	first := c.words[0]
	if !first.one() {
		c.opaque("", "the name of a command is known only when it runs")
		c.scan(c.words[1:])
		return same(c.dirs)
	}
	name := commandName(first.text)
	switch name {
	case "cd", "pushd":
		if first.text == name {
			return c.cd(name)
		}
	case "popd", "eval", "source", ".":
		if name != "popd" {
			c.opaque(name, "`%s` runs what it is given in this shell", name)
			c.wrapper(name)
		}
		c.add(effect.Exec, name, "")
		return same([]string{""})
	case "builtin", "command":
		if len(c.words) > 1 && c.words[1].one() && words("cd pushd popd eval source .")[c.words[1].text] {
			c.words = c.words[1:]
			return c.run()
		}
	case "exit", "return", "exec":
		if name != "exec" || len(c.words) == 1 {
			c.add(effect.Exec, name, "")
			return same(c.dirs)
		}
	}
	switch {
	case c.danger(name):
	case c.wrapper(name):
	case c.write(name):
	case c.builtin(name):
	case c.read(name):
	default:
		c.opaque(name, "`%s` is not a command that is known only to read", clip(name))
		c.scan(c.words[1:])
	}
	return same(c.dirs)
}

// known says that a name is a command that this package knows, so that a function of that name would hide it.
func known(name string) bool {
	_, reader := readers()[name]
	_, writer := writers[name]
	return reader || writer || starters[name] || recognised(name) || shellBuiltins()[name]
}

// sub analyses other words as a command of their own, in the same place. Steps over safe are wrappers behind which a
// rule about the inner command also speaks of the whole.
func (c *command) sub(words []word) { c.subIn(words, c.dirs) }

func (c *command) subIn(words []word, dirs []string) {
	if len(words) == 0 {
		return
	}
	if c.depth >= 8 {
		c.opaque("", "commands inside commands, too deep")
		return
	}
	if c.part >= 0 {
		var texts []string
		for _, w := range words {
			switch {
			case w.known:
				texts = append(texts, w.text)
			case w.arg >= 0 && w.arg < len(c.node.Args):
				texts = append(texts, "$_")
			}
		}
		p := &c.parts[c.part]
		if text := strings.Join(texts, " "); !slices.Contains(p.Inner, text) {
			p.Inner = append(p.Inner, text)
		}
	}
	c.depth++
	(&command{c.analysis, c.node, words, dirs, c.touched, c.part}).run()
	c.depth--
}

// scan looks among the arguments of a command that may start another one for a recognised command and adds what that would do.
func (c *command) scan(words []word) {
	for i, w := range words {
		if w.one() && recognised(commandName(w.text)) {
			c.sub(words[i:])
			return
		}
	}
}

func recognised(name string) bool {
	switch name {
	case "git", "rm", "sh", "bash", "env", "xargs", "find":
		return true
	}
	return senders[name] || interpreters[name] || system[name] || partialSenders[name] != nil
}

// line analyses a literal program of a shell, as in sh -c '…', and reports whether it could be read.
func (c *command) line(text string) bool {
	if c.depth >= 4 {
		return false
	}
	tree, again, err := reprint(text)
	if err != nil {
		return false
	}
	c.depth++
	was := *c.analysis
	c.inner, c.vars, c.funcs, c.text, c.conditional, c.current = true, nil, nil, again, true, c.part
	c.stmts(tree.Stmts, c.dirs)
	c.inner, c.vars, c.funcs, c.text, c.conditional = was.inner, was.vars, was.funcs, was.text, was.conditional
	c.current = was.current
	c.depth--
	return true
}

func (c *command) cd(name string) flow {
	args := c.words[1:]
	for len(args) > 0 && args[0].one() && (args[0].text == "--" || args[0].text == "-P" || args[0].text == "-L") {
		args = args[1:]
	}
	c.add(effect.Exec, name, "")
	if len(args) == 0 && name == "cd" {
		return flow{[]string{c.place.Home}, c.dirs}
	}
	if len(args) != 1 {
		if len(args) > 1 {
			c.opaque(name, "`%s` with several operands", name)
		}
		return flow{[]string{""}, c.dirs}
	}
	targets := args[0].alts
	switch {
	case args[0].one() && args[0].text != "" && !strings.HasPrefix(args[0].text, "-") && !strings.HasPrefix(args[0].text, "+"):
		targets = []string{args[0].text}
	case args[0].known || targets == nil || args[0].many:
		return flow{[]string{""}, c.dirs}
	}
	var to []string
	for _, at := range targets {
		for _, dir := range c.dirs {
			next := ""
			switch {
			case strings.ContainsAny(at, "*?["):
			case path.IsAbs(at):
				next = path.Clean(at)
			case dir != "":
				next = path.Join(dir, at)
			}
			if next != "" {
				real := c.real(next)
				if real != next && (c.linked || strings.Contains(at, "..")) {
					real = "" // where .. leads is ambiguous
				} else if real != next {
					c.linked = true
				} else if c.linked && strings.Contains(at, "..") {
					real = ""
				}
				next = real
			}
			to = union(to, []string{next})
		}
	}
	return flow{to, c.dirs}
}

// clip shortens a name for a message.
func clip(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:39]) + "…"
	}
	return s
}

// downloads says that a part of a line fetches something.
func downloads(n syntax.Node) bool {
	return calls(n, func(name string) bool {
		return name == "curl" || name == "wget" || name == "fetch" || name == "aria2c" || name == "http"
	})
}

// downloadsInside says that an argument of the command fetches something, as in sh -c "$(curl …)".
func downloadsInside(c *syntax.CallExpr) bool {
	for _, w := range c.Args {
		for _, part := range w.Parts {
			if downloads(part) {
				return true
			}
		}
	}
	return false
}

// interprets says that a part of a line ends in an interpreter, which would run what it is given.
func interprets(n syntax.Node) bool {
	found := false
	syntax.Walk(n, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok && !found {
			starts := false
			for i, w := range c.Args {
				name := commandName(strings.ReplaceAll(w.Lit(), `\`, ""))
				if (i == 0 || starts) && interpreters[name] && !(scripted[name] && ownProgram(name, c.Args[i+1:])) {
					found = true
				}
				starts = starts || i == 0 && (starters[name] || interpreters[name] && !scripted[name] || name == "sudo" || name == "doas")
			}
		}
		return !found
	})
	return found
}

// scripted are the interpreters that take their program from an option, so that what is piped in is only data.
var scripted = set("python python2 python3 perl ruby node nodejs php lua")

func ownProgram(name string, args []*syntax.Word) bool {
	python := strings.HasPrefix(name, "python")
	for i, w := range args {
		opt := w.Lit()
		if opt == "" && len(w.Parts) > 0 {
			if lit, ok := w.Parts[0].(*syntax.Lit); ok {
				opt = lit.Value
			}
		}
		switch {
		case !strings.HasPrefix(opt, "-") || opt == "-":
			return false
		case python && opt == "-m":
			return i+1 < len(args) && args[i+1].Lit() == "json.tool"
		case python && opt == "-c", !python && (opt == "-e" || opt == "-ne" || opt == "-pe" || opt == "-lne"):
			return true
		}
	}
	return false
}

// starters are commands that start the command among their arguments.
var starters = set(`command env nice nohup timeout busybox xargs stdbuf setsid exec builtin time ionice chroot unshare nsenter watch parallel script flock
	strace ltrace caffeinate direnv devbox mise npx uvx poetry pipenv uv bundle`)

// calls looks for a simple command whose name satisfies is, or one of whose words does behind a starter.
func calls(n syntax.Node, is func(string) bool) bool {
	found := false
	syntax.Walk(n, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok {
			starts := false
			for i, w := range c.Args {
				name := commandName(strings.ReplaceAll(w.Lit(), `\`, ""))
				found = found || (i == 0 || starts) && name != "" && is(name)
				starts = starts || i == 0 && (starters[name] || interpreters[name] || name == "sudo" || name == "doas")
			}
		}
		return !found
	})
	return found
}
