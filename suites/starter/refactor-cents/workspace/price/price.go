// Package price reads and writes amounts of money.
package price

import (
	"fmt"
	"strconv"
)

// Parse reads an amount such as 12.50.
func Parse(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no amount", s)
	}
	return v, nil
}

// Format writes an amount with two digits after the point.
func Format(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }
