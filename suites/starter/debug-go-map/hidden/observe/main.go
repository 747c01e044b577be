// Command observe prints what a Counter counts.
package main

import (
	"counter"
	"fmt"
)

func main() {
	var c counter.Counter
	fmt.Println(c.Of("a"))
	c.Add("a")
	c.Add("a")
	c.Add("b")
	fmt.Println(c.Of("a"), c.Of("b"), c.Of("c"))
}
