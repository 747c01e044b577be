package tool

import (
	"encoding/json"
	"strings"
	"time"

	"belay/message"
)

// Status is how a call ended.
type Status string

const (
	Success Status = "success"
	Partial Status = "partial" // something useful, but not all of it
	Error   Status = "error"
)

// Code names what went wrong, so that a model and a program can branch on it.
type Code string

const (
	InvalidArguments Code = "INVALID_ARGUMENTS"
	UnknownTool      Code = "UNKNOWN_TOOL"
	NotFound         Code = "NOT_FOUND"
	NotUnique        Code = "NOT_UNIQUE"
	NoChange         Code = "NO_CHANGE"
	Conflict         Code = "CONFLICT"
	Denied           Code = "DENIED"
	Timeout          Code = "TIMEOUT"
	Interrupted      Code = "INTERRUPTED"
	ExitStatus       Code = "EXIT_STATUS"   // the program ran and said no
	Broken           Code = "BROKEN"        // what would be written cannot be parsed
	Unsupported      Code = "UNSUPPORTED"   // binary file, wrong encoding, too large
	HarnessFault     Code = "HARNESS_FAULT" // not the model's doing; the run ends
	Unverified       Code = "UNVERIFIED"    // a completion that the verifiers refused
)

// Failure says what is wrong and what to do.
type Failure struct {
	Code    Code   `json:"code"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Result is the envelope of every tool's answer.
type Result struct {
	Status  Status          `json:"status"`
	Summary string          `json:"summary,omitempty"` // one line: "exit 1 · 42 lines"
	Text    string          `json:"text"`              // what the model reads
	Data    json.RawMessage `json:"data,omitempty"`    // for programs: hooks, RunCode
	Images  []message.Image `json:"images,omitempty"`  // shown beside the text, to models that take pictures
	Error   *Failure        `json:"error,omitempty"`
	Stats   Stats           `json:"stats"`
	Context Context         `json:"context"`
}

// Stats measures a call.
type Stats struct {
	Duration time.Duration `json:"-"`
	Bytes    int64         `json:"bytes,omitempty"` // size of the whole output, before any cut
	Exit     *int          `json:"exit,omitempty"`  // exit code, for calls that ran a program
	Denied   []string      `json:"denied,omitempty"`
}

// Context says where a call ran and what it touched.
type Context struct {
	Dir   string   `json:"cwd,omitempty"`
	Read  []string `json:"read,omitempty"`  // workspace files whose content the model has now seen whole or in part
	Wrote []string `json:"wrote,omitempty"` // workspace files that it changed
}

// Fail makes an error result. Its text is the message and, on a line of its own, the hint.
func Fail(f Failure) Result {
	return Result{Status: Error, Summary: string(f.Code), Text: f.Text(), Error: &f}
}

// Failf is Fail with a formatted message. See Mistakef.
func Failf(code Code, hint, format string, args ...any) Result {
	return Fail(Mistakef(code, hint, format, args...).Failure)
}

// Text is what a model reads of a failure.
func (f Failure) Text() string {
	var b strings.Builder
	b.WriteString("Error (" + string(f.Code) + "): " + f.Message)
	if f.Hint != "" {
		b.WriteString("\n" + f.Hint)
	}
	return b.String()
}
