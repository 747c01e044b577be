package eval

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// timedOut is what $BELAY_EXIT says of a line that was ended after its time, as timeout(1) has it.
const timedOut = 124

// observed runs the agent's code in one box and lets the verdict decide in another one, which is made when all of the first one's
// processes are dead. However the code ends, and whatever it prints, plants or kills, it is only something to be judged: it can neither
// reach the verdict nor make a grader's error, which would not count, of a failure.
func (g grading) observed(ctx context.Context, grader Grader, c Command, work string) (Grade, error) {
	seen, err := g.box.Run(ctx, c)
	if err != nil {
		return Grade{}, err
	}
	code := seen.Code
	if seen.TimedOut {
		code = timedOut
	}
	// Another root, beside the first, that holds what the first box left as data only.
	root := c.Root + "-verdict"
	defer removeAll(root)
	dir := filepath.Join(root, "verdict")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Grade{}, err
	}
	left := filepath.Join(root, "left")
	if err := os.Rename(work, left); err != nil {
		return Grade{}, fmt.Errorf("move what is judged: %w", err)
	}
	output := filepath.Join(root, "output.txt")
	if err := os.WriteFile(output, []byte(seen.Output), 0o644); err != nil {
		return Grade{}, err
	}
	if err := g.task.layAll(grader.VerdictFiles, dir, root, ""); err != nil {
		return Grade{}, err
	}
	one, err := g.decide(ctx, grader, Command{Root: root, Dir: dir, Line: grader.Verdict, Timeout: c.Timeout,
		Env: []string{"BELAY_WORKSPACE=" + left, "BELAY_OUTPUT=" + output, "BELAY_EXIT=" + strconv.Itoa(code)}}, newRewards(root))
	if code != 0 && one.Status != Passed { // a program that is missing, most of all
		one.Summary += fmt.Sprintf("; what was judged ended with exit %d: %s", code, cut(lastLine(seen.Output), 160))
	}
	one.Output = tail(seen.Output, 2<<10) + one.Output
	return one, err
}
