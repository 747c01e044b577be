//go:build amd64 || arm64

package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"

	"belay/internal/sandbox/helper"
)

// streams are a command's input and outputs. They are always pipes of belay's own: through /proc/self/fd a command
// could open a file that it was handed a second time, for what it was not handed it for.
type streams struct {
	in, out, err *os.File
	written      chan error // one value, when all output was passed on
}

func open(p *helper.Program, cmd Call) (s *streams, err error) {
	s = &streams{written: make(chan error, 1)}
	var feed, output, diagnostics *os.File
	defer func() {
		if err != nil {
			for _, f := range []*os.File{s.in, s.out, s.err, feed, output, diagnostics} {
				if f != nil {
					f.Close()
				}
			}
		}
	}()
	if cmd.Stdin == nil {
		s.in, err = os.Open(os.DevNull)
	} else {
		s.in, feed, err = os.Pipe()
	}
	if err != nil {
		return nil, err
	}
	if output, s.out, err = os.Pipe(); err != nil {
		return nil, err
	}
	s.err = s.out
	if cmd.Errors != nil {
		if diagnostics, s.err, err = os.Pipe(); err != nil {
			return nil, err
		}
	}
	if p.SetIDs {
		// The command opens /dev/stdout by name: the pipe must be its own.
		own := []*os.File{s.out}
		if diagnostics != nil {
			own = append(own, s.err)
		}
		if feed != nil {
			own = append(own, s.in)
		}
		for _, f := range own {
			if err := f.Chown(int(p.UID), int(p.GID)); err != nil {
				return nil, err
			}
		}
	}
	if feed != nil {
		go func() {
			io.Copy(feed, cmd.Stdin) // that the program reads no further is no error
			feed.Close()
		}()
	}
	passed := make(chan error, 2)
	go func() { passed <- pass(output, cmd.Output) }()
	if diagnostics != nil {
		go func() { passed <- pass(diagnostics, cmd.Errors) }()
	} else {
		passed <- nil
	}
	go func() { s.written <- errors.Join(<-passed, <-passed) }()
	return s, nil
}

// pass passes a command's output on, to the end.
func pass(from *os.File, to io.Writer) error {
	defer from.Close()
	if to == nil {
		io.Copy(io.Discard, from)
		return nil
	}
	_, err := io.Copy(to, from)
	if err != nil {
		err = fmt.Errorf("passing on the output: %w", err)
		io.Copy(io.Discard, from) // a full pipe would stop the program
	}
	return err
}

func (s *streams) close() {
	s.in.Close()
	s.out.Close()
	if s.err != s.out {
		s.err.Close()
	}
}
