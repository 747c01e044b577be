package harness

import (
	"belay/effect"
	"belay/internal/sandbox"
	"belay/internal/verifier"
	"belay/tool"
	"belay/verify"
)

// command completes a command that verifies with where it runs.
func (a *agent) command(cfg Config, box *sandbox.Sandbox, c verifier.Command) *verifier.Command {
	c.Sandbox = string(a.level.Isolation)
	c.Over = func(over verify.Over) tool.Env {
		return a.secrets.Output(laid(box, a.place.Workspace, over, cfg.Hidden))
	}
	if c.Env = a.secrets.Output(box.VerifierEnv(effect.Grant{Workspace: effect.Discard}, a.place.Workspace)); len(cfg.Hidden) > 0 {
		c.Env = c.Over(verify.Over{})
	}
	return &c
}
