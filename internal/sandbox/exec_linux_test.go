//go:build amd64 || arm64

package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"belay/effect"
	"belay/tool"
)

func TestExit(t *testing.T) {
	s := newSandbox(t, nil)
	needIsolation(t, s)
	e := s.Env(read, "")
	if err := os.Mkdir(filepath.Join(s.workspace, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(s.workspace, "script"), "echo no interpreter line")
	if err := os.Chmod(filepath.Join(s.workspace, "script"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		cmd  tool.Command
		out  string
		exit tool.Exit
	}{
		{"success", tool.Command{Argv: []string{"echo", "hi"}}, "hi", tool.Exit{}},
		{"code", tool.Command{Argv: []string{"sh", "-c", "exit 42"}}, "", tool.Exit{Code: 42}},
		{"interleaved", tool.Command{Argv: []string{"sh", "-c", "echo 1; echo 2 >&2; echo 3 >/dev/stdout; echo 4 >/dev/stderr"}}, "1\n2\n3\n4", tool.Exit{}},
		{"signal", tool.Command{Argv: []string{"sh", "-c", "kill -TERM $$"}}, "", tool.Exit{Code: 143, Signal: "terminated"}},
		{"stdin", tool.Command{Argv: []string{"cat"}, Stdin: strings.NewReader("from here")}, "from here", tool.Exit{}},
		{"stdin by name", tool.Command{Argv: []string{"cat", "/dev/stdin"}, Stdin: strings.NewReader("by name")}, "by name", tool.Exit{}},
		{"stdin unread", tool.Command{Argv: []string{"true"}, Stdin: neverEnding{}}, "", tool.Exit{}},
		{"no stdin", tool.Command{Argv: []string{"cat"}}, "", tool.Exit{}},
		{"environment", tool.Command{Argv: []string{"sh", "-c", "echo $A $HOME"}, Env: []string{"A=b"}}, "b " + insideHome, tool.Exit{}},
		{"directory", tool.Command{Argv: []string{"pwd"}, Dir: filepath.Join(s.workspace, "sub")}, filepath.Join(s.workspace, "sub"), tool.Exit{}},
		{"relative program", tool.Command{Argv: []string{"../script"}, Dir: filepath.Join(s.workspace, "sub")}, "no interpreter line", tool.Exit{}},
		{"timeout", tool.Command{Argv: []string{"sleep", "1000"}, Timeout: 50 * time.Millisecond}, "", tool.Exit{Code: 137, Signal: "killed", TimedOut: true}},
		{"stopped", tool.Command{Argv: []string{"sh", "-c", "kill -STOP $$"}, Timeout: 50 * time.Millisecond}, "", tool.Exit{Code: 137, Signal: "killed", TimedOut: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			out, exit := run(t, e, tc.cmd)
			exit.Duration = 0
			if diff := cmp.Diff(tc.exit, exit); diff != "" {
				t.Error(diff)
			}
			if out != tc.out {
				t.Errorf("output %q, want %q", out, tc.out)
			}
		})
	}
	if out, exit := run(t, e, tool.Command{Argv: []string{"no-such-program"}}); exit.Code != 127 || !strings.Contains(out, "command not found") {
		t.Errorf("missing program: %+v %q", exit, out)
	}
	if _, err := e.Exec(context.Background(), tool.Command{Argv: []string{"true"}, Dir: "/usr"}); !errors.Is(err, tool.ErrDenied) {
		t.Errorf("directory outside: %v", err)
	}
	if _, err := e.Exec(context.Background(), tool.Command{}); err == nil || errors.Is(err, tool.ErrDenied) {
		t.Errorf("no program: %v", err)
	}
	if out, exit := run(t, s.Env(effect.Grant{Workspace: effect.ReadOnly, Network: []string{"example.com"}}, ""), tool.Command{Argv: []string{"true"}}); exit.Code != 0 || len(exit.Denied) != 1 {
		t.Errorf("granted network: %+v %q", exit, out)
	}
}

type neverEnding struct{}

func (neverEnding) Read([]byte) (int, error) { select {} }

func TestCancel(t *testing.T) {
	s := newSandbox(t, nil)
	needIsolation(t, s)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	started := &onWrite{do: cancel}
	exit, err := s.Env(read, "").Exec(ctx, tool.Command{Argv: []string{"sh", "-c", "echo up; setsid sleep 1000"}, Output: started})
	if !errors.Is(err, context.Canceled) || exit.TimedOut || exit.Signal != "killed" {
		t.Errorf("%+v, %v", exit, err)
	}
	if _, err := s.Env(read, "").Exec(ctx, tool.Command{Argv: []string{"true"}}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
}

type onWrite struct{ do func() }

func (w *onWrite) Write(b []byte) (int, error) {
	w.do()
	return len(b), nil
}

// piped waits for the pipe that a command makes inside, and opens it: a pipe that was there before is hidden. What is read
// comes from inside; it ends when the last process that holds it has died.
func piped(t *testing.T, s *Sandbox, died func() bool) *os.File {
	t.Helper()
	path := filepath.Join(s.workspace, "fifo")
	for !exists(path) {
		if died() {
			t.Fatal("the command ended without its pipe")
		}
		time.Sleep(10 * time.Millisecond)
	}
	f, err := os.Open(path) // until the command inside opens it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestTreeDiesWithItsCall(t *testing.T) {
	s := newSandbox(t, nil)
	needIsolation(t, s)
	done := make(chan error, 1)
	go func() { // they hold the output too, and Exec returns all the same
		_, err := s.Env(write, "").Exec(context.Background(), tool.Command{Argv: []string{"sh", "-c", "mkfifo fifo; " + orphans + "exit 0"}})
		done <- err
	}()
	f := piped(t, s, func() bool { return len(done) > 0 })
	if got, err := io.ReadAll(f); err != nil || string(got) != "up\n" {
		t.Errorf("%q, %v", got, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestTreeDiesWithTheHarness(t *testing.T) {
	s := newSandbox(t, nil)
	needIsolation(t, s)
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), "BELAY_TEST_PROCESS=leaver", "WORKSPACE="+s.workspace, "BELAY_HOME="+s.home)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	f := piped(t, s, func() bool { return syscall.Kill(c.Process.Pid, 0) != nil })
	r := bufio.NewReader(f)
	if line, err := r.ReadString('\n'); err != nil || line != "up\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.Wait()
	if rest, err := io.ReadAll(r); err != nil || len(rest) != 0 {
		t.Errorf("%q, %v", rest, err)
	}
	if out.Len() > 0 {
		t.Error(out.String())
	}
	must(t, s.Env(write, ""), "touch $GOCACHE/00/x") // the cache that it left open can be used
}

func TestViews(t *testing.T) {
	for _, overlay := range []bool{true, false} {
		t.Run(fmt.Sprintf("overlay %v", overlay), func(t *testing.T) {
			s := newSandbox(t, nil)
			needIsolation(t, s)
			if overlay && !s.level.Overlay {
				t.Log("the kernel gives no overlay; the copy is tested twice")
			}
			s.level.Overlay = s.level.Overlay && overlay
			file := filepath.Join(s.workspace, "a")
			put(t, file, "old\n")
			put(t, filepath.Join(s.workspace, "d", "b"), "b")
			if out, exit := sh(t, s.Env(effect.Grant{}, ""), "ls -A; echo x > a"); exit.Code == 0 || strings.Contains(out, "old") || !strings.Contains(out, "Read-only file system") {
				t.Errorf("no access: %+v %q", exit, out)
			}
			if out, exit := sh(t, s.Env(read, ""), "cat a; echo new > a"); exit.Code == 0 || !strings.Contains(out, "old") || !strings.Contains(out, "Read-only file system") {
				t.Errorf("read: %+v %q", exit, out)
			}
			if out := must(t, s.Env(discard, ""), "cat a; echo new > a; cat a; rm -r d; mkdir e; ls -A"); out != "old\nnew\na\ne" {
				t.Errorf("discard: %q", out)
			}
			if got := get(t, file); got != "old\n" || !exists(filepath.Join(s.workspace, "d", "b")) || exists(filepath.Join(s.workspace, "e")) {
				t.Errorf("discard went through: %q", got)
			}
			must(t, s.Env(write, ""), "echo new > a; mkdir -p c; echo > c/d")
			if got := get(t, file); got != "new\n" {
				t.Errorf("write: %q", got)
			}
			info, err := os.Stat(filepath.Join(s.workspace, "c", "d"))
			if err != nil {
				t.Fatal(err)
			}
			if uid, _ := ownerOf(info); uid != s.uid {
				t.Errorf("new file belongs to %d, the workspace to %d", uid, s.uid)
			}
		})
	}
}

// TestOwner runs commands in a workspace that belongs to somebody else than the harness.
func TestOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		s := newSandbox(t, nil)
		needIsolation(t, s)
		if out := must(t, s.Env(read, ""), "id -u"); out != fmt.Sprint(os.Geteuid()) {
			t.Errorf("an ordinary user's command runs as %s", out)
		}
		return
	}
	closed := filepath.Join(t.TempDir(), "closed") // only root gets through
	ws := filepath.Join(closed, "ws")
	if err := os.MkdirAll(ws, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(ws, 1234, 1235); err != nil {
		t.Fatal(err)
	}
	s := newSandbox(t, func(c *Config) { c.Workspace = ws })
	needIsolation(t, s)
	if s.level.ids != allIDs {
		t.Skip("root here may not use other ids")
	}
	e := s.Env(write, "")
	if out := must(t, e, "id -u; id -g; id -G; echo x > made; touch ~/home ~/.cache/cached ~/.cache/go-build/00/x; whoami; git init -q && git add made && git commit -qm m && git status --short"); out != "1234\n1235\n1235\nagent" {
		t.Errorf("%q", out)
	}
	if err := e.WriteFile("new/by-tool", []byte("x")); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"made", "new", "new/by-tool"} {
		info, err := os.Stat(filepath.Join(ws, name))
		if err != nil {
			t.Fatal(err)
		}
		if uid, gid := ownerOf(info); uid != 1234 || gid != 1235 {
			t.Errorf("%s belongs to %d:%d", name, uid, gid)
		}
	}
}

func TestToolchains(t *testing.T) {
	s := newSandbox(t, nil)
	needIsolation(t, s)
	e := s.Env(write, "")
	put(t, filepath.Join(s.workspace, "go.mod"), "module tiny\n\ngo 1.26\n")
	put(t, filepath.Join(s.workspace, "a_test.go"), "package tiny\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\n")
	for _, tc := range []struct{ needs, line, want string }{
		{"go", "go test ./...", "ok"},
		{"git", "git init -q && git add -A && git commit -qm first && git status --short && git log --format=%s", "first"},
		{"python3", "python3 -c 'import multiprocessing as m; print(m.Pool(2).map(abs,[-1,-2]))'", "[1, 2]"},
		{"node", "node -e 'console.log(6*7)'", "42"},
		{"gcc", "echo 'int main(){return 7;}' > /tmp/a.c && gcc -o /tmp/a /tmp/a.c && /tmp/a; echo $?", "7"},
		{"script", "script -qc 'tty' /dev/null", "/dev/pts/"},
	} {
		t.Run(tc.needs, func(t *testing.T) {
			if _, err := exec.LookPath(tc.needs); err != nil {
				t.Skipf("%s is not installed here", tc.needs)
			}
			if out := must(t, e, tc.line); !strings.Contains(out, tc.want) {
				t.Errorf("%q", out)
			}
		})
	}
}

func TestCaches(t *testing.T) {
	hostCache := t.TempDir()
	put(t, filepath.Join(hostCache, "ab", "entry"), "from the host\n")
	s := newSandbox(t, func(c *Config) {
		c.Environ = append(os.Environ(), "GOCACHE="+hostCache)
	})
	needIsolation(t, s)
	agent, verify := s.Env(write, ""), s.VerifierEnv(discard, "")
	if s.level.Overlay {
		if out := must(t, agent, "cat $GOCACHE/ab/entry; echo poison > $GOCACHE/ab/entry; cat $GOCACHE/ab/entry"); out != "from the host\npoison" {
			t.Errorf("%q", out)
		}
		if got := get(t, filepath.Join(hostCache, "ab", "entry")); got != "from the host\n" {
			t.Errorf("the host's cache was changed: %q", got)
		}
		if out := must(t, verify, "cat $GOCACHE/ab/entry"); out != "from the host" {
			t.Errorf("the verifier's cache was changed: %q", out)
		}
	}
	must(t, agent, "echo kept > $GOCACHE/00/mine; echo kept > $XDG_CACHE_HOME/other")
	if out := must(t, agent, "cat $GOCACHE/00/mine $XDG_CACHE_HOME/other"); out != "kept\nkept" {
		t.Errorf("the cache does not last: %q", out)
	}
	if out, exit := sh(t, verify, "cat $GOCACHE/00/mine $XDG_CACHE_HOME/other"); exit.Code == 0 {
		t.Errorf("the verifier sees the agent's cache: %q", out)
	}
	// A second command at the same time, while the first holds the upper layer.
	inner, wait := make(chan string, 1), make(chan struct{})
	first := &onWrite{do: func() { close(wait) }}
	go func() {
		<-wait
		out, _ := sh(t, agent, "cat $GOCACHE/00/mine && echo beside > $GOCACHE/01/x && cat $GOCACHE/01/x; echo done > $XDG_CACHE_HOME/done")
		inner <- out
	}()
	if exit, err := agent.Exec(context.Background(), tool.Command{Argv: []string{"sh", "-c", "echo up; until test -e $XDG_CACHE_HOME/done; do sleep 0.01; done"}, Output: first, Timeout: time.Minute}); err != nil || exit.Code != 0 {
		t.Errorf("%+v %v", exit, err)
	}
	if out := <-inner; out != "kept\nbeside" {
		t.Errorf("beside another command: %q", out)
	}
}

// TestAsNobody runs all the other tests as an ordinary user, where root runs this one.
func TestAsNobody(t *testing.T) {
	if os.Geteuid() != 0 {
		return // this is that run
	}
	dir, err := os.MkdirTemp("/tmp", "nobody-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "tests")
	if err := os.WriteFile(binary, self, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{dir, filepath.Join(dir, "home"), filepath.Join(dir, "tmp")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(d, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	warm := filepath.Join(dir, "go-build")
	if root := newSandbox(t, nil).host.goCache; root != "" {
		// Compiling the standard library takes half a minute. Where this cannot be done, it does.
		linkTree(root, warm)
	}
	c := exec.Command(binary, "-test.count=1", "-test.v="+fmt.Sprint(testing.Verbose()), "-test.timeout=5m")
	c.Dir = dir
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	c.Env = []string{"PATH=/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin", "HOME=" + dir + "/home", "TMPDIR=" + dir + "/tmp", "LANG=C.UTF-8", "GOCACHE=" + warm}
	out, err := c.CombinedOutput()
	if err != nil {
		t.Errorf("as nobody: %v\n%s", err, out)
	} else if testing.Verbose() {
		t.Logf("%s", out)
	}
}

// linkTree makes hard links to all files of a tree, as far as that is possible.
func linkTree(from, to string) {
	filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		dst := filepath.Join(to, strings.TrimPrefix(path, from))
		if d.IsDir() {
			return os.MkdirAll(dst, 0o755)
		}
		return os.Link(path, dst)
	})
}

// TestParallel has many commands of one sandbox at a time.
func TestParallel(t *testing.T) {
	s := newSandbox(t, nil)
	needIsolation(t, s)
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			e := s.Env([]effect.Grant{read, write, discard}[i%3], "")
			var out bytes.Buffer
			exit, err := e.Exec(context.Background(), tool.Command{Argv: []string{"sh", "-c", fmt.Sprintf("echo %d; echo x > $GOCACHE/00/%d; setsid sleep 1000 & exit %d", i, i, i)}, Output: &out})
			if err != nil || exit.Code != i || out.String() != fmt.Sprintln(i) {
				t.Errorf("%d: %+v, %v, %q", i, exit, err, out.String())
			}
		})
	}
	all.Wait()
}
