// Package features reads the list of features that an outer loop works through, and changes the state of one without touching the rest of the file.
package features

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"belay/internal/yaml"
)

// Status is how far a feature is. Only the harness changes it.
type Status string

const (
	Open  Status = "open"
	Done  Status = "done"
	Aside Status = "set_aside" // it failed twice, or a person has put it away
)

// words are what people and other agents call these states.
var words = map[string]Status{"": Open, "open": Open, "todo": Open, "pending": Open, "not_started": Open, "failing": Open, "in_progress": Open,
	"done": Done, "passing": Done, "passes": Done, "complete": Done, "completed": Done, "proved": Done,
	"set_aside": Aside, "aside": Aside, "blocked": Aside, "skipped": Aside}

// Feature is one of the list.
type Feature struct {
	ID       string  `json:"id"`
	Title    string  `json:"title"`
	Verify   string  `json:"verify,omitempty"`
	Priority float64 `json:"priority"` // the lowest number first
	Status   Status  `json:"status"`
	Notes    string  `json:"notes,omitempty"`
	line     int     // of the file, from 1, where its mapping begins
}

// List is a file of features.
type List struct {
	Path      string
	Bootstrap string // a command that must pass before each session; "" is none
	Features  []Feature
	text      []byte
}

// MaxFeatures bounds a list.
const MaxFeatures = 10_000

// Parse reads a list in YAML or JSON: a list of features, or a mapping with features and bootstrap.
func Parse(path string, text []byte) (*List, error) {
	root, err := yaml.Parse(path, "the list of features", text)
	if err != nil {
		return nil, err
	}
	l := &List{Path: path, text: text}
	items := root
	if root.Kind() != yaml.List {
		fields, err := root.Fields("the list of features", "version", "bootstrap", "features", "task")
		if err != nil {
			return nil, err
		}
		items = yaml.Node{}
		for _, f := range fields {
			switch f.Name {
			case "bootstrap":
				if l.Bootstrap, err = f.Value.Text(f.Name); err != nil {
					return nil, err
				}
			case "features":
				items = f.Value
			}
		}
		if items.Empty() {
			return nil, root.Errorf("there are no features: write features: [{id: a, title: …, verify: …}]")
		}
	}
	nodes, err := items.List("features")
	if err != nil {
		return nil, err
	}
	if len(nodes) == 0 || len(nodes) > MaxFeatures {
		return nil, items.Errorf("there must be 1 to %d features", MaxFeatures)
	}
	seen := map[string]bool{}
	for i, n := range nodes {
		f, err := read(n)
		if err != nil {
			return nil, err
		}
		switch {
		case f.ID == "":
			return nil, n.Errorf("feature %d has no id", i+1)
		case seen[f.ID]:
			return nil, n.Errorf("the id %q is there twice", f.ID)
		case f.Title == "":
			return nil, n.Errorf("feature %s has no title", f.ID)
		}
		seen[f.ID] = true
		l.Features = append(l.Features, f)
	}
	return l, nil
}

func read(n yaml.Node) (f Feature, err error) {
	fields, err := n.Pairs("a feature")
	if err != nil {
		return f, err
	}
	f.Status, f.line = Open, n.Line()
	for _, p := range fields {
		switch p.Name {
		case "id":
			f.ID, err = scalar(p.Value, p.Name)
		case "title", "description":
			if f.Title == "" {
				f.Title, err = p.Value.Text(p.Name)
			}
		case "verify":
			f.Verify, err = p.Value.Text(p.Name)
		case "notes":
			f.Notes, err = p.Value.Text(p.Name)
		case "priority":
			f.Priority, err = p.Value.Amount(p.Name, 1e9)
		case "status":
			var text string
			if text, err = scalar(p.Value, p.Name); err == nil {
				status, known := words[strings.ToLower(strings.ReplaceAll(text, "-", "_"))]
				if !known {
					err = p.Value.Errorf("there is no status %q: it is open, done or set_aside", text)
				}
				f.Status = status
			}
		}
		if err != nil {
			return f, err
		}
	}
	return f, nil
}

// scalar is a text, or a number written as one.
func scalar(n yaml.Node, what string) (string, error) {
	if text, ok := n.Literal(); ok {
		return strings.Trim(text, `"'`), nil
	}
	return n.Text(what)
}

// Next is the open feature with the lowest priority number, the first of these in the file. Nil is none.
func (l *List) Next() *Feature {
	var best *Feature
	for i := range l.Features {
		f := &l.Features[i]
		if f.Status == Open && (best == nil || f.Priority < best.Priority) {
			best = f
		}
	}
	return best
}

var statusLine = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(["']?status["']?\s*:\s*)("[^"]*"|'[^']*'|[\w-]+)`)
})

// With is the file's text with another status of one feature. Everything else stays byte for byte.
func (l *List) With(id string, status Status) ([]byte, error) {
	at := slices.IndexFunc(l.Features, func(f Feature) bool { return f.ID == id })
	if at < 0 {
		return nil, fmt.Errorf("%s has no feature %s", l.Path, id)
	}
	lines := bytes.SplitAfter(l.text, []byte("\n"))
	first, last := l.Features[at].line-1, len(lines)
	if at+1 < len(l.Features) && l.Features[at+1].line-1 > first {
		last = l.Features[at+1].line - 1
	}
	json := bytes.HasPrefix(bytes.TrimSpace(l.text), []byte("{")) || bytes.HasPrefix(bytes.TrimSpace(l.text), []byte("["))
	word := string(status)
	if json {
		word = `"` + word + `"`
	}
	part := bytes.Join(lines[first:last], nil)
	idAt := idPlace(part, id)
	if idAt < 0 {
		return nil, fmt.Errorf("%s: the place of feature %s cannot be found", l.Path, id)
	}
	// Several features may share a line: this one ends where the next id begins.
	end := len(part)
	if at+1 < len(l.Features) {
		if next := idPlace(part[idAt+1:], l.Features[at+1].ID); next >= 0 {
			end = idAt + 1 + next
		}
	}
	begin := bytes.LastIndexAny(part[:idAt], "{-")
	begin = max(0, begin)
	var changed []byte
	if m := statusLine().FindSubmatchIndex(part[begin:end]); m != nil {
		changed = slices.Concat(part[:begin+m[4]], []byte(word), part[begin+m[5]:])
	} else {
		changed = withStatus(part, idAt, word, json)
	}
	text := slices.Concat(bytes.Join(lines[:first], nil), changed, bytes.Join(lines[last:], nil))
	again, err := Parse(l.Path, text)
	if err != nil {
		return nil, fmt.Errorf("the status of %s cannot be written: %w", id, err)
	}
	for i, f := range again.Features {
		want := l.Features[i].Status
		if f.ID == id {
			want = status
		}
		if f.Status != want {
			return nil, fmt.Errorf("%s: the status of %s has no place of its own; write each feature on lines of its own", l.Path, id)
		}
	}
	return text, nil
}

// idPlace is where a feature's id stands in a text.
func idPlace(text []byte, id string) int {
	m := regexp.MustCompile(`["']?\bid["']?\s*:\s*["']?` + regexp.QuoteMeta(id) + `["']?(?:[\s,}]|$)`).FindIndex(text)
	if m == nil {
		return -1
	}
	return m[0]
}

// withStatus puts a status behind the id.
func withStatus(part []byte, idAt int, word string, json bool) []byte {
	end := idAt + len(regexp.MustCompile(`^["']?id["']?\s*:\s*("[^"]*"|'[^']*'|[^,}\n]*)`).Find(part[idAt:]))
	rest := part[end:]
	key := "status: "
	if json {
		key = `"status": `
	}
	if flow := json || bytes.LastIndexByte(part[:idAt], '{') > bytes.LastIndexByte(part[:idAt], '\n'); flow {
		return slices.Concat(part[:end], []byte(", "+key+word), rest)
	}
	line := part[bytes.LastIndexByte(part[:idAt], '\n')+1 : idAt]
	indent := strings.Repeat(" ", len(line))
	return slices.Concat(part[:end], []byte("\n"+indent+key+word), rest)
}
