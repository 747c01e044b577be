package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const asks = `version: 1
name: asks
turns:
  - calls: [{tool: Bash, args: {command: "git push origin main"}}]
  - calls: [{tool: Bash, args: {command: "sleep 30"}}]
  - say: I am here again.
otherwise: {say: "Nothing left to do."}
`

// TestSession drives the real session in a real terminal: a question is refused with a reason, a command is stopped, the window
// changes its size, a large text is pasted; the terminal is left as it was, and no process stays.
func TestSession(t *testing.T) {
	tmux, err := exec.LookPath("tmux")
	if err != nil {
		t.Skip("no tmux: .ci/run installs it")
	}
	dir := t.TempDir()
	work := filepath.Join(dir, "ws")
	if err := os.MkdirAll(work, 0o755); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "asks.yaml")
	if err := os.WriteFile(script, []byte(asks), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("git", "init", "-q", work).CombinedOutput(); err != nil {
		t.Fatal(string(out))
	}
	socket := filepath.Join(dir, "tmux")
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(tmux, append([]string{"-S", socket, "-f", os.DevNull}, args...)...)
		cmd.Env = append(os.Environ(), "SHELL=/bin/sh") // the user's own may be one that lets nobody in
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %v: %v %s", args, err, out)
		}
		return string(out)
	}
	t.Cleanup(func() { _ = exec.Command(tmux, "-S", socket, "kill-server").Run() })
	self, err := exec.LookPath("belay")
	if err != nil {
		t.Fatal(err)
	}
	run("new-session", "-d", "-s", "s", "-x", "100", "-y", "30", "-c", work,
		fmt.Sprintf("env HOME=%s BELAY_HOME=%s %s --model rehearsal:%s; echo left with $?; stty -a | tr ';' '\\n' | grep -c -- ' -echo ' ; sleep 300", dir, filepath.Join(dir, "state"), self, script))
	screen := func() string { return run("capture-pane", "-p", "-t", "s") }
	until := func(what string) {
		t.Helper()
		for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
			if strings.Contains(screen(), what) {
				return
			}
		}
		t.Fatalf("%q never appears:\n%s", what, screen())
	}
	keys := func(k ...string) { run(append([]string{"send-keys", "-t", "s"}, k...)...) }

	until("Say what to do")
	keys("push it", "Enter")
	until("git push origin main")
	until("no, because")
	time.Sleep(time.Second) // a card takes no answer in its first moment
	keys("n")
	until("type why")
	keys("not on a Friday", "Enter")
	until("sleep 30")
	keys("Escape")
	until("stopped")
	run("resize-window", "-t", "s", "-x", "70", "-y", "20")
	keys("go on", "Enter")
	until("I am here again")
	big := filepath.Join(dir, "big")
	if err := os.WriteFile(big, []byte(strings.Repeat("x", 1<<20)), 0o600); err != nil {
		t.Fatal(err)
	}
	run("load-buffer", big)
	run("paste-buffer", "-p", "-t", "s")
	until("@.pasted-")
	keys("C-c")
	time.Sleep(200 * time.Millisecond)
	keys("C-c")
	until("left with 0")
	if left := running(t, "belay", script); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
	// What was seen is what the journal says.
	show := exec.Command(self, "show", "last")
	show.Env = append(os.Environ(), "BELAY_HOME="+filepath.Join(dir, "state"))
	story, err := show.CombinedOutput()
	if err != nil || !strings.Contains(string(story), "not on a Friday") {
		t.Errorf("%v\n%s", err, story)
	}
}

// running lists the processes of a program that name an argument.
func running(t *testing.T, program, argument string) []string {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, file := range lines {
		text, _ := os.ReadFile(file) // it may be gone already
		args := strings.Split(string(text), "\x00")
		if filepath.Base(args[0]) == program && strings.Contains(string(text), argument) {
			found = append(found, strings.Join(args, " "))
		}
	}
	return found
}
