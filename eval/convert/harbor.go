package convert

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/BurntSushi/toml"

	"belay/internal/yaml"
)

// harborTask is what task.toml says of what a trial needs.
type harborTask struct {
	Agent struct {
		Timeout float64 `toml:"timeout_sec"`
	}
	Verifier struct {
		Timeout float64 `toml:"timeout_sec"`
		Env     map[string]string
	}
	Environment struct {
		Image    string `toml:"docker_image"`
		GPUs     int    `toml:"gpus"`
		Internet *bool  `toml:"allow_internet"`
		Network  string `toml:"network_mode"`
		Workdir  string
		MCP      []map[string]any `toml:"mcp_servers"`
		Health   map[string]any   `toml:"healthcheck"`
	}
	Steps    []map[string]any
	Metadata struct{ Category string }
}

func harbor(dir, out string) ([]Verdict, error) {
	return each(dir, "task.toml", func(from string) Verdict {
		v := Verdict{Task: identifier(filepath.Base(from)), From: from}
		var h harborTask
		if _, err := toml.DecodeFile(filepath.Join(from, "task.toml"), &h); err != nil {
			v.Why = "task.toml: " + err.Error()
			return v
		}
		switch {
		case len(h.Steps) > 0:
			v.Why = "it has several steps, each with an instruction of its own; a task here has one"
		case h.Environment.Image != "":
			v.Why = "its files are in the image " + h.Environment.Image
		case h.Environment.GPUs > 0:
			v.Why = "it needs a GPU"
		case len(h.Environment.MCP) > 0:
			v.Why = "it needs MCP servers"
		case len(h.Environment.Health) > 0:
			v.Why = "it needs a service that runs in its container (healthcheck)"
		case exists(filepath.Join(from, "environment", "docker-compose.yaml")):
			v.Why = "it needs several containers (docker-compose.yaml)"
		}
		if v.Why != "" {
			return v
		}
		prompt, err := os.ReadFile(filepath.Join(from, "instruction.md"))
		if err == nil {
			err = containerTask(from, out, &v, scripts{
				prompt: string(prompt), dockerfile: filepath.Join(from, "environment", "Dockerfile"), tests: filepath.Join(from, "tests"), run: "test.sh",
				solution: filepath.Join(from, "solution"), solve: "solve.sh", kind: "harbor", category: h.Metadata.Category,
				agentSeconds: h.Agent.Timeout, testSeconds: h.Verifier.Timeout, env: h.Verifier.Env, workdir: h.Environment.Workdir, reward: true,
			})
		}
		return finish(v, out, err)
	})
}

func finish(v Verdict, out string, err error) Verdict {
	if err != nil {
		if v.To != "" {
			os.RemoveAll(v.To)
		}
		v.Why, v.To, v.Shims = err.Error(), "", nil
	}
	return v
}

func exists(name string) bool { _, err := os.Stat(name); return err == nil }

func terminalBench(dir, out string) ([]Verdict, error) {
	return each(dir, "task.yaml", func(from string) Verdict {
		v := Verdict{Task: identifier(filepath.Base(from)), From: from}
		data, err := os.ReadFile(filepath.Join(from, "task.yaml"))
		if err != nil {
			return finish(v, out, err)
		}
		if services := composeServices(filepath.Join(from, "docker-compose.yaml")); services > 1 {
			return finish(v, out, fmt.Errorf("it needs %d containers (docker-compose.yaml)", services))
		}
		s := scripts{dockerfile: filepath.Join(from, "Dockerfile"), tests: filepath.Join(from, "tests"), run: "run-tests.sh", runFile: filepath.Join(from, "run-tests.sh"),
			solution: filepath.Join(from, "solution.sh"), solve: "solution.sh", kind: "terminal-bench"}
		root, err := yaml.Parse(filepath.Join(from, "task.yaml"), "a task", data)
		if err != nil {
			return finish(v, out, err)
		}
		fields, err := root.Pairs("the task")
		if err != nil {
			return finish(v, out, err)
		}
		for _, f := range fields {
			text, _ := f.Value.Literal()
			number, _ := f.Value.Decimal()
			seconds, _ := number.Float64()
			switch f.Name {
			case "instruction":
				s.prompt = text
			case "category":
				s.category = text
			case "max_agent_timeout_sec":
				s.agentSeconds = seconds
			case "max_test_timeout_sec":
				s.testSeconds = seconds
			case "parser_name":
				if text != "pytest" && text != "" {
					return finish(v, out, fmt.Errorf("its tests are read by the parser %q; only pytest's can be run here", text))
				}
			}
		}
		if s.prompt == "" {
			return finish(v, out, errors.New("task.yaml has no instruction"))
		}
		if !exists(s.solution) {
			return finish(v, out, errors.New("its solution is keystrokes (solution.yaml) or missing, so nothing shows that it can be solved here"))
		}
		return finish(v, out, containerTask(from, out, &v, s))
	})
}

func composeServices(file string) int {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	n, inside := 0, false
	for line := range strings.Lines(string(data)) {
		switch {
		case strings.HasPrefix(line, "services:"):
			inside = true
		case inside && len(line) > 0 && line[0] != ' ' && line[0] != '#' && strings.TrimSpace(line) != "":
			inside = false
		case inside && regexp.MustCompile(`^ {2}[\w-]+:\s*$`).MatchString(line):
			n++
		}
	}
	return n
}

// scripts is what a task that was made for a container consists of.
type scripts struct {
	prompt, kind, category    string
	dockerfile                string
	tests, run, runFile       string // folder of the tests; the script that decides, in it or at runFile
	solution, solve           string // folder or file; the script in it
	workdir                   string
	agentSeconds, testSeconds float64
	env                       map[string]string
	reward                    bool // the script writes a reward; otherwise its tests decide
}

// containerTask rewrites a task for a container as one of belay's.
func containerTask(from, out string, v *Verdict, s scripts) error {
	runFile := s.runFile
	if runFile == "" {
		runFile = filepath.Join(s.tests, s.run)
	}
	for _, needed := range []string{runFile, s.solution} {
		if !exists(needed) {
			return fmt.Errorf("it has no %s", filepath.Base(needed))
		}
	}
	to, err := place(out, v.Task)
	if err != nil {
		return err
	}
	v.To = to
	workspace := filepath.Join(to, "workspace")
	if err := os.MkdirAll(workspace, 0o755); err != nil {
		return err
	}
	workdir, err := readDockerfile(s.dockerfile, workspace)
	if err != nil {
		return err
	}
	if s.workdir != "" {
		workdir = s.workdir
	}
	if exists(s.tests) {
		if err := copyInto(s.tests, filepath.Join(to, "tests")); err != nil {
			return err
		}
	}
	if err := copyInto(runFile, filepath.Join(to, "tests", s.run)); err != nil {
		return err
	}
	if info, err := os.Stat(s.solution); err == nil && info.IsDir() {
		err = copyInto(s.solution, filepath.Join(to, "solution"))
		if err != nil {
			return err
		}
	} else if err := copyInto(s.solution, filepath.Join(to, "solution", s.solve)); err != nil {
		return err
	}
	for name, text := range commandShims {
		if err := copyText(filepath.Join(to, "shims", name), text); err != nil {
			return err
		}
	}
	if err := copyText(filepath.Join(to, "shims", "run_tests.py"), pyRunner); err != nil {
		return err
	}
	v.Shims = []string{"apt-get, apt, pip, curl and wget do nothing and say so", "uv, uvx and pytest run the tests with a runner of our own where pytest is not installed",
		workdir + ", /tests and /logs are replaced by real places in every text file"}
	line := `PATH="$BELAY_TESTS_DIR/shims:$PATH" bash "$BELAY_TESTS_DIR/` + s.run + `"`
	reward := "\n    reward: file"
	if !s.reward {
		line = `export TEST_DIR="$BELAY_TESTS_DIR"; PATH="$BELAY_TESTS_DIR/shims:$PATH" python3 "$BELAY_TESTS_DIR/shims/run_tests.py" "$BELAY_TESTS_DIR/test_outputs.py"`
		reward = ""
		v.Shims = append(v.Shims, s.run+" is not run: its tests are, by the runner")
		if !exists(filepath.Join(s.tests, "test_outputs.py")) {
			return errors.New("it has no tests/test_outputs.py, and what its script prints cannot be trusted")
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "id: %s\nsource: {kind: %s, url: %s}\n", v.Task, s.kind, quote(filepath.Base(from)))
	if s.category != "" {
		fmt.Fprintf(&b, "category: %s\n", quote(s.category))
	}
	fmt.Fprintf(&b, "workspace: {dir: workspace}\nprompt: %s\n", quote(s.prompt))
	if s.agentSeconds > 0 {
		fmt.Fprintf(&b, "budget: {wall_seconds: %g}\n", s.agentSeconds)
	}
	fmt.Fprintf(&b, "paths: {%s: workspace, /tests: tests, /logs: logs}\nshims: %s\n", quote(workdir), list(v.Shims))
	fmt.Fprintf(&b, "graders:\n  - name: tests\n    type: code\n    run: %s\n    files: {tests: /tests, shims: /tests/shims}%s\n", quote(line), reward)
	if s.testSeconds > 0 {
		fmt.Fprintf(&b, "    timeout: %gs\n", min(s.testSeconds, 3600))
	}
	if len(s.env) > 0 {
		var pairs []string
		for name, value := range s.env {
			if strings.Contains(value, "${") {
				return fmt.Errorf("its verifier wants %s from outside (%s)", name, value)
			}
			pairs = append(pairs, quote(name)+": "+quote(value))
		}
		fmt.Fprintf(&b, "    env: {%s}\n", strings.Join(pairs, ", "))
	}
	fmt.Fprintf(&b, "oracle:\n  run: %s\n  lay: {solution: solution, shims: shims}\n", quote(`PATH="$BELAY_CONTROL_DIR/shims:$PATH" bash "$BELAY_CONTROL_DIR/solution/`+s.solve+`"`))
	return copyText(filepath.Join(to, "task.yaml"), b.String())
}

func copyText(to, text string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, []byte(text), 0o755)
}

// commandShims stand in for what downloads.
var commandShims = map[string]string{
	"apt-get": shimNothing, "apt": shimNothing, "pip": shimNothing, "pip3": shimNothing, "curl": shimNothing, "wget": shimNothing,
	"uv": "#!/bin/sh\n[ \"$1\" = run ] || exit 0\nshift\nexec \"$(dirname \"$0\")/uvx\" \"$@\"\n",
	"uvx": `#!/bin/sh
# the tests among the arguments, and nothing of what would be installed
for a in "$@"; do
  case "$a" in *.py) set -- "$a"; break;; esac
done
exec python3 "$(dirname "$0")/run_tests.py" "$1"
`,
	"pytest": "#!/bin/sh\nexec \"$(dirname \"$0\")/uvx\" \"$@\"\n",
}

const shimNothing = "#!/bin/sh\necho \"$(basename \"$0\"): not run: there is no network here\" >&2\n"

var harmless = regexp.MustCompile(`^(apt-get|apt|rm -rf /var/lib/apt|mkdir|pip3? install|true|chmod|:)`)

// readDockerfile builds the workspace that a Dockerfile would make of COPY and WORKDIR, and refuses one whose RUN does what cannot be redone.
func readDockerfile(file, workspace string) (workdir string, err error) {
	workdir = "/app"
	data, err := os.ReadFile(file)
	if err != nil {
		return "", errors.New("it has no Dockerfile, so where its files come from is unknown")
	}
	text := strings.ReplaceAll(string(data), "\\\n", " ")
	for line := range strings.Lines(text) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		rest = strings.TrimSpace(rest)
		switch strings.ToUpper(word) {
		case "FROM":
			if image, _, _ := strings.Cut(rest, " "); !plainImage(image) {
				return "", fmt.Errorf("its files are in the image %s", image)
			}
		case "WORKDIR":
			workdir = filepath.Clean(rest)
		case "RUN":
			for part := range strings.SplitSeq(rest, "&&") {
				part = strings.TrimSpace(part)
				if strings.HasPrefix(part, "apt") && strings.Contains(part, "install") {
					for _, name := range strings.Fields(part) {
						if needsProgram[name] {
							return "", fmt.Errorf("it needs the package %s, which its Dockerfile installs from the network", name)
						}
					}
				}
				if !harmless.MatchString(part) && part != "" {
					return "", fmt.Errorf("its image is built by `%s`, which needs a container", short(part))
				}
			}
		case "COPY", "ADD":
			fields := strings.Fields(rest)
			if len(fields) < 2 || strings.HasPrefix(fields[0], "--") || strings.Contains(fields[0], "://") {
				return "", fmt.Errorf("its Dockerfile says `%s %s`, which cannot be redone here", word, short(rest))
			}
			for _, source := range fields[:len(fields)-1] {
				if err := copyFromContext(filepath.Dir(file), source, fields[len(fields)-1], workdir, workspace); err != nil {
					return "", err
				}
			}
		}
	}
	return workdir, nil
}

// needsProgram are packages without which a task makes no sense.
var needsProgram = map[string]bool{"qemu-system": true, "qemu-system-x86": true, "nginx": true, "postgresql": true, "mysql-server": true, "redis-server": true, "openssh-server": true, "docker.io": true, "coq": true, "gnucobol": true}

func plainImage(image string) bool {
	for _, name := range []string{"ubuntu", "debian", "python", "node", "golang", "alpine", "gcc", "ghcr.io/laude-institute/t-bench/"} {
		if image == name || strings.HasPrefix(image, name+":") || strings.HasSuffix(name, "/") && strings.HasPrefix(image, name) {
			return true
		}
	}
	return false
}

func copyFromContext(context, source, target, workdir, workspace string) error {
	if !filepath.IsAbs(target) {
		target = filepath.Join(workdir, target) + map[bool]string{true: "/"}[strings.HasSuffix(target, "/") || target == "."]
	}
	rel, err := filepath.Rel(workdir, target)
	if err != nil || !filepath.IsLocal(rel) {
		return fmt.Errorf("it copies %s to %s, outside of its working folder %s", source, target, workdir)
	}
	if !filepath.IsLocal(source) {
		return fmt.Errorf("it copies %s from outside of its folder", source)
	}
	found, err := filepath.Glob(filepath.Join(context, source))
	if err != nil || len(found) == 0 {
		return fmt.Errorf("its Dockerfile copies %s, which is not there", source)
	}
	for _, from := range found {
		to := filepath.Join(workspace, rel)
		if info, err := os.Stat(from); err == nil && !info.IsDir() && (strings.HasSuffix(target, "/") || len(found) > 1 || rel == ".") {
			to = filepath.Join(to, filepath.Base(from))
		}
		if err := copyInto(from, to); err != nil {
			return err
		}
	}
	return nil
}

func short(s string) string {
	if len(s) > 60 {
		return s[:57] + "…"
	}
	return s
}
