package hook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Event is a moment at which hooks run, by the name that people's settings use.
type Event string

const (
	PreToolUse         Event = "PreToolUse"
	PostToolUse        Event = "PostToolUse"
	PostToolUseFailure Event = "PostToolUseFailure"
	PermissionRequest  Event = "PermissionRequest"
	UserPromptSubmit   Event = "UserPromptSubmit"
	SessionStart       Event = "SessionStart"
	SessionEnd         Event = "SessionEnd"
	Stop               Event = "Stop"
	SubagentStop       Event = "SubagentStop"
	PreCompact         Event = "PreCompact"
	Notification       Event = "Notification"
)

// events are those that belay has; others in a file are other agents' business.
var events = []Event{PreToolUse, PostToolUse, PostToolUseFailure, PermissionRequest, UserPromptSubmit, SessionStart, SessionEnd, Stop, SubagentStop, PreCompact, Notification}

// Source is one settings file, as it was read.
type Source struct {
	Path string
	Data []byte
}

// Handler is one hook.
type Handler struct {
	Event   Event
	Matcher string
	Type    string            // command or http; another one cannot run here
	Command string            // for command: a shell line, or with Args a program
	Args    []string          // nil is none: Command is a shell line
	URL     string            // for http
	Headers map[string]string // may hold $NAME of Allowed
	Allowed []string          // environment variables that Headers may hold
	If      string            // a permission rule that the call must match
	Timeout time.Duration
	Block   bool // what to do where it cannot be run, crashes or takes too long: block, or go on
	Async   bool
	From    string // the file
}

// name is the hook in one line, for journals and people.
func (h Handler) name() string {
	switch {
	case h.Type == "http":
		return "POST " + h.URL
	case h.Type != "command":
		return "a hook of type " + h.Type
	case h.Args != nil:
		return strings.Join(append([]string{h.Command}, h.Args...), " ")
	}
	return h.Command
}

// file is the part of a settings file that speaks of hooks.
type file struct {
	Hooks      map[string]json.RawMessage `json:"hooks"`
	DisableAll *bool                      `json:"disableAllHooks"`
}

type group struct {
	Matcher string    `json:"matcher"`
	Hooks   []handler `json:"hooks"`
}

type handler struct {
	Type      string            `json:"type"`
	Command   string            `json:"command"`
	Args      []string          `json:"args"`
	URL       string            `json:"url"`
	Headers   map[string]string `json:"headers"`
	Allowed   []string          `json:"allowedEnvVars"`
	If        string            `json:"if"`
	Timeout   float64           `json:"timeout"` // seconds
	OnFailure string            `json:"onFailure"`
	Async     bool              `json:"async"`
}

// defaultTimeout is how long a hook may take that does not say, and short what holds at moments when somebody waits.
const (
	defaultTimeout = 600 * time.Second
	promptTimeout  = 30 * time.Second
	endTimeout     = 10 * time.Second
	maxTimeout     = time.Hour
)

// Load reads the hooks of settings files, the least specific first. A hook that stands in several files runs once. The last
// file that says disableAllHooks decides. Notices are about what is there and cannot run.
func Load(sources ...Source) (handlers []Handler, notices []string, err error) {
	disabled := false
	for _, src := range sources {
		data := bytes.TrimPrefix(src.Data, []byte("\xef\xbb\xbf"))
		if len(bytes.TrimSpace(data)) == 0 {
			continue
		}
		var f file
		if err := json.Unmarshal(data, &f); err != nil {
			return nil, nil, fmt.Errorf("read the hooks of %s: %w", src.Path, located(data, err))
		}
		if f.DisableAll != nil {
			disabled = *f.DisableAll
		}
		for name, raw := range f.Hooks {
			if !slices.Contains(events, Event(name)) {
				notices = append(notices, fmt.Sprintf("%s: hooks of %s never run: belay has no such moment", src.Path, name))
				continue
			}
			var groups []group
			if err := json.Unmarshal(raw, &groups); err != nil {
				return nil, nil, fmt.Errorf("read the hooks of %s: %s: %w", src.Path, name, err)
			}
			for _, g := range groups {
				for _, h := range g.Hooks {
					made, err := h.made(Event(name), g.Matcher, src.Path)
					if err != nil {
						return nil, nil, fmt.Errorf("read the hooks of %s: %s: %w", src.Path, name, err)
					}
					if !slices.ContainsFunc(handlers, func(o Handler) bool { return o.same(made) }) {
						handlers = append(handlers, made)
					}
				}
			}
		}
	}
	if disabled {
		return nil, append(notices, "all hooks are switched off by disableAllHooks"), nil
	}
	slices.SortStableFunc(handlers, func(a, b Handler) int { return slices.Index(events, a.Event) - slices.Index(events, b.Event) })
	slices.Sort(notices)
	return handlers, notices, nil
}

func (h handler) made(event Event, matcher, from string) (Handler, error) {
	made := Handler{Event: event, Matcher: matcher, Type: h.Type, Command: h.Command, Args: h.Args, URL: h.URL, Headers: h.Headers, Allowed: h.Allowed,
		If: h.If, Async: h.Async, From: from, Timeout: defaultTimeout, Block: event == PreToolUse || event == Stop}
	switch event {
	case UserPromptSubmit:
		made.Timeout = promptTimeout
	case SessionEnd:
		made.Timeout = endTimeout
	}
	if h.Timeout > 0 {
		made.Timeout = min(time.Duration(h.Timeout*float64(time.Second)), maxTimeout)
	}
	switch h.OnFailure {
	case "":
	case "block":
		made.Block = true
	case "continue":
		made.Block = false
	default:
		return made, fmt.Errorf("onFailure is %q: it must be block or continue", h.OnFailure)
	}
	switch {
	case h.Type == "":
		return made, fmt.Errorf("a hook has no type: write \"type\": \"command\"")
	case h.Type == "command" && strings.TrimSpace(h.Command) == "":
		return made, fmt.Errorf("a hook of type command has no command")
	case h.Type == "http" && h.URL == "":
		return made, fmt.Errorf("a hook of type http has no url")
	}
	if _, err := matches(matcher, ""); err != nil {
		return made, fmt.Errorf("the matcher %q: %w", matcher, err)
	}
	return made, nil
}

// same says whether two hooks are one that stands in two files.
func (h Handler) same(o Handler) bool {
	return h.Event == o.Event && h.Matcher == o.Matcher && h.Type == o.Type && h.Command == o.Command && slices.Equal(h.Args, o.Args) && h.URL == o.URL && h.If == o.If
}

// located adds a line number to an error of encoding/json.
func located(data []byte, err error) error {
	if syntax, ok := err.(*json.SyntaxError); ok {
		return fmt.Errorf("line %d: %w", 1+bytes.Count(data[:min(int(syntax.Offset), len(data))], []byte("\n")), err)
	}
	return err
}
