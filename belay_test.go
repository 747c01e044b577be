package belay_test

import (
	"os"
	"strings"
	"testing"

	"belay"
	"belay/internal/sandbox"
)

func TestMain(m *testing.M) {
	belay.Init()
	os.Exit(m.Run())
}

// TestInit checks that with Init called whatever keeps a sandbox away is the machine, not the program.
func TestInit(t *testing.T) {
	level := sandbox.Probe(t.Context())
	if level.Isolation == sandbox.None && (level.Reason == "" || strings.Contains(level.Reason, "belay.Init()")) {
		t.Errorf("%s", level)
	}
}
