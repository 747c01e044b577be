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

// figures count what was tried. Differences have no field: the first one ends the test with an error.
type figures struct {
	Rewinds int            `json:"rewinds"`
	Trees   int            `json:"trees"`
	Paths   int            `json:"paths"` // compared
	At      map[string]int `json:"kills_at"`
}

func (f figures) killed() (n int) {
	for _, k := range f.At {
		n += k
	}
	return n
}

// Marks between which a page's figures stand.
const (
	from = "<!-- figures: go run ./internal/rewindtest -n 200 -record docs/rewinds.json -doc docs/reliability.md -->\n"
	to   = "<!-- end of rewinds -->\n"
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
		total.Rewinds, total.Trees, total.Paths = total.Rewinds+f.Rewinds, total.Trees+f.Trees, total.Paths+f.Paths
		for at, n := range f.At {
			total.At[at] += n
		}
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
	fmt.Fprintf(&b, "\n| rewinds, cumulative | in trees | paths compared | killed on the way | differences |\n| --- | --- | --- | --- | --- |\n| %d | %d | %d | %d | 0 |\n\n", f.Rewinds, f.Trees, f.Paths, f.killed())
	b.WriteString("| killed at | times |\n| --- | --- |\n")
	for _, at := range slices.Sorted(maps.Keys(f.At)) {
		fmt.Fprintf(&b, "| %s | %d |\n", at, f.At[at])
	}
	b.WriteByte('\n')
	return b.String()
}
