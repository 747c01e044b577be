package sandbox

import (
	"regexp"
	"sync"
)

// lazy compiles a pattern when it is first needed: the helper starts often, and needs none.
func lazy(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
