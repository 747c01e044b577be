package shell

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"belay/effect"
)

// specials are the commands that a table of options does not describe.
var specials func() map[string]func(*command)

func init() { specials = sync.OnceValue(makeSpecials) }

func makeSpecials() map[string]func(*command) {
	awk := (*command).awk
	return map[string]func(*command){
		"find": (*command).find, "git": (*command).gitRead, "sed": (*command).sed, "gsed": (*command).sed, "test": func(c *command) { c.test("test") }, "[": func(c *command) { c.test("[") },
		"date": (*command).date, "printf": (*command).printf, "go": (*command).goTool, "awk": awk, "gawk": awk, "mawk": awk, "nawk": awk, "tar": (*command).tar, "bsdtar": (*command).tar, "unzip": (*command).unzip,
		"gzip": (*command).gzip, "gunzip": (*command).gzip, "xz": (*command).gzip, "bzip2": (*command).gzip, "zstd": (*command).gzip, "xxd": (*command).xxd, "yq": (*command).yq, "pip": (*command).pip, "pip3": (*command).pip,
		"npm": (*command).npm, "docker": (*command).docker, "podman": (*command).docker, "python": (*command).python, "python3": (*command).python, "ip": (*command).ip, "node": (*command).nodeCheck, "php": (*command).php,
		"getent": (*command).getent, "lsof": (*command).lsof, "cargo": (*command).rust, "rustc": (*command).rust, "kubectl": (*command).kubectl,
	}
}

// versions are the programs whose --version, or the other word given, prints a version and reads nothing of the workspace.
var versions = sync.OnceValue(func() map[string]string {
	return map[string]string{"gcc": "-v", "g++": "-v", "cc": "-v", "clang": "-v", "clang++": "-v", "make": "-v", "cmake": "", "ninja": "", "ruby": "-v", "perl": "-v", "java": "-version", "javac": "-version", "lua": "-v", "deno": "-V", "bun": "-v", "psql": "-V", "mysql": "-V",
		"redis-cli": "-v", "curl": "-V", "wget": "-V", "ssh": "-V", "rsync": "", "gh": "version", "aws": "", "openssl": "version", "tmux": "-V", "vim": "", "nvim": "-v", "emacs": "", "sqlite3": "-version", "ffmpeg": "-version", "helm": "version", "uv": "", "protoc": "", "gdb": "-v", "strace": "-V", "valgrind": "",
		"sudo": "-V", "less": "-V", "zip": "-v", "gpg": "", "ansible": "", "pandoc": "-v", "pwsh": "", "zig": "version", "ghc": "", "ocaml": "-version", "scala": "-version", "kotlinc": "-version", "elixir": "-v", "R": "", "julia": "-v", "nginx": "-v", "virtualenv": "", "docker-compose": "", "minikube": "version", "kind": "version", "pre-commit": "-V", "ld": "-v", "as": ""}
})

// version reports whether the command only prints its version.
func (c *command) version(name string) bool {
	short, ok := versions()[name]
	if !ok || len(c.words) != 2 || !c.words[1].one() || c.words[1].text != "--version" && (short == "" || c.words[1].text != short) {
		return false
	}
	c.add(effect.Exec, name, "it prints its version")
	return true
}

// arguments are the words behind the command where all are known; otherwise the line is opaque.
func (c *command) arguments(name string) ([]string, bool) {
	var out []string
	for _, w := range c.words[1:] {
		if !w.one() {
			c.opaque(name, "an argument of `%s` is known only when it runs", name)
			return nil, false
		}
		out = append(out, w.text)
	}
	return out, true
}

func (c *command) awk() {
	name := c.words[0].text
	c.add(effect.Exec, "awk", "")
	args := c.words[1:]
	for len(args) > 0 {
		w := args[0]
		if !w.one() || !strings.HasPrefix(w.text, "-") || w.text == "-" {
			break
		}
		args = args[1:]
		switch {
		case w.text == "--":
		case w.text == "--version" && len(args) == 0 || w.text == "-W":
			if w.text == "-W" {
				c.opaque(name, "the option -W of `awk` is not read here")
			}
			return
		case w.text == "-F" || w.text == "-v":
			if len(args) == 0 {
				return
			}
			if args[0].many || args[0].glob {
				c.opaque(name, "the value of %s may become several words", w.text)
				return
			}
			args = args[1:]
			continue
		case strings.HasPrefix(w.text, "-F") || strings.HasPrefix(w.text, "-v"):
			continue
		default:
			c.opaque(name, "the option %s of `awk` is not known to be harmless", clip(w.text))
			return
		}
		break
	}
	if len(args) == 0 {
		return
	}
	if !args[0].one() || !awkReads(args[0].text) {
		c.opaque(name, "a program of `awk` that is not known only to read")
	}
	for _, w := range args[1:] {
		if w.option() && w.known && !w.glob {
			continue
		}
		if w.known && (strings.Contains(w.text, "=") || w.text == "-") {
			continue
		}
		c.path(effect.Read, w, c.dirs, "`awk`")
	}
}

var (
	tarList = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^-?[tvzjJan]*t[tvzjJan]*f?$`) })
	remoteP = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[^/]*:`) })
)

func (c *command) tar() {
	args, ok := c.arguments("tar")
	if !ok {
		return
	}
	c.add(effect.Exec, "tar", "")
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case i == 0 && tarList().MatchString(a), a == "-t", a == "-v", a == "-z", a == "-j", a == "-J", a == "--list" && i == 0, a == "--wildcards", a == "--verbose", a == "--version" && len(args) == 1:
			if !strings.HasSuffix(a, "f") {
				continue
			}
		case a == "-f", a == "--file", strings.HasPrefix(a, "--file="):
			if v, ok := strings.CutPrefix(a, "--file="); ok {
				args[i] = v
				i--
			}
		case a == "-C":
			i++
			continue
		case strings.HasPrefix(a, "-"):
			c.opaque("tar", "the option %s of `tar` is not known only to list", clip(a))
			return
		case i == 0:
			c.opaque("tar", "`tar` that does not only list")
			return
		default:
			continue // a member's name
		}
		if i++; i < len(args) && args[i] != "-" {
			if remoteP().MatchString(args[i]) {
				c.opaque("tar", "an archive with a colon is fetched from another machine")
			}
			c.path(effect.Read, literal(args[i]), c.dirs, "`tar`")
		}
	}
	if len(args) == 0 || !tarList().MatchString(args[0]) && args[0] != "--list" && args[0] != "--version" {
		c.opaque("tar", "`tar` that does not only list")
	}
}

var unzipLooks = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^-[lvtpZq1]*[lvtpZ][lvtpZq1]*$`) })

func (c *command) unzip() {
	args, ok := c.arguments("unzip")
	if !ok {
		return
	}
	c.add(effect.Exec, "unzip", "")
	if len(args) < 2 || !unzipLooks().MatchString(args[0]) {
		c.opaque("unzip", "`unzip` that does not only list or print")
		return
	}
	for i, a := range args[1:] {
		if strings.HasPrefix(a, "-") {
			c.opaque("unzip", "the option %s of `unzip` is not known to be harmless", clip(a))
		} else if i == 0 {
			c.path(effect.Read, literal(a), c.dirs, "`unzip`")
		}
	}
}

func (c *command) gzip() {
	name := commandName(c.words[0].text)
	c.add(effect.Exec, name, "")
	if versionOnly(c.words[1:]) {
		return
	}
	stdout, looks, changes := false, false, false
	for _, w := range c.words[1:] {
		switch {
		case !w.option() || w.one() && w.text == "-":
			c.path(effect.Read, w, c.dirs, "`"+name+"`")
		case w.one() && (w.text == "--stdout" || w.text == "--to-stdout"):
			stdout = true
		case w.one() && (w.text == "--list" || w.text == "--test"):
			looks = true
		case w.one() && (w.text == "--decompress" || w.text == "--keep"):
			changes = true
		case w.one() && strings.Trim(w.text[1:], "cdltvkqf0123456789") == "":
			stdout = stdout || strings.Contains(w.text, "c")
			looks = looks || strings.ContainsAny(w.text, "lt")
			changes = changes || strings.ContainsAny(w.text, "dkf")
		default:
			c.opaque(name, "an argument of `%s` is not known to be harmless", name)
			return
		}
	}
	// Of several modes the last one holds, so that one which only looks must stand alone.
	if !stdout && (!looks || changes) && len(c.words) > 1 {
		c.opaque(name, "`%s` replaces its files", name)
	}
}

func (c *command) xxd() {
	c.add(effect.Exec, "xxd", "")
	operands := 0
	for i := 1; i < len(c.words); i++ {
		w := c.words[i]
		switch {
		case !w.option() || w.one() && w.text == "-":
			if operands++; operands > 1 || w.many || w.glob {
				c.opaque("xxd", "`xxd` writes its second operand")
				return
			}
			c.path(effect.Read, w, c.dirs, "`xxd`")
		case !w.one():
			c.opaque("xxd", "an argument of `xxd` could be an option")
			return
		case len(w.text) == 2 && strings.Contains("aAbeEiupr", w.text[1:]) || w.text == "-ps":
		case len(w.text) == 2 && strings.Contains("lcgso", w.text[1:]):
			if i++; i < len(c.words) && !c.words[i].one() {
				c.opaque("xxd", "an argument of `xxd` is known only when it runs")
				return
			}
		default:
			c.opaque("xxd", "the option %s of `xxd` is not known to be harmless", clip(w.text))
			return
		}
	}
}

func (c *command) yq() {
	c.add(effect.Exec, "yq", "")
	operands, _, ok := c.options("yq", readSpec{operands: program, flags: "rePCMNncjSsy", values: "poI", long: "input-format= output-format= raw-output prettyPrint no-colors colors null-input unwrapScalar? exit-status indent= version no-doc"})
	if !ok {
		return
	}
	if c.has(c.words, "-s") {
		c.opaque("yq", "`yq -s` may write a file for each document")
	}
	for i, w := range operands {
		if i == 0 && w.known && strings.Contains(w.text, "system") {
			c.opaque("yq", "a program of `yq` that starts others")
		}
		if i == 0 && len(operands) > 1 && !w.many {
			continue
		}
		c.path(effect.Read, w, c.dirs, "`yq`")
	}
}

// inEnvironment puts settings before the command: name=value pairs.
func (c *command) inEnvironment(pairs ...string) bool {
	if c.inner || c.scrubbed {
		c.opaque(c.words[0].text, "what keeps `%s` from starting other programs cannot be put there", clip(c.words[0].text))
		return false
	}
	pos := c.node.Pos()
	for _, pair := range pairs {
		name, text, _ := strings.Cut(pair, "=")
		there := slices.ContainsFunc(c.node.Assigns, func(as *syntax.Assign) bool { return as.Name != nil && as.Name.Value == name })
		if there {
			if ok := slices.ContainsFunc(c.node.Assigns, func(as *syntax.Assign) bool {
				return as.Name != nil && as.Name.Value == name && as.Value != nil && as.Value.Lit() == text
			}); !ok {
				c.opaque(name, "%s must be %s here", name, text)
				return false
			}
			continue
		}
		c.node.Assigns = append(c.node.Assigns, &syntax.Assign{Name: &syntax.Lit{ValuePos: pos, ValueEnd: pos, Value: name},
			Value: &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{ValuePos: pos, ValueEnd: pos, Value: text}}}})
		c.injected = true
	}
	return true
}

// put inserts words into the tree behind c.words[after], which must stand there.
func (c *command) put(after int, texts ...string) bool {
	if len(texts) == 0 {
		return true
	}
	at := c.words[after].arg
	if c.inner || at < 0 || *c.touched {
		c.opaque(c.words[0].text, "what keeps `%s` from starting other programs cannot be put there", clip(c.words[0].text))
		return false
	}
	pos := c.node.Args[0].Pos()
	var words []*syntax.Word
	for _, s := range texts {
		words = append(words, &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{ValuePos: pos, ValueEnd: pos, Value: s}}})
	}
	c.node.Args = slices.Insert(c.node.Args, at+1, words...)
	c.injected = true
	return true
}

// goTool accepts what neither compiles nor fetches. The toolchain that a go.mod names is not fetched either.
func (c *command) goTool() {
	args, ok := c.arguments("go")
	if !ok {
		return
	}
	c.add(effect.Exec, "go", "")
	sub := ""
	if len(args) > 0 {
		sub = args[0]
		args = args[1:]
	}
	switch sub {
	case "version":
		ok = len(args) == 0 || !strings.HasPrefix(args[0], "-") || args[0] == "-m"
	case "env":
		for _, a := range args {
			ok = ok && (a == "-json" || a == "-changed" || !strings.HasPrefix(a, "-")) && !strings.Contains(a, "=")
		}
	case "list":
		for i := 0; i < len(args); i++ {
			switch a := args[i]; {
			case a == "-f" || a == "-tags":
				i++
			case a == "-m" || a == "-json" || strings.HasPrefix(a, "-json=") || a == "-deps" || a == "-e" || a == "-test" || a == "-find" || a == "-buildvcs=false" || strings.HasPrefix(a, "-f=") || strings.HasPrefix(a, "-tags=") || a == "-mod=readonly" || a == "-mod=vendor":
			default:
				ok = ok && !strings.HasPrefix(a, "-")
			}
		}
	case "doc":
		for _, a := range args {
			ok = ok && (!strings.HasPrefix(a, "-") || a == "-all" || a == "-short" || a == "-src" || a == "-u" || a == "-c" || a == "-cmd")
		}
	case "help":
	case "mod":
		ok = len(args) > 0 && (args[0] == "why" || args[0] == "graph")
		for _, a := range args[min(1, len(args)):] {
			ok = ok && (a == "-m" || !strings.HasPrefix(a, "-"))
		}
	default:
		ok = false
	}
	if !ok {
		c.opaque("go", "`go %s` compiles, fetches or runs programs", clip(sub))
		return
	}
	c.path(effect.Read, literal("."), c.dirs, "`go "+sub+"`")
	if sub == "list" && !slices.Contains(args, "-buildvcs=false") && !slices.Contains(args, "-m") && !c.put(1, "-buildvcs=false") {
		return
	}
	c.inEnvironment("GOTOOLCHAIN=local", "GOPROXY=off")
}

func (c *command) pip() {
	args, ok := c.arguments("pip")
	if !ok {
		return
	}
	c.add(effect.Exec, "pip", "")
	if len(args) == 1 && (args[0] == "--version" || args[0] == "-V") {
		return
	}
	if len(args) == 0 || !words("list show freeze check")[args[0]] {
		c.opaque("pip", "`pip` that does more than list what is installed")
		return
	}
	for _, a := range args[1:] {
		if strings.HasPrefix(a, "-") && a != "-v" && a != "-f" && a != "--files" && a != "--verbose" && !strings.HasPrefix(a, "--format=") && a != "--local" && a != "--user" && a != "-l" && a != "--not-required" && a != "--all" {
			c.opaque("pip", "the option %s of `pip` is not known to be harmless", clip(a))
			return
		}
	}
	c.inEnvironment("PIP_DISABLE_PIP_VERSION_CHECK=1", "PIP_NO_INDEX=1")
}

func (c *command) npm() {
	args, ok := c.arguments("npm")
	if !ok {
		return
	}
	c.add(effect.Exec, "npm", "")
	switch {
	case len(args) == 1 && (args[0] == "--version" || args[0] == "-v" || args[0] == "root" || args[0] == "prefix"), len(args) == 2 && (args[0] == "root" || args[0] == "prefix") && (args[1] == "-g" || args[1] == "--global"):
	case len(args) > 0 && (args[0] == "ls" || args[0] == "list" || args[0] == "ll" || args[0] == "explain" || args[0] == "why"):
		for _, a := range args[1:] {
			if strings.HasPrefix(a, "-") && a != "--all" && a != "-a" && a != "-g" && a != "--global" && a != "--json" && a != "--long" && a != "--parseable" && a != "-p" && a != "--prod" && a != "--dev" && !strings.HasPrefix(a, "--depth=") && a != "--depth" && !strings.HasPrefix(a, "--omit=") {
				ok = false
			}
		}
	case len(args) == 3 && args[0] == "config" && args[1] == "get" && !strings.HasPrefix(args[2], "-"), len(args) == 2 && args[0] == "config" && (args[1] == "list" || args[1] == "ls"),
		len(args) >= 2 && args[0] == "pkg" && args[1] == "get" && !slices.ContainsFunc(args, func(a string) bool { return strings.HasPrefix(a, "-") }):
	default:
		ok = false
	}
	if !ok {
		c.opaque("npm", "`npm` that does more than list what is installed")
		return
	}
	c.path(effect.Read, literal("."), c.dirs, "`npm`")
	c.inEnvironment("npm_config_logs_max=0", "npm_config_update_notifier=false")
}

// docker accepts what only asks the machine's own service.
func (c *command) docker() {
	name := c.words[0].text
	args, ok := c.arguments(name)
	if !ok {
		return
	}
	c.add(effect.Exec, name, "")
	if len(args) == 1 && (args[0] == "--version" || args[0] == "-v") {
		return
	}
	rest := args
	sub := ""
	if len(args) > 0 {
		sub, rest = args[0], args[1:]
	}
	if words("container image volume network system context compose builder")[sub] && len(rest) > 0 {
		sub, rest = sub+" "+rest[0], rest[1:]
	}
	switch sub {
	case "ps", "images", "version", "info", "inspect", "logs", "top", "port", "diff", "history", "container ls", "container list", "container ps", "container inspect", "container logs", "container top", "image ls", "image list", "image inspect", "image history",
		"volume ls", "volume inspect", "network ls", "network inspect", "system df", "system info", "context ls", "compose ps", "compose logs", "compose ls", "compose images", "stats":
	default:
		ok = false
	}
	for _, a := range rest {
		if strings.HasPrefix(a, "--config") || strings.HasPrefix(a, "--host") || a == "-H" {
			ok = false
		}
	}
	if sub == "stats" && !slices.Contains(rest, "--no-stream") || !ok {
		c.opaque(name, "`%s %s` changes or starts something", name, clip(sub))
		return
	}
	c.path(effect.Read, literal("/run/"+name+".sock"), c.dirs, "`"+name+"`")
}

func (c *command) kubectl() {
	args, ok := c.arguments("kubectl")
	if ok && len(args) >= 2 && args[0] == "config" && words("current-context get-contexts get-clusters")[args[1]] && len(args) == 2 || len(args) == 2 && args[0] == "version" && (args[1] == "--client" || args[1] == "--client=true") {
		c.add(effect.Exec, "kubectl", "it reads its configuration")
		return
	}
	c.opaque("kubectl", "`kubectl` in a way that is not read here")
}

// python accepts --version, and json.tool without an output file; -I keeps it from loading modules of the folder.
func (c *command) python() {
	name := commandName(c.words[0].text)
	args, ok := c.arguments(name)
	if !ok {
		return
	}
	if len(args) == 1 && (args[0] == "--version" || args[0] == "-V" || args[0] == "-VV") {
		c.add(effect.Exec, name, "it prints its version")
		return
	}
	isolated := len(args) > 0 && args[0] == "-I"
	if isolated {
		args = args[1:]
	}
	if len(args) < 2 || args[0] != "-m" || args[1] != "json.tool" {
		c.opaque(name, "`%s` runs a program", name)
		return
	}
	operands := 0
	for i := 2; i < len(args); i++ {
		switch a := args[i]; a {
		case "--indent":
			i++
		case "--sort-keys", "--no-ensure-ascii", "--compact", "--json-lines", "--no-indent", "--tab":
		default:
			if operands++; strings.HasPrefix(a, "-") || operands > 1 {
				c.opaque(name, "`json.tool` writes its second operand")
				return
			}
			c.path(effect.Read, literal(a), c.dirs, "`json.tool`")
		}
	}
	c.add(effect.Exec, name, "it formats JSON")
	if !isolated {
		c.put(0, "-I")
	}
}

func (c *command) nodeCheck() {
	args, ok := c.arguments("node")
	switch {
	case !ok:
	case len(args) == 1 && (args[0] == "--version" || args[0] == "-v"):
		c.add(effect.Exec, "node", "it prints its version")
	case len(args) == 2 && (args[0] == "--check" || args[0] == "-c") && !strings.HasPrefix(args[1], "-"):
		c.add(effect.Exec, "node", "it checks the syntax")
		c.path(effect.Read, literal(args[1]), c.dirs, "`node --check`")
	default:
		c.opaque("node", "`node` runs a program")
	}
}

func (c *command) php() {
	args, ok := c.arguments("php")
	switch {
	case !ok:
	case len(args) == 1 && (args[0] == "--version" || args[0] == "-v"):
		c.add(effect.Exec, "php", "it prints its version")
	case len(args) == 2 && args[0] == "-l" && !strings.HasPrefix(args[1], "-"):
		c.add(effect.Exec, "php", "it checks the syntax")
		c.path(effect.Read, literal(args[1]), c.dirs, "`php -l`")
	default:
		c.opaque("php", "`php` runs a program")
	}
}

func (c *command) ip() {
	args, ok := c.arguments("ip")
	c.add(effect.Exec, "ip", "")
	for len(args) > 0 && words("-br -brief -4 -6 -o -s -c -j -p -json -d")[args[0]] {
		args = args[1:]
	}
	if ok && len(args) > 0 && words("a addr address r route l link n neigh rule")[args[0]] {
		rest := args[1:]
		if len(rest) == 0 || words("show list ls get")[rest[0]] && len(rest) <= 4 {
			return
		}
	}
	c.opaque("ip", "`ip` that does more than show")
}

var lsofOption = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(-[nPltaRUOw]*([ispucFdr].*)?|\+[dDLc].*)$`) })

func (c *command) lsof() {
	args, ok := c.arguments("lsof")
	c.add(effect.Exec, "lsof", "")
	for _, a := range args {
		ok = ok && (!strings.HasPrefix(a, "-") && !strings.HasPrefix(a, "+") || lsofOption().MatchString(a))
	}
	if !ok {
		c.opaque("lsof", "an option of `lsof` that is not known to be harmless")
	}
}

func (c *command) getent() {
	args, ok := c.arguments("getent")
	c.add(effect.Exec, "getent", "")
	if !ok || len(args) == 0 || !words("passwd group services protocols")[args[0]] {
		c.opaque("getent", "`getent` may ask another machine")
	}
}

// rust accepts --version where no file in the folder or above it names another toolchain.
func (c *command) rust() {
	name := c.words[0].text
	args, ok := c.arguments(name)
	if !ok {
		return
	}
	if len(args) != 1 || !words("--version -V -vV -Vv")[args[0]] || !c.above(func(dir string) bool {
		for _, f := range []string{"rust-toolchain", "rust-toolchain.toml"} {
			if _, err := os.Lstat(path.Join(dir, f)); err == nil {
				return false
			}
		}
		return true
	}) {
		c.opaque(name, "`%s` compiles and runs programs", name)
		return
	}
	c.add(effect.Exec, name, "it prints its version")
}

// above asks about each folder in which the command may run and all that it lies in.
func (c *command) above(ok func(dir string) bool) bool {
	for _, dir := range c.dirs {
		if dir == "" {
			return false
		}
		for {
			if !ok(dir) {
				return false
			}
			up := path.Dir(dir)
			if up == dir {
				break
			}
			dir = up
		}
	}
	return true
}
