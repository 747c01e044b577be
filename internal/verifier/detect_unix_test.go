//go:build unix

package verifier

import (
	"path/filepath"
	"syscall"
	"testing"
)

// TestDetectDoesNotWaitForPipes would hang where a pipe without a writer is opened.
func TestDetectDoesNotWaitForPipes(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"go.mod", "package.json", "Cargo.toml", "pyproject.toml", "Makefile", "test_x.py", "tests"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := detect(dir, everything); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}
