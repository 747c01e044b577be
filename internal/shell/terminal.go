package shell

import (
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// wantsTerminal are programs that want a terminal in any case, with what to do in their place.
var wantsTerminal = map[string]string{
	"vi": editAdvice, "vim": editAdvice, "nvim": editAdvice, "view": editAdvice, "nano": editAdvice, "pico": editAdvice, "emacs": editAdvice, "micro": editAdvice, "joe": editAdvice, "mcedit": editAdvice,
	"less": pageAdvice, "more": pageAdvice, "most": pageAdvice,
	"top": "Use ps aux, or top -b -n 1.", "htop": "Use ps aux.", "btop": "Use ps aux.", "watch": "Run the command once.",
	"tmux": jobAdvice, "screen": jobAdvice, "passwd": "A person must do that.", "su": "Commands run as one user here.", "dialog": "Give the answers as arguments.", "whiptail": "Give the answers as arguments.",
}

const (
	editAdvice = "Change files with Edit or Write, or with sed -i."
	pageAdvice = "Leave it out: output is cut and stored anyway; or read the file with Read."
	jobAdvice  = "Run the command itself."
	replAdvice = "Give the code: %s, or write it to a file and run that."
)

// consoles are interpreters that ask for input when they are given no code.
var consoles = map[string]string{
	"python": "python -c '…'", "python3": "python3 -c '…'", "python2": "python2 -c '…'", "ipython": "ipython -c '…'", "node": "node -e '…'", "irb": "ruby -e '…'", "ghci": "ghc -e '…'",
	"psql": "psql -c '…'", "mysql": "mysql -e '…'", "sqlite3": "sqlite3 FILE '…'", "bc": "echo '…' | bc", "lua": "lua -e '…'", "php": "php -r '…'", "R": "Rscript -e '…'", "julia": "julia -e '…'", "deno": "deno eval '…'", "iex": "elixir -e '…'",
	"bash": "bash -c '…'", "sh": "sh -c '…'", "zsh": "zsh -c '…'", "ruby": "ruby -e '…'", "perl": "perl -e '…'",
}

// Terminal says which command of a line waits for a person at a terminal, and what to do instead; "" is none.
func (p Program) Terminal() (name, advice string) {
	tree, err := parse(p.Text)
	if err != nil {
		return "", ""
	}
	fed := map[*syntax.Stmt]bool{} // its input comes from somewhere
	syntax.Walk(tree, func(n syntax.Node) bool {
		if name != "" {
			return false
		}
		switch n := n.(type) {
		case *syntax.BinaryCmd:
			if n.Op == syntax.Pipe || n.Op == syntax.PipeAll {
				feed(n.Y, fed)
			}
		case *syntax.Stmt:
			for _, r := range n.Redirs {
				if r.Op == syntax.RdrIn || r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc || r.Op == syntax.WordHdoc || r.Op == syntax.DplIn {
					feed(n, fed)
				}
			}
			call, ok := n.Cmd.(*syntax.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			var words []string
			for _, w := range call.Args {
				words = append(words, w.Lit())
			}
			name, advice = waits(words, fed[n])
		}
		return true
	})
	return name, advice
}

// feed marks the statements that share the input of s.
func feed(s *syntax.Stmt, fed map[*syntax.Stmt]bool) {
	syntax.Walk(s, func(n syntax.Node) bool {
		if inner, ok := n.(*syntax.Stmt); ok {
			fed[inner] = true
		}
		return true
	})
}

// waits judges one command by its words; a word that is not known is "".
func waits(words []string, fed bool) (name, advice string) {
	name = filepath.Base(words[0])
	rest := words[1:]
	has := func(flags ...string) bool {
		return slices.ContainsFunc(rest, func(w string) bool { return slices.Contains(flags, w) })
	}
	informs := has("--version", "--help", "-V", "-version", "-h")
	if advice, ok := wantsTerminal[name]; ok && !informs {
		switch {
		case advice == editAdvice && has("-es", "-e", "-s", "-Es", "--batch", "-batch", "--headless", "-script", "--script"):
		case name == "top" && slices.ContainsFunc(rest, func(w string) bool { return strings.HasPrefix(w, "-") && strings.Contains(w, "b") }):
		case name == "tmux" && len(rest) > 0 || name == "screen" && has("-ls", "-d", "-dm", "-dmS"):
		default:
			return name, advice
		}
	}
	if code, ok := consoles[name]; ok && !fed {
		if len(rest) == 0 || len(rest) == 1 && (rest[0] == "-i" || rest[0] == "-") || name == "sqlite3" && len(rest) == 1 && !strings.HasPrefix(rest[0], "-") && rest[0] != "" {
			return name, strings.Replace(replAdvice, "%s", code, 1)
		}
	}
	return "", ""
}

// ReadsFiles says which tool does what a line of a single command does that only shows files, and "" for any other line.
func (p Program) ReadsFiles() string {
	if len(p.Parts) != 1 || !p.Reads() || strings.ContainsAny(p.Text, "|;&\n<>") {
		return ""
	}
	switch words := strings.Fields(p.Parts[0].Text); words[0] {
	case "cat", "head", "tail", "nl", "bat":
		if len(words) > 1 && !slices.Contains(words, "-c") {
			return "Read"
		}
	case "sed":
		if slices.Contains(words, "-n") {
			return "Read"
		}
	case "grep", "rg", "ag", "ack", "egrep", "fgrep":
		return "Grep"
	case "find", "fd":
		return "Glob"
	case "ls", "tree":
		return "LS"
	}
	return ""
}
