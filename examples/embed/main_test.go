package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The example is a program: built, run as a process, and it must prove its task. Its own policy refuses the
// first file, its own verifier the first completion.
func TestEmbed(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "embed")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	workspace := filepath.Join(dir, "ws")
	if err := os.Mkdir(workspace, 0o755); err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("rehearsal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, workspace, "rehearsal:"+script)
	cmd.Env = append(os.Environ(), "BELAY_HOME="+filepath.Join(dir, "state"))
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "proved: ") {
		t.Fatalf("%v: %s", err, out)
	}
	if text, err := os.ReadFile(filepath.Join(workspace, "weather.txt")); err != nil || string(text) != "snow\n" {
		t.Errorf("weather.txt: %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(workspace, "weather.md")); err == nil {
		t.Error("the policy let weather.md through")
	}
}
