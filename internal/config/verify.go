package config

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"belay/internal/yaml"
	"belay/verify"
)

// verification is the setting verify: commands as text, checks as mappings, or a mapping {checks: […], hidden: […]}. A
// source that says anything of it says all of it.
type verification struct{ of[[]string] }

func (v verification) given(s *Settings) bool {
	return s.Verify != nil || s.Checks != nil || s.Hidden != nil
}

func (v verification) take(have, want *Settings) {
	have.Verify, have.Checks, have.Hidden = want.Verify, want.Checks, want.Hidden
}

func (v verification) show(s *Settings) string {
	all := slices.Clone(s.Verify)
	for _, c := range s.Checks {
		all = append(all, c.Name+" ("+c.Type+")")
	}
	shown := v.display(all)
	if len(s.Hidden) > 0 {
		shown += ", hidden: " + v.display(s.Hidden)
	}
	return shown
}

func (v verification) read(into *Settings, n yaml.Node, p place) error {
	if n.Kind() != yaml.Mapping {
		return readChecks(into, n, "verify")
	}
	fields, err := n.Fields("verify", "checks", "hidden")
	if err != nil {
		return err
	}
	for _, f := range fields {
		if f.Name == "checks" {
			if err := readChecks(into, f.Value, "verify.checks"); err != nil {
				return err
			}
			continue
		}
		into.Hidden, err = readList(f.Value, "verify.hidden", "[~/hidden-tests]", func(dir string) (string, error) {
			if rest, ok := strings.CutPrefix(dir, "~/"); ok {
				dir = filepath.Join(p.home, rest)
			}
			if !filepath.IsAbs(dir) {
				dir = filepath.Join(p.dir, dir)
			}
			if p.workspace != "" && within(resolved(dir), resolved(p.workspace)) {
				return "", fmt.Errorf("%s lies in the workspace, where the agent reads it: keep hidden tests elsewhere", dir)
			}
			return dir, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func readChecks(into *Settings, n yaml.Node, what string) error {
	const example = `["go test ./..."]`
	if n.Kind() != yaml.List {
		return n.Wrong(what, "a list, such as "+example)
	}
	items, err := n.List(what)
	if err != nil {
		return err
	}
	if len(items) == 0 {
		return n.Errorf("%s is empty; leave it out, or write for example %s", what, example)
	}
	if len(items) > maxItems {
		return n.Errorf("%s has %d entries; at most %d are read", what, len(items), maxItems)
	}
	for _, item := range items {
		if item.Kind() != yaml.Mapping {
			line, err := item.Text("an entry of " + what)
			if err != nil {
				return err
			}
			if line, err = checkCommand(line); err != nil {
				return item.Errorf("an entry of %s: %v", what, err)
			}
			into.Verify = append(into.Verify, line)
			continue
		}
		check, err := readCheck(item, what)
		if err != nil {
			return err
		}
		into.Checks = append(into.Checks, check)
	}
	return nil
}

// needs says which fields a type of check cannot do without.
var needs = map[string][]string{
	"command": {"run"}, "compile": {"run"}, "tests": {"run"}, "lint": {"run"}, "types": {"run"}, "format": {"run"}, "property": {"run"},
	"schema": {"schema", "paths"}, "diff_bound": nil, "forbidden": {"paths"}, "metamorphic": {"run", "input"}, "judge": {"rubric", "calibration"}, "person": {"ask"},
}

func readCheck(n yaml.Node, what string) (verify.Check, error) {
	c := verify.Check{Type: "command"}
	fields, err := n.Fields("an entry of "+what, "name", "level", "type", "run", "paths", "schema", "max_files", "input", "compare", "rubric", "calibration", "min_agreement", "ask")
	if err != nil {
		return c, err
	}
	given := map[string]bool{}
	for _, f := range fields {
		given[f.Name] = true
		var err error
		var number int64
		text := map[string]*string{"name": &c.Name, "type": &c.Type, "run": &c.Run, "schema": &c.Schema, "input": &c.Input, "compare": &c.Compare, "rubric": &c.Rubric, "calibration": &c.Calibration, "ask": &c.Ask}
		switch f.Name {
		case "level":
			number, err = f.Value.Int("level", 1, 4)
			c.Level = verify.Level(number)
		case "max_files":
			number, err = f.Value.Int("max_files", 1, maxCount)
			c.MaxFiles = int(number)
		case "min_agreement":
			c.MinAgreement, err = f.Value.Amount("min_agreement", 1)
		case "paths":
			c.Paths, err = readList(f.Value, "paths", "[src/**]", func(p string) (string, error) {
				if !filepath.IsLocal(filepath.FromSlash(strings.TrimSuffix(p, "/"))) {
					return "", fmt.Errorf("%q must be a path or pattern below the workspace", p)
				}
				return p, nil
			})
		default:
			*text[f.Name], err = f.Value.Text(f.Name)
			if err == nil && strings.TrimSpace(*text[f.Name]) == "" {
				err = f.Value.Errorf("%s is empty", f.Name)
			}
		}
		if err != nil {
			return c, err
		}
	}
	level, known := verify.CheckTypes[c.Type]
	if !known {
		return c, n.Errorf("there is no check of type %q: it is command, compile, tests, lint, types, format, schema, diff_bound, forbidden, property, metamorphic, judge or person", c.Type)
	}
	for _, field := range needs[c.Type] {
		if !given[field] {
			return c, n.Errorf("a check of type %s needs %s", c.Type, strings.Join(needs[c.Type], " and "))
		}
	}
	switch {
	case c.Type == "diff_bound" && len(c.Paths) == 0 && c.MaxFiles == 0:
		return c, n.Errorf("a check of type diff_bound needs paths or max_files")
	case c.Level != 0 && c.Level < level:
		return c, n.Errorf("a check of type %s is of level %d, and cannot claim level %d", c.Type, level, c.Level)
	case c.Compare != "" && c.Compare != "equal" && c.Compare != "lines":
		return c, n.Errorf("compare is equal or lines, not %q", c.Compare)
	}
	if c.Run != "" {
		if _, err := checkCommand(c.Run); err != nil {
			return c, n.Errorf("run: %v", err)
		}
	}
	if c.Name == "" {
		c.Name = c.Type
		if c.Run != "" {
			c.Name = c.Run
		}
	}
	return c, nil
}
