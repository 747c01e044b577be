package tool

import (
	"slices"
	"strings"
)

// Nearest returns at most n of the candidates that a person could have meant by name, nearest first: the same
// letters in another case, one inside the other, or at most a third of the letters changed.
func Nearest(name string, candidates []string, n int) []string {
	type near struct {
		name     string
		distance int
	}
	want := fold(name)
	var found []near
	for _, c := range candidates {
		have := fold(c)
		d := distance(want, have)
		switch {
		case want == have:
			d = 0
		case len(want) >= 3 && strings.Contains(have, want), len(have) >= 3 && strings.Contains(want, have):
			d = 1
		case d > max(len(want), len(have))/3:
			continue
		}
		found = append(found, near{c, d})
	}
	slices.SortStableFunc(found, func(a, b near) int { return a.distance - b.distance })
	var names []string
	for i := 0; i < len(found) && i < n; i++ {
		names = append(names, found[i].name)
	}
	return names
}

func nearest(name string, candidates []string) string {
	if near := Nearest(name, candidates, 1); len(near) > 0 {
		return near[0]
	}
	return ""
}

func fold(s string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(s))
}

// distance is the Levenshtein distance in bytes, over at most the first 64 of each.
func distance(a, b string) int {
	a, b = a[:min(len(a), 64)], b[:min(len(b), 64)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost = 1 + min(diagonal, row[j], row[j-1])
			}
			diagonal, row[j] = row[j], cost
		}
	}
	return row[len(b)]
}
