package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// history is a run's life on a disk: created, written, closed, opened and written again, with blobs, unsynced events
// and every kind of batch. It tries again what fails, as the harness does when a disk was full.
type history struct {
	disk  *memDisk
	tries int
	acked []Event // what the log said it has
	firm  int     // how many of them it said are durable
	log   *File

	closing bool
}

var errGaveUp = errors.New("gave up")

func (h *history) must(what func() error) error {
	var err error
	for range h.tries {
		if err = what(); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%w: %w", errGaveUp, err)
}

func (h *history) add(durable bool, entries ...Entry) error {
	return h.must(func() error {
		events, err := h.log.add(entries, durable)
		if err == nil {
			h.acked = append(h.acked, events...)
			if durable {
				h.firm = len(h.acked)
			}
		}
		return err
	})
}

func (h *history) live() error {
	// As one clock for all tries: a tried batch has the same bytes.
	now := func() time.Time { return start }
	say := func(text string) Entry { return Entry{Type: TypeUserMessage, Payload: UserMessage{Text: text}} }
	err := h.must(func() error {
		f, events, err := createOn(h.disk, "/home/state", newChain("r_01", now), birth{}, []Entry{
			{Type: TypeSessionStart, Payload: SessionStart{System: "system", Tools: json.RawMessage("[]")}}, say("task")})
		if err == nil {
			h.log, h.acked, h.firm = f, events, len(events)
		}
		return err
	})
	if err != nil {
		return err
	}
	for life := range 2 {
		id := fmt.Sprint("c", life)
		for _, step := range []func() error{
			func() error { return h.add(false, say("not synced")) },
			func() error {
				return h.add(true, Entry{Type: TypeToolRequest, Payload: ToolRequest{CallID: id, Args: json.RawMessage("{}")}})
			},
			func() error {
				return h.must(func() error { _, err := h.log.PutBlobFrom(strings.NewReader(strings.Repeat(id, 5000))); return err })
			},
			func() error { return h.add(false, say(strings.Repeat("not synced, and long ", 1000))) },
			func() error { return h.add(false, say("nor this")) },
			func() error {
				return h.add(true, Entry{Type: TypeToolResult, Payload: ToolResult{CallID: id, Text: strings.Repeat(id, 9000)}}, say("and more"))
			},
			func() error { return h.add(false, say("last words")) },
			func() error {
				h.closing = true // which is not tried again
				err := h.log.Close()
				h.closing = err != nil
				return err
			},
			func() error {
				h.firm = len(h.acked)
				return h.must(func() error {
					f, err := openOn(place{h.disk, "/home/state/runs/r_01"}, now)
					if err == nil {
						h.log = f
					}
					return err
				})
			},
		} {
			if err := step(); err != nil {
				return err
			}
		}
	}
	h.closing = true
	return h.log.Close()
}

func readOn(d *memDisk) (events []Event, err error) {
	for e, err := range (place{d, "/home/state/runs/r_01"}).read(-1) {
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
	return events, nil
}

// L3: whichever operation fails, with whatever error, tried again everything succeeds, and the run holds exactly
// what was acknowledged, once.
func TestEveryOperationFailsOnce(t *testing.T) {
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			ops := 0
			for n := 1; ; n++ {
				h := &history{disk: newMemDisk(), tries: 2}
				failed := ""
				h.disk.before = func(i int, op, path string) (bool, error) {
					if i != n || op == "lock" {
						return false, nil
					}
					failed = op + " " + path
					return fault(op)
				}
				err := h.live()
				if failed == "" && h.disk.count < n {
					ops = h.disk.count
					break
				}
				if err != nil && !h.closing {
					t.Fatalf("operation %d (%s) failed once: %v", n, failed, err)
				}
				checkHistory(t, h, fmt.Sprintf("operation %d (%s)", n, failed), err)
			}
			if ops < 100 {
				t.Errorf("only %d operations were tried", ops)
			}
			t.Logf("%d operations failed in turn", ops)
		})
	}
}

// The same where the disk fails for a while, and where it never recovers: what was acknowledged is there.
func TestDiskFailsFromThenOn(t *testing.T) {
	for name, fault := range faults {
		for _, length := range []int{3, 1 << 30} {
			t.Run(fmt.Sprint(name, " for ", length), func(t *testing.T) {
				for n := 1; n < 1000; n += 4 {
					h := &history{disk: newMemDisk(), tries: 8}
					h.disk.before = func(i int, op, _ string) (bool, error) {
						if i < n || i >= n+length || op == "lock" || op == "open" {
							return false, nil
						}
						return fault(op)
					}
					err := h.live()
					if h.disk.count < n {
						return
					}
					h.disk.before = nil
					if err != nil && !h.closing && length < 1000 {
						t.Fatalf("from operation %d: %v", n, err)
					}
					when := fmt.Sprint("from operation ", n)
					if length > 1000 {
						when += " for good"
					}
					checkHistory(t, h, when, err)
				}
				t.Error("no run was clean")
			})
		}
	}
}

func checkHistory(t *testing.T, h *history, when string, lived error) {
	t.Helper()
	if h.log == nil {
		// A disk that is dead for good cannot even take back the name that it was given.
		if _, err := h.disk.Stat("/home/state/runs/r_01"); err == nil && !strings.Contains(when, "for good") {
			t.Fatalf("%s: a run that could not be created is there", when)
		}
		return
	}
	got, err := readOn(h.disk)
	if err != nil {
		t.Fatalf("%s: %v (%v)", when, err, lived)
	}
	if lived == nil {
		// A sync that succeeds after one that failed says nothing: what was acknowledged survives a power loss.
		lost, err := readOn(h.disk.crash(rand.New(rand.NewPCG(1, uint64(len(when))))))
		if err != nil || len(lost) < h.firm {
			t.Fatalf("%s, then a power loss: %d events of %d durable ones, %v", when, len(lost), h.firm, err)
		}
	}
	want := h.acked
	if lived != nil {
		// What was never synced may be gone with the disk that failed, and only that.
		if len(got) < h.firm || len(got) > len(want) {
			t.Fatalf("%s: %d events, %d acknowledged, %d of them durable (%v)", when, len(got), len(want), h.firm, lived)
		}
		want = want[:len(got)]
	}
	if !reflect.DeepEqual(want, got) {
		t.Fatalf("%s (%v): what is read is not what was acknowledged:\n%s", when, lived, cmp.Diff(want, got))
	}
}

// L4: power loss at any operation. Whatever part of the unsynced data survives, what was acknowledged as durable
// is there, in order and once, and nothing that was never written. Where an unsynced middle is lost and its end is
// not, the run is refused and not guessed at; its sound part then holds all that was acknowledged.
func TestPowerLoss(t *testing.T) {
	clones, refused := 0, 0
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 4))
		h := &history{disk: newMemDisk(), tries: 1}
		type moment struct {
			disk *memDisk
			firm int
		}
		var moments []moment
		h.disk.before = func(int, string, string) (bool, error) {
			for range 3 {
				moments = append(moments, moment{h.disk.crash(rng), h.firm})
			}
			return false, nil
		}
		if err := h.live(); err != nil {
			t.Fatal(err)
		}
		for i, m := range moments {
			clones++
			before, readErr := readOn(m.disk)
			var damage *DamageError
			switch {
			case m.firm == 0 && readErr != nil:
				continue // it was never acknowledged; it need not be there
			case readErr != nil && !errors.As(readErr, &damage):
				t.Fatalf("seed %d, moment %d: %v, and %d events were durable", seed, i, readErr, m.firm)
			case readErr != nil:
				refused++
			}
			if len(before) < m.firm || len(before) > len(h.acked) {
				t.Fatalf("seed %d, moment %d: %d events, %d were durable (%v)", seed, i, len(before), m.firm, readErr)
			}
			if !reflect.DeepEqual(before, h.acked[:len(before)]) {
				t.Fatalf("seed %d, moment %d: other events:\n%s", seed, i, cmp.Diff(h.acked[:len(before)], before))
			}
			f, err := openOn(place{m.disk, "/home/state/runs/r_01"}, nil)
			if readErr != nil {
				if !errors.As(err, &damage) {
					t.Fatalf("seed %d, moment %d: damaged (%v), and opening gave %v", seed, i, readErr, err)
				}
				continue
			}
			if err != nil {
				t.Fatalf("seed %d, moment %d: %v", seed, i, err)
			}
			more, err := f.Append(Entry{Type: TypeUserMessage, Payload: UserMessage{Text: "after the loss"}})
			if err != nil {
				t.Fatalf("seed %d, moment %d: %v", seed, i, err)
			}
			f.Close()
			if after, err := readOn(m.disk.crash(rng)); err != nil || !reflect.DeepEqual(after, append(before, more...)) {
				t.Fatalf("seed %d, moment %d: after going on %v\n%s", seed, i, err, cmp.Diff(append(before, more...), after))
			}
		}
	}
	if clones < 1000 || refused == clones {
		t.Errorf("%d clones, %d refused", clones, refused)
	}
	t.Logf("%d power losses: 0 acknowledged events lost; %d runs need `belay journal repair`", clones, refused)
}
