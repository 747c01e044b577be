//go:build unix

package smallfile

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestPipeIsNotWaitedFor would hang where a pipe without a writer is opened.
func TestPipeIsNotWaitedFor(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if _, err := Read(root, "pipe", 8); !errors.Is(err, ErrNotRegular) {
		t.Error(err)
	}
	if _, err := Head(root, "pipe", 8); !errors.Is(err, ErrNotRegular) {
		t.Error(err)
	}
}
