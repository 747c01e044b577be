// Package stats says how reliable an agent is from the counts of its trials, with how much of that is chance.
//
// The formulas, for a task with n trials of which c passed:
//
//	pass@k = 1 - C(n-c,k)/C(n,k)   at least one of k trials passes (Chen et al. 2021, arXiv 2107.03374)
//	pass^k =     C(c,k)/C(n,k)     all of k trials pass            (Yao et al. 2024, arXiv 2406.12045)
//
// Both are unbiased, and undefined where n < k. A suite's value is the mean over its tasks, each task counting once. The
// trials of a task are a cluster, so the standard error is that of the tasks' values (Miller 2024, arXiv 2411.00640).
package stats

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// Task is one task's counts.
type Task struct {
	ID   string
	N    int      // trials that count
	C    int      // of these, passed
	Cost *float64 // of all N trials, in USD; nil is unknown
}

// Rate is the share of trials that passed.
func (t Task) Rate() float64 { return float64(t.C) / float64(t.N) }

// PassHat is the probability that all of k trials pass; NaN where there are fewer than k.
func PassHat(n, c, k int) float64 {
	if k < 1 || n < k || c < 0 || c > n {
		return math.NaN()
	}
	p := 1.0
	for i := range k {
		p *= max(float64(c-i), 0) / float64(n-i)
	}
	return p
}

// PassAt is the probability that at least one of k trials passes; NaN where there are fewer than k.
func PassAt(n, c, k int) float64 {
	if k < 1 || n < k || c < 0 || c > n {
		return math.NaN()
	}
	return 1 - PassHat(n, n-c, k)
}

// MinTrials is the smallest number of trials of any task, 0 where there is none: the largest k of which the whole suite
// has a value.
func MinTrials(tasks []Task) int {
	if len(tasks) == 0 {
		return 0
	}
	return slices.MinFunc(tasks, func(a, b Task) int { return cmp.Compare(a.N, b.N) }).N
}

// Estimate is a suite's value with its uncertainty. SE is NaN where one task alone cannot tell.
type Estimate struct {
	Value, SE float64
	Low, High float64 // 95 % interval
}

// Hat is the suite's pass^k, At its pass@k.
func Hat(tasks []Task, k int) Estimate { return estimate(tasks, k, PassHat) }
func At(tasks []Task, k int) Estimate  { return estimate(tasks, k, PassAt) }

func estimate(tasks []Task, k int, of func(n, c, k int) float64) Estimate {
	values := make([]float64, len(tasks))
	for i, t := range tasks {
		values[i] = of(t.N, t.C, k)
	}
	e := Estimate{Value: Mean(values), SE: StandardError(values)}
	e.Low, e.High = Interval(e.Value, e.SE, len(tasks))
	return e
}

// Mean is NaN of nothing.
func Mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// StandardError of a mean: the sample's standard deviation (with n-1) over the root of n; NaN below two values.
func StandardError(values []float64) float64 {
	n := float64(len(values))
	if n < 2 {
		return math.NaN()
	}
	mean, sum := Mean(values), 0.0
	for _, v := range values {
		sum += (v - mean) * (v - mean)
	}
	return math.Sqrt(sum / (n - 1) / n)
}

// z is the 97.5 % quantile of the normal distribution.
const z = 1.959963984540054

// Wilson is the 95 % interval of a proportion: passed of trials (Wilson 1927). It has a width at 0 and at 1 too.
func Wilson(passed, trials float64) (low, high float64) {
	if trials <= 0 {
		return math.NaN(), math.NaN()
	}
	p := passed / trials
	middle := p + z*z/(2*trials)
	half := z * math.Sqrt(p*(1-p)/trials+z*z/(4*trials*trials))
	scale := 1 + z*z/trials
	return max(0, (middle-half)/scale), min(1, (middle+half)/scale)
}

// Interval is Wilson's for the mean of values between 0 and 1 over tasks: of the number of independent trials that would
// have this standard error (Korn and Graubard 1998), and of one trial a task where there is no spread to tell it.
func Interval(mean, se float64, tasks int) (low, high float64) {
	if math.IsNaN(mean) || tasks == 0 {
		return math.NaN(), math.NaN()
	}
	trials := float64(tasks)
	if se > 0 && mean > 0 && mean < 1 {
		trials = mean * (1 - mean) / (se * se)
	}
	return Wilson(mean*trials, trials)
}

// McNemar is the exact two-sided p of a paired comparison: b pairs differ one way and c the other (McNemar 1947, with
// the binomial distribution of b among b+c).
func McNemar(b, c int) float64 {
	n, k := b+c, min(b, c)
	if n == 0 {
		return 1
	}
	tail := 0.0
	for i := 0; i <= k; i++ {
		tail += math.Exp(logChoose(n, i) - float64(n)*math.Ln2)
	}
	return min(1, 2*tail)
}

func logChoose(n, k int) float64 {
	lg := func(x int) float64 { v, _ := math.Lgamma(float64(x) + 1); return v }
	return lg(n) - lg(k) - lg(n-k)
}

// Kappa is the agreement of two raters beyond chance (Cohen 1960), and Agreement the plain share of equal labels. Counts
// holds how often the first said i and the second j. Kappa is NaN where both always say the same one thing.
func Kappa(counts [][]int) float64 {
	total, same, chance := 0.0, 0.0, 0.0
	rows, columns := make([]float64, len(counts)), make([]float64, len(counts))
	for i, row := range counts {
		for j, n := range row {
			total += float64(n)
			rows[i] += float64(n)
			columns[j] += float64(n)
			if i == j {
				same += float64(n)
			}
		}
	}
	for i := range counts {
		chance += rows[i] / total * columns[i] / total
	}
	return (same/total - chance) / (1 - chance)
}

// Agreement is the share of pairs on which two raters say the same.
func Agreement(counts [][]int) float64 {
	total, same := 0, 0
	for i, row := range counts {
		for j, n := range row {
			total += n
			if i == j {
				same += n
			}
		}
	}
	return float64(same) / float64(total)
}

// Bootstrap is the 95 % percentile interval of statistic over resampled tasks: rounds samples of indices, with
// replacement, from a fixed seed, so that the same data give the same interval.
func Bootstrap(tasks, rounds int, statistic func(sample []int) float64) (low, high float64) {
	if tasks == 0 || rounds < 1 {
		return math.NaN(), math.NaN()
	}
	r := rand.New(rand.NewPCG(uint64(tasks), 20260907))
	values, sample := make([]float64, 0, rounds), make([]int, tasks)
	for range rounds {
		for i := range sample {
			sample[i] = r.IntN(tasks)
		}
		if v := statistic(sample); !math.IsNaN(v) {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return math.NaN(), math.NaN()
	}
	slices.Sort(values)
	return quantile(values, 0.025), quantile(values, 0.975)
}

// quantile of sorted values, between neighbours by their distance.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}

// Detectable is the smallest difference between two runs of this design that is seen with a power of 80 % at 5 %: paired
// over tasks, where only the trials' own chance is left (Miller 2024, section 5). NaN where nothing is known of it.
func Detectable(tasks []Task) float64 {
	sum := 0.0
	for _, t := range tasks {
		p := t.Rate()
		within := p * (1 - p)
		if t.N > 1 {
			within *= float64(t.N) / float64(t.N-1)
		} else {
			within = 0.25 // one trial says nothing of its own chance: the worst case
		}
		sum += 2 * within / float64(t.N)
	}
	n := float64(len(tasks))
	const power = z + 0.8416212335729143
	return power * math.Sqrt(sum) / n
}

// Flaky are the tasks of which some trials pass and some do not.
func Flaky(tasks []Task) []Task {
	var flaky []Task
	for _, t := range tasks {
		if t.C > 0 && t.C < t.N {
			flaky = append(flaky, t)
		}
	}
	return flaky
}

// CostPerSuccess is what one passed trial costs, failed ones included: all costs over all passes. NaN where a cost is not
// known or nothing passed.
func CostPerSuccess(tasks []Task) float64 {
	cost, passed := 0.0, 0
	for _, t := range tasks {
		if t.Cost == nil {
			return math.NaN()
		}
		cost += *t.Cost
		passed += t.C
	}
	if passed == 0 {
		return math.NaN()
	}
	return cost / float64(passed)
}
