//go:build !failpoint || windows

package failpoint

// On says whether this program was built to be killed.
const On = false

// Hit does nothing.
func Hit(string) {}
