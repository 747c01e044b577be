package cart

import "testing"

func TestTotal(t *testing.T) {
	if got := Total([]Item{{"a", 2, 3}, {"b", 1, 1}}); got != 7 {
		t.Fatal(got)
	}
}
