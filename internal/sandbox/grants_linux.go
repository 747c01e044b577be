//go:build amd64 || arm64

package sandbox

import (
	"belay/internal/sandbox/helper"
)

// grantSteps show what is granted beside the workspace, or writable in a workspace that is else read-only.
func (s *Sandbox) grantSteps(inWorkspace bool) []helper.Step {
	var steps []helper.Step
	for _, path := range s.write {
		if within(path, s.workspace) == inWorkspace {
			steps = append(steps, helper.Step{Code: helper.Bind, A: path, B: path})
		}
	}
	if inWorkspace {
		return steps
	}
	for _, path := range append(append([]string{}, s.read...), s.write...) {
		if within(s.home, path) {
			steps = append(steps, helper.Step{Code: helper.Mask, A: s.home})
			break
		}
	}
	return steps
}
