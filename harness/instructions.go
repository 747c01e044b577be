package harness

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"belay/internal/smallfile"
	"belay/journal"
)

// What instruction files may be without a warning, how far imports go, and how much of a nested file is told.
const (
	warnLines      = 100
	warnBytes      = 12 << 10
	maxImportDepth = 5
)

// readInstructions finds what speaks to agents besides the repository's own map: the person's file, and those of the
// folders above the workspace, as far as its repository goes. A project cannot bring in files from outside it.
func readInstructions(workspace, home string) (above []*repoMap, warnings []string) {
	add := func(dir, name, title string) bool {
		m, err := readOne(dir, name, dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return false
		case err != nil:
			warnings = append(warnings, fmt.Sprintf("%s is not read: %v", filepath.Join(dir, name), err))
			return true
		}
		m.Name = title
		above = append(above, m)
		warnings = append(warnings, m.warning()...)
		return true
	}
	if dir, err := os.UserConfigDir(); err == nil && !add(filepath.Join(dir, "belay"), "AGENTS.md", "the person's own AGENTS.md") && home != "" {
		add(filepath.Join(home, ".claude"), "CLAUDE.md", "the person's own CLAUDE.md")
	}
	for _, dir := range foldersAbove(workspace) {
		rel, err := filepath.Rel(workspace, dir)
		if err != nil {
			rel = dir
		}
		for _, name := range mapNames {
			if add(dir, name, filepath.ToSlash(filepath.Join(rel, name))) {
				break
			}
		}
	}
	return above, warnings
}

// foldersAbove are the folders between the top of the workspace's repository and the workspace, outermost first. What
// lies above a repository, or above a folder that is none, is a stranger's.
func foldersAbove(workspace string) []string {
	isTop := func(dir string) bool {
		_, err := os.Lstat(filepath.Join(dir, ".git"))
		return err == nil
	}
	if isTop(workspace) {
		return nil
	}
	var dirs []string
	for dir := filepath.Dir(workspace); ; dir = filepath.Dir(dir) {
		dirs = append([]string{dir}, dirs...)
		if isTop(dir) {
			return dirs
		}
		if filepath.Dir(dir) == dir {
			return nil
		}
	}
}

// readOne reads an instruction file with what it imports from inside the folder within.
func readOne(dir, name, within string) (*repoMap, error) {
	root, err := os.OpenRoot(within)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	rel, err := filepath.Rel(within, filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	content, err := smallfile.Read(root, rel, maxMap)
	if errors.Is(err, smallfile.ErrTooLarge) {
		return nil, fmt.Errorf("it has more than %d bytes, and every request would carry it: shorten it, or link to other files from it", maxMap)
	}
	if err != nil {
		return nil, err
	}
	text := strings.TrimSpace(strings.ToValidUTF8(string(content), "\uFFFD"))
	text += imports(root, text, filepath.Dir(rel), map[string]bool{rel: true}, 1, maxMap-len(text))
	sum := sha256.Sum256([]byte(text))
	if !strings.Contains(text, "[imported from ") {
		sum = sha256.Sum256(content)
	}
	return &repoMap{Name: name, Text: text, Hash: hex.EncodeToString(sum[:])}, nil
}

// importMark is "@path" as a word of its own.
var importMark = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:^|[\s(])@([A-Za-z0-9_.~/\\-]+)`) })

// imports is the text of the files that a text names with @path, each once, to a limited depth and size. What is no file
// of the folder is left as it is.
func imports(root *os.Root, text, dir string, seen map[string]bool, depth, room int) string {
	if depth > maxImportDepth {
		return ""
	}
	var b strings.Builder
	code := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
		}
		if code {
			continue
		}
		for _, m := range importMark().FindAllStringSubmatch(line, -1) {
			name := filepath.Join(dir, strings.TrimRight(m[1], ".,"))
			if seen[name] || !filepath.IsLocal(name) || room-b.Len() <= 0 {
				continue
			}
			content, err := smallfile.Read(root, name, int64(room-b.Len()))
			if err != nil {
				continue
			}
			seen[name] = true
			inner := strings.TrimSpace(strings.ToValidUTF8(string(content), "\uFFFD"))
			fmt.Fprintf(&b, "\n\n[imported from %s]\n%s", filepath.ToSlash(name), inner)
			b.WriteString(imports(root, inner, filepath.Dir(name), seen, depth+1, room-b.Len()))
		}
	}
	return b.String()
}

// warning says what makes an instruction file expensive.
func (m *repoMap) warning() []string {
	if lines := strings.Count(m.Text, "\n") + 1; lines > warnLines || len(m.Text) > warnBytes {
		return []string{fmt.Sprintf("%s has %d lines and %d bytes, and every request carries it: keep it below %d lines and %d KB, and link to other files", m.Name, lines, len(m.Text), warnLines, warnBytes>>10)}
	}
	return nil
}

// sections is what the system prompt says of the files above the workspace.
func sections(above []*repoMap) string {
	var b strings.Builder
	for _, m := range above {
		fmt.Fprintf(&b, "\n\n# Instructions from %s\n%s", m.Name, m.Text)
	}
	return b.String()
}

// nested tells what instruction files say in the folders of files that were touched, below the workspace's own.
func nested(workspace string) func(paths []string) []string {
	return func(paths []string) []string {
		var texts []string
		seen := map[string]bool{}
		for _, path := range paths {
			if filepath.IsAbs(path) {
				rel, err := filepath.Rel(workspace, path)
				if err != nil {
					continue
				}
				path = rel
			}
			if !filepath.IsLocal(path) {
				continue
			}
			var chain []string
			for dir := filepath.Dir(path); dir != "." && !seen[dir]; dir = filepath.Dir(dir) {
				seen[dir] = true
				chain = append([]string{dir}, chain...)
			}
			for _, dir := range chain {
				for _, name := range mapNames {
					m, err := readOne(filepath.Join(workspace, dir), name, workspace)
					if errors.Is(err, fs.ErrNotExist) {
						continue
					}
					if err == nil {
						text := m.Text
						if len(text) > warnBytes {
							text = strings.ToValidUTF8(text[:warnBytes], "") + "\n[… cut: read the rest in the file]"
						}
						texts = append(texts, fmt.Sprintf("<instructions file=%q>\nThese hold for files in %s.\n%s\n</instructions>", filepath.ToSlash(filepath.Join(dir, m.Name)), filepath.ToSlash(dir), text))
					}
					break
				}
			}
		}
		return texts
	}
}

// mention is "@path" in what a person says.
var mention = importMark

// mentions says of each file that a person names with @path that it is to be read, or that it is not there. Nothing of it
// is pasted.
func mentions(workspace, text string) []journal.Entry {
	var there, missing []string
	seen := map[string]bool{}
	for _, m := range mention().FindAllStringSubmatch(text, -1) {
		name := strings.TrimRight(m[1], ".,:;")
		if name == "" || seen[name] {
			continue
		}
		seen[name] = true
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(workspace, path)
		}
		info, err := os.Stat(path)
		switch {
		case err == nil && info.IsDir():
			there = append(there, name+" (a folder)")
		case err == nil:
			there = append(there, fmt.Sprintf("%s (%d bytes)", name, info.Size()))
		case filepath.Ext(name) != "" && filepath.Ext(name) != ".":
			missing = append(missing, name)
		}
	}
	if len(there)+len(missing) == 0 {
		return nil
	}
	var b strings.Builder
	var entries []journal.Entry
	if len(there) > 0 {
		b.WriteString("The person names files with @: read them before you rely on them: " + strings.Join(there, ", ") + ".")
	}
	if len(missing) > 0 {
		b.WriteString(strings.TrimPrefix(" These are not there: "+strings.Join(missing, ", ")+". Do not guess what they hold.", map[bool]string{true: " ", false: ""}[b.Len() == 0]))
		entries = append(entries, journal.Entry{Type: journal.TypeDegraded, Payload: journal.Degraded{Component: "mention", Loss: "@" + strings.Join(missing, ", @") + " names no file in " + workspace + "; the model is told so"}})
	}
	return append(entries, journal.Entry{Type: journal.TypeUserMessage, Payload: journal.UserMessage{Text: b.String(), By: "harness"}})
}
