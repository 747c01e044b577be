package verifier

import (
	"path"
	"slices"
	"strings"
)

// Decides says whether a file decides what a test run finds: tests and what they share, and the files in which
// a project says how it is tested. An agent that changes one may still be right, but then the tests that it
// was given no longer judge it. The path is relative to the workspace, with slashes.
func Decides(file string) bool {
	name := path.Base(file)
	if slices.Contains(deciders, name) {
		return true
	}
	stem := strings.TrimSuffix(name, path.Ext(name))
	switch {
	case strings.HasSuffix(name, "_test.go"), strings.HasSuffix(stem, ".test"), strings.HasSuffix(stem, ".spec"),
		path.Ext(name) == ".py" && (strings.HasPrefix(name, "test_") || strings.HasSuffix(stem, "_test")):
		return true
	}
	if slices.Contains(scriptEnds, path.Ext(name)) {
		for _, word := range []string{"test", "tests", "check", "run_tests", "run-tests", "runtests"} {
			if stem == word || strings.HasPrefix(stem, "test_") || strings.HasPrefix(stem, "test-") || strings.HasSuffix(stem, "_test") || strings.HasSuffix(stem, "-test") {
				return true
			}
		}
	}
	if strings.HasPrefix(file, ".github/") || strings.HasPrefix(file, ".circleci/") || strings.HasSuffix(name, ".mk") || file == ".cargo/config.toml" || file == ".cargo/config" {
		return true
	}
	for _, dir := range strings.Split(path.Dir(file), "/") {
		if slices.Contains(testDirs, dir) {
			return true
		}
	}
	return false
}

// deciders say how a project is tested.
var deciders = []string{
	"Makefile", "makefile", "GNUmakefile", "package.json", "conftest.py", "pytest.ini", "tox.ini", "noxfile.py", "setup.cfg", "pyproject.toml",
	"jest.config.js", "jest.config.ts", "jest.config.mjs", "jest.config.cjs", "vitest.config.js", "vitest.config.ts", "vitest.config.mjs",
	"tsconfig.json", "ruff.toml", ".ruff.toml", "mypy.ini", ".golangci.yml", ".golangci.yaml", ".eslintrc", ".eslintrc.js", ".eslintrc.json", ".eslintrc.yml", "eslint.config.js", "eslint.config.mjs",
	".coveragerc", "codecov.yml", ".codecov.yml", ".nycrc", ".nycrc.json", ".gitlab-ci.yml", ".travis.yml", "azure-pipelines.yml", "Jenkinsfile", "sitecustomize.py", "usercustomize.py",
	"jest.setup.js", "jest.setup.ts", "vitest.setup.js", "vitest.setup.ts", ".npmrc", "pytest.py", "unittest.py", "justfile", "Taskfile.yml",
	"playwright.config.ts", "playwright.config.js", ".mocharc.js", ".mocharc.json", ".mocharc.yml", "karma.conf.js", "go.work",
}

// scriptEnds are those of files that a Makefile or a package's scripts run as tests, by no other sign than their name.
var scriptEnds = []string{".sh", ".bash", ".bats", ".py", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php"}

// testDirs hold tests, or what they read.
var testDirs = []string{"test", "tests", "__tests__", "testdata", "spec"}
