package tool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"
)

// ErrDenied is wrapped by every error of an Env that says: the grant does not hold this.
var ErrDenied = errors.New("not granted")

// FileInfo is what Env says about a file.
type FileInfo struct {
	Name    string // base name
	Size    int64  // bytes
	Mode    fs.FileMode
	ModTime time.Time
}

// IsDir says whether it is a directory.
func (f FileInfo) IsDir() bool { return f.Mode.IsDir() }

// Command is a program to run in the sandbox.
type Command struct {
	Argv    []string      // program and arguments; the program is looked up on the sandbox's PATH
	Dir     string        // absolute, inside the workspace; empty is Place().Dir
	Env     []string      // additions to the sandbox's own environment, "NAME=value"
	Stdin   io.Reader     // nil is an empty input
	Output  io.Writer     // stdout and stderr, interleaved as they come; nil discards
	Timeout time.Duration // 0 is no limit of its own
	// Filter wraps Output next to the program, before anything else reads what it prints; it is closed at the end. For
	// reports that a program's shell mixes into its output: in the middle of a secret they would hide it. Nil is none.
	Filter func(io.Writer) io.WriteCloser
}

// Filtered gives a command whose Output is its Filter, and what closes that. Every Env that runs a program itself
// starts with it.
func (c Command) Filtered() (Command, func() error) {
	if c.Filter == nil || c.Output == nil {
		return c, func() error { return nil }
	}
	f := c.Filter(c.Output)
	c.Output, c.Filter = f, nil
	return c, f.Close
}

// Exit is how a program ended.
type Exit struct {
	Code     int           // exit code; 128+n when signal n ended it
	Signal   string        // "killed", "" when it exited by itself
	TimedOut bool          // Timeout ended it
	Duration time.Duration // wall time
	Denied   []string      // effects that the sandbox refused, where it can tell
}

// Mistake is a model's error: the call cannot be planned, and the text says what to do instead.
type Mistake struct{ Failure Failure }

func (m *Mistake) Error() string {
	return fmt.Sprintf("%s: %s", m.Failure.Code, m.Failure.Message)
}

// Mistakef makes a Mistake with a code, a hint (what to do) and a message.
func Mistakef(code Code, hint, format string, args ...any) *Mistake {
	return &Mistake{Failure{Code: code, Message: fmt.Sprintf(format, args...), Hint: hint}}
}

// Fetcher is an Env that can also get pages, from hosts of its grant and no others.
type Fetcher interface {
	// Fetch gets a page and reads at most limit bytes of it. Redirects are followed where they lead to hosts of the grant. An
	// error that wraps ErrDenied says what is not allowed, any other what did not work.
	Fetch(ctx context.Context, url string, limit int64) (Page, error)
}

// Page is what was fetched.
type Page struct {
	URL    string // after redirects
	Status int    // of HTTP
	Type   string // Content-Type
	Body   []byte
	Cut    bool // the body was longer
}
