package shell

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"belay/effect"
)

// runsProject are the files with which a project makes a package manager run code of its own, even to print its version. A name
// with a word behind it counts only where the file holds the word.
var runsProject = map[string][][2]string{
	"yarn":   {{".yarnrc.yml", ""}, {".yarnrc.yaml", ""}, {".yarnrc", ""}, {"package.json", "packageManager"}},
	"pnpm":   {{"package.json", "packageManager"}, {"package.json", "devEngines"}, {"pnpm-workspace.yaml", "managePackageManagerVersions"}},
	"mvn":    {{".mvn", ""}},
	"gradle": {},
}

// manager reports whether the command is a package manager that only says its version, or which packages there are.
func (c *command) manager(name string) bool {
	files, versioned := runsProject[name]
	subcommands, lists := listers[name]
	if !versioned && !lists || len(c.words) < 2 {
		return false
	}
	var args []string
	for _, w := range c.words[1:] {
		if !w.one() {
			return false
		}
		args = append(args, w.text)
	}
	if versioned {
		if len(args) != 1 || args[0] != "--version" && args[0] != "-v" || !c.plain(files) {
			return false
		}
		c.add(effect.Exec, name, "it prints its version")
		return true
	}
	options, ok := subcommands[args[0]]
	if !ok {
		return false
	}
	for _, a := range args[1:] {
		if strings.HasPrefix(a, "-") && !words(options)[a] {
			return false
		}
	}
	c.add(effect.Exec, name, "it shows which packages there are")
	return true
}

// plain says that none of the files lies in a folder that the command may run in, or above one.
func (c *command) plain(files [][2]string) bool {
	if len(c.dirs) == 0 {
		return false
	}
	for _, dir := range c.dirs {
		if !filepath.IsAbs(dir) {
			return false
		}
		for {
			for _, f := range files {
				if holds(filepath.Join(dir, f[0]), f[1]) {
					return false
				}
			}
			up := filepath.Dir(dir)
			if up == dir {
				break
			}
			dir = up
		}
	}
	return true
}

// maxManifest is the largest manifest that is looked into, in bytes.
const maxManifest = 1 << 20

// holds says that a file is there, or cannot be looked at, and holds a word.
func holds(path, word string) bool {
	info, err := os.Stat(path)
	if err != nil {
		return !os.IsNotExist(err)
	}
	if word == "" || !info.Mode().IsRegular() || info.Size() > maxManifest {
		return true
	}
	data, err := os.ReadFile(path)
	return err != nil || bytes.Contains(data, []byte(word))
}

// listed describes a program by the words that only read: subcommand to the options that it may have.
type listed map[string]string

var listers = map[string]listed{
	"apt": {"list": "--installed --upgradable --upgradeable --all-versions -a --manual-installed", "show": "-a --all-versions", "search": "-n --names-only -f --full", "policy": "", "depends": "", "rdepends": "", "--version": "", "-v": ""},
	"apt-cache": {"search": "-n --names-only -f --full", "show": "-a --all-versions --no-all-versions", "policy": "", "depends": "--installed --recurse --no-suggests --no-recommends -i --important", "rdepends": "--installed --recurse",
		"showpkg": "", "madison": "", "pkgnames": "", "stats": "", "showsrc": "", "unmet": "", "--version": "", "-v": ""},
	"brew": {"list": "--formula --formulae --cask --casks --versions --full-name --pinned --multiple -1 -l -r -t", "ls": "--formula --cask --versions --full-name -1 -l", "leaves": "-r -p --installed-on-request --installed-as-dependency",
		"--version": "", "-v": "", "--prefix": "", "--cellar": "", "--repository": "", "--caskroom": ""},
	"gem": {"list": "--local -l --all -a --details -d --exact -e --installed -i --versions --no-versions --quiet -q", "env": "", "environment": "", "which": "-a --all", "contents": "", "--version": "", "-v": ""},
}

// terraform accepts what asks nobody: its version, and the form of its files.
func (c *command) terraform(name string) bool {
	var args []string
	for _, w := range c.words[1:] {
		if !w.one() {
			return false
		}
		args = append(args, w.text)
	}
	if len(args) == 0 {
		return false
	}
	switch {
	case args[0] == "version" && (len(args) == 1 || len(args) == 2 && args[1] == "-json"), len(args) == 1 && (args[0] == "-version" || args[0] == "--version"):
		c.add(effect.Exec, name, "it prints its version")
		c.inEnvironment("CHECKPOINT_DISABLE=1")
		return true
	case args[0] != "fmt":
		return false
	}
	checks := false
	var operands []string
	for _, a := range args[1:] {
		switch strings.TrimPrefix(a, "-") {
		case "-check", "check", "-write=false", "write=false":
			checks = true
		case "-recursive", "recursive", "-diff", "diff", "-no-color", "no-color", "-list=true", "list=true", "-list=false", "list=false":
		default:
			if strings.HasPrefix(a, "-") {
				return false
			}
			operands = append(operands, a)
		}
	}
	if len(operands) == 0 {
		operands = []string{"."}
	}
	kind := effect.Read
	if !checks {
		kind = effect.Write
	}
	c.add(effect.Exec, name, "")
	for _, o := range operands {
		if !checks && !strings.HasSuffix(o, ".tf") {
			o += "/**"
		}
		c.path(kind, word{text: o, known: true, glob: strings.HasSuffix(o, "/**")}, c.dirs, "`"+name+" fmt`")
	}
	c.inEnvironment("CHECKPOINT_DISABLE=1")
	return true
}
