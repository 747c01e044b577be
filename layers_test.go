package belay_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// layers says which packages of this module each package may import, besides the standard library. Lower
// never imports higher; contracts never import each other; mechanisms never import each other.
var layers = map[string][]string{
	".": {"internal/sandbox/helper"},

	// vocabulary
	"message": {},
	"effect":  {},

	// contracts
	"journal":    {"message", "effect", "internal/failpoint"},
	"tool":       {"message", "effect"},
	"policy":     {"message", "effect"},
	"checkpoint": {},
	"handoff":    {},

	// meeting points
	"model":                 {"message"},
	"model/stream":          {"message", "model"},
	"model/wire":            {"message", "model", "model/stream"},
	"model/anthropic":       {"message", "model", "model/stream", "model/wire"},
	"model/openai":          {"message", "model", "model/stream", "model/wire"},
	"model/gemini":          {"message", "model", "model/stream", "model/wire"},
	"model/rehearsal":       {"message", "model", "model/stream", "internal/yaml"},
	"model/rehearsal/serve": {"message", "model", "model/rehearsal", "model/stream", "model/wire"},
	"verify":                {"message", "effect"},

	// loops
	"loop": {"message", "effect", "journal", "tool", "policy", "handoff", "model", "verify", "internal/projection", "internal/failpoint"},

	"eval/stats":   {},
	"eval/convert": {"internal/yaml"},
	"eval":         {"message", "effect", "journal", "verify", "eval/stats", "internal/yaml"},

	// assembly
	"harness": {"checkpoint", "internal/failpoint", "message", "effect", "journal", "tool", "policy", "handoff", "model", "model/anthropic", "model/gemini", "model/openai", "model/rehearsal", "verify", "loop", "tools",
		"internal/features", "internal/hook", "internal/judge", "internal/circumvention", "internal/committable", "internal/keys", "internal/redact", "internal/smallfile", "internal/memory",
		"internal/projection", "internal/sandbox", "internal/snapshot", "internal/verifier"},
	"tools":     {"internal/unified", "internal/yaml", "message", "effect", "journal", "tool", "internal/shell"},
	"cmd/belay": {".", "internal/cli"},
	"bench":     {"checkpoint", "eval", "internal/snapshot", ".", "journal", "loop", "harness", "model/openai", "model/rehearsal", "model/rehearsal/serve"},

	"examples/embed": {".", "effect", "harness", "policy", "tool", "verify"},
	// readers: leaves that any package may build on, so that a format or a danger is understood once
	"internal/yaml":      {},
	"internal/smallfile": {},
	"internal/unified":   {},
	// moments to be killed at; empty in a release
	"internal/failpoint": {},

	// mechanisms
	"internal/memory":         {"tool", "internal/smallfile"},
	"internal/projection":     {"journal", "message", "model"},
	"internal/shell":          {"effect", "tool"},
	"internal/sandbox":        {"effect", "tool", "internal/sandbox/helper", "internal/sandbox/egress"},
	"internal/sandbox/egress": {},
	"internal/sandbox/helper": {},
	"internal/snapshot":       {"checkpoint", "internal/failpoint"},
	"internal/verifier":       {"effect", "tool", "verify", "internal/smallfile"},
	"internal/config":         {"verify", "journal", "message", "policy", "tool", "internal/smallfile", "internal/yaml"},
	"internal/permissions":    {"effect", "policy", "internal/smallfile", "internal/yaml"},
	"internal/circumvention":  {},
	"internal/committable":    {},
	"internal/archive":        {},
	"internal/conformance":    {"message", "model"},
	"internal/family":         {},
	"internal/features":       {"internal/yaml"},
	"internal/hook":           {"journal"},
	"internal/judge":          {"effect", "message", "model", "policy"},
	"internal/demo":           {},
	"internal/keys":           {},
	"internal/redact":         {"journal", "message", "tool", "verify"},
	"internal/cli": {"internal/judge", "internal/unified", "internal/features", "internal/tui", "checkpoint", "internal/snapshot", "eval", "eval/convert", "eval/stats", "internal/conformance", "internal/family", "message", "effect", "journal", "policy", "model", "model/rehearsal", "model/rehearsal/serve", "model/openai", "verify",
		"loop", "harness", "internal/projection", "internal/archive", "internal/demo", "internal/render", "internal/keys", "internal/redact", "internal/smallfile", "internal/sandbox",
		"internal/config", "internal/verifier", "tool", "internal/permissions", "internal/shell", "internal/yaml", "internal/memory"},

	// viewers
	"internal/tui":    {"journal", "message", "model", "internal/render"},
	"internal/render": {"message", "effect", "journal", "model", "verify"},

	// what only tests import
	"internal/rewindtest":       {"checkpoint", "harness", "journal"},
	"internal/crashtest":        {"effect", "journal", "message", "loop", "model/rehearsal", "policy", "tool", "verify", "internal/failpoint", "internal/projection"},
	"checkpoint/checkpointtest": {"checkpoint"},
	"journal/journaltest":       {"message", "effect", "journal"},
	"tool/tooltest":             {"effect", "tool"},
	"model/modeltest":           {"message", "model", "model/rehearsal"},
}

// owners says which one package may import each larger library.
var owners = map[string]string{
	"charm.land/bubbletea/v2":           "internal/tui",
	"mvdan.cc/sh/v3":                    "internal/shell",
	"github.com/spf13/cobra":            "internal/cli",
	"github.com/goccy/go-yaml":          "internal/yaml",
	"github.com/google/jsonschema-go":   "tool",
	"github.com/aymanbagabas/go-udiff":  "internal/unified",
	"github.com/gofrs/flock":            "journal",
	"github.com/oklog/ulid/v2":          "journal",
	"github.com/klauspost/compress":     "internal/archive",
	"github.com/spf13/pflag":            "internal/cli",
	"golang.org/x/term":                 "internal/render",
	"github.com/bmatcuk/doublestar/v4":  "tools",
	"github.com/BurntSushi/toml":        "eval/convert",
	"github.com/elastic/go-seccomp-bpf": "internal/sandbox",
	"golang.org/x/net/idna":             "internal/sandbox/egress",
}

// shared libraries may be imported anywhere.
var shared = []string{"golang.org/x/sys", "github.com/google/go-cmp"}

// TestLayers reads every package and holds its imports against the rules above.
func TestLayers(t *testing.T) {
	found := map[string]bool{}
	for dir, files := range packages(t) {
		found[dir] = true
		allowed, listed := layers[dir]
		if !listed {
			t.Errorf("%s has no line in layers: say what it may import", dir)
			continue
		}
		commented := false
		for _, file := range files {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly|parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			commented = commented || f.Doc != nil && (strings.HasPrefix(f.Doc.Text(), "Package "+f.Name.Name+" ") || strings.HasPrefix(f.Doc.Text(), "Command "))
			for _, spec := range f.Imports {
				imported, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					t.Fatal(err)
				}
				checkImport(t, dir, file, imported, allowed)
			}
		}
		if !commented {
			t.Errorf("%s has no package comment", dir)
		}
	}
	for dir := range layers {
		if !found[dir] {
			t.Errorf("layers has a line for %s, which is no package", dir)
		}
	}
}

func checkImport(t *testing.T, dir, file, imported string, allowed []string) {
	first, _, _ := strings.Cut(imported, "/")
	switch {
	case imported == "belay":
		if !slices.Contains(allowed, ".") {
			t.Errorf("%s: %s may not import the root package", file, dir)
		}
	case first == "belay":
		if own := strings.TrimPrefix(imported, "belay/"); !slices.Contains(allowed, own) {
			t.Errorf("%s: %s may not import %s", file, dir, own)
		}
	case strings.Contains(first, "."):
		for library, owner := range owners {
			if imported == library || strings.HasPrefix(imported, library+"/") {
				if owner != dir {
					t.Errorf("%s: only %s may import %s", file, owner, library)
				}
				return
			}
		}
		if !slices.ContainsFunc(shared, func(s string) bool { return strings.HasPrefix(imported, s) }) {
			t.Errorf("%s: the library %s has no owner: give it one, and a line in docs/dependencies.md", file, imported)
		}
	}
}

// TestDependenciesHaveReasons checks that each direct dependency has its line in docs/dependencies.md, and
// that no line is about one that is gone.
func TestDependenciesHaveReasons(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	direct := map[string]bool{}
	for line := range strings.Lines(string(mod)) {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "require "))
		if len(fields) >= 2 && strings.Contains(fields[0], ".") && !strings.Contains(line, "// indirect") {
			direct[fields[0]] = true
			if !strings.Contains(string(doc), "`"+fields[0]+"`") {
				t.Errorf("%s has no line of reason in docs/dependencies.md", fields[0])
			}
		}
	}
	for line := range strings.Lines(string(doc)) {
		if _, rest, ok := strings.Cut(line, "| `"); ok {
			if name, _, _ := strings.Cut(rest, "`"); !direct[name] {
				t.Errorf("docs/dependencies.md speaks of %s, which go.mod does not require", name)
			}
		}
	}
}

// packages lists the directories with Go files that are not tests, and those files.
func packages(t *testing.T) map[string][]string {
	t.Helper()
	dirs := map[string][]string{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || name == "suites") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			dir := path.Dir(filepath.ToSlash(name))
			dirs[dir] = append(dirs[dir], name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return dirs
}
