package hook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// ran is how one hook ended. Failed says why nothing can be read of it.
type ran struct {
	exit           int
	stdout, stderr string
	failed         string
}

// maxOutput is how many bytes of each stream are kept.
const maxOutput = 1 << 20

// grace is how long the pipes of a hook that has ended are waited for: a child in its background may hold them.
const grace = 500 * time.Millisecond

type doer interface {
	Do(*http.Request) (*http.Response, error)
}

func (h *Hooks) execute(ctx context.Context, handler Handler, input []byte) ran {
	ctx, cancel := context.WithTimeout(ctx, handler.Timeout)
	defer cancel()
	switch handler.Type {
	case "command":
		return h.command(ctx, handler, input)
	case "http":
		return h.post(ctx, handler, input)
	}
	return ran{failed: "belay runs hooks of type command and http only"}
}

func (h *Hooks) command(ctx context.Context, handler Handler, input []byte) ran {
	argv := []string{"/bin/sh", "-c", handler.Command}
	if handler.Args != nil {
		argv = []string{h.placed(handler.Command)}
		for _, a := range handler.Args {
			argv = append(argv, h.placed(a))
		}
	}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = h.Dir, h.environ(), grace
	cmd.Stdin = bytes.NewReader(input)
	stdout, stderr := &bounded{}, &bounded{}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	alone(cmd)
	err := cmd.Run()
	gone(cmd)
	r := ran{stdout: stdout.String(), stderr: stderr.String()}
	var exit *exec.ExitError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		r.failed = fmt.Sprintf("it took more than %v", handler.Timeout)
	case ctx.Err() != nil:
		r.failed = "it was interrupted"
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		r.exit = exit.ExitCode()
	case errors.As(err, &exit):
		r.failed = "it crashed: " + exit.String()
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		r.failed = "it cannot be run: " + err.Error()
	}
	if r.failed == "" && (r.exit == 126 || r.exit == 127) {
		r.failed = "it cannot be run: " + orNothing(cutLine(strings.TrimSpace(r.stderr)))
	}
	return r
}

// environ is the person's own, without what telemetry of belay's parent would collect.
func (h *Hooks) environ() []string {
	env := slices.DeleteFunc(slices.Clone(h.Environ), func(v string) bool { return strings.HasPrefix(v, "OTEL_") })
	return append(env, "CLAUDE_PROJECT_DIR="+h.Dir, "BELAY_PROJECT_DIR="+h.Dir, "CLAUDE_CODE_SESSION_ID="+h.RunID, "BELAY_RUN_ID="+h.RunID)
}

// placed puts the workspace into the places that name it.
func (h *Hooks) placed(s string) string {
	return strings.NewReplacer("${CLAUDE_PROJECT_DIR}", h.Dir, "$CLAUDE_PROJECT_DIR", h.Dir, "${BELAY_PROJECT_DIR}", h.Dir).Replace(s)
}

// scriptless says that exit code 2 came from an interpreter that could not find its script: that blocks nothing by
// anybody's decision.
func (r ran) scriptless() string {
	for _, pattern := range missing() {
		if line := pattern.FindString(r.stderr); line != "" {
			return "its script cannot be found: " + cutLine(line)
		}
	}
	return ""
}

// missing are the words of interpreters about a script that is not there.
var missing = sync.OnceValue(func() []*regexp.Regexp {
	return []*regexp.Regexp{
		regexp.MustCompile(`(?m)^.*can't open file .*No such file or directory.*$`),        // python
		regexp.MustCompile(`(?m)^.*: 0: (cannot open|Can't open) .*$`),                     // dash
		regexp.MustCompile(`(?m)^Can't open perl script .*$`),                              // perl
		regexp.MustCompile(`(?m)^.*sh: .*: No such file or directory$`),                    // bash, zsh
		regexp.MustCompile(`(?m)^.*(Error: )?Cannot find module .*$`),                      // node
		regexp.MustCompile(`(?m)^.*ruby: No such file or directory -- .*$`),                // ruby
		regexp.MustCompile(`(?m)^.*(deno|bun|php).*(not found|could not open|No such).*$`), // others
	}
})

func (h *Hooks) post(ctx context.Context, handler Handler, input []byte) ran {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, handler.URL, bytes.NewReader(input))
	if err != nil {
		return ran{failed: err.Error()}
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range handler.Headers {
		req.Header.Set(name, os.Expand(value, func(v string) string {
			if slices.Contains(handler.Allowed, v) {
				return h.lookup(v)
			}
			return ""
		}))
	}
	var client doer = http.DefaultClient
	if h.Transport != nil {
		client = h.Transport()
	}
	resp, err := client.Do(req)
	if err != nil {
		return ran{failed: err.Error()}
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxOutput))
	switch {
	case err != nil:
		return ran{failed: err.Error()}
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return ran{failed: "it answered " + resp.Status}
	}
	return ran{stdout: string(body)}
}

func (h *Hooks) lookup(name string) string {
	for _, v := range slices.Backward(h.Environ) {
		if value, is := strings.CutPrefix(v, name+"="); is {
			return value
		}
	}
	return ""
}

// bounded keeps the first bytes and drops the rest.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if room := maxOutput - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
