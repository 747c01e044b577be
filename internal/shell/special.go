package shell

import (
	"path"
	"regexp"
	"strings"
	"sync"

	"belay/effect"
)

// find accepts only the tests and actions that read.
func (c *command) find() {
	c.add(effect.Exec, "find", "")
	flags := words(`-print -print0 -ls -prune -quit -depth -d -xdev -mount -follow -noleaf -daystart -empty -readable -writable -executable -nouser -nogroup
		-true -false -not -a -and -o -or ! ( ) , -nowarn -warn -ignore_readdir_race -H -L -P`)
	values := words(`-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -size -maxdepth -mindepth -mtime -mmin -atime -amin -ctime -cmin
		-newer -anewer -cnewer -newermt -newerct -perm -user -group -uid -gid -links -inum -samefile -lname -ilname -fstype -used -printf`)
	args := c.words[1:]
	roots := 0
	for i := 0; i < len(args); i++ {
		w := args[i]
		switch {
		case !w.known || w.glob && (w.option() || i > 0 && !inRoots(args[:i])):
			c.opaque("find", "an argument of `find` could be an action")
		case !w.glob && flags[w.text]:
		case !w.glob && values[w.text]:
			if i++; i < len(args) && !args[i].known {
				c.opaque("find", "the value of %s is known only when it runs", w.text)
			} else if i < len(args) && strings.HasPrefix(args[i].text, "-") && !signed().MatchString(args[i].text) {
				c.opaque("find", "the value of %s looks like an action", w.text)
			} else if i < len(args) && args[i].glob {
				// The shell would expand it to names, and the second of them would be a new argument.
				c.opaque("find", "the pattern after %s is not quoted, so that file names could become actions", w.text)
			}
		case strings.HasPrefix(w.text, "-"):
			switch w.text {
			case "-exec", "-execdir", "-ok", "-okdir":
				c.opaque("find", "`find %s` runs another command", w.text)
				c.scan(args[i+1:])
				return
			case "-delete":
				c.opaque("find", "`find -delete` deletes what it finds")
				for _, r := range args[:max(roots, 0)] {
					c.path(effect.Delete, r, c.dirs, "`find -delete`")
				}
				if roots == 0 {
					c.path(effect.Delete, word{text: "./**", known: true, glob: true}, c.dirs, "`find -delete`")
				}
			default:
				c.opaque("find", "%s of `find` is not known to be harmless", clip(w.text))
			}
			return
		default:
			roots = i + 1
			c.path(effect.Read, w, c.dirs, "`find`")
		}
	}
	if roots == 0 {
		c.path(effect.Read, word{text: ".", known: true}, c.dirs, "`find`")
	}
}

var signed = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^-[0-9]+[a-zA-Z]*$`) })

// inRoots says that no test or action of find has begun.
func inRoots(args []word) bool {
	for _, w := range args {
		if strings.HasPrefix(w.text, "-") && w.text != "-H" && w.text != "-L" && w.text != "-P" || w.text == "!" || w.text == "(" {
			return false
		}
	}
	return true
}

var (
	sedPrint = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^ *(([0-9]+|\$)(,\+?([0-9]+|\$))?)?!?[pqd=] *(; *(([0-9]+|\$)(,\+?([0-9]+|\$))?)?!?[pqd=] *)*;? *$`)
	})
	sedFlags = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[gIip0-9]*$`) })
	sedMatch = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^/[^/\\\n\[]*/(,/[^/\\\n\[]*/)?!?[pd] *$`) })
)

// sed accepts scripts of addresses with p, q, d and =, /text/ with p and d, and one plain substitution.
func (c *command) sed() {
	c.add(effect.Exec, "sed", "")
	operands, scripted, ok := c.options("sed", readSpec{flags: "nErsuz", values: "e", long: "quiet silent regexp-extended expression= unbuffered", scripted: "e expression"})
	if !ok {
		return
	}
	scripts := 0
	check := func(w word) {
		scripts++
		if !w.one() || !sedReads(w.text) {
			c.opaque("sed", "a script of `sed` that is not known to be harmless")
		}
	}
	args := c.words[1:]
	for i, w := range args {
		if !w.known || !scripted {
			continue
		}
		if rest, ok := strings.CutPrefix(w.text, "--expression="); ok {
			check(word{text: rest, known: true})
		} else if at := strings.IndexByte(w.text, 'e'); strings.HasPrefix(w.text, "-") && !strings.HasPrefix(w.text, "--") && at > 0 {
			if rest := w.text[at+1:]; rest != "" {
				check(word{text: rest, known: true})
			} else if i+1 < len(args) {
				check(args[i+1])
			}
		} else if w.text == "--expression" && i+1 < len(args) {
			check(args[i+1])
		}
	}
	if !scripted && len(operands) > 0 {
		check(operands[0])
		operands = operands[1:]
	}
	if scripts == 0 {
		c.opaque("sed", "no script was found")
	}
	for _, w := range operands {
		c.path(effect.Read, w, c.dirs, "`sed`")
	}
}

func sedReads(script string) bool {
	if sedPrint().MatchString(script) || sedMatch().MatchString(script) {
		return true
	}
	if len(script) < 4 || script[0] != 's' || strings.IndexByte("/|,#@:", script[1]) < 0 || strings.ContainsAny(script, "\n") {
		return false
	}
	// Exactly three delimiters: no reading of brackets or backslashes can find another command in it.
	parts := strings.Split(script[1:], script[1:2])
	return len(parts) == 4 && sedFlags().MatchString(parts[3])
}

// test refuses what evaluates an array subscript, which can run a command.
func (c *command) test(name string) {
	c.add(effect.Exec, name, "")
	for i, w := range c.words[1:] {
		last := i == len(c.words)-2
		switch {
		case w.many || w.glob:
			c.opaque(name, "an argument of `%s` may become several", name)
		case w.known && (w.text == "-v" || w.text == "-R" || strings.Contains(w.text, "[") || strings.Contains(w.text, "]") && !last):
			c.opaque(name, "`%s` with a variable's name or a subscript", name)
		case w.known && strings.ContainsAny(w.text, "/."):
			c.path(effect.Read, w, c.dirs, "`test`")
		}
	}
}

func (c *command) date() {
	c.add(effect.Exec, "date", "")
	operands, _, ok := c.options("date", readSpec{flags: "uRI", values: "d", files: "r", long: "utc universal date= reference@ iso-8601? rfc-3339= rfc-email"})
	if !ok {
		return
	}
	for _, w := range operands {
		if !w.one() || !strings.HasPrefix(w.text, "+") {
			c.opaque("date", "`date` with an operand sets the clock")
		}
	}
}

func (c *command) printf() {
	c.add(effect.Exec, "printf", "")
	args := c.words[1:]
	if len(args) > 0 && args[0].one() && args[0].text == "--" {
		args = args[1:]
	}
	if len(args) > 0 && args[0].option() {
		c.opaque("printf", "the first argument of `printf` could be -v, which assigns a variable")
	}
	for _, w := range args {
		if w.glob && strings.Contains(w.text, "/") {
			c.path(effect.Read, word{text: path.Dir(w.text), known: true}, c.dirs, "a pattern lists it")
		}
	}
}

func (c *command) goTool() {
	args := c.words[1:]
	ok := len(args) > 0 && args[0].one() && (args[0].text == "version" && len(args) == 1 || args[0].text == "env")
	for _, w := range args[min(1, len(args)):] {
		ok = ok && w.one() && (!w.option() || w.text == "-json" || w.text == "-changed") && !strings.Contains(w.text, "=")
	}
	if !ok {
		c.opaque("go", "`go` compiles and runs programs")
		return
	}
	c.add(effect.Exec, "go", "it prints its version or environment")
}
