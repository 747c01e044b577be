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
	roots, tests, unsure := 0, false, false
	for i := 0; i < len(args); i++ {
		w := args[i]
		switch {
		case !w.known && !w.option() && !w.many && roots == i:
			roots = i + 1
			c.path(effect.Read, w, c.dirs, "`find`")
		case !w.known || w.glob && (w.option() || i > 0 && !inRoots(args[:i])):
			c.opaque("find", "an argument of `find` could be an action")
			unsure = unsure || !w.known
		case !w.glob && flags[w.text]:
		case !w.glob && values[w.text]:
			tests = true
			if i++; i < len(args) && !args[i].known && !args[i].many {
				// One word stays the value, whatever it is.
			} else if i < len(args) && !args[i].known {
				c.opaque("find", "the value of %s is known only when it runs", w.text)
			} else if i < len(args) && strings.HasPrefix(args[i].text, "-") && !signed().MatchString(args[i].text) && w.text != "-perm" {
				c.opaque("find", "the value of %s looks like an action", w.text)
			} else if i < len(args) && args[i].glob {
				// The shell would expand it to names, and the second of them would be a new argument.
				c.opaque("find", "the pattern after %s is not quoted, so that file names could become actions", w.text)
			}
		case strings.HasPrefix(w.text, "-"):
			switch w.text {
			case "-exec", "-execdir", "-ok", "-okdir":
				if strings.HasPrefix(w.text, "-ok") {
					c.opaque("find", "`find %s` asks a person", w.text)
				}
				end := i + 1
				for end < len(args) && !(args[end].one() && (args[end].text == ";" || args[end].text == "+" && args[end-1].text == "{}")) {
					end++
				}
				if end >= len(args) || end == i+1 {
					c.opaque("find", "`find %s` without an end", w.text)
					c.scan(args[i+1:])
					return
				}
				c.found(args[i+1:end], args[:roots], strings.HasSuffix(w.text, "dir"))
				i = end
				continue
			case "-delete":
				for _, r := range args[:max(roots, 0)] {
					if tests && r.one() {
						r = word{text: r.text + "/**", known: true, glob: true}
					}
					c.path(effect.Delete, r, c.dirs, "`find -delete`")
				}
				if unsure { // it could be a folder as well
					c.add(effect.Delete, "", "`find -delete` where it is known only when it runs")
				}
				if roots == 0 {
					c.path(effect.Delete, word{text: "./**", known: true, glob: true}, c.dirs, "`find -delete`")
				}
				continue
			case "-fprint", "-fprint0", "-fls", "-fprintf":
				c.opaque("find", "%s of `find` writes a file", w.text)
				if i+1 < len(args) {
					c.path(effect.Write, args[i+1], c.dirs, "`find "+w.text+"`")
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

// found reads the command that find starts for what it finds.
func (c *command) found(words, roots []word, dir bool) {
	head := "./"
	if !dir {
		for _, r := range roots {
			if r.option() || r.known && r.text == "" || !r.known && r.head == "" && r.alts == nil {
				head = ""
			} else if r.one() {
				head = r.text
			}
		}
	}
	dirs := c.dirs
	if dir {
		dirs = []string{""}
	}
	inner := append([]word(nil), words...)
	for k, w := range inner {
		if w.known && strings.Contains(w.text, "{}") {
			before, _, _ := strings.Cut(w.text, "{}")
			inner[k] = word{head: before + head, arg: -1}
		}
	}
	if inner[0].one() && shellBuiltins()[inner[0].text] && !outside[inner[0].text] {
		c.opaque("find", "`%s` is the shell's own: outside of it anything may have that name", clip(inner[0].text))
	}
	c.subIn(inner, dirs)
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

// sed accepts scripts that sedReads can read to the end.
func (c *command) sed() {
	c.add(effect.Exec, "sed", "")
	operands, scripted, ok := c.options("sed", readSpec{flags: "nErsuz", values: "el", long: "quiet silent regexp-extended expression= unbuffered null-data separate posix", scripted: "e expression"})
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

// looks adds that a command looks whether a path is there, which shows no more than its folder does.
func (a *analysis) looks(w word, dirs []string, why string) {
	if w.one() && w.text != "" {
		w.text = path.Dir(path.Clean(w.text))
	}
	a.path(effect.Read, w, dirs, why)
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
			c.looks(w, c.dirs, "`test`")
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

var assigns = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`%[^a-zA-Z%]*[hlLjztq]*n`) })

func (c *command) printf() {
	c.add(effect.Exec, "printf", "")
	args := c.words[1:]
	if len(args) > 0 && args[0].one() && args[0].text == "--" {
		args = args[1:]
	}
	if len(args) > 0 && args[0].option() {
		c.opaque("printf", "the first argument of `printf` could be -v, which assigns a variable")
	}
	// %n assigns the variable that an argument names.
	if len(args) > 1 && (!args[0].known || strings.Contains(args[0].text, "%") && assigns().MatchString(args[0].text)) {
		c.opaque("printf", "a format of `printf` that may assign a variable")
	}
	for _, w := range args {
		if w.glob && strings.Contains(w.text, "/") {
			c.path(effect.Read, word{text: path.Dir(w.text), known: true}, c.dirs, "a pattern lists it")
		}
	}
}
