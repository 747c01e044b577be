package shell

import (
	"path"
	"path/filepath"
	"strings"

	"belay/effect"
)

// write adds the effects of commands that write or delete the paths that stand in their arguments.
func (c *command) write(name string) bool {
	spec, ok := writers[name]
	if !ok {
		return false
	}
	c.add(effect.Exec, name, "")
	var operands []word
	recursive, ended := false, false
	for _, w := range c.words[1:] {
		switch {
		case ended || w.known && !w.option() || w.one() && w.text == "-":
			operands = append(operands, w)
		case !w.known || w.glob:
			c.opaque(name, "an argument of `%s` could be an option", name)
			operands = append(operands, w)
		case w.text == "--":
			ended = true
		default:
			recursive = recursive || isRecursive(w.text)
			if !spec.allows(w.text) {
				c.opaque(name, "the option %s of `%s` is not read here", clip(w.text), name)
			}
		}
	}
	spec.effects(c, operands, recursive)
	return true
}

func isRecursive(option string) bool {
	if strings.HasPrefix(option, "--") {
		return option == "--recursive" || option == "--archive" || len(option) > 4 && strings.HasPrefix("--recursive", option)
	}
	return strings.ContainsAny(option, "rRa")
}

// writer describes one command: its options without arguments and what its operands mean.
type writer struct {
	short   string
	long    string
	effects func(c *command, operands []word, recursive bool)
}

func (w writer) allows(option string) bool {
	if long, ok := strings.CutPrefix(option, "--"); ok {
		return words(w.long)[long]
	}
	return len(option) > 1 && strings.Trim(option[1:], w.short) == ""
}

var writers map[string]writer

func init() {
	each := func(kind effect.Kind, why string) func(*command, []word, bool) {
		return func(c *command, operands []word, _ bool) {
			for _, w := range operands {
				c.path(kind, w, c.dirs, why)
			}
		}
	}
	writers = map[string]writer{
		"rm":       {"rRfivdI", "recursive force verbose dir one-file-system preserve-root interactive", deletes},
		"rmdir":    {"pv", "parents verbose ignore-fail-on-non-empty", deletes},
		"unlink":   {"", "", deletes},
		"shred":    {"uvzf", "remove verbose zero force", deletes},
		"mkdir":    {"pv", "parents verbose", each(effect.Write, "`mkdir`")},
		"touch":    {"acmh", "no-create no-dereference", each(effect.Write, "`touch`")},
		"tee":      {"aip", "append ignore-interrupts", each(effect.Write, "`tee`")},
		"truncate": {"co", "no-create io-blocks", each(effect.Write, "`truncate`")},
		"mv":       {"finuvT", "force interactive no-clobber update verbose no-target-directory", moves},
		"cp":       {"abfinprRPLHdluvxT", "archive force interactive no-clobber recursive update verbose parents no-dereference dereference", copies},
		"install":  {"cdDpvC", "directory verbose compare", copies},
		"ln":       {"sfnrvTi", "symbolic force no-dereference relative verbose no-target-directory", links},
		"chmod":    {"cfvR", "changes quiet silent verbose recursive", owners},
		"chown":    {"cfvRh", "changes quiet silent verbose recursive no-dereference", owners},
		"chgrp":    {"cfvRh", "changes quiet silent verbose recursive no-dereference", owners},
	}
}

// deletes adds a deletion for each operand. A pattern that takes everything in a folder counts as the folder;
// a deletion of paths that are not known is the worst case.
func deletes(c *command, operands []word, _ bool) {
	for _, w := range operands {
		if w.known && w.glob {
			w.text = strings.TrimRight(w.text, "/")
			if base := path.Base(w.text); base == "*" || base == ".*" || base == "[!.]*" || base == ".[!.]*" || base == "?*" {
				w = word{text: path.Join(path.Dir(w.text), "."), known: true}
				c.path(effect.Delete, w, c.dirs, "it deletes everything in it")
				continue
			}
		}
		c.path(effect.Delete, w, c.dirs, "it deletes")
	}
}

func moves(c *command, operands []word, recursive bool) {
	if len(operands) < 2 {
		return
	}
	for _, w := range operands[:len(operands)-1] {
		c.path(effect.Delete, w, c.dirs, "`mv` takes it away")
	}
	c.into(operands, "`mv` writes it")
}

func copies(c *command, operands []word, recursive bool) {
	if len(operands) < 2 {
		for _, w := range operands {
			c.path(effect.Write, w, c.dirs, "it writes")
		}
		return
	}
	for _, w := range operands[:len(operands)-1] {
		c.path(effect.Read, w, c.dirs, "it copies from there")
	}
	if recursive {
		c.opaque("cp", "it copies a tree, whose paths are not known")
	}
	c.into(operands, "it writes there")
}

func links(c *command, operands []word, _ bool) {
	// Whoever writes through a link writes elsewhere: what follows on the line cannot be told.
	c.opaque("ln", "`ln` makes paths mean something else")
	if len(operands) > 1 {
		c.into(operands, "`ln` creates it")
	}
}

func owners(c *command, operands []word, recursive bool) {
	if recursive {
		c.opaque("chmod", "it changes a tree, whose paths are not known")
	}
	for i, w := range operands {
		if i > 0 {
			c.path(effect.Write, w, c.dirs, "it changes mode or owner")
		}
	}
}

// into adds the writes of a command that puts operands into the last one, which may be a file or a folder.
func (c *command) into(operands []word, why string) {
	to := operands[len(operands)-1]
	c.path(effect.Write, to, c.dirs, why)
	if !to.one() {
		if to.glob {
			c.add(effect.Write, "", why+": a pattern that names the target")
		}
		return
	}
	for _, from := range operands[:len(operands)-1] {
		if from.known {
			c.path(effect.Write, word{text: filepath.Join(to.text, path.Base(from.text)), known: true, glob: from.glob}, c.dirs, why)
		}
	}
}
