package harness

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strings"

	"belay/effect"
	"belay/internal/sandbox"
	"belay/internal/verifier"
	"belay/policy"
	"belay/tool"
	"belay/verify"
)

// checkers are programs that a step's verification begins with, where it is a command and not a sentence.
var checkers = []string{"bash", "bundle", "bun", "cargo", "cmp", "ctest", "deno", "diff", "dotnet", "eslint", "gcc", "go", "gofmt", "gradle", "grep", "jest", "make", "mvn", "mypy", "node", "npm", "npx", "pnpm", "phpunit",
	"pytest", "python", "python3", "rake", "rg", "rspec", "ruff", "sh", "shellcheck", "test", "tox", "tsc", "vitest", "yarn"}

// stepVerifier makes verifiers of what a plan's steps say about themselves. The line is the model's: it is judged as a call of
// its own would be, runs in the verifiers' sandbox, and proves a step only, never the task.
func (a *agent) stepVerifier(cfg Config, box *sandbox.Sandbox, registry *tool.Registry, situation policy.Situation) func(string) verify.Verifier {
	return func(line string) verify.Verifier {
		words := strings.Fields(line)
		switch {
		case len(words) == 0:
			return nil
		case strings.HasPrefix(words[0], "./"), words[0] == "[":
		case !slices.Contains(checkers, words[0]):
			return nil
		case words[0] == "make" && len(words) > 1 && slices.Contains([]string{"sure", "certain", "it", "the"}, words[1]):
			return nil
		case words[0] == "test" && (len(words) < 3 || !strings.HasPrefix(words[1], "-") && !strings.ContainsAny(line, "=!")): // "test that it works"
			return nil
		}
		if _, err := exec.LookPath(words[0]); err != nil && words[0] != "[" && !strings.HasPrefix(words[0], "./") {
			return nil
		}
		args, err := json.Marshal(map[string]string{"command": line})
		if err != nil {
			return nil
		}
		_, plan, err := registry.Plan(a.place, tool.Call{ID: "step", Name: "Bash", Args: args})
		if err != nil {
			return nil
		}
		d := policy.Judge(policy.Action{Tool: "Bash", Args: args, Commands: plan.Commands, Effects: plan.Effects}, situation)
		if d.Verdict != effect.Allow || d.Class > effect.ClassReversible {
			return nil
		}
		return a.secrets.Verifier(a.command(cfg, box, verifier.Command{Line: line}))
	}
}
