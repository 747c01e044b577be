// Package tui is the session in a terminal: it draws the journal, sends the person's words and answers, and holds no logic of the loop.
package tui

import (
	"context"
	"errors"
	"io"
	"iter"

	tea "charm.land/bubbletea/v2"

	"belay/journal"
	"belay/model"
)

// Config says what the session shows and whom it speaks to. Functions that are nil are not offered.
type Config struct {
	Workspace string
	Model     string
	Mode      string
	Sandbox   func(context.Context) string // the level that commands will get
	Window    int64                        // tokens of the model's context; 0 is unknown
	Bounds    journal.Bounds
	Prompt    string // what is said first; "" waits

	// Events are those of the run that the session is about; nil, or giving nil, is a new one.
	Events func() iter.Seq2[journal.Event, error]
	// Work says something to the agent and returns when it has stopped.
	Work func(ctx context.Context, text string, with Work) (Ended, error)
	// Command runs a slash command, without its slash, and returns what it printed.
	Command  func(ctx context.Context, line string) (string, error)
	Commands []Command
	Files    func(prefix string) []string                           // paths of the workspace that begin so
	Shell    func(ctx context.Context, line string) (string, error) // a line of the person's own
	Remember func(text string) error                                // a note for later sessions
	SetMode  func(mode string) error                                // another mode from here on
	Modes    []string

	In      io.Reader
	Out     io.Writer
	Environ []string
	Editor  string // program for long texts; "" is none
	Color   bool
}

// Work is what a running agent speaks to.
type Work struct {
	Observe  func(journal.Event)
	Delta    func(model.Event)
	Progress func(string)
	Ask      func(context.Context, journal.Question) (journal.Answer, error)
	Inbox    func() []string // what the person has said meanwhile, to be told at the next turn
}

// Ended is how an agent stopped.
type Ended struct {
	RunID  string
	Exit   int
	Reason string
}

// Command is a slash command.
type Command struct{ Name, Help string }

// Run shows the session until the person leaves it. The terminal is as it was when it returns.
func Run(ctx context.Context, cfg Config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m := newSession(ctx, cfg)
	program := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(cfg.In), tea.WithOutput(cfg.Out), tea.WithEnvironment(cfg.Environ), tea.WithoutSignalHandler())
	m.send = program.Send
	_, err := program.Run()
	m.stopWork()
	m.working.Wait() // the run ends in order before the program does
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		return nil
	}
	return err
}
