package verifier

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// project makes a folder with these files.
func makeProject(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func everything(string) bool { return true }

func lines(candidates []Candidate) []string {
	var all []string
	for _, c := range candidates {
		all = append(all, c.Line)
	}
	return all
}

func TestDetect(t *testing.T) {
	const (
		makeTest = ".PHONY: test\ntest:\n\tgo test ./...\n"
		npm      = `{"scripts": {"test": "jest"}}`
		unit     = "import unittest\n\nclass T(unittest.TestCase):\n    def test_it(self): pass\n"
		pytest   = "from app import add\n\ndef test_add():\n    assert add(1, 1) == 2\n"
	)
	for _, c := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"nothing", map[string]string{"README.md": "hi"}, nil},
		{"go", map[string]string{"go.mod": "module x\n"}, []string{"go test ./..."}},
		{"go.mod is a folder", map[string]string{"go.mod/x": ""}, nil},
		{"not at the top", map[string]string{"sub/go.mod": "module x\n"}, nil},

		{"npm", map[string]string{"package.json": npm}, []string{"npm test --silent"}},
		{"npm with a byte order mark", map[string]string{"package.json": "\ufeff" + npm}, []string{"npm test --silent"}},
		{"pnpm by its lock", map[string]string{"package.json": npm, "pnpm-lock.yaml": ""}, []string{"pnpm test"}},
		{"yarn by its lock", map[string]string{"package.json": npm, "yarn.lock": ""}, []string{"yarn test"}},
		{"the manager by name", map[string]string{"package.json": `{"packageManager": "pnpm@9.1.0", "scripts": {"test": "vitest run"}}`, "yarn.lock": ""}, []string{"pnpm test"}},
		{"npm by name", map[string]string{"package.json": `{"packageManager": "npm@10.0.0", "scripts": {"test": "x"}}`, "yarn.lock": ""}, []string{"npm test --silent"}},
		{"npm's placeholder", map[string]string{"package.json": `{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}`}, nil},
		{"no script", map[string]string{"package.json": `{"scripts": {"build": "tsc"}}`}, nil},
		{"empty script", map[string]string{"package.json": `{"scripts": {"test": " "}}`}, nil},
		{"a script that watches", map[string]string{"package.json": `{"scripts": {"test": "jest --watch"}}`}, nil},
		{"a script that does not watch", map[string]string{"package.json": `{"scripts": {"test": "jest --watchAll=false"}}`}, []string{"npm test --silent"}},
		{"a script that is no text", map[string]string{"package.json": `{"scripts": {"test": 5}}`}, nil},
		{"scripts that are no mapping", map[string]string{"package.json": `{"scripts": []}`}, nil},
		{"broken package.json", map[string]string{"package.json": `{"scripts": {`}, nil},
		{"package.json is a list", map[string]string{"package.json": `[1]`}, nil},

		{"cargo", map[string]string{"Cargo.toml": "[package]\nname = \"x\"\n"}, []string{"cargo test"}},
		{"cargo workspace", map[string]string{"Cargo.toml": "[workspace]\nmembers = [\"a\"]\n"}, []string{"cargo test --workspace"}},
		{"cargo workspace with a package", map[string]string{"Cargo.toml": "[package]\nname = \"x\"\n[workspace]\n"}, []string{"cargo test --workspace"}},
		{"Cargo.toml without either", map[string]string{"Cargo.toml": "# [package]\n"}, nil},

		{"pytest in pyproject", map[string]string{"pyproject.toml": "[tool.pytest.ini_options]\naddopts = \"-q\"\n"}, []string{"python3 -m pytest"}},
		{"pytest as a dependency", map[string]string{"pyproject.toml": "[project.optional-dependencies]\ndev = [\"pytest>=8\"]\n"}, []string{"python3 -m pytest"}},
		{"a pytest plugin as a dependency", map[string]string{"pyproject.toml": "dev = [\n  \"pytest-cov\",\n]\n"}, []string{"python3 -m pytest"}},
		{"pytest in poetry", map[string]string{"pyproject.toml": "[tool.poetry.group.dev.dependencies]\npytest = \"^8\"\n"}, []string{"python3 -m pytest"}},
		{"pyproject without tests", map[string]string{"pyproject.toml": "[project]\nname = \"nopytest\"\n"}, nil},
		{"setup.cfg", map[string]string{"setup.cfg": "[tool:pytest]\n"}, []string{"python3 -m pytest"}},
		{"tox.ini", map[string]string{"tox.ini": "[pytest]\n"}, []string{"python3 -m pytest"}},
		{"requirements", map[string]string{"requirements-dev.txt": "black\r\npytest\r\n"}, []string{"python3 -m pytest"}},
		{"requirements of something else", map[string]string{"requirements.txt": "pytestify==1\n"}, nil},
		{"conftest", map[string]string{"tests/conftest.py": ""}, []string{"python3 -m pytest"}},
		{"pytest style", map[string]string{"test_app.py": pytest}, []string{"python3 -m pytest"}},
		{"pytest style beside unittest", map[string]string{"test_a.py": unit, "tests/test_b.py": pytest}, []string{"python3 -m pytest"}},
		{"unittest", map[string]string{"test_app.py": unit}, []string{"python3 -m unittest discover"}},
		{"unittest beside another import", map[string]string{"test_app.py": strings.Replace(unit, "import unittest", "import os,unittest", 1)}, []string{"python3 -m unittest discover"}},
		{"unittest in a package", map[string]string{"tests/__init__.py": "", "tests/test_app.py": unit}, []string{"python3 -m unittest discover"}},
		{"unittest in a folder", map[string]string{"tests/test_app.py": unit}, []string{"python3 -m unittest discover -s tests"}},
		{"its own interpreter", map[string]string{"pytest.ini": "", ".venv/pyvenv.cfg": "", ".venv/bin/python": ""}, []string{".venv/bin/python -m pytest"}},
		{"an environment without interpreter", map[string]string{"pytest.ini": "", "venv/pyvenv.cfg": ""}, []string{"python3 -m pytest"}},

		{"make test", map[string]string{"Makefile": makeTest}, []string{"make test"}},
		{"make check", map[string]string{"Makefile": "check: all\n"}, []string{"make check"}},
		{"make takes GNUmakefile", map[string]string{"Makefile": makeTest, "GNUmakefile": "all:\n\techo\n"}, nil},
		{"a folder in the way of the target", map[string]string{"Makefile": "test:\n\ttrue\n", "test/x": ""}, nil},
		{"a folder beside a phony target", map[string]string{"Makefile": makeTest, "test/x": ""}, []string{"make test"}},

		{"a language before its Makefile", map[string]string{"go.mod": "module x\n", "Makefile": makeTest}, []string{"go test ./...", "make test"}},
		{"the Makefile before several languages", map[string]string{"go.mod": "module x\n", "package.json": npm, "Makefile": makeTest}, []string{"make test", "go test ./...", "npm test --silent"}},
		{"several languages", map[string]string{"go.mod": "module x\n", "package.json": npm, "Cargo.toml": "[package]\n", "pytest.ini": ""},
			[]string{"go test ./...", "cargo test", "npm test --silent", "python3 -m pytest"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := detect(makeProject(t, c.files), everything)
			if d := cmp.Diff(c.want, lines(got)); d != "" {
				t.Error(d)
			}
			for _, found := range got {
				if found.Reason == "" || found.File == "" {
					t.Errorf("%q does not say why", found.Line)
				}
			}
		})
	}
}

func TestWhatIsNotInstalledComesLast(t *testing.T) {
	dir := makeProject(t, map[string]string{"go.mod": "module x\n", "Cargo.toml": "[package]\n", "pytest.ini": ""})
	got := detect(dir, func(program string) bool { return program == "python" })
	if d := cmp.Diff([]string{"python -m pytest", "go test ./...", "cargo test"}, lines(got)); d != "" {
		t.Error(d)
	}
	if got[1].Reason != "go.mod; go is not installed" {
		t.Error(got[1].Reason)
	}
	if detect(filepath.Join(dir, "none"), everything) != nil {
		t.Error("a folder that is not there suggests something")
	}
}

// TestDetectSurvives looks at what a stranger may have put there. What is unreadable for root is not.
func TestDetectSurvives(t *testing.T) {
	dir := t.TempDir()
	names := []string{"package.json", "Cargo.toml", "pyproject.toml", "setup.cfg", "Makefile", "tox.ini"}
	for i, name := range names {
		path := filepath.Join(dir, name)
		var err error
		switch i % 3 {
		case 0:
			err = os.Symlink(name, path)
		case 1:
			var f *os.File
			if f, err = os.Create(path); err == nil {
				err = f.Truncate(5 << 30) // sparse
				f.Close()
			}
		case 2:
			err = os.WriteFile(path, []byte("[tool.nothing]\n"), 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	outside := makeProject(t, map[string]string{"test_x.py": "def test_x(): pass\n"})
	for _, link := range [][2]string{{outside, "tests"}, {".", "test"}, {filepath.Join(outside, "test_x.py"), "test_link.py"}, {"/dev/zero", "test_zero.py"}} {
		if err := os.Symlink(link[0], filepath.Join(dir, link[1])); err != nil {
			t.Fatal(err)
		}
	}
	if got := detect(dir, everything); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

func TestMakeRules(t *testing.T) {
	for _, c := range []struct {
		name, text   string
		works, phony bool // of test
	}{
		{"recipe", "test:\n\tgo test\n", true, false},
		{"recipe after a comment and a blank line", "test:\n# now\n\n\tgo test\n", true, false},
		{"recipe on the line", "test: ; go test\n", true, false},
		{"prerequisites", "test: unit\n", true, false},
		{"order-only prerequisites", "test: | unit\n", true, false},
		{"several targets", "check test : all\n", true, false},
		{"double colon", "test::\n\tgo test\n", true, false},
		{"carriage returns", "test:\r\n\tgo test\r\n", true, false},
		{"continued", "check \\\n  test: \\\n  unit\n", true, false},
		{"grouped", "test check&:\n\tgo test\n", true, false},
		{"conditional between", "test:\nifdef V\n\tgo test -v\nelse\n\tgo test\nendif\n", true, false},
		{"phony", ".PHONY: build test\ntest:\n\tgo test\n", true, true},
		{"phony only", ".PHONY: test\n", false, true},
		{"nothing to do", "test:\n", false, false},
		{"comment as recipe", "test:\n\t# later\n", false, false},
		{"recipe of another", "test:\nall:\n\tgo test\n", false, false},
		{"variable between", "test:\nX = 1\n\tgo test\n", false, false},
		{"simple variable", "test := 5\n", false, false},
		{"variable", "test = a:b\n", false, false},
		{"appended variable", "test += a:b\n", false, false},
		{"shell variable", "test != echo a:b\n", false, false},
		{"exported variable", "export test := a\n", false, false},
		{"variable of the target", "test: CGO = 0\n", false, false},
		{"in define", "define HELP\ntest: all\n\tgo test\nendef\n", false, false},
		{"in a comment", "# test: all\n", false, false},
		{"longer names", "test-unit: all\nmytest: all\n", false, false},
		{"in a recipe", "all:\n\ttest: x\n", false, false},
		{"after define", "define X\nendef\ntest: all\n", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, want := makeRules(c.text)["test"], (makeRule{c.works, c.phony}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func FuzzMakeRules(f *testing.F) {
	f.Add(".PHONY: test\ntest: a\n\tb\n")
	f.Add("define x\n")
	f.Add("a := b:c\n\\\n:::\n&:\n")
	f.Fuzz(func(t *testing.T, text string) {
		for name := range makeRules(text) {
			if name == "" || strings.ContainsAny(name, " \t\n") {
				t.Errorf("target %q", name)
			}
		}
	})
}
