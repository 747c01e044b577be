// Command shop prints the bill of what its arguments name: NAME COUNT PRICE, again and again.
package main

import (
	"fmt"
	"os"
	"strconv"

	"shop/bill"
	"shop/cart"
	"shop/price"
)

func main() {
	var items []cart.Item
	for args := os.Args[1:]; len(args) >= 3; args = args[3:] {
		count, err := strconv.Atoi(args[1])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		v, err := price.Parse(args[2])
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		items = append(items, cart.Item{Name: args[0], Price: v, Count: count})
	}
	fmt.Print(bill.Print(items))
}
