package sandbox

import (
	"bytes"
	"context"
	"errors"
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
	process := os.Getenv("BELAY_TEST_PROCESS")
	if process == "uninitialised" {
		fmt.Println(Probe(context.Background()))
		os.Exit(0)
	}
	helper.Init()
	if process == "leaver" {
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

const orphans = `exec 9>fifo; setsid sleep 1000 & (setsid nohup sleep 1000 >/dev/null 2>&1 &) ; sleep 1000 & echo up >&9; `

// leaver is a process that is killed in the middle of a call.
func leaver() {
	s, err := New(Config{Workspace: os.Getenv("WORKSPACE"), Home: os.Getenv("BELAY_HOME")})
	if err == nil {
		_, err = s.Env(write, "").Exec(context.Background(), tool.Command{Argv: []string{"sh", "-c", "mkfifo fifo; " + orphans + "wait"}, Output: os.Stderr})
	}
	fmt.Println("must not get here", err)
	os.Exit(1)
}

// checkRefused checks what a sandbox without isolation does: nothing but reading, and it says so.
func checkRefused(t testing.TB, s *Sandbox) {
	t.Helper()
	put(t, filepath.Join(s.workspace, "a"), "content")
	e := s.Env(write, "")
	if _, err := e.Exec(context.Background(), tool.Command{Argv: []string{"true"}}); !errors.Is(err, tool.ErrDenied) || !strings.Contains(err.Error(), s.level.Reason) {
		t.Errorf("Exec without isolation: %v", err)
	}
	if err := e.WriteFile("a", nil); !errors.Is(err, tool.ErrDenied) {
		t.Errorf("WriteFile without isolation: %v", err)
	}
	if got, err := e.ReadFile("a"); err != nil || string(got) != "content" {
		t.Errorf("ReadFile without isolation: %q, %v", got, err)
	}
	if s.level.Reason == "" {
		t.Error("no reason for having no isolation")
	}
}

func TestWithoutIsolation(t *testing.T) {
	s := newSandbox(t, nil)
	s.level = Level{Isolation: None, Reason: "just because"}
	checkRefused(t, s)
}
