//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"belay/tool"
)

// numbers puts system call numbers into the attacks.
var numbers = strings.NewReplacer("UNSHARE", fmt.Sprint(unix.SYS_UNSHARE), "GETPID", fmt.Sprint(unix.SYS_GETPID),
	"PTRACE", fmt.Sprint(unix.SYS_PTRACE), "KEYCTL", fmt.Sprint(unix.SYS_KEYCTL))

const secret = "s3cret-of-the-host"

// TestEscapes tries to get out. Every attack has a control: nearly the same line, which must work, so that an
// attack that fails for another reason is noticed.
func TestEscapes(t *testing.T) {
	python := func(body string) string {
		return "python3 - <<'EOF'\nimport socket, ctypes, fcntl, os, sys\nlibc = ctypes.CDLL(None, use_errno=True)\ndef call(*a):\n    if libc.syscall(*a) < 0: raise OSError(ctypes.get_errno(), 'refused')\n" + body + "\nEOF"
	}
	t.Setenv("SECRET_TOKEN", secret)
	away := t.TempDir()
	put(t, filepath.Join(away, "secret"), secret)
	s := newSandbox(t, nil)
	needIsolation(t, s)
	put(t, filepath.Join(s.home, "secret"), secret)
	put(t, filepath.Join(s.workspace, "file"), "mine\n")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	abstract, err := net.Listen("unix", "@"+filepath.Base(away)+fmt.Sprint(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	defer abstract.Close()
	named, err := net.Listen("unix", filepath.Join(away, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	defer named.Close()
	// A descriptor that somebody forgot to close.
	file, err := os.Open(filepath.Join(away, "secret"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	leak, err := syscall.Dup(int(file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(leak)
	victim := exec.Command("sleep", "1000")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { victim.Process.Kill(); victim.Wait() }()
	port := listener.Addr().(*net.TCPAddr).Port
	echo := func(family, address string) string {
		return python("a = socket.socket(" + family + "); a.bind(" + address + "); a.listen(); b = socket.socket(" + family + "); b.connect(a.getsockname())")
	}

	for _, tc := range []struct{ name, attack, control string }{
		{"shadow", "cat /etc/shadow", "cat /etc/passwd"},
		{"other files", "cat '" + away + "/secret'", "cat file"},
		{"state of belay", "cat '" + s.home + "/secret'", "cat file"},
		{"list state", "ls '" + s.home + "'", "ls ."},
		{"through a link", "ln -s '" + away + "/secret' l1 && cat l1", "ln -s file l2 && cat l2"},
		{"hard link", "ln /usr/bin/env hard", "ln file hard2"},
		{"write usr", "touch /usr/x", "touch /tmp/x"},
		{"write etc", "touch /etc/x", "touch ~/x"},
		{"write root", "mkdir /x", "mkdir /tmp/y"},
		{"write beside", "touch ../x && test -e '" + filepath.Dir(s.workspace) + "/x' && exit 1", "touch x"},
		{"write passwd", "echo x >> /etc/passwd", "echo x >> file"},
		{"remount", "mount -o remount,rw /usr", "true"},
		{"mount", "mount -t tmpfs none /mnt || mount --bind /tmp /usr", "true"},
		{"unshare", "unshare -Ur true", "true"},
		{"unshare call", python("call(ctypes.c_long(UNSHARE), 0x10000000)"), python("call(ctypes.c_long(GETPID))")},
		{"chroot", "/usr/sbin/chroot /tmp true", "true"},
		{"device node", "mknod /tmp/disk b 254 0 && cat /tmp/disk", "mkfifo /tmp/fifo"},
		{"disks", "ls /dev/vda /dev/sda /dev/mem /dev/kmsg 2>/dev/null", "ls /dev/null"},
		{"sysfs", "ls /sys/kernel", "ls /proc/version"},
		{"sysctl", "echo x > /proc/sys/kernel/core_pattern || echo 0 > /proc/sys/net/ipv4/ip_forward", "cat /proc/sys/kernel/ostype"},
		{"sysrq", "echo h > /proc/sysrq-trigger", "true"},
		{"first process root", "ls /proc/1/root/", "ls /proc/self/root/"},
		{"first process files", "readlink /proc/1/fd/3 || readlink /proc/1/exe || cat /proc/1/environ || ls /proc/1/cwd/ || cat /proc/1/maps", "ls /proc/self/fd && readlink /proc/self/exe"},
		{"first process memory", "head -c1 /proc/1/mem", "true"},
		{"host process", fmt.Sprintf("kill -9 %d", victim.Process.Pid), "sleep 1000 & kill -9 $!"},
		{"every process", "kill -9 -1; false", "true"},
		{"parent", "test $PPID -ne 1 || kill -9 $PPID; kill -0 1 && exit 1", "true"},
		{"host port", python(fmt.Sprintf("socket.create_connection(('127.0.0.1', %d), 5)", port)), echo("socket.AF_INET", "('127.0.0.1', 0)")},
		{"internet", python("socket.create_connection(('192.0.2.1', 80), 5)"), echo("socket.AF_INET6", "('::1', 0)")},
		{"abstract socket", python(fmt.Sprintf("socket.socket(socket.AF_UNIX).connect('\\0%s')", strings.TrimPrefix(abstract.Addr().String(), "@"))), echo("socket.AF_UNIX", "'\\0inside'")},
		{"named socket", python("socket.socket(socket.AF_UNIX).connect('" + away + "/socket')"), echo("socket.AF_UNIX", "'/tmp/socket'")},
		{"socket families", python("socket.socket(38, socket.SOCK_SEQPACKET)"), python("socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)")},
		{"raw socket", python("socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)"), python("socket.socket(socket.AF_INET, socket.SOCK_DGRAM)")},
		{"push input", python("m, s = os.openpty(); fcntl.ioctl(s, 0x5412, b'x')"), python("m, s = os.openpty(); fcntl.ioctl(s, 0x5413, b'x' * 8)")},
		{"ptrace", python("call(ctypes.c_long(PTRACE), 0, 0, 0, 0)"), python("call(ctypes.c_long(GETPID))")},
		{"set-id by mode", "cp /usr/bin/env tool && { chmod u+s tool || chmod g+s tool; }", "cp /usr/bin/env tool2 && chmod 755 tool2"},
		{"set-id by creation", python("os.umask(0); os.open('tool3', os.O_CREAT | os.O_WRONLY, 0o4755)"), python("os.umask(0); os.open('tool4', os.O_CREAT | os.O_WRONLY, 0o755); os.open('file', os.O_RDONLY, 0o4755)")},
		{"set-id without a name", python("os.umask(0); os.open('.', os.O_TMPFILE | os.O_RDWR, 0o4755)"), python("os.umask(0); os.open('.', os.O_TMPFILE | os.O_RDWR, 0o755); os.open('.', os.O_DIRECTORY, 0o4755)")},
		{"limits of the first process", "prlimit --pid 1 --as=400000000:400000000", "prlimit --as=400000000:400000000 true && ulimit -v 400000"},
		{"limits of any process", "prlimit --pid $$ --core", "prlimit --core"},
		{"priority of the first process", "renice -n 19 -p 1", "nice -n 1 true"},
		{"priority of a user", python("os.setpriority(os.PRIO_USER, 0, 19)"), python("os.setpriority(os.PRIO_PROCESS, 0, 19)")},
		{"scheduling of the first process", "chrt -i -p 0 1 || chrt -o -p 0 1", "chrt -i 0 true"},
		{"scheduling parameters of the first process", python("os.sched_setparam(1, os.sched_param(0))"), python("os.sched_setparam(0, os.sched_param(0))")},
		{"disk priority of the first process", "ionice -c 3 -p 1 || ionice -c 3 -u 0", "ionice -c 3 true"},
		{"keys", python("call(ctypes.c_long(KEYCTL), 0, -3, 0)"), python("call(ctypes.c_long(GETPID))")},
		{"token", "env | grep -r " + secret + " - || cat /proc/*/environ | grep -a " + secret, "env | grep HOME"},
		{"descriptors", "for f in /proc/self/fd/*; do case $f in */[0-2]) ;; *) cat $f;; esac; done 2>/dev/null | grep " + secret, "echo " + "x | grep x"},
		{"capabilities", "grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb):.*[1-9a-f]' /proc/self/status", "grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb):.*0000$' /proc/self/status"},
		{"new privileges", "grep -E 'NoNewPrivs:.*0|Seccomp:.*0' /proc/self/status", "grep -E 'NoNewPrivs:.*1' /proc/self/status"},
		{"core dumps", "test $(ulimit -Hc) != 0", "test $(ulimit -Hc) = 0"},
		{"nested overlay of a link", "ln -sfn /etc .git-link && touch .git-link/x", "touch file"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := s.Env(write, "")
			for _, line := range []*string{&tc.attack, &tc.control} {
				*line = numbers.Replace(*line)
			}
			if out, exit := sh(t, e, tc.control); exit.Code != 0 {
				t.Errorf("control: code %d: %s", exit.Code, out)
			}
			out, exit := sh(t, e, tc.attack)
			if exit.Code == 0 || strings.Contains(out, secret) {
				t.Errorf("attack worked: code %d: %s", exit.Code, out)
			}
			if exit.Code == 127 {
				t.Errorf("the attack's program is missing: %s", out)
			}
		})
	}
	if err := victim.Process.Signal(syscall.Signal(0)); err != nil {
		t.Errorf("the host's process is gone: %v", err)
	}
}

// TestRepository attacks what would run outside later.
func TestRepository(t *testing.T) {
	s := newSandbox(t, func(c *Config) { c.Protect = []string{"golden", "later.txt"} })
	needIsolation(t, s)
	ws := s.workspace
	put(t, filepath.Join(ws, "file"), "1\n")
	put(t, filepath.Join(ws, "golden", "a"), "expected\n")
	put(t, filepath.Join(ws, ".belay", "permissions.yaml"), secret)
	put(t, filepath.Join(ws, ".vscode", "tasks.json"), "{}\n")
	outside(t, ws, "git", "init", "-q")
	if os.Geteuid() == 0 {
		outside(t, ws, "chown", "-R", "0:0", ".")
	}
	config := get(t, filepath.Join(ws, ".git", "config"))
	e := s.Env(write, "")
	must(t, e, "git add file && git commit -qm one && git switch -qc other && git log --oneline")
	for _, attack := range []string{
		"echo x > .git/hooks/pre-commit",
		"echo x >> .git/config",
		"git config core.fsmonitor x",
		"mv .git other && git init",
		"mv .git/hooks .git/old && mkdir .git/hooks",
		"rm -rf .git/hooks",
		"rm -f .git/config",
		"ln -sf /tmp/x .git/config",
		"echo x > golden/a",
		"mv golden old",
		"rm -rf golden",
		"echo x > .vscode/tasks.json",
		"cat .belay/permissions.yaml",
		"echo x > .belay/permissions.yaml",
		"mv .belay b",
		"test -n \"$(ls -A .belay)\"",
	} {
		if out, exit := sh(t, e, attack); exit.Code == 0 {
			t.Errorf("%s: %s", attack, out)
		}
	}
	for path, want := range map[string]string{".git/config": config, "golden/a": "expected\n", ".belay/permissions.yaml": secret, ".vscode/tasks.json": "{}\n"} {
		if got := get(t, filepath.Join(ws, path)); got != want {
			t.Errorf("%s is now %q", path, got)
		}
	}
	for _, made := range []string{".git/commondir", ".claude/settings.json", ".envrc", "later.txt"} {
		out, exit := sh(t, e, "mkdir -p $(dirname "+made+") && echo x > "+made)
		if exit.Code != 0 || len(exit.Denied) != 1 {
			t.Errorf("%s: %+v %s", made, exit, out)
		}
		if exists(filepath.Join(ws, made)) {
			t.Errorf("%s stayed", made)
		}
	}
	must(t, e, "echo 2 > file && git commit -qam two") // still a good repository

	// Hooks behind a link: what it points to is held, and the link is put back.
	if err := os.Rename(filepath.Join(ws, ".git", "hooks"), filepath.Join(ws, "my-hooks")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../my-hooks", filepath.Join(ws, ".git", "hooks")); err != nil {
		t.Fatal(err)
	}
	if out, exit := sh(t, e, "echo x > my-hooks/pre-commit"); exit.Code == 0 {
		t.Errorf("behind a link: %s", out)
	}
	out, exit := sh(t, e, "rm .git/hooks && mkdir .git/hooks && echo x > .git/hooks/pre-commit")
	if target, err := os.Readlink(filepath.Join(ws, ".git", "hooks")); exit.Code != 0 || len(exit.Denied) != 1 || err != nil || target != "../my-hooks" {
		t.Errorf("the link is now %q, %v (%+v, %s)", target, err, exit, out)
	}
}

// TestWorktree has a workspace that is a linked worktree, and one that claims to be one.
func TestWorktree(t *testing.T) {
	repo := filepath.Join(t.TempDir(), "repo")
	put(t, filepath.Join(repo, "file"), "1\n")
	outside(t, repo, "git", "init", "-q")
	outside(t, repo, "git", "add", ".")
	outside(t, repo, "git", "commit", "-qm", "first")
	s := newSandbox(t, nil)
	needIsolation(t, s)
	linked := filepath.Join(t.TempDir(), "linked")
	outside(t, repo, "git", "worktree", "add", "-q", linked)
	put(t, filepath.Join(linked, "new"), "")
	real := newSandbox(t, func(c *Config) { c.Workspace = linked })
	if out := must(t, real.Env(write, ""), "git log --format=%s && git status --short"); out != "first\n?? new" {
		t.Errorf("%q", out)
	}
	if out, exit := sh(t, real.Env(write, ""), "echo x >> '"+repo+"/.git/config' || echo x > .git"); exit.Code == 0 {
		t.Errorf("the repository was changed: %s", out)
	}
	// Another worktree's file does not make this its worktree.
	forged := newSandbox(t, func(c *Config) { put(t, filepath.Join(c.Workspace, ".git"), get(t, filepath.Join(linked, ".git"))) })
	if out, exit := sh(t, forged.Env(read, ""), "ls '"+repo+"/.git'"); exit.Code == 0 {
		t.Errorf("a repository was shown to a stranger: %s", out)
	}
}

// TestUninitialised probes in a program that never called Init.
func TestUninitialised(t *testing.T) {
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), "BELAY_TEST_PROCESS=uninitialised")
	out, err := c.CombinedOutput()
	if err != nil || !bytes.HasPrefix(out, []byte("none: ")) || !bytes.Contains(out, []byte("belay.Init()")) {
		t.Errorf("%v: %s", err, out)
	}
}

// TestOutputIsComplete writes more than a pipe holds.
func TestOutputIsComplete(t *testing.T) {
	s := newSandbox(t, nil)
	needIsolation(t, s)
	var n countWriter
	exit, err := s.Env(read, "").Exec(t.Context(), tool.Command{Argv: []string{"head", "-c", "3000000", "/dev/zero"}, Output: &n})
	if err != nil || exit.Code != 0 || n != 3000000 {
		t.Errorf("%d bytes, %+v, %v", n, exit, err)
	}
	if _, err := s.Env(read, "").Exec(t.Context(), tool.Command{Argv: []string{"head", "-c", "3000000", "/dev/zero"}, Output: broken{}}); err == nil {
		t.Error("a broken writer was not reported")
	}
}

type countWriter int

func (n *countWriter) Write(b []byte) (int, error) {
	*n += countWriter(len(b))
	return len(b), nil
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
