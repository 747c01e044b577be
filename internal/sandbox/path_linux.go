//go:build amd64 || arm64

package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"belay/internal/sandbox/helper"
)

// trustedPath is the PATH of commands that prove work: no name on it leads to a file that an agent could have written.
type trustedPath struct {
	dirs  []string
	links []helper.Step // stand for directories of which some programs are left out
}

// insidePath is where those directories are.
const insidePath = "/run/path"

func (s *Sandbox) trustedPath() trustedPath {
	s.trustedOnce.Do(func() {
		room := false
		for i, dir := range s.host.path {
			if slices.Contains(s.host.foreign, dir) {
				continue
			}
			names, clean := s.programs(dir)
			if clean {
				s.trusted.dirs = append(s.trusted.dirs, dir)
				continue
			}
			// Some program here is a link into the workspace, as `npm link` makes them.
			if !room {
				room = true
				s.trusted.links = append(s.trusted.links, helper.Step{Code: helper.Tmpfs, A: insidePath, B: "mode=0755,size=4m"})
			}
			instead := filepath.Join(insidePath, strconv.Itoa(i))
			s.trusted.dirs = append(s.trusted.dirs, instead)
			for _, name := range names {
				s.trusted.links = append(s.trusted.links, helper.Step{Code: helper.Link, A: filepath.Join(dir, name), B: filepath.Join(instead, name)})
			}
		}
		if room {
			s.trusted.links = append(s.trusted.links, helper.Step{Code: helper.Seal, A: insidePath})
		}
	})
	return s.trusted
}

// programs lists what in dir is not the workspace's, and says whether that is all.
func (s *Sandbox) programs(dir string) (names []string, all bool) {
	switch top := strings.TrimPrefix(dir, "/usr"); top {
	case "/bin", "/sbin": // nothing but the distribution puts anything there, and it is a lot
		return nil, true
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, true
	}
	all = true
	for _, entry := range entries {
		if entry.Type() == os.ModeSymlink && passes(filepath.Join(dir, entry.Name()), s.workspace) {
			all = false
			continue
		}
		names = append(names, entry.Name())
	}
	return names, all
}
