package config

import (
	"fmt"
	"slices"
	"strings"

	"belay/internal/yaml"
	"belay/tool"
)

// setting is a row of the table, whatever the type of its value.
type setting interface {
	key() Key
	given(*Settings) bool
	read(into *Settings, n yaml.Node, p place) error    // from a file
	parse(into *Settings, text string, p place) error   // from a variable
	take(have, want *Settings)                          // from a source that may decide
	tighten(have, want *Settings) (bool, string, error) // from one that may not; what it wanted and did not get
	show(*Settings) string
}

// place is what a value may depend on.
type place struct {
	dir             string // where relative paths start
	home, workspace string
	tools           []string
}

// of is a setting of one type.
type of[T any] struct {
	Key
	at     func(*Settings) *T
	isSet  func(T) bool
	node   func(n yaml.Node, what string, p place) (T, error)
	text   func(text string, p place) (T, error)
	join   func(have, want T) T                                  // nil: want replaces have
	narrow func(have, want T) (got T, refused string, err error) // nil: Ignored
	why    string                                                // it is ignored
	shown  func(T) string                                        // nil: a list of text
}

func (o of[T]) key() Key { return o.Key }

func (o of[T]) given(s *Settings) bool { return o.isSet(*o.at(s)) }

func (o of[T]) read(into *Settings, n yaml.Node, p place) (err error) {
	*o.at(into), err = o.node(n, o.Name, p)
	return err
}

func (o of[T]) parse(into *Settings, text string, p place) (err error) {
	*o.at(into), err = o.text(text, p)
	return err
}

func (o of[T]) take(have, want *Settings) {
	if o.join != nil {
		*o.at(have) = o.join(*o.at(have), *o.at(want))
		return
	}
	*o.at(have) = *o.at(want)
}

func (o of[T]) tighten(have, want *Settings) (bool, string, error) {
	if o.narrow == nil {
		return false, o.Name + " is ignored: the project is not trusted, and " + o.why, nil
	}
	got, refused, err := o.narrow(*o.at(have), *o.at(want))
	if err != nil {
		return false, "", err
	}
	taken := o.display(got) != o.display(*o.at(have))
	*o.at(have) = got
	switch {
	case refused == "":
	case taken:
		refused = o.Name + " is taken in part: the project is not trusted, and " + refused
	default:
		refused = o.Name + " is ignored: the project is not trusted, and " + refused
	}
	return taken, refused, nil
}

func (o of[T]) show(s *Settings) string { return o.display(*o.at(s)) }

func (o of[T]) display(v T) string {
	if o.shown != nil {
		return o.shown(v)
	}
	list, _ := any(v).([]string)
	all := make([]string, len(list))
	for i, item := range list {
		all[i] = quote(item)
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// quote is text as a file may say it.
func quote(s string) string {
	if toolName().MatchString(s) {
		return s
	}
	return fmt.Sprintf("%q", s)
}

// parseFile reads the keys of a file in its order.
func parseFile(file string, data []byte, p place) ([]value, error) {
	root, err := yaml.Parse(file, "the configuration", data)
	if err != nil || root.Empty() { // everything may be commented out
		return nil, err
	}
	return readGroup(root, "", p)
}

// readGroup reads a mapping whose keys all begin with prefix.
func readGroup(n yaml.Node, prefix string, p place) ([]value, error) {
	what := "the configuration"
	if prefix != "" {
		what = strings.TrimSuffix(prefix, ".")
	}
	fields, err := n.Pairs(what)
	if err != nil {
		return nil, err
	}
	var values []value
	for _, f := range fields {
		name := prefix + f.Name
		switch i := slices.IndexFunc(table, func(s setting) bool { return s.key().Name == name && !strings.Contains(f.Name, ".") }); {
		case i >= 0:
			v := value{setting: table[i], node: f.Value, place: f.Value.Place()}
			if err := table[i].read(&v.settings, f.Value, p); err != nil {
				return nil, err
			}
			values = append(values, v)
		case name == "version":
			if num, ok := f.Value.Decimal(); !ok || num != "1" {
				return nil, f.Value.Errorf("version must be 1, the only one this belay reads")
			}
		case slices.ContainsFunc(table, func(s setting) bool { return strings.HasPrefix(s.key().Name, name+".") }):
			more, err := readGroup(f.Value, name+".", p)
			if err != nil {
				return nil, err
			}
			values = append(values, more...)
		default:
			return nil, unknown(f, what, prefix)
		}
	}
	return values, nil
}

// unknown says which key was probably meant.
func unknown(f yaml.Field, what, prefix string) error {
	if text, ok := f.Value.Literal(); ok && (secretName().MatchString(f.Name) || secretShape().MatchString(text)) {
		return withoutSource(f.Key.Errorf("a key or password does not belong into a configuration file; %s", keyAdvice))
	}
	var allowed []string
	if prefix == "" {
		allowed = []string{"version"}
	}
	elsewhere := ""
	for _, s := range table {
		name := s.key().Name
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		group, member, nested := strings.Cut(rest, ".")
		if !slices.Contains(allowed, group) {
			allowed = append(allowed, group)
		}
		if nested && (member == f.Name || name == f.Name || strings.TrimLeft(s.key().Flag, "-") == strings.ReplaceAll(f.Name, "_", "-")) {
			elsewhere = name
		}
	}
	hint := ""
	if elsewhere != "" {
		group, member, _ := strings.Cut(elsewhere, ".")
		hint = fmt.Sprintf(". Did you mean %s under %s?", member, group)
	} else if near := nearest(f.Name, allowed); near != "" {
		hint = ". Did you mean " + near + "?"
	}
	return f.Key.Errorf("unknown key %q in %s; allowed: %s%s", f.Name, what, strings.Join(allowed, ", "), hint)
}

// nearest are the one or two that can have been meant, "" where none can.
func nearest(name string, known []string) string {
	for _, k := range known { // two letters that changed places: modle
		if letters(k) == letters(name) {
			return k
		}
	}
	return strings.Join(tool.Nearest(name, known, 2), " or ")
}

func letters(s string) string {
	return string(slices.Sorted(slices.Values([]byte(strings.ToLower(s)))))
}
