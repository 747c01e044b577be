package harness_test

import (
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"belay"
	"belay/harness"
)

func TestMain(m *testing.M) {
	belay.Init() // the sandbox starts this test binary again
	m.Run()
}

// Without a model a person reads what to set, in three lines.
func TestNoModel(t *testing.T) {
	t.Setenv("BELAY_HOME", t.TempDir())
	_, err := harness.Run(t.Context(), harness.Config{Task: "x", Workspace: t.TempDir()})
	var usage *harness.UsageError
	if !errors.As(err, &usage) || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("%v", err)
	}
}

var update = flag.Bool("update", false, "write the golden files")

// The first thing a model reads, whole, as a file that a person has reviewed. It holds no clock and no counter,
// and it is short: 2,000 tokens at four bytes each.
func TestSystemPrompt(t *testing.T) {
	for name, system := range harness.SystemPrompts(t) {
		path := "testdata/" + name + ".md"
		if *update {
			if err := os.WriteFile(path, []byte(system), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if system != string(want) {
			t.Errorf("%s is not what %s shows; look at the difference, then run with -update", name, path)
		}
		if len(system) > 8000 {
			t.Errorf("%s has %d bytes", name, len(system))
		}
	}
}
