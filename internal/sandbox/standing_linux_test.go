//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"belay/tool"
)

// standingHelper gives the helper that waits for the next command.
func standingHelper(t *testing.T, s *Sandbox) *standing {
	t.Helper()
	if len(s.helpers.idle) != 1 {
		t.Fatalf("%d helpers wait, not one", len(s.helpers.idle))
	}
	return s.helpers.idle[0]
}

func TestNothingIsLeftForTheNextCommand(t *testing.T) {
	s := newSandbox(t, nil)
	needIsolation(t, s)
	t.Cleanup(s.Close)
	for _, e := range []tool.Env{s.Env(read, ""), s.Env(write, "")} {
		must(t, e, "for d in /tmp /dev/shm $HOME; do echo x > $d/left; done; echo '[alias] st = !sh' >> $HOME/.gitconfig; "+
			"ipcmk -M 100 >/dev/null 2>&1; umask 0; (setsid sleep 1000 &) ; cd /tmp")
		helper := standingHelper(t, s)
		out := must(t, e, "for d in /tmp /dev/shm $HOME; do cat $d/left; done 2>/dev/null; grep alias $HOME/.gitconfig; "+
			"ipcs -m 2>/dev/null | grep 0x; umask; pwd; cat /proc/*/cmdline | tr '\\0' '\\n' | grep -c '^sleep$'; true")
		if out != "0022\n"+s.workspace+"\n0" {
			t.Errorf("a command found what the one before it had left: %q", out)
		}
		if standingHelper(t, s) != helper {
			t.Error("the second command had another helper, so nothing was tested")
		}
	}
}

// TestReplacedOnTheHost replaces, between two commands, what the room made ahead shows and holds.
func TestReplacedOnTheHost(t *testing.T) {
	s := newSandbox(t, nil)
	needIsolation(t, s)
	t.Cleanup(s.Close)
	outside(t, s.workspace, "git", "init", "-q")
	config := filepath.Join(s.workspace, ".git", "config")
	for _, e := range []tool.Env{s.Env(read, ""), s.Env(write, "")} {
		must(t, e, "true")
		put(t, config+".new", "[core]\n\tbare = false\n")
		if err := os.Rename(config+".new", config); err != nil {
			t.Fatal(err)
		}
		if out, exit := sh(t, e, "echo bad >> .git/config"); exit.Code == 0 {
			t.Errorf("a protected file that was replaced can be written: %q", out)
		}
	}
	must(t, s.Env(read, ""), "true")
	put(t, filepath.Join(s.workspace, ".belay", "policy"), "secret")
	if out, exit := sh(t, s.Env(read, ""), "cat .belay/policy"); exit.Code == 0 {
		t.Errorf("a hidden file that is new can be read: %q", out)
	}
	moved := s.workspace + " moved"
	if err := os.Rename(s.workspace, moved); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(s.workspace, "file"), "of the new one")
	if out := must(t, s.Env(read, ""), "cat file"); out != "of the new one" {
		t.Errorf("%q", out)
	}
}

func TestHelperDiesWhileItWaits(t *testing.T) {
	s := newSandbox(t, nil)
	needIsolation(t, s)
	t.Cleanup(s.Close)
	must(t, s.Env(read, ""), "true")
	h := standingHelper(t, s)
	h.process.Kill()
	<-h.gone
	must(t, s.Env(read, ""), "true")
}

func TestClose(t *testing.T) {
	s := newSandbox(t, nil)
	needIsolation(t, s)
	must(t, s.Env(read, ""), "true")
	h := standingHelper(t, s)
	s.Close()
	<-h.gone
	if err := h.process.Signal(syscall.Signal(0)); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("the helper still runs: %v", err)
	}
	must(t, s.Env(read, ""), "true")
	if len(s.helpers.idle) != 0 {
		t.Error("a closed sandbox keeps helpers")
	}
}

// TestHelperIsOutOfReach looks from inside at the helper, which sees the host's files.
func TestHelperIsOutOfReach(t *testing.T) {
	s := newSandbox(t, nil)
	needIsolation(t, s)
	t.Cleanup(s.Close)
	for _, e := range []tool.Env{s.Env(read, ""), s.Env(write, "")} {
		for _, line := range []string{"ls /proc/1/root/", "ls /proc/1/cwd/", "readlink /proc/1/exe", "readlink /proc/1/fd/3", ": </proc/1/fd/0", "cat /proc/1/mem",
			"cat /proc/1/environ", "cat /proc/1/maps", "for t in /proc/1/task/*; do ls $t/root/ && exit 0; done; exit 1",
			"nsenter -t 1 -m true"} {
			if out, exit := sh(t, e, line); exit.Code == 0 {
				t.Errorf("%s: %q", line, out)
			}
		}
	}
}

// TestLongLine sends a command that fills the control socket many times.
func TestLongLine(t *testing.T) {
	s := newSandbox(t, nil)
	needIsolation(t, s)
	t.Cleanup(s.Close)
	var env []string
	for range 12 { // the last of them counts
		env = append(env, "LONG="+strings.Repeat("x", 100_000))
	}
	out, exit := run(t, s.Env(read, ""), tool.Command{Argv: []string{"sh", "-c", "cat; echo ${#LONG}"}, Env: env, Stdin: strings.NewReader("in ")})
	if exit.Code != 0 || out != "in 100000" {
		t.Errorf("%+v %.100q", exit, out)
	}
	r, w := io.Pipe()
	go func() { io.WriteString(w, "late"); w.Close() }()
	if out, _ := run(t, s.Env(read, ""), tool.Command{Argv: []string{"cat"}, Stdin: r}); out != "late" {
		t.Errorf("%q", out)
	}
}
