// Package belay is the front page of belay, a harness for AI agents: the model proposes, the harness disposes.
//
// Every action of a model is judged by a policy, contained by a sandbox, recorded in a journal and reversible
// by a checkpoint; "finished" means proved by the harness, never claimed by the model.
//
// A program that runs agents calls Init first thing in main, because the sandbox is a re-execution of that
// same program:
//
//	func main() {
//		belay.Init()
//		…
//	}
//
// A test binary that runs agents does the same in TestMain. Package harness then builds an agent from a Config.
package belay

import "belay/internal/sandbox/helper"

// Init must be the first call of main, and of TestMain. It agrees to the program being started again as the
// sandbox helper, and returns at once. Without it there is no sandbox: commands are refused and runs are
// read-only, with that reason.
func Init() { helper.Init() }
