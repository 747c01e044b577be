package add

import "testing"

func TestHidden(t *testing.T) {
	for _, c := range [][3]int{{0, 0, 0}, {-1, 1, 0}, {40, 2, 42}} {
		if got := Add(c[0], c[1]); got != c[2] {
			t.Errorf("Add(%d, %d) = %d, want %d", c[0], c[1], got, c[2])
		}
	}
}
