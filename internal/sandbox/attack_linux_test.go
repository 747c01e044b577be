//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"belay/tool"
)

// TestLimits has calls use more than they may. Every attack has a control with more room, which must work.
func TestLimits(t *testing.T) {
	s := newSandbox(t, nil)
	needIsolation(t, s)
	t.Cleanup(s.Close)
	for _, tc := range []struct {
		name, line    string
		tight, roomy  Limits
		limit         string // that is named, "" where the kernel only refuses
		mustNotFinish bool
	}{
		{"memory of many", "for i in 1 2 3 4; do python3 -c 'x = bytearray(50 << 20); import time; time.sleep(1)' & done; wait; echo done", Limits{Memory: 150 << 20}, Limits{Memory: 1 << 30}, "limit memory", true},
		{"written to the disk", "for i in $(seq 20); do head -c 5000000 /dev/zero > f$i; done; sleep 0.3; rm -f f*; echo done", Limits{Disk: 10 << 20}, Limits{Disk: 1 << 30}, "limit disk", true},
		{"written by orphans", "for i in $(seq 20); do (setsid head -c 5000000 /dev/zero > f$i &); done; sleep 1; rm -f f*; echo done", Limits{Disk: 10 << 20}, Limits{Disk: 1 << 30}, "limit disk", true},
		{"one file", "head -c 30000000 /dev/zero > big && rm big && echo done", Limits{Disk: 10 << 20}, Limits{Disk: 1 << 30}, "", true},
		{"files", "mkdir d; seq 5000 | (cd d; xargs touch); sleep 0.4; rm -rf d; echo done", Limits{Files: 500}, Limits{Files: 100000}, "limit files", true},
		{"processor", "while :; do :; done & i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; kill $!; echo done", Limits{CPU: 100 * time.Millisecond}, Limits{CPU: time.Minute}, "limit cpu", true},
		{"processes", "for i in $(seq 40); do sleep 0.5 & done; wait; echo done", Limits{Processes: 15}, Limits{Processes: 200}, "", false},
		{"open files", "ulimit -n; test $(ulimit -n) -gt 100 && echo done", Limits{OpenFiles: 50}, Limits{OpenFiles: 200}, "", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			call := func(l Limits) (string, tool.Exit) {
				var out bytes.Buffer
				exit, err := s.Call(context.Background(), write, Call{Limits: l, Command: tool.Command{Argv: []string{"sh", "-c", tc.line}, Output: &out, Timeout: time.Minute}})
				if err != nil {
					t.Fatal(err)
				}
				return out.String(), exit
			}
			if out, exit := call(tc.roomy); exit.Code != 0 || !strings.HasSuffix(out, "done\n") || len(exit.Denied) > 0 {
				t.Errorf("control: %+v %s", exit, out)
			}
			out, exit := call(tc.tight)
			if tc.mustNotFinish && strings.HasSuffix(out, "done\n") || !tc.mustNotFinish && !strings.Contains(out, "ork") && exit.Code == 0 {
				t.Errorf("finished: %+v %s", exit, out)
			}
			if tc.limit != "" && !slices.ContainsFunc(exit.Denied, func(d string) bool { return strings.HasPrefix(d, tc.limit) }) {
				t.Errorf("%+v does not name %s: %s", exit, tc.limit, out)
			}
			outside(t, s.workspace, "sh", "-c", "rm -rf f* d big")
		})
	}
}

// TestTakesEffectOutside makes what would do something outside of the sandbox, wherever it lies in the workspace.
func TestTakesEffectOutside(t *testing.T) {
	s := newSandbox(t, func(c *Config) { c.Protect = []string{"golden/**", "**/*.key"} })
	needIsolation(t, s)
	t.Cleanup(s.Close)
	ws := s.workspace
	put(t, filepath.Join(ws, "golden", "sp ace", "ü\nline"), "expected")
	put(t, filepath.Join(ws, "a.key"), "key")
	put(t, filepath.Join(ws, ".github", "workflows", "ci.yml"), "ci")
	put(t, filepath.Join(ws, "file"), "1")
	outside(t, ws, "git", "init", "-q")
	outside(t, ws, "git", "init", "-q", "nested/deep")
	if os.Geteuid() == 0 {
		outside(t, ws, "chown", "-R", "0:0", ".")
	}
	listener, err := net.Listen("unix", filepath.Join(ws, "s"))
	if err == nil {
		defer listener.Close()
	}
	if err := syscall.Mkfifo(filepath.Join(ws, "pipe"), 0o666); err != nil {
		t.Fatal(err)
	}
	e := s.Env(write, "")
	must(t, e, "echo 2 > file; git -C nested/deep status; mkdir fine; mkfifo own; timeout 5 sh -c 'echo x > own & cat own'") // the control
	must(t, e, "timeout 5 sh -c 'echo x > own & cat own'")                                                                   // one's own pipe stays
	for _, attack := range []string{
		"echo x >> nested/deep/.git/config", "echo x > nested/deep/.git/hooks/post-checkout", "mv nested other", "mv nested/deep nested/d2",
		"echo x > 'golden/sp ace/new'", "rm -rf golden", "mv golden g2", "echo x > a.key", "rm -f a.key", "ln a.key b && echo x > b",
		"echo x > .github/workflows/ci.yml", "echo x > .github/workflows/evil.yml", "mv .github g",
		"timeout 1 sh -c 'echo x > pipe' && test -p pipe",
		"python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"s\")'",
	} {
		if out, exit := sh(t, e, attack); exit.Code == 0 {
			t.Errorf("%s: %s", attack, out)
		}
	}
	for _, tc := range []struct{ line, gone string }{
		{"mkdir -p x && echo k > x/new.key", "x/new.key"},
		{"mkdir -p x/.vscode && echo k > x/.vscode/tasks.json", "x/.vscode"},
		{"git init -q x/evil && git -C x/evil config core.fsmonitor x", "x/evil/.git/config"},
		{"git init -q --bare x/bare && git -C x/bare config core.fsmonitor x", "x/bare/config"},
		{"mkdir objects refs && echo 'ref: refs/heads/main' > HEAD && printf '[core]\\nfsmonitor = x\\n' > config", "config"},
		{"mkdir -p .git/objects/e/objects .git/objects/e/refs x/q && cp .git/HEAD .git/objects/e && printf '[core]\\nfsmonitor = x\\n' > .git/objects/e/config && echo 'gitdir: ../../.git/objects/e' > x/q/.git", ".git/objects/e/config"},
		{"git init -q x/real && git -C x/real config alias.x '!x' && mkdir x/link && ln -s ../real/.git x/link/.git", "x/link/.git"},
	} {
		out, exit := sh(t, e, tc.line)
		if exit.Code != 0 || len(exit.Denied) == 0 || exists(filepath.Join(ws, tc.gone)) {
			t.Errorf("%s: %+v %s", tc.line, exit, out)
		}
	}
	for path, want := range map[string]string{"a.key": "key", ".github/workflows/ci.yml": "ci", "golden/sp ace/ü\nline": "expected"} {
		if got := get(t, filepath.Join(ws, path)); got != want {
			t.Errorf("%s is now %q", path, got)
		}
	}
	// The file tools are held by the same rules.
	for _, path := range []string{"a.key", "x/y.key", "golden/new", "nested/deep/.git/config", "x/.envrc", ".github/workflows/new.yml", "z/.git"} {
		if err := e.WriteFile(path, []byte("x")); err == nil {
			t.Errorf("wrote %s", path)
		}
	}
	if err := e.WriteFile("trap/config", []byte("[core]\nfsmonitor = x\n")); err != nil {
		t.Fatal(err)
	}
	if err := e.WriteFile("trap/HEAD", []byte("ref: refs/heads/main\n")); err == nil {
		t.Error("a directory that looks like a repository")
	}
}

// TestHandedIn opens what a command was handed for another purpose.
func TestHandedIn(t *testing.T) {
	s := newSandbox(t, nil)
	needIsolation(t, s)
	t.Cleanup(s.Close)
	path := filepath.Join(t.TempDir(), "input")
	put(t, path, "input")
	for _, attack := range []string{"echo x > /proc/self/fd/0", "exec 5<>/proc/self/fd/0 && echo x >&5", "echo x > /dev/stdin"} {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		run(t, s.Env(write, ""), tool.Command{Argv: []string{"sh", "-c", "cat; " + attack}, Stdin: f, Timeout: 10 * time.Second})
		f.Close()
		if got := get(t, path); got != "input" {
			t.Errorf("%s: %q", attack, got)
		}
	}
}

// TestLocalServices reaches a service of this machine that was named, and none else.
func TestLocalServices(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			c.Write([]byte("served\n"))
			c.Close()
		}
	}()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	line := "python3 -c 'import socket; print(socket.create_connection((\"127.0.0.1\", " + port + ")).makefile().readline())'"
	with := newSandbox(t, func(c *Config) { c.Local = []uint16{uint16(listener.Addr().(*net.TCPAddr).Port)} })
	needIsolation(t, with)
	t.Cleanup(with.Close)
	if out := must(t, with.Env(write, ""), line); !strings.Contains(out, "served") {
		t.Errorf("%q", out)
	}
	if out, exit := sh(t, newSandbox(t, nil).Env(write, ""), line); exit.Code == 0 {
		t.Errorf("reached without a grant: %s", out)
	}
}
