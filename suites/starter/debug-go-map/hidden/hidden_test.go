package counter

import "testing"

func TestZero(t *testing.T) {
	var c Counter
	if c.Of("a") != 0 {
		t.Fatal("not 0")
	}
	c.Add("a")
	c.Add("a")
	if c.Of("a") != 2 {
		t.Fatal(c.Of("a"))
	}
}
