package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"belay/internal/smallfile"
)

// mapFile is the map that `init` begins.
const mapFile = "AGENTS.md"

// initMap writes a first map of a repository that has none, by looking at it. It returns what it wrote, "" where there is
// a map already.
func initMap(dir string, checks []string) (string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", fmt.Errorf("look at the project: %w", err)
	}
	defer root.Close()
	for _, name := range []string{mapFile, "CLAUDE.md", filepath.Join(".claude", "CLAUDE.md")} {
		if _, err := root.Lstat(name); err == nil {
			return "", nil
		}
	}
	f, err := root.OpenFile(mapFile, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("write the map: %w", err)
	}
	_, err = f.WriteString(mapText(root, checks))
	return filepath.Join(dir, mapFile), errors.Join(err, f.Close())
}

// mapText is what a look at a repository shows: what it is, how it is laid out, and how it is checked.
func mapText(root *os.Root, checks []string) string {
	name := filepath.Base(root.Name())
	if abs, err := filepath.Abs(root.Name()); err == nil {
		name = filepath.Base(abs)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", name)
	for _, readme := range []string{"README.md", "README", "readme.md", "README.rst"} {
		data, err := smallfile.Head(root, readme, 4096)
		if err != nil {
			continue
		}
		for _, line := range strings.Split(strings.ToValidUTF8(string(data), ""), "\n") {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, "[!") && !strings.HasPrefix(line, "<") {
				b.WriteString(line + "\n\n")
				break
			}
		}
		fmt.Fprintf(&b, "More about it: `%s`.\n\n", readme)
		break
	}
	b.WriteString("## Layout\n\n")
	entries, err := fs.ReadDir(root.FS(), ".")
	if err == nil {
		sort.Slice(entries, func(i, j int) bool { return entries[i].Name() < entries[j].Name() })
		shown := 0
		for _, e := range entries {
			if !e.IsDir() || strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules" || e.Name() == "vendor" {
				continue
			}
			if shown++; shown > 30 {
				b.WriteString("- …\n")
				break
			}
			files, kinds := filesIn(root, e.Name())
			fmt.Fprintf(&b, "- `%s/`: %d files%s\n", e.Name(), files, kinds)
		}
		for _, known := range []string{"go.mod", "package.json", "pyproject.toml", "Cargo.toml", "pom.xml", "build.gradle", "Makefile", "Dockerfile", "compose.yaml", "docker-compose.yml"} {
			if _, err := root.Lstat(known); err == nil {
				fmt.Fprintf(&b, "- `%s`\n", known)
			}
		}
	}
	b.WriteString("\n## Checks\n\n")
	if len(checks) == 0 {
		b.WriteString("No check was found. Write here how the project is built and tested.\n")
	}
	for _, c := range checks {
		fmt.Fprintf(&b, "- `%s`\n", c)
	}
	b.WriteString("\n## Rules\n\nWrite here what an agent cannot see: conventions, what must not be touched, how a change is finished. Every request carries this file: keep it below 100 lines.\n")
	return b.String()
}

// filesIn counts the files of a folder, to a bounded depth and number, and names their commonest ending.
func filesIn(root *os.Root, dir string) (n int, kinds string) {
	endings := map[string]int{}
	_ = fs.WalkDir(root.FS(), dir, func(path string, d fs.DirEntry, err error) error { // what cannot be read is not counted
		if err != nil || n > 5000 {
			return fs.SkipDir
		}
		if d.IsDir() {
			if path != dir && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || strings.Count(path, "/") > 6) {
				return fs.SkipDir
			}
			return nil
		}
		n++
		if ext := filepath.Ext(d.Name()); ext != "" {
			endings[ext]++
		}
		return nil
	})
	best := ""
	for ext, count := range endings {
		if best == "" || count > endings[best] || count == endings[best] && ext < best {
			best = ext
		}
	}
	if best != "" {
		kinds = ", mostly " + best
	}
	return n, kinds
}
