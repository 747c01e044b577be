package verifier

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"belay/internal/smallfile"
)

// Candidate is a command by which a project could check itself.
type Candidate struct {
	Line   string // for a shell in the workspace
	Reason string // what in the project suggests it
	File   string // the file that suggests it: who changes it changes what the command means
}

const (
	maxManifest = 1 << 20  // bytes of a file that is understood as a whole; a larger one suggests nothing
	maxSample   = 64 << 10 // bytes of a file that is only looked into
	maxSamples  = 50       // test files looked into
	maxListed   = 2000     // names read of a folder
)

// Detect lists the commands by which the project in a folder can check itself, the best first, none where its
// files suggest none. Nothing is executed, and only few and small files at the top of the project are read.
//
// The order: go.mod, Cargo.toml, package.json, Python, each with its own test command, then the test or check
// target of a Makefile. Where several languages are found the Makefile comes first, because it alone can speak
// for all of them. A command whose program is not installed comes after all others.
func Detect(workspace string) []Candidate {
	return detect(workspace, func(program string) bool {
		_, err := exec.LookPath(program)
		return err == nil
	})
}

func detect(workspace string, installed func(string) bool) []Candidate {
	root, err := os.OpenRoot(workspace)
	if err != nil {
		return nil
	}
	defer root.Close()
	p := project{root, installed}
	var all []Candidate
	for _, language := range []func() (Candidate, bool){p.golang, p.rust, p.node, p.python} {
		if c, ok := language(); ok {
			all = append(all, c)
		}
	}
	if c, ok := p.makefile(); ok {
		if len(all) > 1 {
			c.Reason += "; it speaks for all languages here"
			all = slices.Insert(all, 0, c)
		} else {
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b Candidate) int { return p.missing(a) - p.missing(b) })
	for i := range all {
		if p.missing(all[i]) > 0 {
			all[i].Reason += "; " + program(all[i].Line) + " is not installed"
		}
	}
	return all
}

// project is a folder that is looked at.
type project struct {
	root      *os.Root
	installed func(program string) bool
}

func program(line string) string {
	name, _, _ := strings.Cut(line, " ")
	return name
}

func (p project) missing(c Candidate) int {
	if name := program(c.Line); strings.Contains(name, "/") || p.installed(name) { // one of the project's own was seen
		return 0
	}
	return 1
}

// read returns a file that is understood as a whole, nil where there is none or it cannot be read safely.
func (p project) read(name string) []byte {
	data, err := smallfile.Read(p.root, name, maxManifest)
	if err != nil {
		return nil
	}
	return data
}

func (p project) has(name string) bool { return smallfile.Is(p.root, name) }

func (p project) golang() (Candidate, bool) {
	return Candidate{"go test ./...", "go.mod", "go.mod"}, p.has("go.mod")
}

var cargoTable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^\s*\[\s*(package|workspace)\s*\]`) })

func (p project) rust() (Candidate, bool) {
	c := Candidate{"cargo test", "Cargo.toml", "Cargo.toml"}
	tables := cargoTable().FindAllSubmatch(p.read("Cargo.toml"), -1)
	for _, t := range tables {
		if string(t[1]) == "workspace" { // else only the package at the top would be tested
			c.Line, c.Reason = "cargo test --workspace", "Cargo.toml of a workspace"
		}
	}
	return c, len(tables) > 0
}

// watches matches a test script that waits for changes: it would never end.
var watches = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`--watch(All)?(\s|$|=true)|\bnodemon\b`) })

func (p project) node() (Candidate, bool) {
	var manifest struct {
		Scripts        map[string]any `json:"scripts"`
		PackageManager any            `json:"packageManager"`
	}
	data := bytes.TrimPrefix(p.read("package.json"), []byte("\ufeff"))
	if json.Unmarshal(data, &manifest) != nil {
		return Candidate{}, false
	}
	script, _ := manifest.Scripts["test"].(string)
	script = strings.TrimSpace(script)
	// The placeholder that `npm init` writes tests nothing.
	if script == "" || strings.Contains(script, "no test specified") || watches().MatchString(script) {
		return Candidate{}, false
	}
	line := "npm test --silent"
	switch manager, _ := manifest.PackageManager.(string); {
	case strings.HasPrefix(manager, "pnpm@"):
		line = "pnpm test"
	case strings.HasPrefix(manager, "yarn@"):
		line = "yarn test"
	case strings.HasPrefix(manager, "npm@"):
	case p.has("pnpm-lock.yaml"):
		line = "pnpm test"
	case p.has("yarn.lock"):
		line = "yarn test"
	}
	return Candidate{line, fmt.Sprintf("package.json has the script \"test\": %q", shorten(script)), "package.json"}, true
}

func shorten(s string) string {
	if r := []rune(s); len(r) > 60 {
		return string(r[:59]) + "…"
	}
	return s
}

const pytestRequirement = `(?m)^\s*pytest([ \[<>=~!;#]|\r?$)`

// Where a project says that it uses pytest.
var pytestSigns = []struct {
	file string
	says string // an expression; with "" being there says it
}{
	{"pytest.ini", ""},
	{".pytest.ini", ""},
	{"pyproject.toml", `(?m)^\s*\[\s*tool\.pytest(\.ini_options)?\s*\]|["']pytest([ \[<>=~!;"']|-)|^\s*pytest\s*=`},
	{"setup.cfg", `(?m)^\s*\[tool:pytest\]|^\s*pytest([ \[<>=~!;]|$)`},
	{"tox.ini", `(?m)^\s*\[pytest\]`},
	{"requirements.txt", pytestRequirement},
	{"requirements-dev.txt", pytestRequirement},
	{"dev-requirements.txt", pytestRequirement},
	{"requirements-test.txt", pytestRequirement},
	{"conftest.py", ""},
	{"tests/conftest.py", ""},
	{"test/conftest.py", ""},
}

var (
	pytestStyle   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^(import|from) pytest\b|^(async )?def test_`) })
	unittestStyle = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^\s*(from\s+unittest\b|import\s+([\w.]+(\s+as\s+\w+)?\s*,\s*)*unittest\b)`)
	})
	testFile   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^test.*\.py$`) })
	pytestFile = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(test_.*|.*_test)\.py$`) })
)

func (p project) python() (Candidate, bool) {
	python := p.interpreter()
	for _, sign := range pytestSigns {
		if p.has(sign.file) && (sign.says == "" || regexp.MustCompile(sign.says).Match(p.read(sign.file))) {
			return Candidate{python + " -m pytest", sign.file + " speaks of pytest", sign.file}, true
		}
	}
	unit := Candidate{}
	samples := maxSamples
	for _, dir := range []string{".", "tests", "test"} {
		for _, name := range p.names(dir) {
			if samples == 0 || !testFile().MatchString(name) && !pytestFile().MatchString(name) {
				continue
			}
			samples--
			file := path.Join(dir, name)
			text, err := smallfile.Head(p.root, file, maxSample)
			switch {
			case err != nil:
			case pytestFile().MatchString(name) && pytestStyle().Match(text):
				return Candidate{python + " -m pytest", file + " is written for pytest", file}, true
			case unit.Line == "" && testFile().MatchString(name) && unittestStyle().Match(text):
				unit = Candidate{python + " -m unittest discover", file + " is written for unittest", file}
				// Discovery does not look into a folder that is no package, unless it is named.
				if dir != "." && !p.has(dir+"/__init__.py") {
					unit.Line += " -s " + dir
				}
			}
		}
	}
	return unit, unit.Line != ""
}

// interpreter is the project's own Python where it has one, since only that knows the project's libraries.
func (p project) interpreter() string {
	for _, venv := range []string{".venv", "venv"} {
		if p.has(venv + "/pyvenv.cfg") {
			// The interpreter is a link out of the workspace, so that only the name can be looked at.
			if info, err := p.root.Lstat(venv + "/bin/python"); err == nil && !info.IsDir() {
				return venv + "/bin/python"
			}
		}
	}
	if !p.installed("python3") && p.installed("python") {
		return "python"
	}
	return "python3"
}

// names lists the files of a folder, sorted, at most the first maxListed that the system names.
func (p project) names(dir string) []string {
	info, err := p.root.Stat(dir)
	if err != nil || !info.IsDir() {
		return nil
	}
	f, err := p.root.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	entries, _ := f.ReadDir(maxListed)
	var names []string
	for _, e := range entries {
		if e.Type()&(fs.ModeDir|fs.ModeNamedPipe|fs.ModeSocket|fs.ModeDevice) == 0 {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names
}

// makefile offers the target test, else check.
func (p project) makefile() (Candidate, bool) {
	for _, name := range []string{"GNUmakefile", "makefile", "Makefile"} { // make takes the first of these
		if !p.has(name) {
			continue
		}
		rules := makeRules(string(p.read(name)))
		for _, target := range []string{"test", "check"} {
			r := rules[target]
			if !r.works {
				continue
			}
			// A file or folder called test is up to date for ever, and make would do nothing, successfully.
			if _, err := p.root.Lstat(target); err == nil && !r.phony {
				continue
			}
			return Candidate{"make " + target, name + " has the target " + target, name}, true
		}
		return Candidate{}, false
	}
	return Candidate{}, false
}
