package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"belay/internal/config"
	"belay/internal/sandbox"
	"belay/model"
)

func TestModelFinding(t *testing.T) {
	dir := t.TempDir()
	script := filepath.Join(dir, "s.yaml")
	if err := os.WriteFile(script, []byte("version: 1\nturns: [{say: hi}]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, "key")
	if err := os.WriteFile(key, []byte("sk-secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"} {
		t.Setenv(name, "")
	}
	t.Setenv("XDG_CONFIG_HOME", dir)
	local := []model.Spec{{Provider: "openai", Name: "llama", BaseURL: "http://127.0.0.1:11434/v1"}}
	for _, c := range []struct {
		spec  string
		local []model.Spec
		want  health
		says  string
	}{
		{"", nil, weak, "--model"},
		{"", local, weak, "openai:llama@http://127.0.0.1:11434/v1"},
		{"rehearsal:" + script, nil, healthy, "from user"},
		{"rehearsal:" + dir + "/none.yaml", nil, broken, "none.yaml"},
		{"gpt:nine", nil, broken, "gpt"},
		{"anthropic:x", nil, broken, "ANTHROPIC_API_KEY"},
		{"openai:x", nil, healthy, "from user"}, // its key is in a named file
		{"anthropic:x@http://127.0.0.1:1/v1", nil, healthy, "from user"},
	} {
		s := config.Settings{Model: c.spec, From: map[string]config.Origin{"model": {Layer: config.User, Place: "f:1:1"}}, KeyFiles: map[string]string{"openai": key}}
		got := modelFinding(s, c.local)
		if text := got.Detail + " " + got.Advice; got.Status != c.want || !strings.Contains(text, c.says) || strings.Contains(text, "secret") {
			t.Errorf("%s: %s %s", c.spec, got.Status, text)
		}
	}
}

func TestKeyFinding(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Setenv("OPENAI_API_KEY", "")
	key := filepath.Join(dir, "key")
	find := func(files map[string]string) finding { return keyFinding("openai", files) }
	named := map[string]string{"openai": key}
	if f := find(nil); f.Status != healthy || !strings.Contains(f.Detail, "none for openai") {
		t.Errorf("without a key: %+v", f)
	}
	if f := find(named); f.Status != weak || !strings.Contains(f.Advice, key) {
		t.Errorf("a named file that is missing: %+v", f)
	}
	if err := os.WriteFile(key, []byte("sk-secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if f := find(named); f.Status != healthy || !strings.Contains(f.Detail, "key file") {
		t.Errorf("a named file: %+v", f)
	}
	if err := os.Chmod(key, 0o644); err != nil {
		t.Fatal(err)
	}
	if f := find(named); runtime.GOOS != "windows" && (f.Status != weak || !strings.Contains(f.Advice, "chmod 600")) {
		t.Errorf("a key that others can read: %+v", f)
	}
	t.Setenv("OPENAI_API_KEY", "sk-secret")
	if f := find(nil); f.Status != healthy || !strings.Contains(f.Detail, "from OPENAI_API_KEY") || strings.Contains(f.Detail, "secret") {
		t.Errorf("from the environment: %+v", f)
	}
}

// Servers that are no model servers, and ports where nobody is, are not found.
func TestLocalServers(t *testing.T) {
	start := func(body string) string {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
		t.Cleanup(server.Close)
		return strings.TrimPrefix(server.URL, "http://")
	}
	models, other := start(`{"data":[{"id":"llama"}]}`), start(`<html>`)
	got := localServers(t.Context(), []string{other, models, "127.0.0.1:1"})
	if len(got) != 1 || got[0].String() != "openai:llama@http://"+models+"/v1" {
		t.Errorf("%v", got)
	}
	if f := serverFinding(got); !strings.Contains(f.Advice, "--model openai:llama@") {
		t.Errorf("%+v", f)
	}
}

func TestSandboxFinding(t *testing.T) {
	if f := sandboxFinding(sandbox.Level{Isolation: sandbox.None, Reason: "install it"}); f.Status != weak || f.Advice != "install it" || !strings.Contains(f.Detail, "read-only") {
		t.Errorf("%+v", f)
	}
	if f := sandboxFinding(sandbox.Level{Isolation: sandbox.Namespaces, Holds: []string{"a"}, Lacks: []string{"b"}}); f.Status != healthy || len(f.Holds) != 1 || len(f.Lacks) != 1 {
		t.Errorf("%+v", f)
	}
}

func TestStateFinding(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := writable(dir); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("it leaves %v, %v", left, err)
	}
	if f := stateFinding(dir); f.Status != healthy {
		t.Errorf("%+v", f)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if f := stateFinding(dir); runtime.GOOS != "windows" && (f.Status != weak || !strings.Contains(f.Advice, "chmod 700")) {
		t.Errorf("%+v", f)
	}
}
