package harness

import (
	"strings"
	"testing"
)

// SystemPrompts shows the prompt for a sandboxed run with a verifier, and for a read-only one without.
func SystemPrompts(t *testing.T) map[string]string {
	t.Helper()
	all, err := registry(Config{})
	if err != nil {
		t.Fatal(err)
	}
	list := names(all.Specs())
	prompts := map[string]string{}
	for name, make := range map[string]func() (string, error){
		"prompt-sandboxed": func() (string, error) {
			return systemPrompt(promptFacts{Workspace: "/home/ada/shop", Tools: list, Sandboxed: true, Verify: []string{"go test ./...", "go vet ./..."}, Map: &repoMap{Name: "AGENTS.md", Text: "Tests live beside the code."}})
		},
		"prompt-read-only": func() (string, error) { return systemPrompt(promptFacts{Workspace: "/home/ada/shop", Tools: list}) },
	} {
		text, err := make()
		if err != nil {
			t.Fatal(err)
		}
		prompts[name] = strings.ReplaceAll(text, platform(), "linux/amd64")
	}
	return prompts
}
