package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"belay/effect"
	"belay/internal/sandbox/helper"
	"belay/tool"
)

func TestMain(m *testing.M) {
	helper.Init()
	switch os.Getenv("BELAY_TEST_PROCESS") {
	case "leaver":
		leaver()
	}
	os.Exit(m.Run())
}

var (
	read    = effect.Grant{Workspace: effect.ReadOnly}
	write   = effect.Grant{Workspace: effect.ReadWrite}
	discard = effect.Grant{Workspace: effect.Discard}
)

// newSandbox gives a sandbox around a fresh workspace.
func newSandbox(t testing.TB, change func(*Config)) *Sandbox {
	t.Helper()
	cfg := Config{Workspace: filepath.Join(t.TempDir(), "work space ü"), Home: t.TempDir()}
	if err := os.Mkdir(cfg.Workspace, 0o755); err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(&cfg)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// needIsolation ends a test where the kernel gives no isolation, after having checked the honest refusal.
func needIsolation(t testing.TB, s *Sandbox) {
	t.Helper()
	if s.Level().Isolation == Namespaces {
		return
	}
	checkRefused(t, s)
	t.Skipf("no isolation here, which was refused as it must be: %s", s.Level().Reason)
}

// sh runs a shell line and gives what it wrote.
func sh(t testing.TB, e tool.Env, line string) (string, tool.Exit) {
	t.Helper()
	return run(t, e, tool.Command{Argv: []string{"sh", "-c", line}, Timeout: 2 * time.Minute})
}

func run(t testing.TB, e tool.Env, cmd tool.Command) (string, tool.Exit) {
	t.Helper()
	var out bytes.Buffer
	cmd.Output = &out
	exit, err := e.Exec(context.Background(), cmd)
	if err != nil {
		t.Fatalf("%q: %v (output %q)", cmd.Argv, err, out.String())
	}
	return strings.TrimSuffix(out.String(), "\n"), exit
}

// must runs a line that has to succeed.
func must(t testing.TB, e tool.Env, line string) string {
	t.Helper()
	out, exit := sh(t, e, line)
	if exit.Code != 0 {
		t.Fatalf("%s: code %d: %s", line, exit.Code, out)
	}
	return out
}

func put(t testing.TB, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// outside runs a program on the host, to prepare what a command then meets.
func outside(t testing.TB, dir string, argv ...string) {
	t.Helper()
	c := exec.Command(argv[0], argv[1:]...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@t", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@t")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatal(fmt.Errorf("%v: %w: %s", argv, err, out))
	}
}
