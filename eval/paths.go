package eval

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// replacer puts real places where a text names others. Only whole paths are taken: /app in /app/x and "/app", never in /apple or lib/app.
type replacer struct {
	find *regexp.Regexp
	real map[string]string
}

func newReplacer(real map[string]string) *replacer {
	names := slices.SortedFunc(maps.Keys(real), func(a, b string) int { return cmp.Or(len(b)-len(a), cmp.Compare(a, b)) })
	for i, n := range names {
		names[i] = regexp.QuoteMeta(n)
	}
	return &replacer{regexp.MustCompile(`(^|[^\w./~-])(` + strings.Join(names, "|") + `)([^\w.-]|\.?$|\.[^\w])`), real}
}

// Replace returns the text with all of them replaced.
func (r *replacer) Replace(text string) string {
	var b strings.Builder
	for {
		at := r.find.FindStringSubmatchIndex(text)
		if at == nil {
			b.WriteString(text)
			return b.String()
		}
		b.WriteString(text[:at[4]])
		b.WriteString(r.real[text[at[4]:at[5]]])
		text = text[at[5]:] // what follows the name may be what precedes the next
	}
}
