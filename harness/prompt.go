package harness

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"strings"
	"text/template"

	"belay/tool"
)

//go:embed prompt.md
var promptText string

var promptTemplate = template.Must(template.New("prompt.md").Funcs(template.FuncMap{"join": strings.Join, "platform": platform}).Parse(promptText))

// promptFacts is what the prompt says about one run. Its fields are those of prompt.md.
type promptFacts struct {
	Workspace string
	Tools     []string
	Sandboxed bool
	Verify    []string
	Map       *repoMap
}

// systemPrompt is what the model reads before everything else. It holds no clock and no counter: it is the
// same for every request of a run.
func systemPrompt(facts promptFacts) (string, error) {
	var b strings.Builder
	err := promptTemplate.Execute(&b, facts)
	return b.String(), err
}

// repoMap is the file in which a repository explains itself to agents.
type repoMap struct {
	Name, Text, Hash string
}

// mapNames are looked for in the workspace, in this order; the first that is there counts.
var mapNames = []string{"AGENTS.md", "CLAUDE.md", filepath.Join(".claude", "CLAUDE.md")}

// maxMap is how much of a map is read, in bytes: a quarter of what fits a small model.
const maxMap = 32 << 10

// readMap finds the repository's map, nil where there is none. A map that is no regular file, or too large, is an
// error: leaving it out silently would change what the model is told.
func readMap(workspace string) (*repoMap, error) {
	for _, name := range mapNames {
		m, err := readOne(workspace, name, workspace)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return m, nil
	}
	return nil, nil
}

func names(specs []tool.Spec) []string {
	var all []string
	for _, s := range specs {
		all = append(all, s.Name)
	}
	return all
}

func platform() string { return runtime.GOOS + "/" + runtime.GOARCH }
