//go:build amd64 || arm64

package sandbox

import (
	"context"
	"os/exec"
	"testing"

	"belay/effect"
	"belay/tool"
)

// BenchmarkExec compares a sandboxed `true` with a bare one. Compare the lines of one run with each other.
func BenchmarkExec(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			if err := exec.Command("/bin/true").Run(); err != nil {
				b.Fatal(err)
			}
		}
	})
	s := newSandbox(b, nil)
	needIsolation(b, s)
	outside(b, s.workspace, "git", "init", "-q")
	for _, access := range []effect.Access{effect.NoAccess, effect.ReadOnly, effect.ReadWrite, effect.Discard} {
		b.Run(string(access), func(b *testing.B) {
			e := s.Env(effect.Grant{Workspace: access}, "")
			for b.Loop() {
				if exit, err := e.Exec(context.Background(), tool.Command{Argv: []string{"/bin/true"}}); err != nil || exit.Code != 0 {
					b.Fatal(exit, err)
				}
			}
		})
	}
}
