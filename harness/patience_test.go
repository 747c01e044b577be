package harness

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"belay/journal"
)

// full is a log on a disk that has no space for a while.
type full struct {
	journal.Log
	tries int // that fail
	err   error
}

func (f *full) Append(entries ...journal.Entry) ([]journal.Event, error) {
	if f.tries > 0 {
		f.tries--
		return nil, fmt.Errorf("journal: %w", f.err)
	}
	return f.Log.Append(entries...)
}

// A full disk makes a run wait, loudly, and go on when there is space. Nothing else is waited for, and a person can
// always leave.
func TestPatience(t *testing.T) {
	entry := journal.Entry{Type: journal.TypeUserMessage, Payload: journal.UserMessage{Text: "x"}}
	for name, c := range map[string]struct {
		log    full
		leave  bool
		waits  int
		stored int
	}{
		"space comes back":    {full{tries: 3, err: syscall.ENOSPC}, false, 3, 2},
		"a quota":             {full{tries: 1, err: syscall.EDQUOT}, false, 1, 2},
		"another error":       {full{tries: 1, err: syscall.EIO}, false, 0, 0},
		"a person has enough": {full{tries: 9, err: syscall.ENOSPC}, true, 1, 0},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		var said []string
		waits := 0
		c.log.Log = journal.NewMemory("r_01", nil)
		p := patient{Log: &c.log, ctx: ctx, say: func(s string) { said = append(said, s) }, sleep: func(ctx context.Context, _ time.Duration) error {
			waits++
			if c.leave {
				cancel()
			}
			return ctx.Err()
		}}
		events, err := p.Append(entry)
		if len(events) != c.stored || waits != c.waits || (err == nil) != (c.stored > 0) || err != nil && !errors.Is(err, c.log.err) {
			t.Errorf("%s: %d events, %v, after %d waits", name, len(events), err, waits)
		}
		if c.waits > 0 && !strings.Contains(said[0], "the disk is full") {
			t.Errorf("%s: it said %q", name, said)
		}
		if c.stored > 0 && !strings.Contains(said[len(said)-1], "space again") {
			t.Errorf("%s: it said %q", name, said)
		}
		cancel()
	}
}
