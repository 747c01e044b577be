// Package bill prints what is to be paid.
package bill

import (
	"fmt"
	"strings"

	"shop/cart"
	"shop/price"
	"shop/tax"
)

// Print lists the items, the tax and the sum.
func Print(items []cart.Item) string {
	var b strings.Builder
	for _, i := range items {
		fmt.Fprintf(&b, "%s %dx %s\n", i.Name, i.Count, price.Format(i.Price))
	}
	net := cart.Total(items)
	fmt.Fprintf(&b, "tax %s\n", price.Format(tax.Of(net)))
	fmt.Fprintf(&b, "sum %s\n", price.Format(net+tax.Of(net)))
	return b.String()
}
