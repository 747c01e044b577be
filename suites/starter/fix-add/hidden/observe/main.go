// Command observe prints some sums.
package main

import (
	"add"
	"fmt"
)

func main() {
	for _, c := range [][2]int{{0, 0}, {-1, 1}, {40, 2}, {2, 3}, {-7, -8}} {
		fmt.Println(add.Add(c[0], c[1]))
	}
}
