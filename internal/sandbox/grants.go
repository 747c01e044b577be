package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
)

// grants resolves what Config grants beside the workspace.
func (s *Sandbox) grants() error {
	for _, g := range []struct {
		from []string
		to   *[]string
	}{{s.cfg.Read, &s.read}, {s.cfg.Write, &s.write}} {
		for _, path := range g.from {
			abs, err := filepath.Abs(path)
			if err != nil {
				return err
			}
			real, err := filepath.EvalSymlinks(abs)
			if err != nil {
				return fmt.Errorf("granting %s: %w", path, bare(err))
			}
			info, err := os.Stat(real)
			if err != nil {
				return fmt.Errorf("granting %s: %w", path, bare(err))
			}
			switch {
			case filepath.Dir(real) == real:
				return fmt.Errorf("granting %s: that is everything; name directories below it", path)
			case !info.IsDir() && !info.Mode().IsRegular():
				return fmt.Errorf("granting %s: neither a directory nor a file", path)
			case within(real, s.home):
				return fmt.Errorf("granting %s: the state of belay is not shown to commands", path)
			}
			for _, own := range []string{"/proc", "/dev"} {
				if within(real, own) && !within(real, "/dev/shm/") {
					return fmt.Errorf("granting %s: what a command finds in %s is its own", path, own)
				}
			}
			*g.to = append(*g.to, real)
		}
	}
	s.host.readable = outermost(append(append(s.host.readable, s.outside(s.read)...), s.outside(s.write)...))
	return nil
}

// outside leaves out what lies in the workspace, which has a view of its own.
func (s *Sandbox) outside(paths []string) []string {
	var out []string
	for _, p := range paths {
		if !within(p, s.workspace) {
			out = append(out, p)
		}
	}
	return out
}
