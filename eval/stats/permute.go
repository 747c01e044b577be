package stats

import "math"

// Permutation is the exact two-sided p of the sum over tasks of the difference in pass rates, were the trials of a task exchangeable between the two
// runs: passes are dealt anew within each task (hypergeometric), and the tasks' distributions are convolved (a stratified Fisher–Pitman
// permutation test). The pairs are the counts of the same task in two runs. Sums are told apart to a millionth.
func Permutation(pairs [][2]Task) float64 {
	const unit = 1e6
	observed := 0.0
	sums := map[int64]float64{0: 1} // sum of differences -> its probability
	for _, pair := range pairs {
		a, b := pair[0], pair[1]
		if a.N == 0 || b.N == 0 {
			continue
		}
		observed += b.Rate() - a.Rate()
		passes := a.C + b.C
		whole := logChoose(a.N+b.N, passes)
		next := make(map[int64]float64, len(sums)*2)
		for x := max(0, passes-a.N); x <= min(b.N, passes); x++ { // passes that fall to b
			p := math.Exp(logChoose(b.N, x) + logChoose(a.N, passes-x) - whole)
			step := int64(math.Round((float64(x)/float64(b.N) - float64(passes-x)/float64(a.N)) * unit))
			for sum, q := range sums {
				next[sum+step] += p * q
			}
		}
		if len(next) > 200_000 { // unequal numbers of trials: sums are told apart less finely
			coarse := make(map[int64]float64, len(next)/100)
			for sum, q := range next {
				coarse[int64(math.Round(float64(sum)/1000))*1000] += q
			}
			next = coarse
		}
		sums = next
	}
	limit, p := math.Abs(observed)*unit-float64(len(pairs))-1, 0.0
	for sum, q := range sums {
		if math.Abs(float64(sum)) >= limit {
			p += q
		}
	}
	return min(1, p)
}
