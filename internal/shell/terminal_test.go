package shell

import (
	"testing"

	"belay/tool"
)

func TestTerminal(t *testing.T) {
	for line, want := range map[string]string{
		"vim a.go": "vim", "cd x && nano y": "nano", "git log | less": "less", "python3": "python3", "python3 -i": "python3", "/usr/bin/vi x": "vi",
		"echo 1 | python3": "", "python3 <<EOF\nprint(1)\nEOF": "", "python3 x.py": "", "vim -es x": "", "less --version": "", "top -bn1": "", "top": "top",
		"node": "node", "{ cat; python3; } <x": "", "for i in 1; do vim $i; done": "vim", "bash": "bash", "sqlite3 a.db": "sqlite3", "echo vim": "", "bash -c 'true'": "",
	} {
		p, err := Analyze(line, tool.Place{Workspace: "/w", Dir: "/w"})
		if err != nil {
			t.Fatal(err)
		}
		if name, advice := p.Terminal(); name != want || name != "" && advice == "" {
			t.Errorf("%q: %q %q, want %q", line, name, advice, want)
		}
	}
}

func TestReadsFiles(t *testing.T) {
	for line, want := range map[string]string{
		"cat a": "Read", "sed -n 1,5p a": "Read", "rg foo": "Grep", "find . -name x": "Glob", "ls -l": "LS", "cat a | wc -l": "", "cat": "", "git log": "", "cat a > b": "", "find . -delete": "",
	} {
		p, err := Analyze(line, tool.Place{Workspace: "/w", Dir: "/w"})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.ReadsFiles(); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}
