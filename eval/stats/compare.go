package stats

import "math"

// Comparison is how run B did against run A on the tasks that both have.
type Comparison struct {
	Tasks       int
	Difference  Estimate // of pass rates, B minus A
	SolvedOnlyA int      // tasks that A passes in more than half of its trials and B does not
	SolvedOnlyB int
	P           float64  // of that split or a more uneven one, were both equal (exact McNemar)
	Permuted    float64  // p of the difference, were the trials of each task exchangeable: see Permutation
	Cost        Estimate // of a trial in USD, B minus A; NaN where unknown
	Verdict     Verdict
}

// Verdict is what may be said.
type Verdict string

const (
	Better             Verdict = "better"
	Worse              Verdict = "worse"
	NotDistinguishable Verdict = "not distinguishable"
)

// rounds of a bootstrap: enough for two digits of an interval's ends.
const rounds = 4000

// Compare pairs tasks by their ids. What only one run has is left out.
func Compare(a, b []Task) Comparison {
	before := map[string]Task{}
	for _, t := range a {
		before[t.ID] = t
	}
	var c Comparison
	var differences, costs []float64
	var pairs [][2]Task
	known := true
	for _, after := range b {
		t, both := before[after.ID]
		if !both || t.N == 0 || after.N == 0 {
			continue
		}
		c.Tasks++
		pairs = append(pairs, [2]Task{t, after})
		differences = append(differences, after.Rate()-t.Rate())
		switch first, second := t.Rate() > 0.5, after.Rate() > 0.5; {
		case first && !second:
			c.SolvedOnlyA++
		case second && !first:
			c.SolvedOnlyB++
		}
		if t.Cost == nil || after.Cost == nil {
			known = false
			continue
		}
		costs = append(costs, *after.Cost/float64(after.N)-*t.Cost/float64(t.N))
	}
	c.P = McNemar(c.SolvedOnlyA, c.SolvedOnlyB)
	c.Difference = paired(differences)
	if !known {
		costs = nil
	}
	c.Cost = paired(costs)
	c.Permuted = Permutation(pairs)
	c.Verdict = NotDistinguishable
	switch {
	case c.Tasks < 2 || c.Permuted >= 0.05: // a bootstrap of few tasks is too sure of itself
	case c.Difference.Low > 0:
		c.Verdict = Better
	case c.Difference.High < 0:
		c.Verdict = Worse
	}
	return c
}

// paired is the mean of differences with their standard error and a bootstrap interval over tasks.
func paired(differences []float64) Estimate {
	if len(differences) == 0 {
		nan := math.NaN()
		return Estimate{nan, nan, nan, nan}
	}
	e := Estimate{Value: Mean(differences), SE: StandardError(differences)}
	e.Low, e.High = Bootstrap(len(differences), rounds, func(sample []int) float64 {
		sum := 0.0
		for _, i := range sample {
			sum += differences[i]
		}
		return sum / float64(len(sample))
	})
	return e
}

// Steps is what a task of several steps comes to when each succeeds with p: p^n. It is only an estimate, since steps are
// not independent.
func Steps(passed, tried int, perTask float64) (p, whole float64) {
	if tried == 0 {
		return math.NaN(), math.NaN()
	}
	p = float64(passed) / float64(tried)
	return p, math.Pow(p, perTask)
}

// Fisher is the exact two-sided p of two proportions, a passed of n and b of m, were both agents equal (Fisher 1922): the
// probability of this split of all passes and of every one that is not more likely.
func Fisher(a, n, b, m int) float64 {
	all := a + b
	chance := func(i int) float64 { return logChoose(n, i) + logChoose(m, all-i) - logChoose(n+m, all) }
	here, p := chance(a), 0.0
	for i := max(0, all-m); i <= min(n, all); i++ {
		if c := chance(i); c <= here+1e-9 {
			p += math.Exp(c)
		}
	}
	return min(1, p)
}
