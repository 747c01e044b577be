package shell

import (
	"path"
	"regexp"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"belay/effect"
)

// command is one simple command with its words.
type command struct {
	*analysis
	node  *syntax.CallExpr
	at    int    // where words[0] stands in node.Args
	words []word // words[0] names the command
	dirs  []string
}

// systemFolders are where a command given by its path is the one that its name says.
var systemFolders = map[string]bool{"/bin": true, "/usr/bin": true, "/usr/local/bin": true, "/sbin": true, "/usr/sbin": true}

// commandName takes a system folder off a command's path. Any other path stays, and is then in no table.
func commandName(text string) string {
	if dir, base := path.Split(text); dir != "" && systemFolders[path.Clean(dir)] {
		return base
	}
	return text
}

func (c *command) run() flow {
	first := c.words[0]
	if !first.one() {
		c.opaque("", "the name of a command is known only when it runs")
		return same(c.dirs)
	}
	name := commandName(first.text)
	if name == "cd" {
		return c.cd()
	}
	switch {
	case c.danger(name):
	case c.wrapper(name):
	case c.write(name):
	case c.read(name):
	default:
		c.opaque(name, "`%s` is not a command that is known only to read", clip(name))
		c.scan(c.words[1:])
	}
	return same(c.dirs)
}

// sub analyses other words as a command of their own, in the same place.
func (c *command) sub(words []word) {
	if len(words) == 0 {
		return
	}
	if c.depth >= 8 {
		c.opaque("", "commands inside commands, too deep")
		return
	}
	c.depth++
	inner := &command{c.analysis, c.node, c.at + len(c.words) - len(words), words, c.dirs}
	inner.run()
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

// line analyses a literal program of a shell, as in sh -c '…'. It is opaque already; this finds what it surely does.
func (c *command) line(text string) {
	if c.depth >= 4 {
		return
	}
	tree, _, err := reprint(text)
	if err != nil {
		return
	}
	c.depth++
	was, flat := c.inner, c.flat
	c.inner, c.flat = true, false
	c.stmts(tree.Stmts, c.dirs)
	c.inner, c.flat = was, flat
	c.depth--
}

func (c *command) cd() flow {
	args := c.words[1:]
	if len(args) > 0 && args[0].one() && args[0].text == "--" {
		args = args[1:]
	}
	switch {
	case len(args) == 0 && c.place.Home != "":
		return flow{[]string{c.place.Home}, c.dirs}
	case len(args) != 1 || !args[0].one() || args[0].option() || args[0].text == "":
		c.opaque("cd", "it changes to a folder that is known only when it runs")
		return same(c.dirs)
	}
	var to []string
	for _, dir := range c.dirs {
		at := args[0].text
		if !path.IsAbs(at) {
			at = path.Join(dir, at)
		}
		real := c.real(path.Clean(at))
		if real != path.Clean(at) {
			c.opaque("cd", "it changes folder through a symbolic link, after which .. is ambiguous")
		}
		to = append(to, real)
	}
	return flow{to, c.dirs}
}

// wrapper handles commands that run another command, and reports whether name is one.
func (c *command) wrapper(name string) bool {
	rest := c.words[1:]
	switch name {
	case "command":
		if len(rest) > 1 && rest[0].one() && (rest[0].text == "-v" || rest[0].text == "-V") {
			c.add(effect.Exec, name, "it looks up a command")
			return true
		}
		if len(rest) > 0 && !rest[0].option() {
			c.sub(rest)
			return true
		}
	case "env", "nice", "nohup":
		if name == "env" && len(rest) == 0 {
			c.add(effect.Exec, name, "it prints the environment")
			return true
		}
		if name != "nohup" && len(rest) > 0 && rest[0].one() && !rest[0].option() && !strings.Contains(rest[0].text, "=") {
			c.sub(rest)
			return true
		}
	case "timeout":
		if len(rest) > 1 && rest[0].one() && duration().MatchString(rest[0].text) {
			c.add(effect.Exec, name, "it bounds the time of a command")
			c.sub(rest[1:])
			return true
		}
	case "sh", "bash", "dash", "zsh", "ksh", "ash", "busybox", "eval":
		c.opaque(name, "`%s` runs another program", name)
		for i, w := range rest {
			if w.one() && (name == "eval" || i > 0 && rest[i-1].one() && strings.HasPrefix(rest[i-1].text, "-") && strings.HasSuffix(rest[i-1].text, "c")) {
				c.line(w.text)
			}
		}
		if name == "busybox" {
			c.sub(rest)
		}
		return true
	default:
		if !starters[name] {
			return false
		}
	}
	c.opaque(name, "`%s` runs another command", name)
	c.scan(rest)
	return true
}

var duration = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]+(\.[0-9]+)?[smhd]?$`) })

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
	return calls(n, func(name string) bool { return interpreters[name] })
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
