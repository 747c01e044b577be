package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrBusy says that a run has a writer already. A *BusyError says which.
var ErrBusy = errors.New("another process writes this run")

// ErrFenced says that somebody else has written to the journal while this process held it: on a file system whose
// locks do not hold, or by hand. Nothing more is written.
var ErrFenced = errors.New("the journal was changed by another hand, so this process writes to it no more")

// BusyError is ErrBusy with the process that writes, as far as it is known.
type BusyError struct{ Writer WriterOpen }

func (e *BusyError) Error() string {
	who := ErrBusy.Error()
	if e.Writer.PID != 0 {
		who += fmt.Sprintf(": process %d on %s", e.Writer.PID, e.Writer.Host)
	}
	return who + ". `belay show --follow` can read it meanwhile"
}

func (e *BusyError) Is(target error) bool { return target == ErrBusy }

// self is this process as a writer.
func self(epoch int64) WriterOpen {
	host, _ := os.Hostname()
	return WriterOpen{Host: host, PID: os.Getpid(), BootID: bootID(), Epoch: epoch}
}

// Alive says whether the writer may still be there. Of another host nobody knows.
func (w WriterOpen) Alive() bool {
	if here := self(0); w.Host != here.Host {
		return true
	} else if w.BootID != here.BootID {
		return false // the machine was started anew since
	}
	return processLives(w.PID)
}

// Writer says who holds the run in dir for writing, as that process left word. A process that ended in order
// has taken its word back; ok is false then.
func Writer(dir string) (w WriterOpen, ok bool, err error) {
	return readWriter(place{osDisk{}, dir})
}

func readWriter(p place) (w WriterOpen, ok bool, err error) {
	text, err := readAll(p.disk, filepath.Join(p.dir, writerName))
	if errors.Is(err, fs.ErrNotExist) {
		return w, false, nil
	}
	if err != nil {
		return w, false, fmt.Errorf("read who writes: %w", err)
	}
	if json.Unmarshal(text, &w) != nil {
		return WriterOpen{}, false, nil // torn by a crash: it only ever informs
	}
	return w, true, nil
}

// acquire takes the run for this process alone, and says under which number it does.
func (p place) acquire() (unlock func() error, before WriterOpen, err error) {
	unlock, ok, err := p.disk.Lock(filepath.Join(p.dir, lockName))
	if err != nil {
		return nil, before, fmt.Errorf("lock: %w", err)
	}
	before, _, readErr := readWriter(p)
	if !ok {
		return nil, before, &BusyError{before}
	}
	if readErr != nil {
		return nil, before, errors.Join(readErr, unlock())
	}
	return unlock, before, nil
}

// announce leaves word of who writes, for the next opener.
func (p place) announce(w WriterOpen) error {
	text, err := encode(w)
	if err == nil {
		err = replace(p.disk, filepath.Join(p.dir, writerName), append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("leave word of who writes: %w", err)
	}
	return nil
}
