package shell

import (
	"path"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"belay/effect"
)

// reader kinds: what the operands of a command are.
type operandKind int

const (
	paths   operandKind = iota // each is a path that is read
	texts                      // none is a path; unknown ones are harmless
	program                    // the first is a pattern or program, the others are paths
	onePath                    // at most one path: a second one would be written
	nothing                    // none may stand there
)

// readSpec is what is known of one command that only reads. An option that is not listed makes a call opaque, except
// where safe says that the command has no option at all which writes, runs or sends.
type readSpec struct {
	operands operandKind
	safe     bool
	flags    string // options without a value, by letter
	values   string // options with a value, by letter
	files    string // options whose value is a file that is read, by letter
	long     string // "name" without, "name=" with a value, "name?" with one only after "=", "name@" with a file that is read
	scripted string // options whose value takes the place of the first operand of a program, letters and long names
}

var readers = sync.OnceValue(func() map[string]readSpec {
	grep := readSpec{operands: program, safe: true, flags: "abcEFGHhIiLlnoPqRrsTUvVwxyZz", values: "ABCDdem", files: "f",
		long:     "regexp= file@ include= exclude= exclude-dir= exclude-from@ context= after-context= before-context= max-count= color? colour? binary-files= directories= devices= label=",
		scripted: "e f regexp file"}
	sum := readSpec{safe: true, flags: "bctwz", long: "tag text binary check zero quiet status strict warn"}
	m := map[string]readSpec{
		"ls":  {safe: true, values: "ITw", long: "ignore= hide= width= tabsize= sort= time= time-style= format= indicator-style= quoting-style= block-size= color? hyperlink?"},
		"dir": {safe: true}, "vdir": {safe: true},
		"cat": {safe: true}, "tac": {safe: true, values: "s", long: "separator="}, "rev": {safe: true}, "nl": {safe: true, values: "bdfhilnsvw"},
		"head": {safe: true, values: "cn", long: "bytes= lines="}, "tail": {safe: true, values: "cns", long: "bytes= lines= pid= sleep-interval= follow?"},
		"wc": {safe: true, long: "files0-from@ total="}, "cut": {safe: true, values: "bcdf", long: "bytes= characters= delimiter= fields= output-delimiter="},
		"paste": {safe: true, values: "d", long: "delimiters="}, "join": {safe: true, values: "aejov12t"}, "comm": {safe: true, long: "output-delimiter="},
		"fold": {safe: true, values: "w", long: "width="}, "fmt": {safe: true, values: "wpg"}, "expand": {safe: true, values: "t"}, "unexpand": {safe: true, values: "t"},
		"od": {safe: true, values: "AjNStw", long: "address-radix= skip-bytes= read-bytes= format= endian="}, "hexdump": {safe: true, values: "ens", files: "f"}, "hd": {safe: true, values: "ens", files: "f"},
		"strings": {safe: true, values: "entTos"}, "column": {safe: true, values: "csNoRdHETWOtn"},
		"stat": {safe: true, values: "ct", long: "format= printf="}, "du": {safe: true, values: "dBt", files: "X", long: "max-depth= exclude= block-size= threshold= time? files0-from@ exclude-from@"},
		"df": {safe: true, values: "Btx", long: "block-size= type= exclude-type= output?"}, "cmp": {safe: true, values: "in", long: "ignore-initial= bytes="},
		"realpath": {safe: true, long: "relative-to= relative-base="}, "readlink": {safe: true},
		"md5sum": sum, "sha1sum": sum, "sha224sum": sum, "sha256sum": sum, "sha384sum": sum, "sha512sum": sum, "b2sum": sum, "cksum": sum, "sum": sum,
		"base64": {flags: "diD", values: "w", long: "decode ignore-garbage wrap="}, "base32": {flags: "diD", values: "w", long: "decode ignore-garbage wrap="},
		"grep": grep, "egrep": grep, "fgrep": grep,
		"jq": {operands: program, safe: true, flags: "nrRscCSaejM", files: "fL", scripted: "f from-file arg argjson slurpfile rawfile args jsonargs", long: "from-file@ indent= tab arg= argjson= slurpfile= rawfile= args jsonargs"},
		"rg": {operands: program, flags: "abcFHhIilLnNoPpqSsTuUvVwx0.", values: "ABCegjmMtTr", files: "f", scripted: "e f regexp file files type-list",
			long: "regexp= file@ glob= iglob= type= type-not= max-count= max-depth= maxdepth= context= after-context= before-context= color= colors= sort= sortr= replace= threads= max-columns= max-filesize= encoding= files files-with-matches files-without-match line-number no-line-number ignore-case smart-case case-sensitive word-regexp line-regexp fixed-strings multiline multiline-dotall hidden no-ignore no-ignore-vcs follow count count-matches no-heading heading no-filename with-filename only-matching json stats quiet trim vimgrep type-list version invert-match pcre2 passthru null text unrestricted no-config no-messages column"},
		"diff": {flags: "abBcdeEHinNpqrstTuwyZ", values: "CFIULWxD", files: "SX", long: "unified? context? brief recursive new-file ignore-case ignore-all-space ignore-space-change ignore-blank-lines side-by-side width= suppress-common-lines color? exclude= label= text strip-trailing-cr minimal report-identical-files normal left-column no-dereference"},
		"sort": {flags: "bcCdfghiMmnrRsuVz", values: "kSt", long: "key= field-separator= buffer-size= parallel= unique reverse numeric-sort human-numeric-sort version-sort general-numeric-sort month-sort ignore-case ignore-leading-blanks dictionary-order stable check? zero-terminated merge random-sort sort="},
		"uniq": {operands: onePath, flags: "cdDiuz", values: "fsw", long: "count repeated unique ignore-case zero-terminated skip-fields= skip-chars= check-chars= all-repeated? group?"},
		"tree": {flags: "adflxnNqQCpsughDFvtcUriJXS", values: "LPI", long: "noreport dirsfirst filelimit= prune gitignore charset= filesfirst sort? si du ignore-case matchdirs metafirst"},
		"file": {flags: "bhiILkNnprsv0", values: "FeP", long: "brief mime mime-type mime-encoding no-dereference dereference keep-going separator= extension"},
		"tr":   {operands: texts, safe: true}, "true": {operands: texts, safe: true}, "false": {operands: texts, safe: true}, "echo": {operands: texts, safe: true},
		"yes": {operands: texts, safe: true}, "seq": {operands: texts, safe: true}, "expr": {operands: texts, safe: true}, "basename": {operands: texts, safe: true}, "dirname": {operands: texts, safe: true},
		"pwd": {operands: nothing, safe: true}, "uname": {operands: nothing, safe: true}, "whoami": {operands: nothing, safe: true}, "nproc": {operands: nothing, safe: true}, "arch": {operands: nothing, safe: true},
		"fd":  {operands: program, flags: "HIusigaLp01lqF", values: "tedEScjo", long: "hidden no-ignore unrestricted case-sensitive ignore-case glob absolute-path follow full-path type= extension= max-depth= min-depth= exact-depth= exclude= size= changed-within= changed-before= color= max-results= and= print0 quiet fixed-strings list-details base-directory= strip-cwd-prefix? prune"},
		"ag":  {operands: program, flags: "acDfFgHiLlnQrRsStuUvwz0", values: "ABCmGp", long: "ignore= ignore-case literal hidden nocolor nogroup noheading count files-with-matches files-without-matches word-regexp vimgrep depth= column numbers nonumbers unrestricted stats python js go"},
		"bat": {flags: "pnAu", values: "lrHm", long: "plain number paging= style= color= language= line-range= highlight-line= theme= decorations= wrap= no-paging"},
		"eza": {safe: true}, "exa": {safe: true}, "lsd": {safe: true}, "hexyl": {safe: true}, "tokei": {safe: true}, "diffstat": {flags: "lpkwv"}, "shellcheck": {safe: true, values: "sfeSoiP"},
		"shuf": {flags: "erz", values: "ni", long: "echo input-range= head-count= repeat zero-terminated"}, "numfmt": {operands: texts, safe: true}, "factor": {operands: texts, safe: true}, "pr": {safe: true}, "tsort": {safe: true}, "look": {operands: program, safe: true},
		"cal": {operands: texts, safe: true}, "tty": {operands: nothing, safe: true}, "logname": {operands: nothing, safe: true}, "users": {safe: true}, "who": {safe: true}, "w": {operands: texts, safe: true}, "last": {operands: texts, safe: true, files: "f"}, "lscpu": {operands: nothing, safe: true}, "lsblk": {operands: texts, safe: true}, "lsmod": {operands: nothing, safe: true}, "lspci": {operands: nothing, flags: "vnmkt"}, "lsusb": {operands: nothing, flags: "vt"},
		"vmstat": {operands: texts, safe: true}, "iostat": {operands: texts, safe: true}, "pgrep": {operands: texts, safe: true}, "pidof": {operands: texts, safe: true}, "pstree": {operands: texts, safe: true}, "pmap": {operands: texts, safe: true}, "locale": {operands: texts, safe: true}, "getconf": {operands: texts, safe: true}, "pathchk": {operands: texts, safe: true}, "whereis": {operands: texts, safe: true}, "locate": {operands: texts, safe: true}, "sw_vers": {operands: texts, safe: true},
		"top": {operands: nothing, flags: "bcHiS", values: "nduopw"}, "tput": {operands: texts, flags: "", values: "T"}, "dmesg": {operands: nothing, flags: "Txkr", values: "lf", long: "ctime level= facility= human nopager decode"}, "ss": {operands: texts, flags: "tulnpaeoimsx46hHw", long: "tcp udp listening numeric processes all summary"},
		"journalctl": {operands: texts, flags: "nfkbrxeqam", values: "unptog", long: "no-pager since= until= unit= lines= output= priority= boot? user system reverse dmesg catalog quiet all user-unit= identifier= no-tail grep= list-boots disk-usage"},
		"lsof":       {flags: "nPtlUaR", values: "puc"}, "netstat": {operands: nothing, flags: "antulpres"},
		"iconv": {flags: "cl", values: "ft", long: "from-code= to-code= list"}, "zcat": {flags: "f"}, "bzcat": {flags: "f"}, "xzcat": {flags: "f"}, "zstdcat": {flags: "f"}, "zipinfo": {flags: "12smlvhtzTM"}, "nm": {flags: "aCDgnprSuU", long: "demangle? dynamic defined-only undefined-only extern-only numeric-sort print-size size-sort"}, "size": {flags: "ABtdox"}, "readelf": {flags: "ahldSsnrVWe", long: "headers file-header sections symbols dynamic notes wide program-headers"}, "objdump": {flags: "adDfhprRsStTxCw", values: "jM", long: "section= disassemble? demangle? no-show-raw-insn dynamic-syms syms private-headers"},
		"gofmt": {flags: "lde"}, "dpkg": {operands: texts, flags: "lLsS", long: "list listfiles status search get-selections print-architecture"}, "dpkg-query": {operands: texts, flags: "lLsSW", values: "f", long: "list listfiles status search show showformat="}, "sysctl": {operands: texts, flags: "anNe"},
		"shasum": {safe: true, values: "a"}, "md5": {safe: true},
		"hostname": {operands: nothing, flags: "fsdiI"}, "id": {operands: texts, safe: true}, "groups": {operands: texts, safe: true}, "printenv": {operands: texts, safe: true},
		"which": {operands: texts, safe: true}, "type": {operands: texts, safe: true}, "sleep": {operands: texts, safe: true}, "ps": {operands: texts, safe: true}, "uptime": {operands: nothing, flags: "ps"}, "free": {operands: nothing, flags: "bkmghtw"},
	}
	return m
})

// read adds the effects of a command that only reads, and reports whether it is one.
func (c *command) read(name string) bool {
	if special := specials()[name]; special != nil {
		special(c)
		return true
	}
	if c.version(name) || c.manager(name) {
		return true
	}
	spec, ok := readers()[name]
	if !ok {
		return false
	}
	c.add(effect.Exec, name, "")
	if !spec.safe && versionOnly(c.words[1:]) {
		return true
	}
	operands, scripted, ok := c.options(name, spec)
	if !ok {
		return true
	}
	c.operands(name, spec, operands, scripted)
	return true
}

var parsed sync.Map // the text of a table entry -> what it says

// longOptions reads readSpec.long: the kind of each option by name.
func longOptions(text string) map[string]byte {
	if m, ok := parsed.Load("long " + text); ok {
		return m.(map[string]byte)
	}
	long := map[string]byte{}
	for _, l := range strings.Fields(text) {
		kind := l[len(l)-1]
		if strings.IndexByte("=?@", kind) >= 0 {
			l = l[:len(l)-1]
		} else {
			kind = 0
		}
		long[l] = kind
	}
	parsed.Store("long "+text, long)
	return long
}

// words is set, computed once a text.
func words(text string) map[string]bool {
	if m, ok := parsed.Load(text); ok {
		return m.(map[string]bool)
	}
	m := set(text)
	parsed.Store(text, m)
	return m
}

// options reads the options of a command. It returns the operands, and whether an option took the place of
// the program. Not ok says that the line is opaque and has been marked so.
func (c *command) options(name string, spec readSpec) (operands []word, scripted, ok bool) {
	args := c.words[1:]
	long, takesProgram := longOptions(spec.long), words(spec.scripted)
	for i := 0; i < len(args); i++ {
		w := args[i]
		switch {
		case !w.option() || w.one() && w.text == "-":
			operands = append(operands, w)
			continue
		case w.glob && !spec.safe && spec.operands != nothing && c.dotted(w):
			w.text = "./" + w.text
			operands = append(operands, w)
			continue
		case !w.known || w.glob:
			if !spec.safe {
				c.opaque(name, "an argument of `%s` could be an option: write ./ before a pattern", name)
				return nil, false, false
			}
			operands = append(operands, w)
			continue
		case w.text == "--":
			return append(operands, args[i+1:]...), scripted, true
		}
		opt := w.text
		if strings.HasPrefix(opt, "--") {
			key, value, has := strings.Cut(opt[2:], "=")
			kind, known := long[key]
			switch {
			case !known && spec.safe:
				// It cannot do harm, but its value may be a file, and what follows may not be the program.
				if has {
					c.path(effect.Read, word{text: value, known: true}, c.dirs, "`"+name+"`")
				}
				scripted = true
			case !known:
				c.opaque(name, "the option --%s of `%s` is not known to be harmless", clip(key), name)
				return nil, false, false
			case kind == '@' || kind == '=':
				v := word{text: value, known: true}
				if !has {
					if i++; i >= len(args) {
						continue
					}
					v = args[i]
				}
				if kind == '@' {
					c.path(effect.Read, v, c.dirs, "`"+name+"`")
				} else if !has && !spec.safe && !valueOrOperand(v) || !v.one() && !spec.safe {
					c.opaque(name, "the value of --%s may be no value", key)
					return nil, false, false
				}
			}
			scripted = scripted || takesProgram[key]
			continue
		}
		for j := 1; j < len(opt); j++ {
			letter := opt[j : j+1]
			scripted = scripted || takesProgram[letter]
			isFile := strings.Contains(spec.files, letter)
			if isFile || strings.Contains(spec.values, letter) {
				v, apart := word{text: opt[j+1:], known: true}, opt[j+1:] == ""
				if apart {
					if i++; i >= len(args) {
						break
					}
					v = args[i]
				}
				if isFile {
					c.path(effect.Read, v, c.dirs, "`"+name+"`")
				} else if apart && !spec.safe && !valueOrOperand(v) {
					c.opaque(name, "the value of -%s may be no value", letter)
					return nil, false, false
				}
				break
			}
			if !strings.Contains(spec.flags, letter) && !spec.safe && (letter[0] < '0' || letter[0] > '9') {
				c.opaque(name, "the option -%s of `%s` is not known to be harmless", clip(letter), name)
				return nil, false, false
			}
		}
	}
	return operands, scripted, true
}

// dotted puts ./ before a pattern in the tree, so that no name that it matches can be an option.
func (c *command) dotted(w word) bool {
	if c.inner || w.arg < 0 || *c.touched || dashed(w.text, false) {
		return false
	}
	parts := c.node.Args[w.arg].Parts
	lit, ok := parts[0].(*syntax.Lit)
	if !ok || lit.Value == "" || strings.IndexByte("*?[", lit.Value[0]) < 0 {
		return false
	}
	lit.Value = "./" + lit.Value
	c.injected = true
	return true
}

// valueOrOperand says that a word behind an option is harmless whether the program takes it as the option's value or, where
// the value is optional, as a word of its own.
func valueOrOperand(w word) bool {
	return w.one() && (w.text == "-" || !strings.HasPrefix(w.text, "-"))
}

func (c *command) operands(name string, spec readSpec, operands []word, scripted bool) {
	switch spec.operands {
	case texts:
		for _, w := range operands {
			if w.known && w.glob && strings.Contains(w.text, "/") {
				c.path(effect.Read, word{text: path.Dir(w.text), known: true}, c.dirs, "a pattern lists it")
			}
		}
		return
	case nothing:
		if len(operands) > 0 {
			c.opaque(name, "`%s` with an operand", name)
		}
		return
	case program:
		if !scripted && len(operands) > 0 {
			if w := operands[0]; w.many && !spec.safe || w.glob && !spec.safe {
				c.opaque(name, "the pattern of `%s` is known only when it runs", name)
			}
			operands = operands[1:]
		}
	case onePath:
		if len(operands) > 1 || len(operands) == 1 && !operands[0].one() {
			c.opaque(name, "`%s` writes its second operand", name)
			for _, w := range operands[min(1, len(operands)):] {
				c.path(effect.Write, w, c.dirs, "`"+name+"`")
			}
			return
		}
	}
	for _, w := range operands {
		if w.one() && w.text == "-" {
			continue
		}
		if expandsFiles[name] && (!w.known || w.text == "" || strings.IndexByte("@*?[", w.text[0]) >= 0) {
			c.opaque(name, "an operand of `%s` that begins with @ is a file of options", name)
		}
		c.path(effect.Read, w, c.dirs, "`"+name+"`")
	}
	if len(operands) == 0 {
		switch name {
		case "ls", "dir", "vdir", "du", "tree", "rg":
			c.path(effect.Read, word{text: ".", known: true}, c.dirs, "`"+name+"`")
		case "grep", "egrep", "fgrep":
			if c.recursiveGrep() {
				c.path(effect.Read, word{text: ".", known: true}, c.dirs, "`"+name+"`")
			}
		}
	}
}

// expandsFiles are the commands that read more options from an operand @file.
var expandsFiles = set("nm size readelf objdump")

func (c *command) recursiveGrep() bool {
	for _, w := range c.words[1:] {
		if strings.HasPrefix(w.text, "-") && strings.ContainsAny(w.text, "rR") {
			return true
		}
	}
	return false
}
