package redact

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Share gives the run to what the vault of the run from holds, durable when it returns: a fork goes on with the
// placeholders that it inherits. A run without secrets has nothing to share.
func Share(home, from, to string) error {
	dir := filepath.Join(home, vaultName)
	for _, id := range []string{from, to} {
		if filepath.Base(id) != id || !filepath.IsLocal(id) || id == keyName {
			return fmt.Errorf("vault: %q is no run", id)
		}
	}
	content, err := os.ReadFile(filepath.Join(dir, from))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("share the vault: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, to), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("share the vault: %w", err)
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("share the vault: %w", err)
	}
	return nil
}

// Forget deletes what the vault of a run holds, for good.
func Forget(home, runID string) error {
	if filepath.Base(runID) != runID || !filepath.IsLocal(runID) || runID == keyName {
		return fmt.Errorf("vault: %q is no run", runID)
	}
	if err := os.Remove(filepath.Join(home, vaultName, runID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget the vault: %w", err)
	}
	if err := os.RemoveAll(filepath.Join(home, vaultName, "base", runID)); err != nil { // former tests
		return fmt.Errorf("forget the vault: %w", err)
	}
	return nil
}
