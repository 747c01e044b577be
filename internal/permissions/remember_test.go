package permissions

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRemember(t *testing.T) {
	for name, c := range map[string]struct{ before, want, fail string }{
		"no file":           {"", "version: 1\nallow:\n  - \"Bash(make test)\"\n", ""},
		"without a list":    {"version: 1 # mine\ndeny: [\"Bash(rm *)\"]", "version: 1 # mine\ndeny: [\"Bash(rm *)\"]\nallow:\n  - \"Bash(make test)\"\n", ""},
		"with a list":       {"version: 1\nallow:  # what I like\n  - \"Bash(ls)\"\nask: [\"Bash(git push *)\"]\n", "version: 1\nallow:  # what I like\n  - \"Bash(make test)\"\n  - \"Bash(ls)\"\nask: [\"Bash(git push *)\"]\n", ""},
		"there already":     {"version: 1\nallow: [\"Bash(make test)\"]\n", "version: 1\nallow: [\"Bash(make test)\"]\n", ""},
		"no plain place":    {"version: 1\nallow: [\"Bash(ls)\"]\n", "version: 1\nallow: [\"Bash(ls)\"]\n", "under allow: Bash(make test)"},
		"a file in pieces":  {"version: 1\nallow: [", "version: 1\nallow: [", "permissions.yaml"},
		"other indentation": {"version: 1\nallow:\n    - \"Bash(ls)\"\n", "version: 1\nallow:\n    - \"Bash(ls)\"\n", "under allow"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "deep", "down")
			path := filepath.Join(dir, FileName)
			if c.before != "" {
				if err := os.MkdirAll(dir, 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(c.before), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := Remember(dir, []string{"Bash(make test)"})
			got, _ := os.ReadFile(path)
			if string(got) != c.want || (c.fail == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.fail) {
				t.Errorf("%v\n%s", err, got)
			}
		})
	}
}
