// Package unified makes the unified diff of two texts.
package unified

import "github.com/aymanbagabas/go-udiff"

// Diff is the unified diff from one text to another, with three lines around each change; "" where they are equal.
func Diff(from, to, before, after string) string { return udiff.Unified(from, to, before, after) }
