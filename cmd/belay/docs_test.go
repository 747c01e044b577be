package main

import (
	"bufio"
	"errors"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"belay/internal/demo"
	"belay/model/rehearsal"
	"belay/model/rehearsal/serve"
)

// TestDocs runs every command that a document shows in a block marked sh, in the order in which they stand:
// what a reader types must work. A document's commands share one HOME and one folder, which holds the demo's
// project and, as script.yaml, its script. A comment "exit N" is the exit code that the text promises.
func TestDocs(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", bin, root+"/cmd/belay").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	goEnv := goEnvironment(t, "GOMODCACHE", "GOCACHE")
	script, err := rehearsal.Parse(demo.ScriptName, demo.Script())
	if err != nil {
		t.Fatal(err)
	}
	provider := httptest.NewServer(serve.New(script)) // what the documents call a model is the demo's script over HTTP
	defer provider.Close()
	for _, document := range documents(t, root) {
		commands := shown(t, document)
		if len(commands) == 0 {
			continue
		}
		name, err := filepath.Rel(root, document)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			workspace := filepath.Join(home, "project")
			unpack(t, workspace)
			env := append(os.Environ(), goEnv...)
			env = append(env, "HOME="+home, "BELAY_HOME="+filepath.Join(home, "state"), "XDG_CONFIG_HOME=", "XDG_STATE_HOME=",
				"PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "NO_COLOR=1",
				"ANTHROPIC_API_KEY=none", "ANTHROPIC_BASE_URL="+provider.URL, "OPENAI_API_KEY=none", "OPENAI_BASE_URL="+provider.URL+"/v1")
			for _, c := range commands {
				if strings.HasPrefix(c.line, "belay run ") {
					unpack(t, workspace) // each run finds the bug anew
				}
				run := exec.Command("sh", "-c", c.line)
				run.Env, run.Dir = env, workspace
				if strings.Contains(c.line, "./cmd/belay") || strings.Contains(c.line, "suites/") {
					run.Dir = root
				}
				out, err := run.CombinedOutput()
				code := 0
				if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
					code = exit.ExitCode()
				} else if err != nil {
					t.Fatal(err)
				}
				if code != c.exit {
					t.Errorf("line %d: %s\nexit %d, want %d\n%s", c.number, c.line, code, c.exit, out)
				}
			}
		})
	}
}

// unpack puts the demo's project and its script where the commands run.
func unpack(t *testing.T, workspace string) {
	t.Helper()
	if err := os.RemoveAll(workspace); err != nil {
		t.Fatal(err)
	}
	if err := demo.Unpack(workspace); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(workspace, "script.yaml"), demo.Script(), 0o644); err != nil {
		t.Fatal(err)
	}
}

type shownCommand struct {
	number int // of the line in the document
	line   string
	exit   int
}

var promise = regexp.MustCompile(`\s+# exit (\d+)$`)

// shown lists the commands in the document's sh blocks, but for this test's own.
func shown(t *testing.T, document string) []shownCommand {
	t.Helper()
	file, err := os.Open(document)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var commands []shownCommand
	inside := false
	lines := bufio.NewScanner(file)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		switch {
		case strings.HasPrefix(line, "```"):
			inside = !inside && line == "```sh"
		case !inside || line == "" || strings.HasPrefix(line, "#") || line == "go test ./...":
		default:
			c := shownCommand{number: number, line: line}
			if m := promise.FindStringSubmatch(line); m != nil {
				c.exit, _ = strconv.Atoi(m[1])
			}
			commands = append(commands, c)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return commands
}

func documents(t *testing.T, root string) []string {
	t.Helper()
	all := []string{filepath.Join(root, "README.md")}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}
