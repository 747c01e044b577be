package redact

import (
	"os"
	"path/filepath"
	"testing"
)

// What is shared is the same, private, and apart from then on; what is forgotten is gone; the key is never touched.
func TestShareAndForget(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, vaultName)
	if err := Share(home, "r_1", "r_2"); err != nil {
		t.Errorf("without a vault: %v", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"r_1", keyName} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Share(home, "r_1", "r_2"); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "r_2")); err != nil || string(got) != "r_1" {
		t.Errorf("%q, %v", got, err)
	}
	if err := Forget(home, "r_1"); err != nil {
		t.Fatal(err)
	}
	if err := Forget(home, "r_1"); err != nil {
		t.Errorf("twice: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("left %v, %v", left, err)
	}
	for _, bad := range []string{keyName, "../r_1", "", "a/b"} {
		if Share(home, bad, "r_3") == nil || Share(home, "r_2", bad) == nil || Forget(home, bad) == nil {
			t.Errorf("%q was taken for a run", bad)
		}
	}
}
