package keys

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const key = "sk-test-0123456789"

func TestSecretNeverPrintsItself(t *testing.T) {
	s := NewSecret(key)
	held := struct {
		A Secret
		B *Secret
		C []Secret
		d Secret
	}{s, &s, []Secret{s}, s}
	data, err := json.Marshal(held)
	if err != nil {
		t.Fatal(err)
	}
	shown := string(data) + s.String() + fmt.Sprint(s, &s, held, held.d) + fmt.Errorf("wrapped %v", s).Error()
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		shown += fmt.Sprintf(verb+verb+verb, s, &s, held)
	}
	for _, leak := range []string{key, fmt.Sprintf("%x", key), fmt.Sprint([]byte(key))} {
		if strings.Contains(shown, leak) {
			t.Errorf("printed: %s", shown)
		}
	}
	if s.Reveal() != key || s.Empty() || !NewSecret("").Empty() || (Secret{}).Reveal() != "" || (Secret{}).String() != "" {
		t.Error("the secret is not what it was made of")
	}
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	env := map[string]string{}
	find := func(provider string) (Secret, error) {
		return Find(provider, Config{Getenv: func(k string) string { return env[k] }, Dir: dir})
	}
	write := func(name, data string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
			t.Fatal(err)
		}
	}
	_, err := find("openai")
	if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "OPENAI_API_KEY") || !strings.Contains(err.Error(), dir) {
		t.Errorf("nowhere: %v", err)
	}
	write("openai", key+"\r\n", 0o600)
	if s, err := find("openai"); err != nil || s.Reveal() != key {
		t.Errorf("file: %v", err)
	}
	env["OPENAI_API_KEY"] = " other\n"
	if s, err := find("openai"); err != nil || s.Reveal() != "other" {
		t.Errorf("the environment comes first: %v", err)
	}
	if _, err := find("../openai"); err == nil {
		t.Error("a provider is no path")
	}
	write("anthropic", "two "+key, 0o600)
	if _, err := find("anthropic"); err == nil || strings.Contains(err.Error(), key) {
		t.Errorf("two words: %v", err)
	}
	write("anthropic", " \n", 0o600)
	if _, err := find("anthropic"); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("empty: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := find("folder"); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("folder: %v", err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	for _, mode := range []os.FileMode{0o644, 0o640, 0o604, 0o620, 0o660, 0o777} {
		write("anthropic", key, mode)
		_, err := find("anthropic")
		if err == nil || !strings.Contains(err.Error(), "chmod 600 "+filepath.Join(dir, "anthropic")) || strings.Contains(err.Error(), key) {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
}

func TestFindInTheUsersConfiguration(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, "belay", "keys")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "anthropic"), []byte(key), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ANTHROPIC_API_KEY", "")
	t.Setenv("XDG_CONFIG_HOME", home)
	if s, err := Find("anthropic", Config{}); err != nil || s.Reveal() != key {
		t.Errorf("got %v", err)
	}
}

// A file that a person named comes before the usual one and after the environment. That it is not there is told.
func TestNamedFile(t *testing.T) {
	dir := t.TempDir()
	named, usual := filepath.Join(dir, "mine"), filepath.Join(dir, "openai")
	for path, text := range map[string]string{named: "sk-named", usual: "sk-usual"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := ""
	cfg := Config{Getenv: func(string) string { return env }, Dir: dir, Files: map[string]string{"openai": named}}
	if s, err := Find("openai", cfg); s.Reveal() != "sk-named" {
		t.Errorf("%v", err)
	}
	env = "sk-env"
	if s, err := Find("openai", cfg); s.Reveal() != "sk-env" {
		t.Errorf("%v", err)
	}
	env = ""
	if err := os.Remove(named); err != nil {
		t.Fatal(err)
	}
	if s, err := Find("openai", cfg); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), named) || !s.Empty() {
		t.Errorf("a named file that is missing: %v", err)
	}
}
