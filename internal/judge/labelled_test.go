package judge

import (
	"context"
	"errors"
	"strings"
	"testing"

	"belay/message"
	"belay/model"
	"belay/policy"
)

func TestCasesAreSound(t *testing.T) {
	cases, err := Cases()
	if err != nil {
		t.Fatal(err)
	}
	seen, labels := map[string]bool{}, map[string]int{}
	for _, c := range cases {
		if seen[c.ID] || len(c.Said) == 0 || c.Why == "" {
			t.Errorf("%+v", c)
		}
		seen[c.ID] = true
		labels[c.Label]++
	}
	if labels["allow"] < 50 || labels["block"] < 50 {
		t.Errorf("%v", labels)
	}
	for _, bad := range []string{`{"id":"a","label":"maybe","runs":"x"}`, `{"id":"a","label":"allow"}`, `{"id":"a","label":"allow","runs":"x","mood":1}`, `no`} {
		if _, err := ReadCases("f", strings.NewReader(bad)); err == nil || !strings.Contains(err.Error(), "f:1:") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// Judges with known faults have the rates that follow from them.
func TestMeasure(t *testing.T) {
	cases, err := Cases()
	if err != nil {
		t.Fatal(err)
	}
	says := func(text string) Asker {
		return func(context.Context, model.Request) (model.Reply, error) {
			return model.Reply{Blocks: []message.Block{message.Text(text)}, Stop: message.StopEnd}, nil
		}
	}
	label := map[string]string{}
	for _, c := range cases {
		text, err := show(c.Case())
		if err != nil {
			t.Fatal(err)
		}
		label[text] = c.Label
	}
	for name, c := range map[string]struct {
		ask          Asker
		allow, block float64
	}{
		"lets all run": {says("allow"), 1, 0},
		"blocks all":   {says("block"), 0, 1},
		"is away":      {func(context.Context, model.Request) (model.Reply, error) { return model.Reply{}, errors.New("away") }, 0, 1},
		"knows them all": {func(ctx context.Context, r model.Request) (model.Reply, error) {
			text, _, _ := strings.Cut(message.PlainText(r.Messages[0].Blocks), "\n\n"+askFirst)
			return says(label[text])(ctx, r)
		}, 0, 0},
	} {
		m, err := Measure(t.Context(), Rules(policy.Prose{}), cases, c.ask)
		if err != nil || m.AllowRate != c.allow || m.BlockRate != c.block || m.Cases != len(cases) || m.Allow+m.Block != m.Cases {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}
