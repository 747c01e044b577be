package redact

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"belay/tool"
)

// env is the border between the hidden space, in which a tool and its call are, and the real one.
type env struct {
	tool.Env
	r      *Redactor
	online bool
}

// Env wraps the environment of a tool. What is read from files, names and programs comes out hidden; what is written
// goes in real, so that an edit beside a secret works and no placeholder reaches a file. A command gets the values
// too, but only such as a shell takes for nothing else, and none where it has a way out of the sandbox (online).
func (r *Redactor) Env(inner tool.Env, online bool) tool.Env { return env{inner, r, online} }

func (e env) ReadFile(path string) ([]byte, error) {
	path, err := e.path(path)
	if err != nil {
		return nil, err
	}
	data, err := e.Env.ReadFile(path)
	if err != nil {
		return nil, err
	}
	text := string(data)
	hidden := e.r.Hide(text)
	if hidden == text {
		return data, nil
	}
	return []byte(hidden), nil
}

func (e env) WriteFile(path string, data []byte) error {
	path, err := e.path(path)
	if err != nil {
		return err
	}
	if bytes.Contains(data, []byte(opening)) {
		text, err := e.r.Restore(string(data))
		if err != nil {
			return err
		}
		data = []byte(text)
	}
	return e.Env.WriteFile(path, data)
}

func (e env) Stat(path string) (tool.FileInfo, error) {
	path, err := e.path(path)
	if err != nil {
		return tool.FileInfo{}, err
	}
	info, err := e.Env.Stat(path)
	info.Name = e.r.Hide(info.Name)
	return info, err
}

func (e env) ReadDir(path string) ([]tool.FileInfo, error) {
	path, err := e.path(path)
	if err != nil {
		return nil, err
	}
	entries, err := e.Env.ReadDir(path)
	for i := range entries {
		entries[i].Name = e.r.Hide(entries[i].Name)
	}
	return entries, err
}

func (e env) Remove(path string) error {
	path, err := e.path(path)
	if err != nil {
		return err
	}
	return e.Env.Remove(path)
}

// path restores the names in a path. The policy judged it with placeholders, so no value may lead elsewhere.
func (e env) path(path string) (string, error) {
	return e.r.restore(path, func(name, value string) error {
		if strings.ContainsAny(value, `/\`) || value == ".." {
			return tool.Mistakef(tool.InvalidArguments, "Give the path as LS or Glob shows it.", "the placeholder %s does not stand for the name of a file", name)
		}
		return nil
	})
}

func (e env) Exec(ctx context.Context, cmd tool.Command) (tool.Exit, error) {
	for i, arg := range cmd.Argv {
		real, err := e.r.restore(arg, e.argument)
		if err != nil {
			return tool.Exit{}, err
		}
		if i == 0 {
			cmd.Argv = append([]string(nil), cmd.Argv...)
		}
		cmd.Argv[i] = real
	}
	dir, err := e.path(cmd.Dir)
	if err != nil {
		return tool.Exit{}, err
	}
	cmd.Dir = dir
	for i, setting := range cmd.Env {
		real, err := e.r.restore(setting, e.offline)
		if err != nil {
			return tool.Exit{}, err
		}
		if i == 0 {
			cmd.Env = append([]string(nil), cmd.Env...)
		}
		cmd.Env[i] = real
	}
	if cmd.Stdin != nil {
		input, err := io.ReadAll(cmd.Stdin)
		if err != nil {
			return tool.Exit{}, fmt.Errorf("read the input of %s: %w", cmd.Argv[0], err)
		}
		real, err := e.r.restore(string(input), e.offline)
		if err != nil {
			return tool.Exit{}, err
		}
		cmd.Stdin = strings.NewReader(real)
	}
	return output{e.Env, e.r}.Exec(ctx, cmd)
}

// offline refuses to give values to a command that could carry them away.
func (e env) offline(name, _ string) error {
	if e.online {
		return tool.Mistakef(tool.Denied, "Do without the network, or without the secret; else call ReportBlocker and say what a person should do.",
			"a command that may reach the network gets no secret, and this one holds %s", name)
	}
	return nil
}

// argument lets only values into a command line that no shell reads as anything but text: the line was judged
// with the placeholder in it.
func (e env) argument(name, value string) error {
	if err := e.offline(name, value); err != nil {
		return err
	}
	if kindOf(name) != "literal" && (run(value, 0, alphaNum+"_-./+=:@%,") < len(value) || strings.HasPrefix(value, "-")) {
		return tool.Mistakef(tool.InvalidArguments, "Let the command read it from the file that holds it, or change files with Edit and Write.",
			"the value of %s holds characters that mean something to a shell, so it cannot stand in a command line", name)
	}
	return nil
}

// output hides what programs print, and nothing else.
type output struct {
	tool.Env
	r *Redactor
}

// Output wraps the environment of a verifier, whose command lines are a person's.
func (r *Redactor) Output(inner tool.Env) tool.Env { return output{inner, r} }

func (o output) Exec(ctx context.Context, cmd tool.Command) (tool.Exit, error) {
	if cmd.Output == nil {
		return o.Env.Exec(ctx, cmd)
	}
	w := &writer{r: o.r, w: cmd.Output}
	cmd.Output = w
	exit, err := o.Env.Exec(ctx, cmd)
	if flushed := w.flush(); err == nil && flushed != nil {
		err = fmt.Errorf("keep the output: %w", flushed)
	}
	return exit, err
}
