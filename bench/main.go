// Command bench measures what belay adds to a turn: it runs the same rehearsal with belay and with the barest loop, and compares the two.
//
// It is four programs in one, chosen by the environment variable BELAY_BENCH: the driver, which also serves
// the rehearsal; belay's own loop ("agent"); the barest loop ("floor"); and the price list of single parts
// ("parts"). docs/speed.md says how to read the figures.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"

	"belay"
)

// roleVar says which program this process is.
const roleVar = "BELAY_BENCH"

func main() {
	belay.Init()
	role, given := os.Getenv(roleVar), os.Getenv(roleVar+"_JOB")
	var job job
	if given != "" {
		if err := json.Unmarshal([]byte(given), &job); err != nil {
			fail(err)
		}
	}
	var err error
	switch role {
	case "":
		err = drive()
	case "agent":
		err = agent(job)
	case "floor":
		err = floor(job)
	case "parts":
		err = parts(job)
	default:
		err = fmt.Errorf("there is no program %q in here", role)
	}
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "bench:", err)
	os.Exit(1)
}

// job is what the driver asks of a process.
type job struct {
	URL     string // of the rehearsal server, without /v1
	Dir     string // for files of its own; holds "work" and "home"
	Turns   int
	Line    string // the command of every turn
	Sizes   []int  // the floor: the size of every request's body, in bytes
	Profile string // the agent: where to write a CPU profile; "" is nowhere
}

func drive() error {
	turns := flag.String("turns", "10,200,1000", "lengths of the runs to compare, in turns")
	rounds := flag.Int("rounds", 3, "how often each pair of runs is repeated, interleaved")
	line := flag.String("line", "echo step-{{n}}", "the shell line of every turn")
	profile := flag.String("profile", "", "write a CPU profile of belay's longest run to this `file`")
	binary := flag.String("belay", "", "the belay program, for `belay version` (default: built now)")
	tree := flag.Int("checkpoints", 0, "compare checkpoints of a tree of `N` files with git status instead")
	trials := flag.Int("trials", 0, "compare `N` trials of an eval with the agent's command alone instead")
	flag.Parse()
	if *trials > 0 {
		return evals(*trials, *binary)
	}
	if *tree > 0 {
		return checkpoints(*tree)
	}
	var lengths []int
	for _, s := range strings.Split(*turns, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 1 {
			return fmt.Errorf("--turns %q: a length is a number from 1", s)
		}
		lengths = append(lengths, n)
	}
	d := driver{rounds: *rounds, line: *line, profile: *profile, binary: *binary}
	defer d.close()
	return d.run(lengths)
}
