// Package render shows a run to a person from the events of its journal: live while it works, or as a story afterwards.
package render

import (
	"io"
	"os"
	"runtime"

	"golang.org/x/term"
)

// Screen is what is known about the place where text is shown. The zero Screen is a plain file.
type Screen struct {
	Color   bool       // colours may be used
	Moving  bool       // a line may be drawn again: a terminal that understands how
	Columns func() int // width; nil is unlimited
}

// Detect looks at where w leads and at the environment: NO_COLOR, CLICOLOR, CLICOLOR_FORCE and TERM.
func Detect(w io.Writer, env func(string) string) Screen {
	var s Screen
	file, ok := w.(interface{ Fd() uintptr })
	terminal := ok && term.IsTerminal(int(file.Fd()))
	dumb := env("TERM") == "dumb" || runtime.GOOS == "windows" && env("WT_SESSION") == "" && env("TERM") == ""
	if terminal {
		s.Moving = !dumb
		s.Columns = func() int {
			if w, _, err := term.GetSize(int(file.Fd())); err == nil && w > 0 {
				return w
			}
			return 80
		}
	}
	s.Color = terminal && !dumb && env("CLICOLOR") != "0"
	if force := env("CLICOLOR_FORCE"); force != "" && force != "0" {
		s.Color = true
	}
	if env("NO_COLOR") != "" {
		s.Color = false
	}
	return s
}

// IsTerminal says whether a person sits at the other end of f.
func IsTerminal(f any) bool {
	file, ok := f.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

func (s Screen) columns() int {
	if s.Columns == nil {
		return 0
	}
	return s.Columns()
}

// reading is the width of running text: long lines are hard to read.
func (s Screen) reading() int {
	if w := s.columns(); w > 0 {
		return min(w, 100)
	}
	return 0
}

type ink string

const (
	plainInk ink = ""
	bold     ink = "1"
	dim      ink = "2"
	red      ink = "31"
	green    ink = "32"
	yellow   ink = "33"
	cyan     ink = "36"
	alarm    ink = "1;33"
	success  ink = "1;32"
	failure  ink = "1;31"
)

// paint colours text where that is possible. The text must be clean.
func (s Screen) paint(i ink, text string) string {
	if !s.Color || i == plainInk || text == "" {
		return text
	}
	return "\x1b[" + string(i) + "m" + text + "\x1b[0m"
}

// Bold, Dim and Good style a clean text.
func (s Screen) Bold(text string) string { return s.paint(bold, text) }
func (s Screen) Dim(text string) string  { return s.paint(dim, text) }
func (s Screen) Good(text string) string { return s.paint(success, text) }
func (s Screen) Bad(text string) string  { return s.paint(failure, text) }

// Alarm styles a clean text that warns.
func (s Screen) Alarm(text string) string { return s.paint(alarm, text) }
