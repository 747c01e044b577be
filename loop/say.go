package loop

import (
	"fmt"

	"belay/message"
	"belay/tool"
)

// What the harness says to a model in the course of a run. The tools' own descriptions lie with the tools.
const (
	sayGoOn            = "Your reply was empty. Go on with the task: call the next tool, or TaskComplete if it is done."
	sayCutReply        = "Your reply was cut by the output limit. Go on where it stopped, in smaller pieces."
	sayUseTaskComplete = "Nothing is finished by saying so. If the task is done, call TaskComplete and the harness will verify it; if you cannot go on, call ReportBlocker; else go on with the task."
	sayRepetition      = "You have seen the same result %d times, and nothing has changed in between. Stop and think: what did you expect it to show, why does it not, and what would tell you more? Then do something else. Going on like this will end the run."
	sayReplan          = "%d calls in a row failed. Stop and think before the next one: which assumption of yours do these errors contradict? Say it in a sentence, choose another way, and begin it with a small step that can succeed. If there is no other way, call ReportBlocker."
	sayStall           = "For %d turns nothing has changed and nothing new was learned. Decide now: make the change, call TaskComplete, or call ReportBlocker with what you need."
	saySoft            = "%d %% of this run's %s is used (%s). Finish the step you are in and call TaskComplete; if more is needed, leave the tree in a state that builds and call ReportBlocker with what is left to do. At 100 %% the run stops wherever it is."
)

// Why a call was not run.
var (
	cutCall         = tool.Failure{Code: tool.InvalidArguments, Message: "not executed: your reply was cut by the output limit inside or after this call.", Hint: "Send the call again, whole. Write long content in several smaller steps."}
	refusedCall     = tool.Failure{Code: tool.Interrupted, Message: "not executed: the reply did not end as one whose calls count."}
	pausedCall      = tool.Failure{Code: tool.Interrupted, Message: "not executed: the reply was paused before it ended.", Hint: "Send the call again."}
	treeChanged     = tool.Failure{Code: tool.Conflict, Message: "not finished: the tree changed while it was being verified, so the verification is void.", Hint: "See what still writes to the workspace, then call TaskComplete again."}
	completeNotLast = tool.Failure{Code: tool.Conflict, Message: "not executed: other calls come after TaskComplete in the same reply.", Hint: "Call TaskComplete alone, when everything else has returned."}
	outcomeUnknown  = tool.Failure{Code: tool.Interrupted, Message: "interrupted, outcome unknown: belay stopped while this call ran. It was not run again.", Hint: "Look at what it did, if anything, before you go on."}
	outOfTime       = tool.Failure{Code: tool.Interrupted, Message: "stopped: the run's time was used up while this call ran; it may have had part of its effect."}
	interrupted     = tool.Failure{Code: tool.Interrupted, Message: "interrupted by the person; it may have had part of its effect."}
)

// mayNotRun says why no call of a reply that ended like this is executed, nil where they may be.
func mayNotRun(stop message.StopReason) *tool.Failure {
	switch stop {
	case message.StopEnd, message.StopToolUse:
		return nil
	case message.StopLength:
		return &cutCall
	case message.StopPause:
		return &pausedCall
	}
	return &refusedCall
}

// flaky says that a verifier was red and is green on the very same tree.
func flaky(command string) *tool.Failure {
	return &tool.Failure{Code: tool.Conflict, Message: fmt.Sprintf("not finished: `%s` failed before and passes now, and the tree is the very same: it proves nothing.", command),
		Hint: "Find out why the verifier is not the same every time, make the change that the task asks for, or call ReportBlocker."}
}

// orNothing shows an empty text as something.
func orNothing(s string) string {
	if s == "" {
		return "(it gave no reason)"
	}
	return s
}

const sayCritique = "The last two attempts at this %s call failed with: %s\nBefore a third one, say in words what differs now: what did you expect, what does the error contradict, and what will you change? A third attempt that says nothing is not run."
