package bill

import "testing"

var dinners = []struct{ cents, people int }{
	{900, 3}, {1000, 3}, {2000, 3}, {5, 4}, {0, 2},
}

func TestNothingIsLost(t *testing.T) {
	for _, d := range dinners {
		shares, sum := Split(d.cents, d.people), 0
		for _, share := range shares {
			sum += share
		}
		if sum != d.cents {
			t.Errorf("Split(%d, %d) = %v, which adds up to %d", d.cents, d.people, shares, sum)
		}
	}
}

func TestNobodyPaysMuchMore(t *testing.T) {
	for _, d := range dinners {
		shares := Split(d.cents, d.people)
		low, high := shares[0], shares[0]
		for _, share := range shares {
			low, high = min(low, share), max(high, share)
		}
		if high-low > 1 {
			t.Errorf("Split(%d, %d) = %v: one pays %d, another %d", d.cents, d.people, shares, high, low)
		}
	}
}
