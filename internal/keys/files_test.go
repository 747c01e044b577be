package keys

import (
	"os"
	"path/filepath"
	"testing"
)

func TestFindInAFileElsewhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "my-key")
	if err := os.WriteFile(path, []byte("k-elsewhere\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := Config{Getenv: func(string) string { return "" }, Dir: t.TempDir(), Files: map[string]string{"openai": path}}
	if got, err := Find("openai", cfg); err != nil || got.Reveal() != "k-elsewhere" {
		t.Error(got, err)
	}
	if _, err := Find("anthropic", cfg); err == nil {
		t.Error("the file of another provider was taken")
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Find("openai", cfg); err == nil {
		t.Error("a file that others can read was taken")
	}
}
