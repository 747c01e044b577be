package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if math.Abs(got-want) > within && !(math.IsNaN(got) && math.IsNaN(want)) {
		t.Errorf("%s = %.15g, want %.15g", what, got, want)
	}
}

// TestUnitVectors holds single tasks against exact values.
func TestUnitVectors(t *testing.T) {
	nan := math.NaN()
	for _, v := range []struct {
		n, c, k int
		at, hat float64
	}{
		{5, 1, 2, 0.4, 0}, {5, 3, 2, 0.9, 0.3}, {10, 3, 2, 8.0 / 15, 1.0 / 15}, {10, 3, 5, 11.0 / 12, 0},
		{100, 37, 5, 0.906639945106, 0.00578976435935}, {100, 37, 10, 0.992616797214, 2.01226983767e-05},
		{200, 10, 10, 0.408547866081, 4.45414372665e-17}, {200, 10, 100, 0.999228973937, 0}, {200, 199, 100, 1, 0.5},
		{3, 3, 3, 1, 1}, {3, 0, 3, 0, 0}, {1, 1, 1, 1, 1},
		{2, 2, 3, nan, nan}, {0, 0, 1, nan, nan}, {5, 6, 1, nan, nan}, {5, -1, 1, nan, nan}, {5, 2, 0, nan, nan},
	} {
		near(t, fmt.Sprintf("pass@%d of %d/%d", v.k, v.c, v.n), PassAt(v.n, v.c, v.k), v.at, 1e-12)
		near(t, fmt.Sprintf("pass^%d of %d/%d", v.k, v.c, v.n), PassHat(v.n, v.c, v.k), v.hat, 1e-14)
	}
}

// TestPublishedTable computes a published table from its counts: 50 tasks of an airline's desk, four trials each.
func TestPublishedTable(t *testing.T) {
	counts := []int{0, 1, 1, 0, 0, 1, 1, 1, 0, 0, 0, 1, 4, 2, 0, 2, 1, 1, 4, 0, 4, 3, 0, 0, 4, 0, 2, 2, 0, 1, 2, 2, 0, 0, 3, 4, 4, 3, 4, 1, 3, 2, 4, 1, 2, 2, 2, 1, 4, 4}
	var tasks []Task
	for i, c := range counts {
		tasks = append(tasks, Task{ID: fmt.Sprint(i), N: 4, C: c})
	}
	for k, want := range map[int][4]float64{
		1: {0.42, 0.0522161911, 0.42, 0.0522161911}, 2: {0.273333333333, 0.0554838540, 0.566666666667, 0.0567446442},
		3: {0.22, 0.0565324541, 0.66, 0.0605080531}, 4: {0.20, 0.0571428571, 0.72, 0.0641426981},
	} {
		near(t, "pass^k", Hat(tasks, k).Value, want[0], 1e-9)
		near(t, "SE of pass^k", Hat(tasks, k).SE, want[1], 1e-9)
		near(t, "pass@k", At(tasks, k).Value, want[2], 1e-9)
		near(t, "SE of pass@k", At(tasks, k).SE, want[3], 1e-9)
	}
	if n := len(Flaky(tasks)); n != 26 {
		t.Errorf("%d flaky tasks, want 26", n)
	}
	if !math.IsNaN(Hat(tasks, 5).Value) {
		t.Error("pass^5 of four trials is a number")
	}
	e := Hat(tasks, 1)
	if !(e.Low < 0.42 && 0.42 < e.High && e.High-e.Low > 2*0.04) {
		t.Errorf("interval [%g, %g] forgets that trials of a task belong together", e.Low, e.High)
	}
}

func TestIntervals(t *testing.T) {
	for _, v := range []struct{ c, n, low, high float64 }{
		{84, 200, 0.353736, 0.489279}, {10, 50, 0.112438, 0.330371}, {0, 30, 0, 0.113513}, {30, 30, 0.886487, 1}, {1, 1, 0.206549, 1}, {5, 10, 0.236593, 0.763407},
	} {
		low, high := Wilson(v.c, v.n)
		near(t, "low", low, v.low, 5e-7)
		near(t, "high", high, v.high, 5e-7)
	}
	for _, c := range []int{0, 3} { // no spread: still no certainty
		e := Hat([]Task{{N: 3, C: c}, {N: 3, C: c}, {N: 3, C: c}}, 2)
		if e.High-e.Low < 0.3 {
			t.Errorf("%d of 3, three times: [%g, %g]", c, e.Low, e.High)
		}
	}
	if e := Hat([]Task{{N: 4, C: 2}}, 1); !math.IsNaN(e.SE) || e.Low > 0.5 || e.High < 0.5 {
		t.Errorf("one task: %+v", e)
	}
}

func TestMcNemar(t *testing.T) {
	for pair, want := range map[[2]int]float64{{10, 2}: 0.038574219, {1, 9}: 0.021484375, {0, 6}: 0.03125, {3, 12}: 0.035156250, {5, 5}: 1, {0, 0}: 1} {
		near(t, fmt.Sprint(pair), McNemar(pair[0], pair[1]), want, 1e-9)
	}
	near(t, "large", McNemar(600, 400), McNemar(400, 600), 1e-12)
}

func TestKappa(t *testing.T) {
	near(t, "kappa", Kappa([][]int{{20, 5}, {10, 15}}), 0.4, 1e-12)
	near(t, "agreement", Agreement([][]int{{20, 5}, {10, 15}}), 0.7, 1e-12)
	near(t, "one label only", Kappa([][]int{{9, 0}, {0, 0}}), math.NaN(), 0)
}

// TestAgainstEnumeration counts all ways to draw k of n trials.
func TestAgainstEnumeration(t *testing.T) {
	for n := 1; n <= 9; n++ {
		for c := 0; c <= n; c++ {
			for k := 1; k <= n; k++ {
				all, some, draws := 0, 0, 0
				for set := range 1 << n {
					drawn, passed := 0, 0
					for i := range n {
						if set>>i&1 == 1 {
							drawn++
							if i < c {
								passed++
							}
						}
					}
					if drawn != k {
						continue
					}
					draws++
					if passed == k {
						all++
					}
					if passed > 0 {
						some++
					}
				}
				near(t, "pass^k", PassHat(n, c, k), float64(all)/float64(draws), 1e-12)
				near(t, "pass@k", PassAt(n, c, k), float64(some)/float64(draws), 1e-12)
			}
		}
	}
}

// TestProperties holds random suites against what must be so.
func TestProperties(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		n := 1 + r.IntN(30)
		c, k := r.IntN(n+1), 1+r.IntN(n)
		hat, at := PassHat(n, c, k), PassAt(n, c, k)
		near(t, "pass^1", PassHat(n, c, 1), float64(c)/float64(n), 1e-12)
		near(t, "pass@1", PassAt(n, c, 1), float64(c)/float64(n), 1e-12)
		if hat < 0 || at > 1 || hat > at+1e-12 {
			t.Fatalf("n %d c %d k %d: %g %g", n, c, k, hat, at)
		}
		if k < n && (PassHat(n, c, k+1) > hat+1e-12 || PassAt(n, c, k+1) < at-1e-12) {
			t.Fatalf("n %d c %d: not monotone in k at %d", n, c, k)
		}
		if c < n && (PassHat(n, c+1, k) < hat || PassAt(n, c+1, k) < at) {
			t.Fatalf("n %d k %d: not monotone in c at %d", n, k, c)
		}
	}
}

func TestCompare(t *testing.T) {
	make := func(rates ...int) (tasks []Task) {
		for i, c := range rates {
			cost := float64(c)
			tasks = append(tasks, Task{ID: fmt.Sprint(i), N: 4, C: c, Cost: &cost})
		}
		return tasks
	}
	same := Compare(make(1, 2, 3, 4, 0, 2), make(1, 2, 3, 4, 0, 2))
	if same.Verdict != NotDistinguishable || same.P != 1 || same.Difference.Value != 0 {
		t.Errorf("%+v", same)
	}
	better := Compare(make(0, 0, 1, 0, 1, 0, 0, 0), make(4, 4, 3, 4, 4, 4, 3, 4))
	if better.Verdict != Better || better.SolvedOnlyB != 8 || better.P > 0.01 || better.Cost.Value <= 0 {
		t.Errorf("%+v", better)
	}
	if worse := Compare(make(4, 4, 3, 4), make(0, 0, 1, 0)); worse.Verdict != Worse {
		t.Errorf("%+v", worse)
	}
	if none := Compare(make(4), nil); none.Tasks != 0 || none.Verdict != NotDistinguishable {
		t.Errorf("%+v", none)
	}
}

// TestDetectable: more trials and more tasks see smaller differences.
func TestDetectable(t *testing.T) {
	suite := func(tasks, n, c int) (all []Task) {
		for i := range tasks {
			all = append(all, Task{ID: fmt.Sprint(i), N: n, C: c})
		}
		return all
	}
	small, large, more := Detectable(suite(50, 5, 4)), Detectable(suite(200, 5, 4)), Detectable(suite(50, 20, 16))
	near(t, "four times the tasks", small/large, 2, 1e-9)
	if more >= small || small < 0.05 || small > 0.2 {
		t.Errorf("50 tasks of 5 see %g, of 20 see %g", small, more)
	}
}

func TestCost(t *testing.T) {
	two, three := 2.0, 3.0
	near(t, "cost per success", CostPerSuccess([]Task{{N: 4, C: 1, Cost: &two}, {N: 4, C: 4, Cost: &three}}), 1, 1e-12)
	near(t, "unknown", CostPerSuccess([]Task{{N: 4, C: 1}}), math.NaN(), 0)
	near(t, "nothing passed", CostPerSuccess([]Task{{N: 4, Cost: &two}}), math.NaN(), 0)
}

// TestFisher holds it against the tea that a lady tasted (Fisher 1935), and against the edges.
func TestFisher(t *testing.T) {
	near(t, "tea", Fisher(3, 4, 1, 4), 34.0/70, 1e-12)
	near(t, "all and none", Fisher(0, 4, 4, 4), 2.0/70, 1e-12)
	near(t, "equal", Fisher(2, 4, 2, 4), 1, 1e-12)
	near(t, "nothing", Fisher(0, 3, 0, 5), 1, 1e-12)
}

// TestPermutation deals the trials of small designs by hand.
func TestPermutation(t *testing.T) {
	pair := func(c, n, d, m int) [2]Task { return [2]Task{{N: n, C: c}, {N: m, C: d}} }
	near(t, "one task is Fisher's", Permutation([][2]Task{pair(0, 4, 4, 4)}), Fisher(0, 4, 4, 4), 1e-9)
	near(t, "two tasks of two", Permutation([][2]Task{pair(0, 2, 2, 2), pair(0, 2, 2, 2)}), 2.0/36, 1e-9)
	near(t, "no difference", Permutation([][2]Task{pair(1, 2, 1, 2), pair(3, 4, 3, 4)}), 1, 1e-9)
	near(t, "nothing", Permutation(nil), 1, 0)
}
