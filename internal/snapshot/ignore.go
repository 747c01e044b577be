package snapshot

import (
	"bytes"
	"encoding/binary"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// rules are the patterns of ignore files that hold in a folder: its own and those of the folders above. They are never
// changed, so that equal pointers mean equal rules.
type rules struct {
	parent   *rules
	base     string // the folder of the file, relative to the root; "" is the root
	patterns []pattern
}

// pattern is one line of an ignore file.
type pattern struct {
	text     string
	negate   bool
	dirOnly  bool
	anchored bool // it is about paths, not about names
}

// parseIgnore reads an ignore file. A line that is no pattern ignores nothing.
func parseIgnore(text []byte) []pattern {
	var all []pattern
	for _, raw := range bytes.Split(text, []byte("\n")) {
		line := strings.TrimSuffix(string(raw), "\r")
		for strings.HasSuffix(line, " ") && !strings.HasSuffix(line, `\ `) {
			line = line[:len(line)-1]
		}
		var p pattern
		if line == "" || line[0] == '#' {
			continue
		}
		if line[0] == '!' {
			p.negate, line = true, line[1:]
		}
		line = strings.TrimPrefix(line, `\`) // \# and \!
		if strings.HasSuffix(line, "/") {
			p.dirOnly, line = true, strings.TrimSuffix(line, "/")
		}
		p.anchored = strings.Contains(line, "/")
		p.text = strings.TrimPrefix(line, "/")
		if p.text != "" {
			all = append(all, p)
		}
	}
	return all
}

// ignores says whether the rules ignore a path relative to the root. The last pattern that fits holds.
func (r *rules) ignores(rel string, dir bool) bool {
	for ; r != nil; r = r.parent {
		below := rel
		if r.base != "" {
			below = strings.TrimPrefix(rel, r.base+"/")
		}
		for i := len(r.patterns) - 1; i >= 0; i-- {
			if p := r.patterns[i]; (dir || !p.dirOnly) && p.fits(below) {
				return !p.negate
			}
		}
	}
	return false
}

func (p pattern) fits(rel string) bool {
	if !p.anchored {
		ok, err := path.Match(p.text, path.Base(rel))
		return ok && err == nil
	}
	return fitsParts(strings.Split(p.text, "/"), strings.Split(rel, "/"))
}

// fitsParts matches folder by folder; ** is any number of folders.
func fitsParts(want, have []string) bool {
	for len(want) > 0 {
		if want[0] == "**" {
			if len(want) == 1 {
				return len(have) > 0
			}
			for i := range len(have) + 1 {
				if fitsParts(want[1:], have[i:]) {
					return true
				}
			}
			return false
		}
		if len(have) == 0 {
			return false
		}
		if ok, err := path.Match(want[0], have[0]); !ok || err != nil {
			return false
		}
		want, have = want[1:], have[1:]
	}
	return len(have) == 0
}

// gitDirs finds a repository's own folder and the one that its worktrees share, by files alone. Both are "" where
// there is none.
func gitDirs(root string) (own, common string) {
	own = filepath.Join(root, ".git")
	info, err := os.Lstat(own)
	if err != nil {
		return "", ""
	}
	if info.Mode().IsRegular() {
		text, err := os.ReadFile(own)
		target, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
		if err != nil || !ok {
			return "", ""
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(root, target)
		}
		own = target
	}
	common = own
	if text, err := os.ReadFile(filepath.Join(own, "commondir")); err == nil {
		common = strings.TrimSpace(string(text))
		if !filepath.IsAbs(common) {
			common = filepath.Join(own, common)
		}
	}
	if _, err := os.Stat(filepath.Join(common, "objects")); err != nil {
		return "", ""
	}
	return own, common
}

// tracked reads the names in a repository's index; nil where it has none that can be read. What cannot be read only
// means that ignored files count as not tracked.
func tracked(gitDir string) map[string]bool {
	b, err := os.ReadFile(filepath.Join(gitDir, "index"))
	if err != nil || len(b) < 12 || string(b[:4]) != "DIRC" {
		return nil
	}
	version, count := binary.BigEndian.Uint32(b[4:]), int(binary.BigEndian.Uint32(b[8:]))
	names := make(map[string]bool, min(count, len(b)/62))
	at, last := 12, ""
	for range count {
		start := at
		if at+62 > len(b) {
			return names
		}
		flags := binary.BigEndian.Uint16(b[at+60:])
		at += 62
		if flags&0x4000 != 0 {
			at += 2
		}
		keep := 0
		if version == 4 {
			strip, n := offsetVarint(b[min(at, len(b)):])
			if n == 0 || strip > len(last) {
				return names
			}
			at, keep = at+n, len(last)-strip
		}
		end := bytes.IndexByte(b[min(at, len(b)):], 0)
		if end < 0 {
			return names
		}
		name := last[:keep] + string(b[at:at+end])
		if at += end + 1; version < 4 {
			at = start + (at-1-start+8)&^7
		} else {
			last = name
		}
		for name = strings.TrimSuffix(name, "/"); name != "." && !names[name]; name = path.Dir(name) {
			names[name] = true // with its folders
		}
	}
	return names
}

// offsetVarint is the number that index version 4 and packs use.
func offsetVarint(b []byte) (v, n int) {
	for n < len(b) && n < 8 {
		c := b[n]
		if n > 0 {
			v++
		}
		v = v<<7 | int(c&0x7f)
		if n++; c&0x80 == 0 {
			return v, n
		}
	}
	return 0, 0
}

// generated are folders that programs fill and can fill again, wherever no repository tracks them.
var generated = map[string]bool{"node_modules": true, ".venv": true, "venv": true, "__pycache__": true, ".tox": true, ".gradle": true,
	".mypy_cache": true, ".pytest_cache": true, ".ruff_cache": true, ".next": true, ".nuxt": true, ".terraform": true, ".direnv": true}
