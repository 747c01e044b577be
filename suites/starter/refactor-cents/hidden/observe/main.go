// Command observe prints what the packages make of amounts.
package main

import (
	"fmt"

	"shop/bill"
	"shop/cart"
	"shop/price"
	"shop/tax"
)

func main() {
	for _, s := range []string{"0.10", "12.5", "7", "-3.05", "-0.05", "90071992547409.93", "0.001", "1.", ".5", "1e3", "", "-", "1.-5", "99999999999999999999", "+1"} {
		a, err := price.Parse(s)
		if err != nil {
			fmt.Printf("%q refused\n", s)
			continue
		}
		fmt.Printf("%q %s %d\n", s, price.Format(a), int64(a))
	}
	item := func(name, amount string, count int) cart.Item {
		a, err := price.Parse(amount)
		if err != nil {
			fmt.Println(err)
		}
		return cart.Item{Name: name, Price: a, Count: count}
	}
	many := []cart.Item{item("bolt", "0.10", 3), item("nut", "0.07", 100), item("gold", "90071992547409.93", 1)}
	fmt.Println(price.Format(cart.Total(many)))
	fmt.Print(bill.Print(many[:2]))
	for _, c := range []price.Cents{0, 2, 3, 50, 150, -50, -150} {
		fmt.Print(tax.Of(c), " ")
	}
	fmt.Println()
}
