package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"belay/effect"
)

// wrapping describes a command that runs the command among its arguments: its options, and how many operands stand
// before that command.
type wrapping struct {
	flags, values string // by letter
	long          string // "name", "name=" as in readSpec
	operands      int
}

var wrappings = map[string]wrapping{
	"timeout": {flags: "fpv", values: "sk", long: "foreground preserve-status verbose signal= kill-after=", operands: 1},
	"nice":    {values: "n", long: "adjustment="},
	"ionice":  {flags: "t", values: "cn", long: "class= classdata= ignore"},
	"nohup":   {},
	"setsid":  {flags: "cfw", long: "ctty fork wait"},
	"stdbuf":  {values: "ioe", long: "input= output= error="},
	"time":    {flags: "pvaq", values: "f", long: "format= portability verbose quiet"},
	"exec":    {flags: "cl", values: "a"},
	"builtin": {}, "noglob": {},
	"chrt": {flags: "bfior", operands: 1},
}

var duration = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]+(\.[0-9]+)?[smhd]?$`) })

// wrapper handles commands that run another command, and reports whether name is one.
func (c *command) wrapper(name string) bool {
	rest := c.words[1:]
	if w, ok := wrappings[name]; ok {
		if at := w.skip(rest); at >= 0 && at < len(rest) && (name != "timeout" || duration().MatchString(rest[at-1].text)) {
			c.add(effect.Exec, name, "it runs a command")
			if name == "nohup" {
				c.path(effect.Write, literal("nohup.out"), c.dirs, "`nohup` may keep the output there")
			}
			c.sub(rest[at:])
			return true
		}
		c.opaque(name, "`%s` runs another command in a way that is not read here", name)
		c.scan(rest)
		return true
	}
	switch name {
	case "command":
		for len(rest) > 0 && rest[0].one() && rest[0].text == "-p" {
			rest = rest[1:]
		}
		if len(rest) > 0 && rest[0].one() && (rest[0].text == "-v" || rest[0].text == "-V") {
			c.add(effect.Exec, name, "it looks up a command")
			return true
		}
		if len(rest) > 0 && !rest[0].option() {
			c.sub(rest)
			return true
		}
	case "env":
		return c.env(rest)
	case "xargs":
		return c.xargs(rest)
	case "busybox":
		if len(rest) > 0 && rest[0].one() {
			switch rest[0].text {
			case "ls", "cat", "head", "tail", "wc", "grep", "echo", "pwd", "true", "stat", "du", "basename", "dirname", "cut", "tr", "uname", "id", "printenv":
			default:
				c.opaque(name, "`busybox` runs a program of its own")
			}
			c.sub(rest)
			return true
		}
	case "sh", "bash", "dash", "zsh", "ksh", "ash", "eval":
		return c.shellLine(name, rest)
	default:
		if !starters[name] {
			return false
		}
	}
	c.opaque(name, "`%s` runs another command", name)
	c.scan(rest)
	return true
}

// skip returns where the wrapped command begins, or -1 where an option is not read here.
func (w wrapping) skip(rest []word) int {
	long := longOptions(w.long)
	left := w.operands
	for i := 0; i < len(rest); i++ {
		opt := rest[i]
		switch {
		case !opt.one():
			return -1
		case opt.text == "--":
			i++
			if i+left > len(rest) {
				return -1
			}
			return i + left
		case !strings.HasPrefix(opt.text, "-") || opt.text == "-":
			if i+left > len(rest) {
				return -1
			}
			for _, x := range rest[i : i+left] {
				if !x.one() {
					return -1
				}
			}
			return i + left
		case strings.HasPrefix(opt.text, "--"):
			key, _, has := strings.Cut(opt.text[2:], "=")
			kind, ok := long[key]
			if !ok {
				return -1
			}
			if kind == '=' && !has {
				i++
			}
		default:
			if strings.Trim(opt.text[1:], "0123456789") == "" && strings.Contains(w.values, "n") {
				continue // nice -5
			}
			for j := 1; j < len(opt.text); j++ {
				letter := opt.text[j : j+1]
				if strings.Contains(w.values, letter) {
					if j == len(opt.text)-1 {
						if i++; i >= len(rest) || !rest[i].one() {
							return -1
						}
					}
					break
				}
				if !strings.Contains(w.flags, letter) {
					return -1
				}
			}
		}
	}
	return len(rest)
}

func (c *command) env(rest []word) bool {
	dirs, scrubbed := c.dirs, c.scrubbed
	defer func() { c.scrubbed = scrubbed }()
	c.add(effect.Exec, "env", "")
	for i := 0; i < len(rest); i++ {
		w := rest[i]
		if !w.one() {
			c.opaque("env", "an argument of `env` is known only when it runs")
			c.scan(rest[i:])
			return true
		}
		switch {
		case w.text == "-i" || w.text == "-" || w.text == "--ignore-environment" || strings.HasPrefix(w.text, "--unset=") || w.text == "-0" || w.text == "--null" || w.text == "-v" || w.text == "--debug":
			c.scrubbed = true
		case w.text == "-u" || w.text == "--unset":
			c.scrubbed = true
			i++
		case w.text == "-C" && i+1 < len(rest) && rest[i+1].one():
			i++
			dirs = c.moved(dirs, rest[i].text)
		case w.text == "--":
			c.subIn(rest[i+1:], dirs)
			return true
		case strings.HasPrefix(w.text, "-"):
			c.opaque("env", "the option %s of `env` is not read here", clip(w.text))
			c.scan(rest[i:])
			return true
		case strings.Contains(w.text, "="):
			name, text, _ := strings.Cut(w.text, "=")
			if !constant(name, text) && !harmless(name) {
				c.opaque(name, "the assignment to %s can change what runs", clip(name))
			}
		default:
			c.subIn(rest[i:], dirs)
			return true
		}
	}
	return true
}

// moved are the folders that a command in dirs means by at.
func (c *command) moved(dirs []string, at string) []string {
	var out []string
	for _, d := range dirs {
		switch {
		case path.IsAbs(at):
			d = c.real(path.Clean(at))
		case d != "":
			d = c.real(path.Join(d, at))
		}
		out = union(out, []string{d})
	}
	return out
}

func (c *command) xargs(rest []word) bool {
	c.add(effect.Exec, "xargs", "")
	replace := ""
	long := longOptions("null no-run-if-empty verbose exit max-args= max-procs= max-lines? max-chars= delimiter= replace? eof? arg-file=")
	i := 0
options:
	for ; i < len(rest); i++ {
		w := rest[i]
		if !w.one() {
			c.opaque("xargs", "an argument of `xargs` is known only when it runs")
			c.scan(rest[i:])
			return true
		}
		opt := w.text
		switch {
		case opt == "--":
			i++
			break options
		case !strings.HasPrefix(opt, "-") || opt == "-":
			break options
		case strings.HasPrefix(opt, "--"):
			key, v, has := strings.Cut(opt[2:], "=")
			kind, ok := long[key]
			if !ok {
				c.opaque("xargs", "the option %s of `xargs` is not read here", clip(opt))
				c.scan(rest[i:])
				return true
			}
			if kind == '=' && !has {
				i++
			}
			if key == "replace" {
				replace = "{}"
				if has {
					replace = v
				}
			}
			continue
		}
		for j := 1; j < len(opt); j++ {
			letter := opt[j]
			switch letter {
			case '0', 'r', 't', 'x':
				continue
			case 'n', 'P', 'L', 's', 'd', 'I', 'a', 'E':
				v := opt[j+1:]
				if v == "" {
					if i++; i >= len(rest) || !rest[i].one() {
						c.opaque("xargs", "an option of `xargs` that is not read here")
						return true
					}
					v = rest[i].text
				}
				switch letter {
				case 'I':
					replace = v
				case 'a':
					c.path(effect.Read, literal(v), c.dirs, "`xargs`")
				}
			case 'i':
				replace = "{}"
				if v := opt[j+1:]; v != "" {
					replace = v
				}
			default:
				c.opaque("xargs", "the option %s of `xargs` is not read here", clip(opt))
				c.scan(rest[i+1:])
				return true
			}
			break
		}
	}
	if i >= len(rest) {
		return true // it echoes
	}
	inner := append([]word(nil), rest[i:]...)
	if replace == "" {
		inner = append(inner, word{many: true, arg: -1})
	} else {
		for k, w := range inner {
			if w.known && strings.Contains(w.text, replace) {
				head, _, _ := strings.Cut(w.text, replace)
				inner[k] = word{head: head, arg: w.arg}
			}
		}
	}
	if inner[0].one() && shellBuiltins()[inner[0].text] && !outside[inner[0].text] {
		c.opaque("xargs", "`%s` is the shell's own: outside of it anything may have that name", clip(inner[0].text))
	}
	c.sub(inner)
	return true
}

// outside are the builtins that are also programs everywhere.
var outside = set("echo printf test [ true false pwd kill")

// shellLine reads sh -c 'line' as a line of its own.
func (c *command) shellLine(name string, rest []word) bool {
	shell := name == "sh" || name == "bash" || name == "dash"
	for i := 0; i < len(rest) && rest[i].one(); i++ {
		opt := rest[i].text
		switch {
		case opt == "-o" && shell && i+1 < len(rest) && rest[i+1].one() && rest[i+1].text == "pipefail" && name == "bash":
			i++
			continue
		case shell && len(opt) > 1 && opt[0] == '-' && strings.Trim(opt[1:], "ceuxlo") == "" && strings.Contains(opt[1:], "c"):
			if strings.Contains(opt, "o") {
				if i++; i >= len(rest) || !rest[i].one() || rest[i].text != "pipefail" {
					break
				}
			}
			if i+1 < len(rest) && rest[i+1].one() && !strings.HasPrefix(rest[i+1].text, "-") {
				text := rest[i+1].text
				c.add(effect.Exec, name, "it runs the line in its argument")
				if c.line(text) && (name == "bash" || POSIX(text) == nil) {
					return true
				}
			}
		case shell && (opt == "-e" || opt == "-u" || opt == "-x" || opt == "-eu" || opt == "-ex" || opt == "-eux" || opt == "-l" || opt == "--norc" || opt == "--noprofile"):
			continue
		case opt == "-n" && shell && len(rest) == 2 && !rest[1].option():
			c.add(effect.Exec, name, "it only reads the script")
			c.path(effect.Read, rest[1], c.dirs, "`"+name+" -n`")
			return true
		case (opt == "--version") && len(rest) == 1:
			c.add(effect.Exec, name, "it prints its version")
			return true
		}
		break
	}
	c.opaque(name, "`%s` runs another program", name)
	for i, w := range rest {
		if w.one() && (name == "eval" || i > 0 && rest[i-1].one() && strings.HasPrefix(rest[i-1].text, "-") && strings.HasSuffix(rest[i-1].text, "c")) {
			c.line(w.text)
		}
	}
	return true
}

// shellBuiltins are the commands that bash itself has.
var shellBuiltins = sync.OnceValue(func() map[string]bool {
	return set(`. : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo enable eval exec exit export false fc fg getopts hash help
	history jobs kill let local logout mapfile popd printf pushd pwd read readarray readonly return set shift shopt source suspend test times trap true type typeset ulimit umask unalias unset wait`)
})

var (
	setting = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[-+][euxvf]+$`) })
	option  = map[string]bool{"pipefail": true, "errexit": true, "nounset": true, "xtrace": true, "noglob": true}
)

// builtin adds the effects of the shell's own commands that change only the shell.
func (c *command) builtin(name string) bool {
	if c.words[0].text != name || !shellBuiltins()[name] {
		return false
	}
	args := c.words[1:]
	ok := true
	switch name {
	case "read", "mapfile", "readarray":
		ok = c.reads(name, args)
	case "set":
		for i := 0; i < len(args); i++ {
			w := args[i]
			switch {
			case w.one() && (w.text == "-o" || w.text == "+o" || w.text == "-eo" || w.text == "-euo" || w.text == "-euxo" || w.text == "-uo") && i+1 < len(args) && args[i+1].one() && option[args[i+1].text]:
				i++
			case w.one() && w.text == "--":
				i = len(args) // what follows are only the positional parameters
			case w.one() && setting().MatchString(w.text):
			default:
				ok = false
			}
		}
	case "break", "continue", "shift", "times", "true", "false", ":", "help", "caller":
	case "wait":
		ok = !slices.ContainsFunc(args, word.option)
	case "jobs", "history", "dirs", "alias", "umask", "ulimit", "hash", "shopt":
		ok = len(args) == 0 || name == "ulimit" && len(args) == 1 && args[0].one() && args[0].text == "-a" || name == "dirs" && len(args) == 1 && args[0].one() && args[0].text == "-v"
	case "unset":
		for _, w := range args {
			ok = ok && w.one() && identifier(w.text) && harmless(w.text)
			if ok {
				c.set(w.text, value{})
			}
		}
	default:
		return false
	}
	if !ok {
		c.opaque(name, "`%s` in a way that is not read here", name)
	} else {
		c.add(effect.Exec, name, "")
	}
	return true
}

// reads accepts read and mapfile where they assign plain variables.
func (c *command) reads(name string, args []word) bool {
	flags, values := "rs", "pdnNtu"
	if name != "read" {
		flags, values = "t", "dnsOu"
	}
	for i := 0; i < len(args); i++ {
		w := args[i]
		if !w.one() {
			return false
		}
		if strings.HasPrefix(w.text, "-") && len(w.text) > 1 {
			for j := 1; j < len(w.text); j++ {
				letter := w.text[j : j+1]
				switch {
				case strings.Contains(values, letter):
					if j == len(w.text)-1 {
						if i++; i >= len(args) || letter == "O" && !args[i].one() {
							return i < len(args)
						}
					}
					j = len(w.text)
				case letter == "a" && name == "read" && j == len(w.text)-1:
				case !strings.Contains(flags, letter):
					return false
				}
			}
			continue
		}
		if !identifier(w.text) || !harmless(w.text) {
			return false
		}
		c.set(w.text, value{})
	}
	return true
}
