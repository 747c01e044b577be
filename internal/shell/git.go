package shell

import (
	"path"
	"slices"
	"strings"
	"sync"

	"belay/effect"
)

const (
	diffFlags = `patch no-patch stat? stat-width= stat-name-width= stat-count= stat-graph-width= numstat shortstat dirstat? cumulative dirstat-by-file? name-only name-status summary cached staged color? no-color color-moved? no-color-moved color-moved-ws=
		word-diff? word-diff-regex= color-words? unified= exit-code quiet check minimal patience histogram diff-algorithm= anchored= indent-heuristic no-indent-heuristic ignore-all-space ignore-space-change ignore-space-at-eol ignore-cr-at-eol ignore-blank-lines
		ignore-matching-lines= diff-filter= find-renames? no-renames renames rename-empty no-rename-empty find-copies? find-copies-harder break-rewrites? irreversible-delete text merge-base function-context no-function-context relative? no-relative full-index abbrev? no-abbrev raw binary
		patch-with-raw patch-with-stat no-ext-diff no-textconv no-prefix src-prefix= dst-prefix= line-prefix= default-prefix compact-summary no-compact-summary inter-hunk-context= cc combined-all-paths ita-invisible-in-index ita-visible-in-index pickaxe-all pickaxe-regex
		rotate-to= skip-to= find-object= ws-error-highlight= output-indicator-new= output-indicator-old= output-indicator-context= base ours theirs no-index`
	logFlags = diffFlags + ` oneline graph no-graph decorate? no-decorate clear-decorations decorate-refs= decorate-refs-exclude= all branches? tags? remotes? glob= exclude= reflog walk-reflogs max-count= skip= since= after= until= before= since-as-filter= author= committer= grep= grep-reflog= format= pretty? date= relative-date reverse follow no-follow
		merges no-merges first-parent abbrev-commit no-abbrev-commit left-right left-only right-only cherry cherry-pick cherry-mark regexp-ignore-case extended-regexp basic-regexp fixed-strings perl-regexp topo-order date-order author-date-order
		full-history dense sparse simplify-merges simplify-by-decoration show-pulls invert-grep all-match source children parents boundary count no-walk? do-walk ancestry-path? max-parents= min-parents= no-min-parents no-max-parents notes? no-notes no-show-signature use-mailmap mailmap no-mailmap encoding= ignore-missing
		objects object-names no-object-names objects-edge timestamp header null diff-merges= no-diff-merges remerge-diff expand-tabs? no-expand-tabs unpacked bisect disk-usage? missing=`
)

// gitReads are the subcommands that only read, with the options that keep them so.
var gitReads = sync.OnceValue(func() map[string]readSpec {
	log := readSpec{flags: "pusgmcwbRazEFiMCDrtPW", values: "nULSGlO", long: logFlags}
	return map[string]readSpec{
		"status":           {flags: "sbz", values: "u", long: "short branch no-branch porcelain? untracked-files? ignored? long show-stash ahead-behind no-ahead-behind renames no-renames find-renames? null column? no-column ignore-submodules?"},
		"diff":             {flags: "pusgmcwbRazMCDrtWB", values: "USGlO", long: diffFlags + " ignore-submodules?"},
		"diff-index":       {flags: "pusgmcwbRazMCDrtWB", values: "USGlO", long: diffFlags + " ignore-submodules?"},
		"diff-files":       {flags: "pusgmcwbRazMCDrtWBq", values: "USGlO", long: diffFlags + " ignore-submodules?"},
		"log":              log,
		"show":             log,
		"rev-list":         log,
		"whatchanged":      log,
		"reflog":           log,
		"diff-tree":        log,
		"show-branch":      {operands: texts, flags: "ar", long: "all remotes current topics list more= sha1-name no-name"},
		"cherry":           {flags: "v", long: "abbrev?"},
		"shortlog":         {flags: "snec", long: "summary numbered email committer all no-merges merges since= until= after= before= author= group= format= branches? tags? remotes?"},
		"blame":            {flags: "wCMeslftpcbnk", values: "L", long: "porcelain line-porcelain incremental date= since= show-email show-name show-number root abbrev= no-textconv ignore-rev= ignore-revs-file@ minimal color-lines color-by-age show-stats first-parent reverse"},
		"annotate":         {flags: "l", values: "L", long: "no-textconv"},
		"ls-files":         {flags: "cdmoistuzkvf", values: "xX", long: "others exclude-standard cached modified deleted stage error-unmatch full-name eol ignored exclude= exclude-from= exclude-per-directory= directory no-empty-directory unmerged killed resolve-undo abbrev? with-tree= deduplicate recurse-submodules format= debug sparse"},
		"ls-tree":          {flags: "rdtlz", long: "name-only name-status object-only full-tree full-name long abbrev? format="},
		"rev-parse":        {flags: "q", long: "show-toplevel abbrev-ref? short? verify git-dir is-inside-work-tree is-bare-repository symbolic-full-name symbolic show-prefix show-cdup absolute-git-dir git-common-dir quiet all branches? tags? remotes? glob= show-superproject-working-tree is-inside-git-dir is-shallow-repository git-path= local-env-vars default= since= until= show-object-format? path-format= revs-only no-revs flags no-flags disambiguate= not sq"},
		"describe":         {long: "tags always long abbrev= all match= exclude= contains first-parent exact-match candidates="},
		"cat-file":         {flags: "tpse", long: "batch batch-check batch? batch-check? batch-all-objects unordered follow-symlinks allow-unknown-type"},
		"merge-base":       {flags: "a", long: "all is-ancestor fork-point octopus independent"},
		"name-rev":         {long: "name-only tags refs= always all"},
		"show-ref":         {flags: "qsd", long: "heads tags branches verify hash? abbrev? quiet dereference head exists"},
		"check-attr":       {operands: texts, flags: "az", long: "all cached"},
		"check-ref-format": {operands: texts, long: "branch normalize allow-onelevel"},
		"fsck":             {operands: texts, flags: "v", long: "full no-dangling no-progress unreachable connectivity-only strict"},
		"for-each-ref":     {long: "format= sort= count= merged? no-merged? contains? no-contains? points-at= color? ignore-case shell perl python tcl exclude= omit-empty"},
		"check-ignore":     {flags: "vnqz", long: "verbose non-matching quiet no-index"},
		"grep":             {operands: program, flags: "nilLcwEFPGhHvIoqrWpaz0123456789", values: "eABCmf", scripted: "e f", long: "line-number column full-name invert-match recursive no-recursive text basic-regexp null files-without-match quiet max-count= before-context= after-context= threads= ignore-case name-only files-with-matches count word-regexp extended-regexp fixed-strings perl-regexp cached untracked no-index show-function function-context heading break color? no-color max-depth= context= only-matching and or not all-match exclude-standard"},
		"count-objects":    {flags: "vH"},
		"var":              {},
		"version":          {},
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
			if i+1 < len(args) && args[i+1].one() && (harmlessSetting(args[i+1].text)) {
				i++
				continue
			}
		case "-C":
			if i+1 < len(args) && args[i+1].one() && args[i+1].text != "" {
				i++
				dirs = c.moved(dirs, args[i].text)
				continue
			}
		}
		break
	}
	if i >= len(args) || !args[i].one() || strings.HasPrefix(args[i].text, "-") {
		c.opaque("git", "an option of `git` that can start another program")
		return
	}
	name, sub := args[i].text, &command{c.analysis, c.node, args[i:], dirs, c.touched, c.part}
	if !sub.gitReads(name) {
		return
	}
	switch name {
	case "status", "diff", "diff-files", "diff-index", "blame", "annotate", "ls-files":
		if !sub.unfiltered() {
			c.opaque("git", "`git %s` passes files through a program that the repository's configuration names, or may do so", name)
			return
		}
	}
	c.add(effect.Exec, "git", "")
	c.path(effect.Read, word{text: ".", known: true}, dirs, "`git "+name+"`")
	c.guard(i+1, name)
}

// gitGuard is what is put before the subcommand of every git command that is judged to read: no pager, no lock and
// no refresh of the index, no file system monitor, no signature program, no hooks, no format that starts one.
var gitGuard = []string{"--no-pager", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false", "-c", "diff.autoRefreshIndex=false"}

// gitGuards are further settings for some subcommands.
var gitGuards = map[string][]string{
	"log": {"-c", "format.pretty=medium", "-c", "diff.submodule=short"}, "show": {"-c", "format.pretty=medium", "-c", "diff.submodule=short"}, "whatchanged": {"-c", "format.pretty=medium", "-c", "diff.submodule=short"}, "reflog": {"-c", "format.pretty=medium"},
	"stash": {"-c", "format.pretty=medium", "-c", "diff.submodule=short"}, "diff-tree": {"-c", "format.pretty=medium", "-c", "diff.submodule=short"}, "diff": {"-c", "diff.submodule=short"}, "diff-index": {"-c", "diff.submodule=short"}, "diff-files": {"-c", "diff.submodule=short"},
	"status": {"-c", "status.submoduleSummary=false"}, "branch": {"-c", "branch.sort=refname"}, "tag": {"-c", "tag.sort=refname"},
}

// guard puts the options into the tree, unless they stand there already. sub is the index of the subcommand
// among the words. What git was given last wins, but nothing in a line that reads can turn these on again.
func (c *command) guard(sub int, name string) {
	var before, after []string
	for _, opt := range append(slices.Clone(gitGuard), gitGuards[name]...) {
		if opt != "-c" && !c.has(c.words[:sub], opt) {
			if strings.Contains(opt, "=") {
				before = append(before, "-c")
			}
			before = append(before, opt)
		}
	}
	at := sub
	switch name {
	case "diff", "log", "show", "whatchanged", "diff-tree", "diff-index", "diff-files":
		after = []string{"--no-ext-diff", "--no-textconv"}
	case "stash":
		if sub+1 < len(c.words) && c.words[sub+1].text == "show" {
			after, at = []string{"--no-ext-diff", "--no-textconv"}, sub+1
		}
	case "blame", "annotate":
		after = []string{"--no-textconv"}
	}
	if name == "diff" || name == "status" || name == "diff-index" || name == "diff-files" {
		if !c.hasPrefix(c.words, "--ignore-submodules") {
			after = append(after, "--ignore-submodules=dirty")
		}
	}
	after = slices.DeleteFunc(after, func(opt string) bool { return c.has(c.words, opt) })
	if !c.inEnvironment("GIT_ALLOW_PROTOCOL=none") || !c.put(at, after...) {
		return
	}
	c.put(0, before...)
	*c.touched = true
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
	case "stash":
		switch {
		case first == "list":
			spec, ok = readSpec{operands: texts, values: "n", long: "oneline date= max-count= format= pretty? stat? all"}, true
		case first == "show":
			spec, ok = readSpec{operands: texts, flags: "pu", long: "patch stat? name-only name-status numstat shortstat no-ext-diff no-textconv include-untracked only-untracked color? no-color"}, true
		}
	case "worktree":
		ok = first == "list" && (len(rest) == 1 || len(rest) == 2 && c.has(rest, "--porcelain", "-v"))
		spec = readSpec{operands: texts, flags: "v", long: "porcelain"}
	case "notes":
		ok = len(rest) == 0 || (first == "list" || first == "show") && len(rest) <= 2
		spec = readSpec{operands: texts}
	case "bisect":
		ok = len(rest) == 1 && first == "log"
		spec = readSpec{operands: texts}
	case "symbolic-ref":
		var operands int
		for _, w := range rest {
			if !w.option() {
				operands++
			}
		}
		ok = operands == 1 && !c.has(rest, "-d", "--delete")
		spec = readSpec{operands: texts, flags: "q", long: "short quiet"}
	case "submodule":
		ok = len(rest) == 0 || first == "status" && (len(rest) == 1 || len(rest) == 2 && c.has(rest, "--recursive", "--cached"))
		spec = readSpec{operands: texts, long: "recursive cached"}
	case "lfs":
		ok = false
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
	for i, w := range rest {
		if !w.known && w.alts == nil && w.option() && !w.many {
			continue // options() refuses it where it matters
		}
		if w.known && (strings.Contains(w.text, "%G") || strings.Contains(w.text, "signature") && (strings.Contains(w.text, "%(") || strings.HasPrefix(w.text, "--sort") || i > 0 && rest[i-1].text == "--sort")) {
			c.opaque("git", "a format of `git` that runs a signature program")
			return false
		}
		for _, opt := range []string{"--format", "--pretty"} {
			value, has := strings.CutPrefix(w.text, opt+"=")
			if !has && w.text == opt && opt == "--format" && i+1 < len(rest) {
				value, has = rest[i+1].text, true
				if !rest[i+1].one() {
					value = "?"
				}
			}
			if has && w.known && (name == "log" || name == "show" || name == "whatchanged" || name == "rev-list" || name == "reflog" || name == "stash" || name == "diff-tree" || name == "shortlog") &&
				!strings.Contains(value, "%") && !strings.HasPrefix(value, "format:") && !strings.HasPrefix(value, "tformat:") && !words("oneline short medium full fuller reference email raw mboxrd")[value] && value != "" {
				c.opaque("git", "a format of `git` by a name that the configuration may give")
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
		if w.many && w.option() {
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

// harmlessSetting says that a setting of git's on the command line changes only how it prints, or is one of our own.
func harmlessSetting(s string) bool {
	key, value, has := strings.Cut(s, "=")
	if !has {
		return false
	}
	if slices.Contains(gitGuard, s) {
		return true
	}
	for _, more := range gitGuards {
		if slices.Contains(more, s) {
			return true
		}
	}
	switch key := strings.ToLower(key); {
	case key == "core.pager":
		return value == "cat" || value == ""
	case key == "core.quotepath", key == "core.abbrev", key == "log.date", key == "diff.renames", key == "diff.noprefix", key == "diff.context", key == "diff.algorithm", key == "core.precomposeunicode", key == "column.ui", key == "log.decorate", key == "log.follow", key == "grep.linenumber", key == "diff.renamelimit":
		return true
	default:
		return strings.HasPrefix(key, "color.") || strings.HasPrefix(key, "advice.")
	}
}

// unfiltered says that no configuration of the repository passes files through a program on their way into git: it reads
// the configuration of the repository, and of its submodules, as it is now. What it cannot find out is not so.
func (c *command) unfiltered() bool {
	for _, dir := range c.dirs {
		if dir == "" || strings.ContainsAny(dir, "*?[") {
			return false
		}
		for d := dir; ; d = path.Dir(d) {
			switch clean, found := unfilteredRepository(path.Join(d, ".git")); {
			case !clean:
				return false
			case found || path.Dir(d) == d:
			default:
				continue
			}
			break
		}
	}
	return true
}
