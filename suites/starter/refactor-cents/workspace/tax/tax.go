// Package tax says what is added to a price.
package tax

import "math"

// Rate is the tax in percent.
const Rate = 19

// Of is the tax on an amount, rounded to cents, halves away from zero.
func Of(amount float64) float64 { return math.Round(amount*Rate) / 100 }
