package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Suggestion is a command by which a project can check itself, and why it is thought so.
type Suggestion struct{ Command, Reason string }

// Init writes the configuration that a project begins with, and returns what it wrote. The first suggestion becomes
// its named verifier, the others stand beside it as comments; defaults are shown as comments. A file that exists is
// never touched: the error then wraps fs.ErrExist.
func Init(dir string, verify []Suggestion, defaults Settings) (written []string, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("begin a project: %w", err)
	}
	defer root.Close()
	path := filepath.Join(dir, Folder, FileName)
	info, err := root.Lstat(Folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := root.Mkdir(Folder, 0o755); err != nil {
			return nil, fmt.Errorf("begin a project: %w", err)
		}
	case err != nil:
		return nil, fmt.Errorf("begin a project: %w", err)
	case !info.IsDir():
		return nil, fmt.Errorf("begin a project: %s must be a folder, not a %s", filepath.Join(dir, Folder), kindOf(info.Mode()))
	}
	name := filepath.Join(Folder, FileName)
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%s is left as it is: %w. Edit it, or remove it first", path, fs.ErrExist)
	}
	if err != nil {
		return nil, fmt.Errorf("begin a project: %w", err)
	}
	_, err = f.WriteString(initial(verify, defaults))
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("begin a project: write %s: %w", path, err), root.Remove(name))
	}
	return []string{path}, nil
}

// initial is the text of a project's first configuration.
func initial(verify []Suggestion, defaults Settings) string {
	var b strings.Builder
	b.WriteString(`# What belay may do in this project. Values here come before those of ~/.config/belay/config.yaml; the
# environment and flags come before these. For people who have not said ` + "`belay trust`" + ` here, this file can
# make belay stricter, never more permissive: its model, verify and key_files are then ignored.
version: 1

# Commands that must pass before a task is done and proved. Belay runs them itself, in a fresh sandbox.
`)
	if len(verify) == 0 {
		b.WriteString("# Nothing here says how the project is tested: name a command.\n# verify: [\"make test\"]\n")
	}
	for i, s := range verify {
		switch i {
		case 0:
			b.WriteString("verify:\n")
		case 1:
			b.WriteString("  # Also found:\n")
		}
		mark := ""
		if i > 0 {
			mark = "# "
		}
		fmt.Fprintf(&b, "  %s- %s # %s\n", mark, doubleQuoted(s.Command), oneLine(s.Reason))
	}
	b.WriteString(`
# Which model does the work: PROVIDER:NAME.
# model: rehearsal:script.yaml

# Models of other parts, where they are not the same: for summaries, for judgements, and in the model's place where it
# cannot be reached.
# light_model: rehearsal:script.yaml
# judge_model: rehearsal:script.yaml
# fallback: [openai:NAME]

# A command that is told of each question to a person, as JSON on its input; it may print an answer.
# notify: {command: notify-send belay}

# What may happen without asking: plan (reading only), manual, edit or autonomous.
# mode: ` + orElse(string(defaults.Mode), "edit") + `

# Where a run pauses.
# bounds:
`)
	for _, row := range defaults.Rows() {
		if name, ok := strings.CutPrefix(row.Name, "bounds."); ok {
			fmt.Fprintf(&b, "#   %-24s # %s\n", name+": "+orElse(row.Value, map[string]string{"turns": "40", "tokens": "2000000", "usd": "3", "timeout": "30m", "journal_mb": "4096"}[name]), row.Doc)
		}
	}
	b.WriteString(`
# The only tools that the model gets; without this line, all.
# tools: [Bash, Read, Edit]

# Files and folders that no agent changes.
# protect: [tests/golden]
`)
	return b.String()
}

func orElse(s, other string) string {
	if s != "" {
		return s
	}
	return other
}

// doubleQuoted is text as YAML and JSON both write it.
func doubleQuoted(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string cannot fail
	return strings.TrimSpace(b.String())
}

// oneLine keeps a reason from leaving its comment.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 {
			return ' '
		}
		return r
	}, s)
}
