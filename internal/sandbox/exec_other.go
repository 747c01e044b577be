//go:build !darwin && (!linux || !(amd64 || arm64))

package sandbox

import (
	"context"
	"errors"
	"runtime"

	"belay/tool"
)

func probe(context.Context) Level {
	return Level{Isolation: None, Reason: "belay has no sandbox for " + runtime.GOOS + "/" + runtime.GOARCH + " yet; run it on Linux (amd64 or arm64), also in a virtual machine"}
}

func (e *env) call(_ context.Context, cmd Call) (tool.Exit, error) {
	if len(cmd.Argv) == 0 || cmd.Argv[0] == "" {
		return tool.Exit{}, errors.New("exec: no program was named")
	}
	return tool.Exit{}, denied("exec", cmd.Argv[0], "this run is read-only, as there is no sandbox: "+e.s.level.Reason)
}
