package projection

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/journal"
	"belay/message"
)

// A context that was cut back is the one that it was, and goes on from there; going back is itself taken back.
func TestRewind(t *testing.T) {
	for seed := range uint64(100) {
		events := story(rand.New(rand.NewPCG(seed, 2)))
		fold, err := Project(events)
		if err != nil {
			t.Fatal(err)
		}
		for at := 3; at <= len(events); at++ {
			then, err := Project(events[:at])
			if err != nil {
				t.Fatal(err)
			}
			want, _, err := then.Request()
			if err != nil {
				continue // a call was open
			}
			end, _, _ := fold.Request()
			for _, r := range []struct {
				to   int64
				want []message.Message
			}{{int64(at), want.Messages}, {fold.seq, end.Messages}} {
				if err := fold.Apply(event(int(fold.seq)+1, journal.TypeRewind, journal.Rewind{ToSeq: r.to, Context: true, Told: "back"})); err != nil {
					t.Fatal(err)
				}
				got, _, err := fold.Request()
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(append(r.want[:len(r.want):len(r.want)], message.UserText("back")), got.Messages); diff != "" {
					t.Fatalf("seed %d, back to %d: %s", seed, r.to, diff)
				}
				if got.Replies != end.Replies {
					t.Fatalf("%d replies, and there were %d", got.Replies, end.Replies)
				}
			}
		}
	}
}
