package harness

import (
	"context"
	"fmt"
	"time"

	"belay/journal"
)

// patient is a log that waits where the disk is full: the run stands still, says so, and goes on when there is space.
// It gives up when the run's context ends.
type patient struct {
	journal.Log
	ctx   context.Context
	say   func(string)
	sleep func(context.Context, time.Duration) error
}

// spaceEvery is how often it looks whether there is space again.
const spaceEvery = time.Second

func (p patient) Append(entries ...journal.Entry) (events []journal.Event, err error) {
	err = p.insist(func() error { events, err = p.Log.Append(entries...); return err })
	return events, err
}

func (p patient) Write(entries ...journal.Entry) (events []journal.Event, err error) {
	err = p.insist(func() error { events, err = p.Log.Write(entries...); return err })
	return events, err
}

func (p patient) PutBlob(content []byte) (ref journal.Ref, err error) {
	err = p.insist(func() error { ref, err = p.Log.PutBlob(content); return err })
	return ref, err
}

// insist tries until the disk has space. Nothing of what failed is in the log, so that the same may be tried again.
func (p patient) insist(what func() error) error {
	for tries := 0; ; tries++ {
		err := what()
		if err == nil && tries > 0 {
			p.say("there is space again; going on")
		}
		if err == nil || !journal.NoSpace(err) || p.ctx.Err() != nil {
			return err
		}
		if tries%30 == 0 { // again and again: it is easy to miss
			p.say(fmt.Sprintf("the disk is full, so nothing can be recorded and nothing is done: %v. Make space, or stop it with Ctrl-C", err))
		}
		if p.sleep(p.ctx, spaceEvery) != nil {
			return err
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
