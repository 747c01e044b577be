package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"belay/internal/unified"
)

// diffMax is the size in bytes above which a file's lines are not compared.
const diffMax = 1 << 20

// readTree reads the regular files of a small tree, by slash-separated path.
func readTree(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		files[filepath.ToSlash(name)] = content
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the project: %w", err)
	}
	return files, nil
}

// diffTrees is the unified diff between two trees, "" where they are equal.
func diffTrees(before, after map[string][]byte) string {
	names := maps.Clone(before)
	maps.Copy(names, after)
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(names)) {
		old, was := before[name]
		now, is := after[name]
		if was && is && bytes.Equal(old, now) {
			continue
		}
		from, to := "a/"+name, "b/"+name
		if !was {
			from = "/dev/null"
		}
		if !is {
			to = "/dev/null"
		}
		if !comparable(old) || !comparable(now) {
			fmt.Fprintf(&b, "--- %s\n+++ %s\n(%d bytes before, %d bytes after)\n", from, to, len(old), len(now))
			continue
		}
		b.WriteString(unified.Diff(from, to, string(old), string(now)))
	}
	return b.String()
}

// comparable says whether a person could read the content line by line.
func comparable(content []byte) bool {
	return len(content) <= diffMax && utf8.Valid(content) && !bytes.ContainsRune(content, 0)
}
