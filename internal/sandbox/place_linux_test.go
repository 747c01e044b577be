//go:build amd64 || arm64

package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWorkspacePlaces puts the workspace below directories that look different inside.
func TestWorkspacePlaces(t *testing.T) {
	for _, parent := range []string{"/tmp", "/var/tmp", "/dev/shm", "/run", "/var/run", "/var/lib", "/etc", "/usr/local", "/lib", "/bin", "/srv", "/mnt", "/opt"} {
		t.Run(parent, func(t *testing.T) {
			dir, err := os.MkdirTemp(parent, "place-")
			if err != nil {
				if os.Geteuid() == 0 {
					t.Fatal(err)
				}
				return // an ordinary user has no workspace there
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			ws := filepath.Join(dir, "of", "a user")
			put(t, filepath.Join(ws, "file"), "mine")
			s := newSandbox(t, func(c *Config) { c.Workspace = ws })
			needIsolation(t, s)
			t.Cleanup(s.Close)
			if out := must(t, s.Env(write, ""), "cat file; echo x > made; echo y > /var/tmp/t; rm /var/tmp/t; pwd"); out != "mine"+s.workspace {
				t.Errorf("%q", out)
			}
			if out := must(t, s.VerifierEnv(discard, ""), "cat made; echo z > made; ls"); out != "x\nfile\nmade" {
				t.Errorf("%q", out)
			}
			if got := get(t, filepath.Join(ws, "made")); got != "x\n" {
				t.Errorf("the workspace holds %q", got)
			}
		})
	}
}

func TestImpossibleWorkspaces(t *testing.T) {
	for _, ws := range []string{"/", "/proc", "/proc/sys", "/sys", "/dev", "/dev/shm", "/usr", "/bin", "/etc"} {
		_, err := New(Config{Workspace: ws, Home: t.TempDir()})
		if err == nil || !strings.Contains(err.Error(), "choose a project directory") {
			t.Errorf("%s: %v", ws, err)
		}
	}
	// A workspace that is HOME inside, or holds it, would bring the agent's own caches to a verifier.
	for _, ws := range []string{insideHome, filepath.Dir(insideHome)} {
		if err := placeable(ws); err == nil {
			t.Errorf("%s was accepted", ws)
		}
	}
	if err := placeable(insideHome + "/project"); err != nil {
		t.Error(err)
	}
}
