package snapshot

import (
	"testing"

	"belay/checkpoint"
	"belay/checkpoint/checkpointtest"
)

func TestSuite(t *testing.T) {
	checkpointtest.Run(t, func(t *testing.T, root string) checkpoint.Store { return open(t, root) })
}
