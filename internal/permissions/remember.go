package permissions

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Remember adds rules that allow to the policy file in dir, and makes the file where there is none. Comments and all else in
// it stay as they are. A file in which there is no plain place for them is refused, and nothing is changed.
func Remember(dir string, rules []string) error {
	path := filepath.Join(dir, FileName)
	data, err := read(path)
	if err != nil {
		return err
	}
	fresh := slices.Clone(rules)
	if data != nil {
		f, err := Parse(path, dir, data)
		if err != nil {
			return err
		}
		for _, have := range f.Rules.Allow {
			fresh = slices.DeleteFunc(fresh, func(r string) bool { return r == have.Text })
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	text, err := withRules(data, fresh)
	if err == nil {
		_, err = Parse(path, dir, text)
	}
	if err != nil {
		return fmt.Errorf("%s: the rules cannot be added (%w); write them yourself under allow: %s", path, err, strings.Join(fresh, "  "))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(dir, ".permissions-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(text)
	err = errors.Join(err, tmp.Chmod(0o600), tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), path)
	}
	return err
}

// withRules is the file with the rules in it.
func withRules(data []byte, rules []string) ([]byte, error) {
	var lines bytes.Buffer
	for _, r := range rules {
		fmt.Fprintf(&lines, "  - %s\n", strconv.Quote(r))
	}
	if data == nil {
		return append([]byte("version: 1\nallow:\n"), lines.Bytes()...), nil
	}
	if n := len(data); n > 0 && data[n-1] != '\n' {
		data = append(slices.Clone(data), '\n')
	}
	start := 0
	for line := range bytes.Lines(data) {
		end := start + len(line)
		if bytes.HasPrefix(line, []byte("allow:")) {
			if rest := strings.TrimSpace(string(line[len("allow:"):])); rest != "" && !strings.HasPrefix(rest, "#") {
				return nil, errors.New("allow is not a list with one rule a line")
			}
			return slices.Concat(data[:end], lines.Bytes(), data[end:]), nil
		}
		start = end
	}
	return slices.Concat(data, []byte("allow:\n"), lines.Bytes()), nil
}
