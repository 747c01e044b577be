package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// figures count what was tried. Losses have no field: the first one ends the test with an error.
type figures struct {
	Kills  int            `json:"kills"`
	Loop   int            `json:"kills_of_the_loop"`
	Binary int            `json:"kills_of_the_binary"`
	Runs   int            `json:"runs"`  // that were killed, resumed and ended as they should
	Asked  int            `json:"asked"` // how often a person was asked whether an effect had happened
	At     map[string]int `json:"kills_at"`
}

func (f *figures) died(kind, at string) {
	f.Kills++
	f.At[at]++
	if kind == "loop" {
		f.Loop++
	} else {
		f.Binary++
	}
}

func (f *figures) add(g figures) {
	f.Kills, f.Loop, f.Binary, f.Runs, f.Asked = f.Kills+g.Kills, f.Loop+g.Loop, f.Binary+g.Binary, f.Runs+g.Runs, f.Asked+g.Asked
	for at, n := range g.At {
		f.At[at] += n
	}
}

func (f figures) String() string {
	return fmt.Sprintf("%d kills (%d of the loop with tools of every class, %d of the real binary) in %d runs; a person was asked %d times\n"+
		"0 acknowledged events lost, 0 invalid histories, 0 repeated effects\n", f.Kills, f.Loop, f.Binary, f.Runs, f.Asked)
}

// Marks between which a page's figures stand.
const (
	from = "<!-- figures: go run ./internal/crashtest -n 200 -record docs/reliability.json -doc docs/reliability.md -->\n"
	to   = "<!-- end of figures -->\n"
)

// keep adds the figures to the cumulative record and writes that into a page.
func (f figures) keep(record, page string) error {
	total := f
	if record != "" {
		total = figures{At: map[string]int{}}
		text, err := os.ReadFile(record)
		if err == nil {
			err = json.Unmarshal(text, &total)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		total.add(f)
		if text, err = json.MarshalIndent(total, "", "  "); err != nil {
			return err
		}
		if err := os.WriteFile(record, append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	if page == "" {
		return nil
	}
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), from)
	_, after, closed := strings.Cut(rest, to)
	if !ok || !closed {
		return fmt.Errorf("%s has no place for figures: it lacks the line %s", page, strings.TrimSpace(from))
	}
	return os.WriteFile(page, []byte(before+from+total.table()+to+after), 0o644)
}

func (f figures) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n| kills, cumulative | of the real binary | of the loop | runs | acknowledged events lost | invalid histories | repeated effects of class 2, 3 and 4 |\n| --- | --- | --- | --- | --- | --- | --- |\n")
	fmt.Fprintf(&b, "| %d | %d | %d | %d | 0 | 0 | 0 |\n\n", f.Kills, f.Binary, f.Loop, f.Runs)
	fmt.Fprintf(&b, "| killed at | times |\n| --- | --- |\n")
	for _, at := range slices.Sorted(maps.Keys(f.At)) {
		fmt.Fprintf(&b, "| %s | %d |\n", at, f.At[at])
	}
	b.WriteByte('\n')
	return b.String()
}
