package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"belay"
)

func TestMain(m *testing.M) {
	belay.Init() // the sandbox starts this test binary again
	testscript.Main(m, map[string]func(){"belay": main})
}

// TestScripts tells what the command line promises, as stories about the process: testdata/script/*.txtar.
// Each story has its own HOME and BELAY_HOME; the module cache is the real one, read-only and offline.
func TestScripts(t *testing.T) {
	goEnv := goEnvironment(t, "GOMODCACHE", "GOCACHE")
	suites, err := filepath.Abs(filepath.Join("..", "..", "suites"))
	if err != nil {
		t.Fatal(err)
	}
	isolated := sync.OnceValues(func() (bool, error) { return sandboxAvailable(t.TempDir()) })
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("..", "..", "testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			for _, dir := range []string{"home", "ws"} {
				if err := os.MkdirAll(filepath.Join(env.WorkDir, dir), 0o755); err != nil {
					return err
				}
			}
			env.Vars = append(env.Vars, goEnv...)
			env.Setenv("HOME", filepath.Join(env.WorkDir, "home"))
			env.Setenv("BELAY_HOME", filepath.Join(env.WorkDir, "state"))
			env.Setenv("SUITES", suites)
			for name, value := range map[string]string{"GOPROXY": "off", "GOSUMDB": "off", "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off", "NO_COLOR": "1", "XDG_STATE_HOME": ""} {
				env.Setenv(name, value)
			}
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond == "sandbox" {
				return isolated()
			}
			return false, fmt.Errorf("unknown condition %q", cond)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits": exits, "json": jsonValue, "setjson": setJSON, "flip": flip, "await": await, "copymodule": copyModule, "replace": replace, "fetch": fetch, "array": array, "same": same,
		},
	})
}

func goEnvironment(t *testing.T, names ...string) []string {
	t.Helper()
	out, err := exec.Command("go", append([]string{"env"}, names...)...).Output()
	if err != nil {
		t.Fatalf("go env: %v", err)
	}
	var env []string
	for i, value := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		env = append(env, names[i]+"="+value)
	}
	return env
}

// sandboxAvailable asks belay itself: a run without isolation says so in its journal.
func sandboxAvailable(dir string) (bool, error) {
	ws, script := filepath.Join(dir, "ws"), filepath.Join(dir, "hi.yaml")
	if err := os.Mkdir(ws, 0o755); err != nil {
		return false, err
	}
	if err := os.WriteFile(script, []byte("version: 1\nturns: [{say: hi}]\n"), 0o644); err != nil {
		return false, err
	}
	cmd := exec.Command("belay", "run", "say hi", "--model", "rehearsal:"+script, "--workspace", ws, "--json")
	cmd.Env = append(os.Environ(), "BELAY_HOME="+filepath.Join(dir, "state"))
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return false, err
	}
	var run struct {
		Dir string `json:"dir"`
	}
	if err := json.Unmarshal(out, &run); err != nil {
		return false, fmt.Errorf("the probe printed %q: %w", out, err)
	}
	log, err := os.ReadFile(filepath.Join(run.Dir, "journal.jsonl"))
	return !strings.Contains(string(log), `"component":"sandbox"`), err
}

// exits CODE PROGRAM ARG… runs a program that must exit with exactly that code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARG…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit := (*exec.ExitError)(nil)
		if !errors.As(err, &exit) {
			ts.Fatalf("%s: %v", args[1], err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// lookup finds a value in a JSON file: "proof.0.exit"; "." is the whole.
func lookup(ts *testscript.TestScript, file, path string) string {
	var value any
	if err := json.Unmarshal([]byte(ts.ReadFile(file)), &value); err != nil {
		ts.Fatalf("%s is not JSON: %v", file, err)
	}
	for _, key := range strings.FieldsFunc(path, func(r rune) bool { return r == '.' }) {
		switch v := value.(type) {
		case map[string]any:
			next, ok := v[key]
			if !ok {
				ts.Fatalf("%s: no %q in %s", path, key, encode(v))
			}
			value = next
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(v) {
				ts.Fatalf("%s: no element %q of %d", path, key, len(v))
			}
			value = v[i]
		default:
			ts.Fatalf("%s: %q of a value that has no parts: %s", path, key, encode(v))
		}
	}
	if s, ok := value.(string); ok {
		return s
	}
	return encode(value)
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// json FILE PATH PATTERN compares a value with a regular expression that must match all of it.
func jsonValue(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: [!] json FILE PATH PATTERN")
	}
	got := lookup(ts, args[0], args[1])
	re, err := regexp.Compile(`(?s)^(?:` + args[2] + `)$`)
	ts.Check(err)
	if re.MatchString(got) == neg {
		ts.Fatalf("%s is %q, pattern %q (negated: %v)", args[1], got, args[2], neg)
	}
}

// array FILE OUT makes one JSON array of a file with a JSON value a line.
func array(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: array FILE OUT")
	}
	lines := strings.Split(strings.TrimSuffix(ts.ReadFile(args[0]), "\n"), "\n")
	for i, line := range lines {
		if !json.Valid([]byte(line)) {
			ts.Fatalf("line %d is not JSON: %s", i+1, line)
		}
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte("["+strings.Join(lines, ",\n")+"]"), 0o644))
}

// same NAME NAME compares two environment variables.
func same(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: same NAME NAME")
	}
	if a, b := ts.Getenv(args[0]), ts.Getenv(args[1]); a == "" || a != b {
		ts.Fatalf("%s and %s differ:\n%s\n%s", args[0], args[1], a, b)
	}
}

// setjson NAME FILE PATH keeps a value in an environment variable.
func setJSON(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: setjson NAME FILE PATH")
	}
	ts.Setenv(args[0], lookup(ts, args[1], args[2]))
}

// flip FILE PERCENT changes the lowest bit of one byte; the same command again changes it back.
func flip(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: flip FILE PERCENT")
	}
	percent, err := strconv.Atoi(args[1])
	ts.Check(err)
	path := ts.MkAbs(args[0])
	data, err := os.ReadFile(path)
	ts.Check(err)
	data[(len(data)-1)*percent/100] ^= 1
	ts.Check(os.WriteFile(path, data, 0o600))
}

// replace FILE OLD NEW replaces a text that must be there exactly once.
func replace(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: replace FILE OLD NEW")
	}
	text := ts.ReadFile(args[0])
	if n := strings.Count(text, args[1]); n != 1 {
		ts.Fatalf("%q is in %s %d times", args[1], args[0], n)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Replace(text, args[1], args[2], 1)), 0o644))
}

// await GLOB PATTERN waits until a file whose path matches holds the pattern. It looks again and again, since what
// it waits for is another process's write; a minute without it is a failure.
func await(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: await GLOB PATTERN")
	}
	re, err := regexp.Compile(args[1])
	ts.Check(err)
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		paths, err := filepath.Glob(ts.MkAbs(args[0]))
		ts.Check(err)
		for _, p := range paths {
			if data, err := os.ReadFile(p); err == nil && re.Match(data) {
				return
			}
		}
	}
	ts.Fatalf("no file %s ever held %s", args[0], args[1])
}

// fetch URLFILE PATH BODYFILE ANSWERFILE posts a JSON body to the URL in a file, and keeps the body of the answer, which
// must be a good one.
func fetch(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: fetch URLFILE PATH BODYFILE ANSWERFILE")
	}
	request, err := http.NewRequest(http.MethodPost, strings.TrimSpace(ts.ReadFile(args[0]))+args[1], strings.NewReader(ts.ReadFile(args[2])))
	ts.Check(err)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Anthropic-Version", "2023-06-01")
	response, err := http.DefaultClient.Do(request)
	ts.Check(err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	ts.Check(err)
	if response.StatusCode != http.StatusOK {
		ts.Fatalf("%s: %s", response.Status, body)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[3]), body, 0o644))
}

// copymodule MODULE DIR copies the source of a dependency of belay out of the module cache, writable.
func copyModule(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: copymodule MODULE DIR")
	}
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", args[0]).Output()
	ts.Check(err)
	from, to := strings.TrimSpace(string(out)), ts.MkAbs(args[1])
	if from == "" {
		ts.Fatalf("%s is not in the module cache; run go mod download", args[0])
	}
	ts.Check(filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o755)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, rel), data, 0o644)
	}))
}
