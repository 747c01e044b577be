package redact

import "strings"

// A placeholder is «secret:KIND:ID»: KIND in lower-case letters, ID in idLen hex digits. No part of it means
// anything to a shell or to JSON.
const (
	opening = "«secret:"
	closing = "»"
	idLen   = 12
	maxKind = 16
)

// placeholderLen is the size of the placeholder with which s begins, 0 where it begins with none.
func placeholderLen(s string) int {
	rest, ok := strings.CutPrefix(s, opening)
	if !ok {
		return 0
	}
	colon := strings.IndexByte(rest[:min(len(rest), maxKind+1)], ':')
	if colon <= 0 || strings.Trim(rest[:colon], "abcdefghijklmnopqrstuvwxyz") != "" {
		return 0
	}
	id := rest[colon+1:]
	if len(id) < idLen || strings.Trim(id[:idLen], "0123456789abcdef") != "" || !strings.HasPrefix(id[idLen:], closing) {
		return 0
	}
	return len(opening) + colon + 1 + idLen + len(closing)
}

// nextPlaceholder is where the first placeholder of s begins, -1 where there is none.
func nextPlaceholder(s string) int {
	for from := 0; ; {
		at := strings.Index(s[from:], opening)
		if at < 0 {
			return -1
		}
		if placeholderLen(s[from+at:]) > 0 {
			return from + at
		}
		from += at + len(opening)
	}
}

func kindOf(placeholder string) string {
	kind, _, _ := strings.Cut(strings.TrimPrefix(placeholder, opening), ":")
	return kind
}
