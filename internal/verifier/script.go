package verifier

import (
	"encoding/json"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// DecidesFor is Decides, and also knows the scripts that the commands themselves name: who changes check.sh decides what
// `sh check.sh` finds.
func DecidesFor(lines ...string) func(file string) bool {
	named := map[string]bool{}
	for _, line := range lines {
		for _, script := range scripts(line) {
			named[script] = true
		}
	}
	return func(file string) bool { return named[file] || Decides(file) }
}

var (
	commandEnd  = regexpOnce(`&&|\|\||[;|&()\n]`)
	checkName   = regexpOnce(`(?i)(test|check|verif|spec|valid|lint|\bci\b|assert|accept|judge|grade)`)
	interpreter = []string{"sh", "bash", "dash", "zsh", "python", "python3", "node", "ruby", "perl", "php", "deno", "bun", "Rscript"}
	prefixes    = []string{"env", "time", "timeout", "nice", "exec", "command", "sudo", "xvfb-run"}
)

func regexpOnce(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}

// Recipes are the shell lines by which the project's Makefile and package.json test it: what they run decides too.
func Recipes(workspace string) []string {
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return nil
	}
	defer root.Close()
	p := project{root: root}
	var lines []string
	for _, name := range []string{"GNUmakefile", "makefile", "Makefile"} {
		for line := range strings.Lines(string(p.read(name))) {
			if recipe, ok := strings.CutPrefix(line, "\t"); ok {
				lines = append(lines, strings.TrimLeft(strings.TrimSpace(recipe), "@-+ "))
			}
		}
	}
	var manifest struct{ Scripts map[string]json.RawMessage }
	if json.Unmarshal(p.read("package.json"), &manifest) == nil {
		for _, raw := range manifest.Scripts {
			var line string
			if json.Unmarshal(raw, &line) == nil {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// scripts are the files of the workspace that a shell line runs and that look like checks, not like what is checked.
func scripts(line string) []string {
	var found []string
	add := func(file string) {
		file = path.Clean(strings.Trim(file, `"'`))
		if !path.IsAbs(file) && file != ".." && !strings.HasPrefix(file, "../") && checkName().MatchString(file) && !slices.Contains(found, file) {
			found = append(found, file)
		}
	}
	for _, part := range commandEnd().Split(line, -1) {
		words := strings.Fields(part)
		for len(words) > 0 && (strings.Contains(words[0], "=") || slices.Contains(prefixes, words[0]) || strings.HasPrefix(words[0], "-") || words[0][0] <= '9' && strings.Trim(words[0], "0123456789smh") == "") {
			words = words[1:]
		}
		if len(words) == 0 {
			continue
		}
		switch program := words[0]; {
		case slices.Contains(interpreter, path.Base(program)) || strings.HasPrefix(path.Base(program), "python"):
			for i, w := range words[1:] {
				if w == "-c" || w == "-e" || w == "-m" {
					if w == "-m" && i+2 < len(words) {
						add(strings.ReplaceAll(words[i+2], ".", "/") + ".py")
					}
					break
				}
				if !strings.HasPrefix(w, "-") {
					add(w)
					break
				}
			}
		case strings.Contains(program, "/"):
			add(program)
		case program == "make" || program == "gmake":
			for i, w := range words[1:] {
				if w == "-f" && i+2 < len(words) {
					found = append(found, path.Clean(words[i+2]))
				}
			}
		case program == "." || program == "source":
			if len(words) > 1 {
				add(words[1])
			}
		}
	}
	return found
}
