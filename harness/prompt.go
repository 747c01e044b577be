package harness

import (
	_ "embed"
	"runtime"
	"strings"
	"text/template"

	"belay/tool"
)

//go:embed prompt.md
var promptText string

var promptTemplate = template.Must(template.New("prompt.md").Parse(promptText))

// systemPrompt is what the model reads before everything else. It holds no clock and no counter: it is the
// same for every request of a run.
func systemPrompt(workspace string, toolNames []string, sandboxed bool, verifiers []string) (string, error) {
	var b strings.Builder
	err := promptTemplate.Execute(&b, struct {
		Workspace, Platform, Tools, Verify string
		Sandboxed                          bool
	}{workspace, runtime.GOOS + "/" + runtime.GOARCH, strings.Join(toolNames, ", "), strings.Join(verifiers, "` and `"), sandboxed})
	return b.String(), err
}

func names(specs []tool.Spec) []string {
	var all []string
	for _, s := range specs {
		all = append(all, s.Name)
	}
	return all
}
