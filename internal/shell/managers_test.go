package shell

import (
	"os"
	"path/filepath"
	"testing"

	"belay/tool"
)

// A package manager that a project makes run code of its own does more than print its version.
func TestVersionOfAManagerThatRunsTheProject(t *testing.T) {
	for line, files := range map[string]map[string]string{
		"yarn --version": {".yarnrc.yml": "yarnPath: evil.js\n", ".yarnrc": "yarn-path evil.js\n", "package.json": `{"packageManager":"yarn@4"}`},
		"pnpm -v":        {"package.json": `{"packageManager":"pnpm@9"}`},
		"mvn --version":  {".mvn/jvm.config": "-javaagent:evil.jar\n"},
	} {
		for name, text := range files {
			for _, sub := range []string{"", "sub"} {
				dir := t.TempDir()
				place := tool.Place{Workspace: dir, Dir: filepath.Join(dir, sub), Home: dir}
				if p, err := Analyze(line, place); err != nil || !p.Reads() {
					t.Errorf("%s: %v %v", line, p.Effects, err)
				}
				if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
				if p, err := Analyze(line, place); err != nil || p.Reads() {
					t.Errorf("%s with %s: %v %v", line, name, p.Effects, err)
				}
			}
		}
	}
	if p, err := Analyze("cd $X && yarn --version", tool.Place{Workspace: "/w", Dir: "/w", Home: "/h"}); err != nil || p.Reads() {
		t.Errorf("a folder that is not known: %v %v", p.Effects, err)
	}
}
