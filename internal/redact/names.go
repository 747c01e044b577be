package redact

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
)

// maxValue is how many bytes of a value without quotes tell whether it is a secret.
const maxValue = 512

// named finds the value in NAME=value, "name": "value", name: value, --name value and <name>value, where the name
// is one that secrets have. At is somewhere in the name.
func named(t string, at int, spans []span) []span {
	const maxName = 64
	start, end := at, at
	for start > 0 && at-start < maxName && nameByte(t[start-1]) {
		start--
	}
	for end < len(t) && end-at < maxName && nameByte(t[end]) {
		end++
	}
	if start > 0 && t[start-1] == '\\' && end-start > 1 { // the n of \n
		start++
	}
	name := t[start:end]
	if !secretName(strings.TrimLeft(name, "-")) {
		return spans
	}
	i := run(t, end, `"'\`+"`") // the name's own quotes
	quotedName := i > end
	spaced := run(t, i, " \t")
	how, from := separator(t, start, spaced, name)
	if how == none {
		return spans
	}
	if how == flag && spaced == i {
		return spans
	}
	value := run(t, from, " \t")
	assigned := how == equals && value == from && spaced == i && !quotedName // NAME=value
	env := assigned && !strings.ContainsAny(name, lowers) && startsLine(t, start)
	quote := quoteAt(t, value)
	if quote != "" {
		body := value + len(quote)
		if to := closingQuote(t, body, quote); to >= 0 {
			if v := t[body:to]; env && secretish(v, loosely) || secretish(v, inQuotes) {
				return append(spans, span{body, to, "value"})
			}
			return spans
		}
		value = body
	}
	stop := " \t\r\n\"'`,;)]}<>&|\\"
	if env && strings.Trim(lineBefore(t, start), " \t") == "" || env && strings.TrimSpace(lineBefore(t, start)) == "export" {
		stop = " \t\r\n\"'`" // of a file of settings, where the value is the rest of the line
	}
	to := value
	for to < len(t) && to-value < maxValue && strings.IndexByte(stop, t[to]) < 0 {
		to++
	}
	v := t[value:to]
	rule := bareword
	switch {
	case env:
		rule = loosely
	case !assigned && how != flag && how != markup && quote == "" && !alone(t, start, to):
		return spans
	}
	if !secretish(v, rule) {
		return spans
	}
	for to < len(t) && strings.IndexByte(stop, t[to]) < 0 { // all of it, once it is one
		to++
	}
	return append(spans, span{value, to, "value"})
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
}

type separatorKind int

const (
	none separatorKind = iota
	equals
	colon
	flag   // --name value
	markup // <name>value
)

// separator says what stands between a name and its value, and where that ends.
func separator(t string, start, at int, name string) (separatorKind, int) {
	rest := t[at:]
	switch {
	case strings.HasPrefix(rest, ":="), strings.HasPrefix(rest, "=>"):
		return colon, at + 2
	case strings.HasPrefix(rest, "=="), strings.HasPrefix(rest, "::"):
		return none, at
	case strings.HasPrefix(rest, "="):
		return equals, at + 1
	case strings.HasPrefix(rest, ":"):
		return colon, at + 1
	case strings.HasPrefix(rest, ">") && start > 0 && t[start-1] == '<':
		return markup, at + 1
	case strings.HasPrefix(name, "--"):
		return flag, at
	}
	return none, at
}

func quoteAt(t string, at int) string {
	for _, q := range []string{`\"`, `\'`, `"`, `'`, "`"} {
		if strings.HasPrefix(t[min(at, len(t)):], q) {
			return q
		}
	}
	return ""
}

// closingQuote is where a quoted text ends, -1 where it does not end on its line.
func closingQuote(t string, from int, quote string) int {
	for i := from; i < len(t) && i-from < 1024 && t[i] != '\n'; i++ {
		if strings.HasPrefix(t[i:], quote) {
			return i
		}
		if t[i] == '\\' {
			i++
		}
	}
	return -1
}

// startsLine says that a name is the first word of its line, of an assignment before a command, or of what a quote
// holds.
func startsLine(t string, start int) bool {
	if start == 0 || strings.IndexByte(" \t\n\r\"'`\\;,", t[start-1]) >= 0 {
		return true
	}
	return start > 1 && t[start-2] == '\\'
}

// alone says that name and value are all of their line, but for a list's dash, quotes and a comma.
func alone(t string, start, end int) bool {
	before := strings.TrimLeft(lineBefore(t, start), "0123456789\t +->:|") // a line's number, a diff's sign
	if strings.Trim(before, "\"'`-H ") != "" && !strings.HasSuffix(before, `"`) && !strings.HasSuffix(before, `'`) {
		return false
	}
	after := t[end:min(len(t), end+256)]
	if i := strings.IndexAny(after, "\r\n"); i >= 0 {
		after = after[:i]
	}
	return strings.Trim(after, "\"'`,; \t\\") == "" || strings.IndexByte("\"'`\\", after[0]) >= 0
}

// lineBefore is what stands on a line before a place.
func lineBefore(t string, at int) string {
	before := t[max(0, at-256):at]
	return before[strings.LastIndexByte(before, '\n')+1:]
}

// lastWords are the words with which the name of a secret ends.
var lastWords = map[string]bool{"password": true, "passwd": true, "passphrase": true, "passcode": true, "pwd": true, "pass": true, "secret": true,
	"secrets": true, "token": true, "apikey": true, "secretkey": true, "accesskey": true, "privatekey": true, "authtoken": true, "credential": true, "credentials": true, "pat": true}

// keyWords are what makes a key a secret one.
var keyWords = map[string]bool{"api": true, "access": true, "private": true, "secret": true, "auth": true, "account": true, "encryption": true, "signing": true,
	"master": true, "service": true, "shared": true, "storage": true, "session": true, "deploy": true, "webhook": true, "admin": true, "ssh": true, "app": true,
	"license": true, "project": true, "openai": true, "anthropic": true, "client": true}

// secretName says whether a variable, field or header of this name holds a secret.
func secretName(name string) bool {
	words := splitName(name)
	for len(words) > 1 && (strings.Trim(words[len(words)-1], digits) == "" || words[len(words)-1] == "base" || words[len(words)-1] == "value") {
		words = words[:len(words)-1]
	}
	if len(words) == 0 {
		return false
	}
	last, before := strings.TrimRight(words[len(words)-1], digits), ""
	if len(words) > 1 {
		before = words[len(words)-2]
	}
	switch {
	case before == "public", before == "page", before == "next", before == "continuation", before == "sync", before == "has", before == "is", before == "max":
		return false
	case last == "key":
		return keyWords[before]
	case last == "pass", last == "pwd", last == "pat":
		return before != "" && before != "old"
	case lastWords[last]:
		return true
	}
	for _, suffix := range []string{"password", "passwd", "passphrase", "apikey", "secretkey", "accesskey", "token"} {
		if strings.HasSuffix(last, suffix) {
			return true
		}
	}
	return false
}

// splitName splits a name into lower-case words at separators and capital letters.
func splitName(name string) []string {
	var words []string
	from := 0
	cut := func(to int) {
		if to > from {
			words = append(words, strings.ToLower(name[from:to]))
		}
	}
	for i := range len(name) {
		switch c := name[i]; {
		case c == '_' || c == '-' || c == '.':
			cut(i)
			from = i + 1
		case c >= 'A' && c <= 'Z' && i > from:
			lowerBefore := name[i-1] >= 'a' && name[i-1] <= 'z' || name[i-1] >= '0' && name[i-1] <= '9'
			lowerAfter := i+1 < len(name) && name[i+1] >= 'a' && name[i+1] <= 'z'
			if lowerBefore || lowerAfter && name[i-1] >= 'A' && name[i-1] <= 'Z' {
				cut(i)
				from = i
			}
		}
	}
	cut(len(name))
	return words
}

// strictness is how sure the place of a value is: the less sure, the more it must look like a secret itself.
type strictness int

const (
	loosely  strictness = iota // NAME=value at the start of a line
	inQuotes                   // name = "value"
	bareword                   // name: value
)

// secretish says whether a value that belongs to a secret's name is one, and no type, variable, message or example.
func secretish(v string, how strictness) bool {
	if len(v) < minValue || len(v) > 1024 || strings.Contains(v, opening) || strings.Trim(v, digits+".,:-+ ") == "" || dummy(v) || interpolated(v) || strings.ContainsAny(v, "\x00\n") {
		return false
	}
	if strings.HasPrefix(v, "/") || strings.HasPrefix(v, "./") || strings.HasPrefix(v, "~/") || strings.Contains(v, "://") || strings.ContainsAny(v, "()") && how != loosely {
		return strings.HasPrefix(v, "/") && how != bareword && len(v) >= 30 && mixed(v) && strings.Count(v, "/") < 4 && entropy(v) >= 4 && !strings.Contains(v, ".")
	}
	switch how {
	case loosely:
		return len(v) >= 8 && strings.Trim(v, uppers+"_") != "" || mixed(v)
	case inQuotes:
		if strings.ContainsAny(v, " \t%") && !(strings.Contains(v, "%") && mixed(v) && len(v) >= 16 && !strings.Contains(v, " ")) || word(v) {
			return false
		}
		return mixed(v) || len(v) >= 20 || strings.ContainsAny(v, "!@#$^*?+=")
	}
	if low := strings.ToLower(v); strings.HasPrefix(low, "0x") || strings.HasPrefix(low, "-0x") || run(v, 0, alphaNum+"_.") == len(v) && (strings.Contains(low, "key") || strings.Contains(low, "token") || strings.Contains(low, "secret") || strings.Contains(low, "passw")) {
		return false // a number, or the name of a variable
	}
	return len(v) >= 8 && mixed(v) && !word(v) && !strings.ContainsAny(v, "[]{}*") && entropy(v) >= 2.5 && (digitCount(v) >= 2 || len(v) >= 20)
}

func digitCount(v string) int {
	n := 0
	for i := range len(v) {
		if v[i] >= '0' && v[i] <= '9' {
			n++
		}
	}
	return n
}

// word says that a text is an identifier or words with separators and at most two digits at the end.
func word(v string) bool {
	trimmed := strings.TrimRight(v, digits)
	if len(v)-len(trimmed) > 2 {
		return false
	}
	return strings.Trim(trimmed, uppers+lowers+"_-./: ") == "" && (len(v) < 24 || strings.ContainsAny(trimmed, "_-./: ") || entropy(v) < 3.5)
}

// interpolated says that a value is filled in from elsewhere.
func interpolated(v string) bool {
	switch v[0] {
	case '<', '{', '[', '(':
		return true
	case '$': // $NAME, but not $2a$10$…
		if len(v) > 1 && strings.IndexByte(uppers+"_{(", v[1]) >= 0 {
			return true
		}
	}
	for _, part := range []string{"${", "{{", "$(", "process.env", "os.environ", "getenv", "ENV["} {
		if strings.Contains(v, part) {
			return true
		}
	}
	return false
}

// dummies are what people write where no secret is meant.
var dummies = map[string]bool{"password": true, "passwd": true, "secret": true, "changeme": true, "change_me": true, "change-me": true, "example": true, "redacted": true,
	"undefined": true, "default": true, "optional": true, "required": true, "disabled": true, "enabled": true, "string": true, "boolean": true, "number": true, "integer": true,
	"your-token": true, "not-needed": true, "lm-studio": true, "ollama": true, "no-key": true, "nothing": true, "unknown": true, "invalid": true, "missing": true, "prompt": true}

// dummy says that a value only holds the place of a secret.
func dummy(v string) bool {
	low := strings.ToLower(v)
	if dummies[low] || strings.Trim(low, low[:1]) == "" || strings.Trim(low, "x*.-_#•") == "" {
		return true
	}
	if strings.ContainsAny(v, digits) {
		return false
	}
	for _, part := range []string{"example", "placeholder", "changeme", "your_", "your-", "insert", "replace", "redacted", "<", ">", "***", "..."} {
		if strings.Contains(low, part) {
			return true
		}
	}
	return false
}

// fromEnviron are the values of variables that have a secret's name and look like nothing else.
func fromEnviron(environ []string) []string {
	var values []string
	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		value = strings.TrimSpace(value)
		if !ok || !secretName(name) || len(value) < 8 || !secretish(value, loosely) || !mixed(value) && len(value) < 16 {
			continue
		}
		values = append(values, value)
	}
	return values
}

// forms are how a known value may be written: as it is, inside JSON, in a URL, and in base64. The last is found only
// where nothing else was encoded with it.
func forms(value string) []string {
	if len(value) < 8 || dummy(value) {
		return nil
	}
	all := []string{value}
	if quoted, err := json.Marshal(value); err == nil {
		all = append(all, string(quoted[1:len(quoted)-1]))
	}
	all = append(all, url.QueryEscape(value), url.PathEscape(value), base64.StdEncoding.EncodeToString([]byte(value)))
	return all
}
