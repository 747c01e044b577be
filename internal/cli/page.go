package cli

import (
	"cmp"
	"errors"
	"io"
	"iter"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"belay/internal/render"
	"belay/journal"
)

// turns is a part of a run; the zero value is all of it.
type turns struct{ from, to int }

// turnRange reads "12", "90-120" and "90-".
func turnRange(text string) (turns, error) {
	if text == "" {
		return turns{}, nil
	}
	low, high, span := strings.Cut(text, "-")
	from, err := strconv.Atoi(low)
	to := from
	switch {
	case span && high == "":
		to = int(^uint(0) >> 1)
	case span:
		var bad error
		to, bad = strconv.Atoi(high)
		err = errors.Join(err, bad)
	}
	if err != nil || from < 1 || to < from {
		return turns{}, usagef("--turns %q must be a turn such as 12, or turns such as 90-120 or 90-", text)
	}
	return turns{from, to}, nil
}

// of leaves out the events of other turns. How the run began and how it ended stays.
func (t turns) of(events iter.Seq2[journal.Event, error]) iter.Seq2[journal.Event, error] {
	if t == (turns{}) {
		return events
	}
	return func(yield func(journal.Event, error) bool) {
		for e, err := range events {
			inside := t.from <= e.Turn && e.Turn <= t.to || e.Seq == 1 || e.Type == journal.TypeSessionEnd
			if (err != nil || inside) && !yield(e, err) {
				return
			}
		}
	}
}

// page lets a person turn the pages of a long text. Where nobody sits at a terminal, or there is no pager, the text
// is just written.
func (a *app) page(write func(io.Writer) error) error {
	name := cmp.Or(os.Getenv("BELAY_PAGER"), os.Getenv("PAGER"), "less")
	words := strings.Fields(name)
	if !render.IsTerminal(a.out) || !render.IsTerminal(a.in) || len(words) == 0 || name == "cat" {
		return write(a.out)
	}
	program, err := exec.LookPath(words[0])
	if err != nil {
		return write(a.out)
	}
	pager := exec.Command(program, words[1:]...)
	pager.Stdout, pager.Stderr = a.out, a.err
	pager.Env = append(os.Environ(), "LESS="+cmp.Or(os.Getenv("LESS"), "FRX"))
	pipe, err := pager.StdinPipe()
	if err != nil {
		return err
	}
	if err := pager.Start(); err != nil {
		return write(a.out)
	}
	err = write(pipe)
	err = errors.Join(err, pipe.Close())
	if waited := pager.Wait(); err == nil {
		err = waited
	}
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) { // the person has read enough
		return nil
	}
	return err
}
