// Package cart adds up what somebody buys.
package cart

// Item is one line of a cart.
type Item struct {
	Name  string
	Price float64
	Count int
}

// Total is what all items cost.
func Total(items []Item) float64 {
	sum := 0.0
	for _, i := range items {
		sum += i.Price * float64(i.Count)
	}
	return sum
}
