package cli

import (
	"fmt"
	"io"
	"os"
	"strings"

	"belay/internal/render"
)

// taskMax bounds a task in bytes: more than this is data, and belongs into a file of the workspace.
const taskMax = 1 << 20

// task reads what is to be done.
func (a *app) task(arg string) (string, error) {
	text, from := arg, "the task"
	switch {
	case arg == "-":
		if render.IsTerminal(a.in) {
			fmt.Fprintln(a.err, "Type the task; end it with Ctrl-D on a line of its own.")
		}
		from = "the task on standard input"
		b, err := io.ReadAll(io.LimitReader(a.in, taskMax+1))
		if err != nil {
			return "", fmt.Errorf("read %s: %w", from, err)
		}
		text = string(b)
	case strings.HasPrefix(arg, "@"):
		from = "the task in " + arg[1:]
		file, err := os.Open(arg[1:])
		if err != nil {
			return "", usagef("read the task: %w", err)
		}
		defer file.Close()
		b, err := io.ReadAll(io.LimitReader(file, taskMax+1))
		if err != nil {
			return "", usagef("read %s: %w", from, err)
		}
		text = string(b)
	}
	if len(text) > taskMax {
		return "", usagef("%s is longer than 1 MiB; put the data into a file of the workspace and name it in the task", from)
	}
	if text = strings.TrimSpace(text); text == "" {
		return "", usagef("%s is empty: say what is to be done, for example %s run \"make the tests pass\"", from, self())
	}
	return strings.ToValidUTF8(text, "\uFFFD"), nil
}

// input opens a file that a command line names; "-" is standard input.
func (a *app) input(file string) (io.ReadCloser, error) {
	if file == "-" {
		return io.NopCloser(a.in), nil
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, usagef("%w", err)
	}
	return f, nil
}
