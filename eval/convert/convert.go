// Package convert turns tasks of other collections into belay's own, and says of each that cannot run without containers why.
package convert

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Kinds of collections.
var Kinds = []string{"harbor", "terminal-bench", "swe-bench", "exercism"}

// Verdict is what became of one task.
type Verdict struct {
	Task  string   `json:"task"`
	From  string   `json:"from"`
	To    string   `json:"to,omitempty"`  // its folder, where it was converted
	Why   string   `json:"why,omitempty"` // why it was not
	Shims []string `json:"shims,omitempty"`
}

// Run converts every task below dir into a folder of out, which must not hold one of that name. What cannot be converted is in the verdicts; the
// error is about dir or out.
func Run(kind, dir, out string) ([]Verdict, error) {
	one := map[string]func(string, string) ([]Verdict, error){"harbor": harbor, "terminal-bench": terminalBench, "swe-bench": sweBench, "exercism": exercism}[kind]
	if one == nil {
		return nil, fmt.Errorf("there is no importer %q: it is %s", kind, strings.Join(Kinds, ", "))
	}
	if info, err := os.Stat(dir); err != nil {
		return nil, err
	} else if !info.IsDir() && kind != "swe-bench" {
		return nil, fmt.Errorf("%s is no folder", dir)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return nil, err
	}
	verdicts, err := one(dir, out)
	slices.SortFunc(verdicts, func(a, b Verdict) int { return cmp.Compare(a.Task, b.Task) })
	if err == nil && len(verdicts) == 0 {
		err = fmt.Errorf("there is no %s task in %s", kind, dir)
	}
	return verdicts, err
}

// each calls convert for every folder below dir that holds the file mark.
func each(dir, mark string, convert func(from string) Verdict) (all []Verdict, err error) {
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if strings.HasPrefix(d.Name(), ".") && name != dir && d.Name() != ".meta" {
			return fs.SkipDir
		}
		if _, err := os.Stat(filepath.Join(name, filepath.FromSlash(mark))); err == nil {
			all = append(all, convert(name))
			return fs.SkipDir
		}
		return nil
	})
	return all, err
}

// place makes the folder of a task.
func place(out, id string) (string, error) {
	to := filepath.Join(out, id)
	if err := os.Mkdir(to, 0o755); errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("%s is there already", to)
	} else if err != nil {
		return "", err
	}
	return to, nil
}

// identifier is a name that can be a task's id.
func identifier(parts ...string) string {
	var b strings.Builder
	for _, r := range strings.Join(parts, "-") {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || (r == '.' || r == '_' || r == '-') && b.Len() > 0 {
			b.WriteRune(r)
		} else if b.Len() > 0 {
			b.WriteByte('-')
		}
	}
	s := strings.Trim(b.String(), "-")
	return s[:min(len(s), 100)]
}

// quote is text as a YAML scalar in double quotes.
func quote(s string) string {
	q := strconv.QuoteToGraphic(strings.ToValidUTF8(s, "\uFFFD"))
	return strings.NewReplacer(`\a`, `\x07`, `\v`, `\x0b`, `\f`, `\x0c`, `\ufeff`, "").Replace(q)
}

// list is texts as a YAML list in one line.
func list(all []string) string {
	quoted := make([]string, len(all))
	for i, s := range all {
		quoted[i] = quote(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func copyInto(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return os.CopyFS(to, os.DirFS(from))
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, info.Mode().Perm()|0o600)
}
