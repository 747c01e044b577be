package eval

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"belay/internal/yaml"
)

// validID says whether a text can be a task's id: a letter or digit, then up to 99 of these, dots, lines and dashes.
func validID(id string) bool {
	const first = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	return id != "" && len(id) <= 100 && strings.Contains(first, id[:1]) && strings.Trim(id, first+"._-") == ""
}

// Load reads one task. Mistakes come with file, line and column, and what is allowed; errors is a joined error of *yaml.Error.
func Load(file string) (*Task, error) {
	abs, err := filepath.Abs(file)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(abs)
	if err != nil {
		return nil, fmt.Errorf("read the task: %w", err)
	}
	t, err := Parse(file, filepath.Dir(abs), data)
	if err != nil {
		return nil, err
	}
	t.File = abs
	if t.Hash, err = t.hash(data); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return t, nil
}

// Parse reads a task's text. Dir is the folder that its paths are relative to: what they name must be there.
func Parse(file, dir string, data []byte) (*Task, error) {
	root, err := yaml.Parse(file, "a task", data)
	if err != nil {
		return nil, err
	}
	if root.Empty() {
		return nil, root.Errorf("the task is empty: it needs id, workspace, prompt and graders")
	}
	p := &parser{t: &Task{Dir: dir}}
	p.task(root)
	if err := errors.Join(p.wrong...); err != nil {
		return nil, err
	}
	return p.t, nil
}

// parser collects all mistakes of a file, so that they need not be found one by one.
type parser struct {
	t     *Task
	wrong []error
}

func (p *parser) note(err error) bool {
	if err != nil {
		p.wrong = append(p.wrong, err)
	}
	return err == nil
}

// each calls with every allowed field of a mapping.
func (p *parser) each(n yaml.Node, what string, with map[string]func(yaml.Node)) map[string]bool {
	var allowed []string
	for _, name := range fieldOrder {
		if with[name] != nil {
			allowed = append(allowed, name)
		}
	}
	fields, err := n.Pairs(what)
	if !p.note(err) {
		return nil
	}
	seen := map[string]bool{}
	for _, f := range fields {
		seen[f.Name] = true
		if read := with[f.Name]; read != nil {
			read(f.Value)
		} else {
			p.note(f.Key.Errorf("unknown key %q in %s; allowed: %s", f.Name, what, strings.Join(allowed, ", ")))
		}
	}
	return seen
}

// fieldOrder is the order in which messages list keys.
var fieldOrder = strings.Fields(`id source category about workspace prompt budget setup artifacts graders oracle cheats trials paths shims
	kind run url license dir git commit empty repository checkpoint image turns tokens usd wall_minutes wall_seconds
	name type files cwd env timeout reward min verdict verdict_files forbid require rubric calibration min_agreement patch lay rehearsal
	class path_written path_read path_deleted tool command host verdict secret_read circumvention attempted turns_above exit event text blocker`)

func (p *parser) text(n yaml.Node, what string, into *string) {
	s, err := n.Text(what)
	if p.note(err) {
		if *into = s; strings.TrimSpace(s) == "" {
			p.note(n.Errorf("%s is empty", what))
		}
	}
}

func (p *parser) texts(n yaml.Node, what string) (all []string) {
	items, err := n.List(what)
	if !p.note(err) {
		return nil
	}
	for _, item := range items {
		s := ""
		p.text(item, "an entry of "+what, &s)
		all = append(all, s)
	}
	return all
}

func (p *parser) mapping(n yaml.Node, what string) map[string]string {
	fields, err := n.Pairs(what)
	if !p.note(err) {
		return nil
	}
	m := map[string]string{}
	for _, f := range fields {
		s, err := f.Value.Text(what + "." + f.Name)
		if p.note(err) {
			m[f.Name] = s
		}
	}
	return m
}

// path makes what a task names absolute; it must be in the task's folder, and be there.
func (p *parser) path(n yaml.Node, what string, into *string) {
	s := ""
	p.text(n, what, &s)
	if s != "" {
		*into = p.inside(n, what, s)
	}
}

func (p *parser) inside(n yaml.Node, what, s string) string {
	if !filepath.IsLocal(filepath.FromSlash(s)) {
		p.note(n.Errorf("%s must be a path inside the task's folder, not %q", what, s))
		return ""
	}
	full := filepath.Join(p.t.Dir, filepath.FromSlash(s))
	if _, err := os.Stat(full); err != nil {
		p.note(n.Errorf("%s: there is no %s in the task's folder", what, s))
	}
	return full
}

func (p *parser) task(root yaml.Node) {
	t := p.t
	seen := p.each(root, "a task", map[string]func(yaml.Node){
		"id": func(n yaml.Node) {
			p.text(n, "id", &t.ID)
			if t.ID != "" && !validID(t.ID) {
				p.note(n.Errorf("id must be letters, digits, dots, dashes and underscores, at most 100, not %q", t.ID))
			}
		},
		"source": func(n yaml.Node) {
			p.each(n, "source", map[string]func(yaml.Node){
				"kind":    func(n yaml.Node) { p.text(n, "source.kind", &t.Source.Kind) },
				"run":     func(n yaml.Node) { p.text(n, "source.run", &t.Source.Run) },
				"url":     func(n yaml.Node) { p.text(n, "source.url", &t.Source.URL) },
				"license": func(n yaml.Node) { p.text(n, "source.license", &t.Source.License) },
			})
		},
		"category":  func(n yaml.Node) { p.text(n, "category", &t.Category) },
		"about":     func(n yaml.Node) { p.text(n, "about", &t.About) },
		"workspace": p.workspace,
		"prompt":    func(n yaml.Node) { p.text(n, "prompt", &t.Prompt) },
		"budget":    p.budget,
		"setup":     func(n yaml.Node) { t.Setup = p.texts(n, "setup") },
		"artifacts": func(n yaml.Node) {
			t.Artifacts = p.texts(n, "artifacts")
			for _, pattern := range t.Artifacts {
				if _, err := path.Match(strings.ReplaceAll(pattern, "**", "*"), "x"); err != nil || !filepath.IsLocal(pattern) {
					p.note(n.Errorf("artifacts: %q is no pattern of paths in the workspace", pattern))
				}
			}
		},
		"graders": p.graders,
		"oracle":  func(n yaml.Node) { t.Oracle = p.control(n, "oracle") },
		"cheats": func(n yaml.Node) {
			items, err := n.List("cheats")
			if p.note(err) {
				for i, item := range items {
					if c := p.control(item, fmt.Sprintf("cheat %d", i+1)); c != nil {
						t.Cheats = append(t.Cheats, *c)
					}
				}
			}
		},
		"trials": func(n yaml.Node) {
			i, err := n.Int("trials", 1, 1000)
			p.note(err)
			t.Trials = int(i)
		},
		"paths": func(n yaml.Node) {
			t.Paths = p.mapping(n, "paths")
			for from, to := range t.Paths {
				if !path.IsAbs(from) || path.Clean(from) != from || from == "/" || to != "workspace" && to != "tests" && to != "logs" {
					p.note(n.Errorf(`paths: {%q: %q}: a key is an absolute path that the task's files name, a value one of workspace, tests, logs`, from, to))
				}
			}
		},
		"shims": func(n yaml.Node) { t.Shims = p.texts(n, "shims") },
	})
	for _, needed := range []string{"id", "workspace", "prompt", "graders"} {
		if seen != nil && !seen[needed] {
			p.note(root.Errorf("the task has no %s; it needs id, workspace, prompt and graders", needed))
		}
	}
	if t.Oracle == nil {
		if file := t.rehearsal("oracle"); file != "" {
			t.Oracle = &Control{Name: "oracle", Rehearsal: file}
		}
	}
	if file := t.rehearsal("cheat"); file != "" && len(t.Cheats) == 0 {
		t.Cheats = []Control{{Name: "cheat", Rehearsal: file}}
	}
	if t.Oracle == nil && seen != nil && !seen["oracle"] {
		p.note(root.Errorf("the task has no oracle, so nothing shows that it can be solved: give oracle: {patch: FILE}, {files: …}, {run: …} or {rehearsal: FILE}, or put an oracle.yaml beside it"))
	}
}

// rehearsal is the file of the task's own script of that name, "" where it has none.
func (t *Task) rehearsal(name string) string {
	file := filepath.Join(t.Dir, name+".yaml")
	if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
		return file
	}
	return ""
}

// Rehearsal is the script for the model rehearsal:NAME: the task's own NAME.yaml, "" where it has none.
func (t *Task) Rehearsal(name string) string { return t.rehearsal(name) }

func (p *parser) workspace(n yaml.Node) {
	w := &p.t.Workspace
	seen := p.each(n, "workspace", map[string]func(yaml.Node){
		"dir": func(n yaml.Node) {
			p.path(n, "workspace.dir", &w.Dir)
			if info, err := os.Stat(w.Dir); err == nil && !info.IsDir() {
				p.note(n.Errorf("workspace.dir must be a folder"))
			}
		},
		"git": func(n yaml.Node) {
			p.text(n, "workspace.git", &w.Git)
			if strings.HasPrefix(w.Git, "-") {
				p.note(n.Errorf("workspace.git must be a URL or a folder"))
			} else if !strings.Contains(w.Git, ":") && !filepath.IsAbs(w.Git) {
				w.Git = filepath.Join(p.t.Dir, w.Git)
			}
		},
		"commit": func(n yaml.Node) {
			p.text(n, "workspace.commit", &w.Commit)
			if w.Commit != "" && !regexp.MustCompile(`^[0-9a-f]{40,64}$`).MatchString(w.Commit) {
				p.note(n.Errorf("workspace.commit must be a whole commit hash: a name can come to mean something else"))
			}
		},
		"empty":      func(n yaml.Node) { b, err := n.Bool("workspace.empty"); p.note(err); w.Empty = b },
		"repository": func(n yaml.Node) { b, err := n.Bool("workspace.repository"); p.note(err); w.Repository = b },
		"checkpoint": func(n yaml.Node) {
			p.note(n.Errorf("workspace.checkpoint cannot be read yet: name the commit with {git: …, commit: …}, or copy the files and say {dir: …}"))
		},
		"image": func(n yaml.Node) {
			p.note(n.Errorf("workspace.image needs containers, which belay does not run: copy the files out and say {dir: …}"))
		},
	})
	if seen == nil || seen["checkpoint"] || seen["image"] {
		return
	}
	given := 0
	for _, kind := range []string{"dir", "git", "empty"} {
		if seen[kind] {
			given++
		}
	}
	if given != 1 {
		p.note(n.Errorf("workspace needs exactly one of dir, git (with commit) and empty"))
	}
	if seen["git"] != seen["commit"] {
		p.note(n.Errorf("workspace needs git and commit together"))
	}
}

func (p *parser) budget(n yaml.Node) {
	b := &p.t.Budget
	p.each(n, "budget", map[string]func(yaml.Node){
		"turns":  func(n yaml.Node) { v, err := n.Int("budget.turns", 1, 1e6); p.note(err); b.Turns = int(v) },
		"tokens": func(n yaml.Node) { v, err := n.Int("budget.tokens", 1, 1e12); p.note(err); b.Tokens = v },
		"usd": func(n yaml.Node) {
			v, err := n.Amount("budget.usd", 1e6)
			if p.note(err) && v == 0 {
				p.note(n.Errorf("budget.usd must be above 0"))
			}
			b.USD = v
		},
		"wall_minutes": func(n yaml.Node) { p.wall(n, "budget.wall_minutes", time.Minute) },
		"wall_seconds": func(n yaml.Node) { p.wall(n, "budget.wall_seconds", time.Second) },
	})
}

func (p *parser) wall(n yaml.Node, what string, unit time.Duration) {
	v, err := n.Amount(what, 1e6)
	if p.note(err) {
		if p.t.Budget.Wall = time.Duration(v * float64(unit)); p.t.Budget.Wall < time.Millisecond {
			p.note(n.Errorf("%s must be above 0", what))
		}
	}
}

func (p *parser) graders(n yaml.Node) {
	items, err := n.List("graders")
	if !p.note(err) {
		return
	}
	if len(items) == 0 {
		p.note(n.Errorf("graders is empty: nothing would decide whether the task is done"))
	}
	for i, item := range items {
		g := Grader{Line: item.Line()}
		p.grader(item, &g, i+1)
		p.t.Graders = append(p.t.Graders, g)
	}
}

// kinds of graders, and which keys each has besides name, type and timeout.
var graderKeys = map[string]string{
	"code":       "run files cwd env reward min verdict verdict_files",
	"property":   "run files cwd env reward min verdict verdict_files",
	"transcript": "forbid require",
	"model":      "rubric calibration min_agreement",
}

func (p *parser) grader(n yaml.Node, g *Grader, number int) {
	what := fmt.Sprintf("grader %d", number)
	seen := p.each(n, what, map[string]func(yaml.Node){
		"name": func(n yaml.Node) { p.text(n, what+".name", &g.Name) },
		"type": func(n yaml.Node) {
			p.text(n, what+".type", &g.Type)
			if _, known := graderKeys[g.Type]; !known && g.Type != "" {
				p.note(n.Errorf("there is no grader %q; it is code, property, transcript or model", g.Type))
			}
		},
		"run":   func(n yaml.Node) { p.text(n, what+".run", &g.Run) },
		"files": func(n yaml.Node) { g.Files = p.laid(n, what+".files") },
		"cwd": func(n yaml.Node) {
			p.text(n, what+".cwd", &g.Cwd)
			if !filepath.IsLocal(g.Cwd) {
				p.note(n.Errorf("%s.cwd must be a folder in the workspace, not %q", what, g.Cwd))
			}
		},
		"env":     func(n yaml.Node) { g.Env = p.mapping(n, what+".env") },
		"timeout": func(n yaml.Node) { d, err := n.Duration(what+".timeout", time.Hour); p.note(err); g.Timeout = d },
		"reward": func(n yaml.Node) {
			p.text(n, what+".reward", &g.Reward)
			if g.Reward != "exit" && g.Reward != "file" {
				p.note(n.Errorf("%s.reward must be exit or file", what))
			}
		},
		"min":           func(n yaml.Node) { v, err := n.Amount(what+".min", 1e9); p.note(err); g.Min = v },
		"verdict":       func(n yaml.Node) { p.text(n, what+".verdict", &g.Verdict) },
		"verdict_files": func(n yaml.Node) { g.VerdictFiles = p.laid(n, what+".verdict_files") },
		"forbid":        func(n yaml.Node) { g.Forbid = p.rules(n, what+".forbid") },
		"require":       func(n yaml.Node) { g.Require = p.rules(n, what+".require") },
		"rubric":        func(n yaml.Node) { p.path(n, what+".rubric", &g.Rubric) },
		"calibration":   func(n yaml.Node) { p.path(n, what+".calibration", &g.Calibration) },
		"min_agreement": func(n yaml.Node) { v, err := n.Amount(what+".min_agreement", 1); p.note(err); g.MinAgreement = v },
	})
	if seen == nil {
		return
	}
	if g.Name == "" {
		g.Name = fmt.Sprintf("%s %d", g.Type, number)
	}
	if !seen["type"] {
		p.note(n.Errorf("%s has no type; it is code, property, transcript or model", what))
		return
	}
	keys := strings.Fields(graderKeys[g.Type])
	for key := range seen {
		if key != "name" && key != "type" && key != "timeout" && len(keys) > 0 && !slices.Contains(keys, key) {
			p.note(n.Errorf("%s is of type %s, which has no %s; its keys are %s", what, g.Type, key, strings.Join(keys, ", ")))
		}
	}
	switch g.Type {
	case "code", "property":
		if !seen["run"] {
			p.note(n.Errorf("%s needs run, the command that decides", what))
		}
		if seen["verdict_files"] && !seen["verdict"] {
			p.note(n.Errorf("%s has verdict_files and no verdict, the command that they are for", what))
		}
		for _, l := range g.VerdictFiles {
			if path.IsAbs(l.To) {
				p.note(n.Errorf("%s.verdict_files: %q is no place in the verdict's folder", what, l.To))
			}
		}
		p.ownScript(g)
	case "transcript":
		if len(g.Forbid)+len(g.Require) == 0 {
			p.note(n.Errorf("%s needs forbid or require", what))
		}
	case "model":
		if !seen["rubric"] || !seen["calibration"] || !seen["min_agreement"] {
			p.note(n.Errorf("%s needs rubric, calibration and min_agreement: a model that was never held against people's labels decides nothing", what))
		}
	}
}

// ownScript lays in a script of the task that the line begins with, as in ./sum_equals_db.sh.
func (p *parser) ownScript(g *Grader) {
	first, _, _ := strings.Cut(g.Run, " ")
	name, ok := strings.CutPrefix(first, "./")
	if !ok || !filepath.IsLocal(name) {
		return
	}
	full := filepath.Join(p.t.Dir, filepath.FromSlash(name))
	if info, err := os.Stat(full); err == nil && info.Mode().IsRegular() {
		g.Files = append(g.Files, Laid{From: full, To: name})
	}
}

// laid reads "hidden/", [a, b] or {hidden/: where}.
func (p *parser) laid(n yaml.Node, what string) (all []Laid) {
	add := func(n yaml.Node, from, to string) {
		full := p.inside(n, what, from)
		info, err := os.Stat(full)
		if full == "" || err != nil {
			return
		}
		if to == "" && !info.IsDir() {
			to = path.Base(from)
		}
		if !filepath.IsLocal(filepath.FromSlash(to)) && to != "" && !path.IsAbs(to) {
			p.note(n.Errorf("%s: %q is no place in the workspace", what, to))
		}
		all = append(all, Laid{full, to})
	}
	switch n.Kind() {
	case yaml.Text:
		s, _ := n.Literal()
		add(n, s, "")
	case yaml.List:
		for _, s := range p.texts(n, what) {
			add(n, s, "")
		}
	case yaml.Mapping:
		fields, err := n.Pairs(what)
		p.note(err)
		for _, f := range fields {
			to, err := f.Value.Text(what + "." + f.Name)
			if p.note(err) {
				add(f.Key, f.Name, to)
			}
		}
	default:
		p.note(n.Wrong(what, "a path, a list of paths, or a mapping from path to place"))
	}
	return all
}

func (p *parser) control(n yaml.Node, name string) *Control {
	c := &Control{Name: name}
	seen := p.each(n, name, map[string]func(yaml.Node){
		"name":      func(n yaml.Node) { p.text(n, name+".name", &c.Name) },
		"patch":     func(n yaml.Node) { p.path(n, name+".patch", &c.Patch) },
		"files":     func(n yaml.Node) { c.Files = p.laid(n, name+".files") },
		"run":       func(n yaml.Node) { p.text(n, name+".run", &c.Run) },
		"lay":       func(n yaml.Node) { c.Lay = p.laid(n, name+".lay") },
		"rehearsal": func(n yaml.Node) { p.path(n, name+".rehearsal", &c.Rehearsal) },
	})
	given := 0
	for _, kind := range []string{"patch", "files", "run", "rehearsal"} {
		if seen[kind] {
			given++
		}
	}
	if seen != nil && given != 1 {
		p.note(n.Errorf("%s needs exactly one of patch, files, run and rehearsal", name))
		return nil
	}
	return c
}
