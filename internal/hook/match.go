package hook

import (
	"fmt"
	"regexp"
	"strings"
)

// plain are the characters of a matcher that is a name, or a list of names.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_- ,|"

// matches says whether a matcher is about a name: "", "*" are about all, a list split by | or , about the names in it, and
// anything else is a regular expression that may match anywhere.
func matches(matcher, name string) (bool, error) {
	if matcher == "" || matcher == "*" {
		return true, nil
	}
	if strings.Trim(matcher, plain) == "" {
		for _, one := range strings.FieldsFunc(matcher, func(r rune) bool { return r == '|' || r == ',' }) {
			if strings.TrimSpace(one) == name {
				return true, nil
			}
		}
		return false, nil
	}
	re, err := regexp.Compile(matcher)
	if err != nil {
		return false, fmt.Errorf("it is no regular expression that belay knows: %w", err)
	}
	return re.MatchString(name), nil
}
