package shell

import (
	"path"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"belay/effect"
)

const (
	diffFlags = `patch no-patch stat? numstat shortstat dirstat summary name-only name-status cached staged color color? no-color word-diff word-diff? unified= exit-code quiet check
		minimal patience histogram diff-algorithm= ignore-all-space ignore-space-change ignore-space-at-eol ignore-blank-lines diff-filter= find-renames? no-renames find-copies? text merge-base
		function-context relative? full-index abbrev? raw binary no-ext-diff no-textconv no-prefix compact-summary ignore-submodules? submodule? inter-hunk-context= color-words? cc combined-all-paths`
	logFlags = diffFlags + ` oneline graph decorate? no-decorate all branches? tags? remotes? max-count= skip= since= after= until= before= author= committer= grep= format= pretty? date= reverse follow
		merges no-merges first-parent abbrev-commit no-abbrev-commit left-right cherry-pick cherry-mark pickaxe-regex pickaxe-all regexp-ignore-case extended-regexp fixed-strings topo-order date-order author-date-order
		full-history simplify-by-decoration show-pulls invert-grep all-match source children parents boundary count no-walk? left-only right-only ancestry-path max-parents= min-parents= no-notes no-show-signature`
)

// gitReads are the subcommands that only read, with the options that keep them so.
var gitReads = sync.OnceValue(func() map[string]readSpec {
	log := readSpec{flags: "pusgmcwbRazEFiMCDrt", values: "nULSGl", long: logFlags}
	return map[string]readSpec{
		"status":        {flags: "sbzv", values: "u", long: "short branch porcelain? untracked-files? ignored? long show-stash ahead-behind no-ahead-behind no-renames verbose"},
		"diff":          {flags: "pusgmcwbRazMCDrt", values: "USGl", long: diffFlags},
		"log":           log,
		"show":          log,
		"rev-list":      log,
		"whatchanged":   log,
		"reflog":        log,
		"diff-tree":     log,
		"shortlog":      {flags: "sne", long: "summary numbered email all no-merges since= until="},
		"blame":         {flags: "wCMeslftpcbn", values: "L", long: "porcelain line-porcelain date= since= show-email show-name show-number root abbrev= no-textconv"},
		"annotate":      {flags: "l", values: "L", long: "no-textconv"},
		"ls-files":      {flags: "cdmoistuzkv", values: "x", long: "others exclude-standard cached modified deleted stage error-unmatch full-name eol ignored exclude= directory unmerged"},
		"ls-tree":       {flags: "rdtlz", long: "name-only name-status full-tree full-name long abbrev?"},
		"rev-parse":     {flags: "q", long: "show-toplevel abbrev-ref? short? verify git-dir is-inside-work-tree is-bare-repository symbolic-full-name show-prefix show-cdup absolute-git-dir git-common-dir quiet all branches? tags? show-superproject-working-tree is-inside-git-dir is-shallow-repository"},
		"describe":      {long: "tags always long abbrev= all match= exclude= contains first-parent exact-match candidates="},
		"cat-file":      {flags: "tpse", long: "batch batch-check"},
		"merge-base":    {flags: "a", long: "all is-ancestor fork-point octopus independent"},
		"name-rev":      {long: "name-only tags refs= always"},
		"show-ref":      {flags: "qsd", long: "heads tags branches verify hash? abbrev? quiet dereference"},
		"for-each-ref":  {long: "format= sort= count= merged? no-merged? contains? points-at="},
		"check-ignore":  {flags: "vnqz", long: "verbose non-matching quiet no-index"},
		"grep":          {operands: program, flags: "nilLcwEFPGhHvIoqrWpa", values: "eABCm", scripted: "e", long: "line-number ignore-case name-only files-with-matches count word-regexp extended-regexp fixed-strings perl-regexp cached untracked no-index show-function function-context heading break color? no-color max-depth= context= only-matching and or not all-match exclude-standard"},
		"count-objects": {flags: "vH"},
		"var":           {},
		"version":       {},
	}
})

// gitRead adds the effects of a git command that only reads. The options that keep git from starting what its
// configuration names are put into the tree: the configuration may be anybody's.
func (c *command) gitRead() {
	args := c.words[1:]
	if len(args) == 1 && args[0].one() && args[0].text == "--version" {
		c.add(effect.Exec, "git", "it prints its version")
		return
	}
	dirs, i := c.dirs, 0
	for ; i < len(args) && args[i].one(); i++ {
		switch args[i].text {
		case "--no-pager", "-P", "--no-optional-locks":
			continue
		case "-c":
			if i+1 < len(args) && args[i+1].one() && strings.Contains(args[i+1].text, "=") && slices.Contains(gitGuard, args[i+1].text) {
				i++
				continue
			}
		case "-C":
			if i+1 < len(args) && args[i+1].one() && args[i+1].text != "" {
				i++
				var moved []string
				for _, d := range dirs {
					to := args[i].text
					if !path.IsAbs(to) {
						to = path.Join(d, to)
					}
					moved = append(moved, c.real(path.Clean(to)))
				}
				dirs = moved
				continue
			}
		}
		break
	}
	if i >= len(args) || !args[i].one() || strings.HasPrefix(args[i].text, "-") {
		c.opaque("git", "an option of `git` that can start another program")
		return
	}
	name, sub := args[i].text, &command{c.analysis, c.node, c.at + i + 1, args[i:], dirs}
	if !sub.gitReads(name) {
		return
	}
	c.add(effect.Exec, "git", "")
	c.path(effect.Read, word{text: ".", known: true}, dirs, "`git "+name+"`")
	c.guard(i+1, name)
}

// gitGuard is what is put before the subcommand of every git command that is judged to read: no pager, no lock and
// no refresh of the index, no file system monitor, no signature program.
var gitGuard = []string{"--no-pager", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false", "-c", "diff.autoRefreshIndex=false"}

// guard puts the options into the tree, unless they stand there already. sub is the index of the subcommand
// among the words. What git was given last wins, but nothing in a line that reads can turn these on again.
func (c *command) guard(sub int, name string) {
	if c.inner || c.flat {
		return // opaque as a whole, and not what will be printed
	}
	var before, after []string
	for _, opt := range gitGuard {
		if opt != "-c" && !c.has(c.words[:sub], opt) {
			if strings.Contains(opt, "=") {
				before = append(before, "-c")
			}
			before = append(before, opt)
		}
	}
	var quiet []string
	switch name {
	case "diff", "log", "show", "whatchanged", "diff-tree":
		quiet = []string{"--no-ext-diff", "--no-textconv"}
	case "blame", "annotate":
		quiet = []string{"--no-textconv"}
	}
	for _, opt := range quiet {
		if !c.has(c.words, opt) {
			after = append(after, opt)
		}
	}
	if len(before)+len(after) == 0 {
		return
	}
	pos := c.node.Args[0].Pos()
	insert := func(at int, texts []string) {
		var words []*syntax.Word
		for _, s := range texts {
			words = append(words, &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{ValuePos: pos, ValueEnd: pos, Value: s}}})
		}
		c.node.Args = slices.Insert(c.node.Args, at, words...)
	}
	insert(c.at+sub+1, after)
	insert(c.at+1, before)
	c.injected = true
}

// gitReads judges one subcommand; c.words[0] is it. What it refuses is marked opaque.
func (c *command) gitReads(name string) bool {
	rest := c.words[1:]
	first := ""
	if len(rest) > 0 && rest[0].one() {
		first = rest[0].text
	}
	spec, ok := gitReads()[name]
	switch name {
	case "branch":
		spec, ok = readSpec{operands: nothing, flags: "arvq", long: "list show-current all remotes merged= no-merged= contains= no-contains= sort= format= points-at= column? no-column color? no-color verbose ignore-case"}, true
		if c.has(rest, "--list") {
			spec.operands = texts
		}
	case "tag":
		spec, ok = readSpec{operands: nothing, flags: "l", values: "n", long: "list sort= contains= no-contains= points-at= format= merged= no-merged= column? ignore-case"}, true
		if c.has(rest, "--list", "-l") {
			spec.operands = texts
		}
	case "remote":
		ok = len(rest) == 0 || len(rest) == 1 && (first == "-v" || first == "--verbose") || len(rest) == 2 && first == "get-url" && !rest[1].option()
	case "stash", "worktree":
		ok = first == "list" && (len(rest) == 1 || name == "worktree" && len(rest) == 2 && c.has(rest, "--porcelain"))
		spec = readSpec{operands: texts, long: "porcelain"}
	case "reflog":
		// With a patch it would start what the configuration names, and only "show" takes the options against that.
		ok = (len(rest) == 0 || first == "show" || strings.HasPrefix(first, "-")) && !c.has(rest, "-p", "-u", "--patch")
		spec = readSpec{flags: "", values: "n", long: "oneline date= max-count= format= all no-decorate"}
	case "config":
		return c.gitConfig(rest)
	case "var":
		ok = len(rest) == 1 && (first == "-l" || first == "GIT_EDITOR" || first == "GIT_PAGER" || first == "GIT_AUTHOR_IDENT" || first == "GIT_COMMITTER_IDENT")
		spec.flags = "l"
	}
	if !ok {
		c.opaque("git", "`git %s` is not known only to read", clip(name))
		return false
	}
	if name == "remote" {
		return true
	}
	if name == "log" || name == "show" || name == "rev-list" || name == "shortlog" || name == "for-each-ref" || name == "branch" || name == "tag" || name == "reflog" || name == "diff-tree" || name == "whatchanged" {
		for _, w := range rest {
			if w.known && (strings.Contains(w.text, "%G") || strings.Contains(w.text, "signature") && strings.Contains(w.text, "%(")) {
				c.opaque("git", "a format of `git` that runs a signature program")
				return false
			}
		}
	}
	operands, scripted, ok := c.options("git "+name, spec)
	if !ok {
		return false
	}
	if spec.operands == nothing && len(operands) > 0 {
		c.opaque("git", "`git %s` with an operand creates one", name)
		return false
	}
	if spec.operands == texts {
		return true
	}
	if spec.operands == program && !scripted && len(operands) > 0 {
		operands = operands[1:]
	}
	for _, w := range operands {
		if w.many {
			c.opaque("git", "an argument of `git %s` could be an option", name)
			return false
		}
		// A revision is no path, but a path may stand anywhere, also as revision:path.
		if w.known {
			c.path(effect.Read, w, c.dirs, "`git "+name+"`")
			if _, p, ok := strings.Cut(w.text, ":"); ok && p != "" {
				c.path(effect.Read, word{text: p, known: true, glob: w.glob}, c.dirs, "`git "+name+"`")
			}
		}
	}
	return true
}

// gitConfig reads, or writes the file that can make git start anything.
func (c *command) gitConfig(rest []word) bool {
	reads, operands := false, 0
	for i, w := range rest {
		if !w.one() {
			c.opaque("git", "`git config` with an argument that is known only when it runs")
			return false
		}
		switch w.text {
		case "--get", "--get-all", "--get-regexp", "--list", "-l", "--get-urlmatch":
			reads = true
		case "--global", "--system", "--local", "--show-origin", "--show-scope", "--name-only", "-z", "--null", "--includes", "--bool", "--int", "--path":
		default:
			if strings.HasPrefix(w.text, "-") {
				c.opaque("git", "the option %s of `git config` is not known to be harmless", clip(w.text))
				operands = 99
			}
			reads = reads || i == 0 && (w.text == "get" || w.text == "list")
			operands++
		}
	}
	if operands < 99 && (reads || operands == 1) {
		return true
	}
	if c.has(c.words, "--global", "--system") {
		c.path(effect.Write, word{text: path.Join(c.place.Home, ".gitconfig"), known: true}, c.dirs, "`git config`")
	} else {
		c.path(effect.Write, word{text: ".git/config", known: true}, c.dirs, "`git config`")
	}
	c.opaque("git", "`git config` changes what git starts")
	return false
}
