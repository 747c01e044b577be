package loop

import "belay/tool"

// What the harness says to a model in the course of a run. The tools' own descriptions lie with the tools.
const (
	sayGoOn            = "Your reply was empty. Go on with the task: call the next tool, or TaskComplete if it is done."
	sayCutReply        = "Your reply was cut by the output limit. Go on where it stopped, in smaller pieces."
	sayUseTaskComplete = "Nothing is finished by saying so. If the task is done, call TaskComplete and the harness will verify it; if you cannot go on, call ReportBlocker; else go on with the task."
	sayRepetition      = "You have made the same call %d times with the same result, and nothing has changed in between. Stop and think: what did you expect it to show, why does it not, and what would tell you more? Then do something else. The same call again will end the run."
)

// Why a call was not run.
var (
	cutCall         = tool.Failure{Code: tool.InvalidArguments, Message: "not executed: your reply was cut by the output limit inside or after this call.", Hint: "Send the call again, whole. Write long content in several smaller steps."}
	pausedCall      = tool.Failure{Code: tool.Interrupted, Message: "not executed: the reply was paused before it ended.", Hint: "Send the call again."}
	completeNotLast = tool.Failure{Code: tool.Conflict, Message: "not executed: other calls come after TaskComplete in the same reply.", Hint: "Call TaskComplete alone, when everything else has returned."}
	interrupted     = tool.Failure{Code: tool.Interrupted, Message: "interrupted by the person; it may have had part of its effect."}
)

// orNothing shows an empty text as something.
func orNothing(s string) string {
	if s == "" {
		return "(it gave no reason)"
	}
	return s
}
