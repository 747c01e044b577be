// Package failpoint names the moments at which a process is killed by the crash test; built without the tag "failpoint" it does nothing.
package failpoint

// Names are all moments, in the order of a run's life.
var Names = []string{
	"create.before-rename", "create.after-rename",
	"open.after-lock", "open.after-cut",
	"blob.before-rename", "blob.after-rename", "blob.after-sync",
	"append.before-write", "append.after-write", "append.after-sync", "append.before-index",
	"step.before-request", "step.after-request", "step.after-run", "step.after-result",
	"ask.before-call", "ask.after-reply",
	"settle.before", "settle.after",
	"checkpoint.before-pack", "checkpoint.after-pack", "checkpoint.before-manifest", "checkpoint.after-manifest",
	"rewind.after-intent", "restore.after-path", "rewind.before-event", "rewind.after-event",
}
