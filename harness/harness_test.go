package harness_test

import (
	"errors"
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
