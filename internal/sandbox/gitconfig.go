package sandbox

import (
	"slices"
	"strings"
)

// quiet are the settings of a git repository that make git run nothing. Of all others some do, and new ones with
// every version of git.
var quiet = map[string][]string{
	"core": {"repositoryformatversion", "filemode", "bare", "logallrefupdates", "ignorecase", "precomposeunicode", "symlinks", "worktree",
		"autocrlf", "eol", "safecrlf", "quotepath", "sharedrepository", "abbrev", "whitespace", "compression", "preloadindex", "untrackedcache"},
	"user":   {"name", "email"},
	"init":   {"defaultbranch"},
	"branch": {"remote", "merge", "rebase", "description"},
	"remote": {"url", "pushurl", "fetch", "push", "tagopt", "prune"},
	"push":   {"default", "autosetupremote"}, "pull": {"rebase", "ff"}, "merge": {"conflictstyle", "ff"}, "rebase": {"autostash", "autosquash"},
	"submodule": {"url", "active"}, "extensions": {"objectformat", "refstorage"}, "gc": {"auto"}, "commit": {"gpgsign"}, "tag": {"gpgsign"},
}

var hash = lazy(`^[0-9a-f]+\n?$`)

// runsPrograms gives the lines of a git configuration that may make git run a program, or read more settings. What it
// does not understand it takes for such a line. A branch called config has a file of that name, which holds a hash.
func runsPrograms(config string) []string {
	if hash().MatchString(config) {
		return nil
	}
	var found []string
	section := ""
	for line := range strings.SplitSeq(config, "\n") {
		rest := strings.Trim(line, " \t\r")
		for strings.HasPrefix(rest, "[") {
			end := headerEnd(rest)
			if end < 0 {
				return append(found, line)
			}
			section, _, _ = strings.Cut(rest[1:end], " ")
			section, _, _ = strings.Cut(section, "\t")
			section, _, _ = strings.Cut(section, ".") // the old form of a subsection
			section = strings.ToLower(section)
			rest = strings.Trim(rest[end+1:], " \t\r")
		}
		if rest == "" || rest[0] == '#' || rest[0] == ';' {
			continue
		}
		key, value, _ := strings.Cut(rest, "=")
		key, value = strings.ToLower(strings.Trim(key, " \t")), strings.Trim(value, " \t\"")
		if !slices.Contains(quiet[section], key) || strings.HasSuffix(rest, "\\") || strings.Contains(value, "::") {
			found = append(found, rest)
		}
	}
	return found
}

// headerEnd is where the section's header that line begins with ends: at a bracket that is not in quotes.
func headerEnd(line string) int {
	quoted := false
	for i := 1; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && quoted:
			i++
		case c == '"':
			quoted = !quoted
		case c == ']' && !quoted:
			return i
		}
	}
	return -1
}
