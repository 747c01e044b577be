// Package counter counts words.
package counter

// Counter counts. The zero Counter is ready to use.
type Counter struct{ seen map[string]int }

// Add counts a word.
func (c *Counter) Add(word string) { c.seen[word]++ }

// Of says how often a word was counted.
func (c *Counter) Of(word string) int { return c.seen[word] }
