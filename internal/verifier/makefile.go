package verifier

import (
	"regexp"
	"strings"
	"sync"
)

// makeRule is what is known of one target.
type makeRule struct {
	works bool // it has a recipe or prerequisites: asking for it does something
	phony bool // it is no file
}

// assignment matches what makes a line with a colon a variable and not a rule.
var assignment = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^\s*(override |export |private |unexport )*\s*[^\s:=]+\s*(=|:=|::=|:::=|\?=|\+=|!=)`)
})

// makeRules reads the rules of a makefile as far as that needs no evaluation: targets with plain names, outside
// define, whatever the conditionals around them say. Included files are not read.
func makeRules(text string) map[string]makeRule {
	rules := map[string]makeRule{}
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\\\n", " ")
	var open []string // targets whose recipe may follow
	define := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		words := strings.Fields(line)
		switch {
		case define:
			define = len(words) == 0 || words[0] != "endef"
			continue
		case strings.HasPrefix(line, "\t"):
			if len(words) > 0 && !strings.HasPrefix(words[0], "#") {
				for _, t := range open {
					r := rules[t]
					r.works = true
					rules[t] = r
				}
			}
			continue
		case len(words) == 0 || strings.HasPrefix(words[0], "#"):
			continue
		case conditional(words[0]): // it may stand between a rule and its recipe
			continue
		case words[0] == "define":
			define = !strings.HasSuffix(line, "endef")
			continue
		}
		line, _, _ = strings.Cut(line, "#")
		targets, rest, isRule := strings.Cut(line, ":")
		if !isRule || assignment().MatchString(line) {
			open = nil
			continue
		}
		rest = strings.TrimPrefix(rest, ":")
		if assignment().MatchString(rest) { // a variable of this target only
			continue
		}
		open = strings.Fields(strings.TrimSuffix(targets, "&"))
		for _, t := range open {
			r := rules[t]
			r.works = r.works || strings.Trim(rest, " \t|;") != ""
			rules[t] = r
		}
		if strings.TrimSpace(targets) == ".PHONY" {
			for _, t := range strings.Fields(rest) {
				r := rules[t]
				r.phony = true
				rules[t] = r
			}
		}
	}
	return rules
}

func conditional(word string) bool {
	switch word {
	case "ifeq", "ifneq", "ifdef", "ifndef", "else", "endif":
		return true
	}
	return false
}
