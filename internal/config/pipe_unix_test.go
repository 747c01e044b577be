//go:build unix

package config

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestPipesAreNotWaitedFor would hang where a pipe without a writer is opened.
func TestPipesAreNotWaitedFor(t *testing.T) {
	for _, where := range []string{"user", "project", "beside", "trust"} {
		t.Run(where, func(t *testing.T) {
			w := newWorld(t)
			if err := os.Mkdir(filepath.Join(w.project, ".belay"), 0o755); err != nil {
				t.Fatal(err)
			}
			path := map[string]string{"user": filepath.Join(w.user, FileName), "project": filepath.Join(w.project, ".belay", FileName),
				"beside": filepath.Join(w.project, ".belay", "x"), "trust": filepath.Join(w.user, TrustFile)}[where]
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
			_, _, err := Load(w.sources())
			if refused := where == "user" || where == "project"; (err != nil) != refused || refused && !strings.Contains(err.Error(), "not a regular file") {
				t.Error(err)
			}
			if trusted, why := w.trust().Trusted(w.project); trusted || why == "" {
				t.Error(trusted, why)
			}
		})
	}
}
