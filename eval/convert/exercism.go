package convert

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// exercise is .meta/config.json of an exercise.
type exercise struct {
	Files struct {
		Solution, Test, Example, Exemplar, Editor, Invalidator []string
	}
	Blurb string
}

// testLines are the commands that decide, by language; each fails where no test ran.
var testLines = map[string]struct{ program, line string }{
	"go":         {"go", "go test ./..."},
	"python":     {"python3", `python3 "$BELAY_TESTS_DIR/run_tests.py" .`},
	"javascript": {"node", `node "$BELAY_TESTS_DIR/run_tests.mjs" .`},
}

// exercism reads the layout of language tracks: <lang>/exercises/practice/<slug>/.
func exercism(dir, out string) ([]Verdict, error) {
	return each(dir, ".meta/config.json", func(from string) Verdict {
		slug := filepath.Base(from)
		lang := language(from)
		v := Verdict{Task: identifier(lang, slug), From: from}
		if err := oneExercise(from, out, lang, &v); err != nil {
			v.Why, v.To = err.Error(), ""
			os.RemoveAll(filepath.Join(out, v.Task))
		}
		return v
	})
}

// language is the folder above exercises/practice, or what the solution's name says.
func language(from string) string {
	for at := filepath.Dir(from); at != filepath.Dir(at); at = filepath.Dir(at) {
		if filepath.Base(at) == "exercises" {
			return filepath.Base(filepath.Dir(at))
		}
	}
	var e exercise
	if data, err := os.ReadFile(filepath.Join(from, ".meta", "config.json")); err == nil && json.Unmarshal(data, &e) == nil && len(e.Files.Solution) > 0 {
		return map[string]string{".go": "go", ".py": "python", ".js": "javascript", ".rs": "rust", ".cpp": "cpp", ".java": "java"}[path.Ext(e.Files.Solution[0])]
	}
	return ""
}

func oneExercise(from, out, lang string, v *Verdict) error {
	data, err := os.ReadFile(filepath.Join(from, ".meta", "config.json"))
	if err != nil {
		return err
	}
	var e exercise
	if err := json.Unmarshal(data, &e); err != nil {
		return fmt.Errorf(".meta/config.json: %w", err)
	}
	how, known := testLines[lang]
	switch {
	case !known:
		return fmt.Errorf("tests in %s need a test library from the network (or an image with it)", orUnknown(lang))
	case len(e.Files.Solution) == 0 || len(e.Files.Test) == 0:
		return fmt.Errorf(".meta/config.json names no solution or no test file")
	}
	if _, err := exec.LookPath(how.program); err != nil {
		return fmt.Errorf("%s is not on this machine", how.program)
	}
	examples := append(slices.Clone(e.Files.Example), e.Files.Exemplar...)
	pairs, err := pairSolutions(from, examples, e.Files.Solution, lang)
	if err != nil {
		return err
	}
	to, err := place(out, v.Task)
	if err != nil {
		return err
	}
	hidden := map[string]bool{}
	for _, name := range e.Files.Test {
		hidden[name] = true
	}
	for _, name := range e.Files.Editor { // test data beside the tests
		if strings.HasSuffix(name, "_test.go") || strings.Contains(name, ".spec.") || strings.HasSuffix(name, "_test.py") {
			hidden[name] = true
		}
	}
	// everything but the tests, the notes and what belongs to the track
	err = os.CopyFS(filepath.Join(to, "workspace"), os.DirFS(from))
	if err != nil {
		return err
	}
	for _, drop := range []string{".meta", ".docs", ".approaches", ".articles", ".exercism", "node_modules"} {
		if err := os.RemoveAll(filepath.Join(to, "workspace", drop)); err != nil {
			return err
		}
	}
	for name := range hidden {
		if !filepath.IsLocal(name) {
			return fmt.Errorf("the test %q lies outside the exercise", name)
		}
		full := filepath.Join(to, "workspace", name)
		if _, err := os.Stat(full); err != nil {
			return fmt.Errorf("the test %s is missing", name)
		}
		if err := copyInto(full, filepath.Join(to, "hidden", name)); err != nil {
			return err
		}
		if err := os.Remove(full); err != nil {
			return err
		}
	}
	if lang == "javascript" {
		if err := unskip(filepath.Join(to, "hidden")); err != nil {
			return err
		}
		v.Shims = append(v.Shims, "jest is an install from the network: a runner of our own knows test, it, describe, hooks and the usual matchers", "xtest and test.skip run: only the first test would otherwise count")
		if err := os.WriteFile(filepath.Join(to, "run_tests.mjs"), []byte(jsRunner), 0o644); err != nil {
			return err
		}
	}
	if lang == "python" {
		v.Shims = append(v.Shims, "pytest may not be installed: a runner of our own runs unittest classes and test_ functions")
		if err := os.WriteFile(filepath.Join(to, "run_tests.py"), []byte(pyRunner), 0o644); err != nil {
			return err
		}
	}
	for i, solution := range e.Files.Solution {
		if !filepath.IsLocal(solution) {
			return fmt.Errorf("the solution %q lies outside the exercise", solution)
		}
		if pairs[i] == "" {
			continue
		}
		if err := copyInto(filepath.Join(from, pairs[i]), filepath.Join(to, "oracle", solution)); err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(to, "task.yaml"), []byte(exerciseTask(from, lang, v, e, how.line)), 0o644); err != nil {
		return err
	}
	v.To = to
	return nil
}

func orUnknown(lang string) string {
	if lang == "" {
		return "an unknown language"
	}
	return lang
}

// pairSolutions says which example stands for which solution file: the one of the same base name, else in their order.
func pairSolutions(from string, examples, solutions []string, lang string) ([]string, error) {
	pairs := make([]string, len(solutions))
	if len(examples) == 0 {
		for _, guess := range []string{".meta/example" + path.Ext(solutions[0]), ".meta/proof.ci" + path.Ext(solutions[0]), ".meta/exemplar" + path.Ext(solutions[0])} {
			if _, err := os.Stat(filepath.Join(from, guess)); err == nil {
				examples = []string{guess}
			}
		}
	}
	if len(examples) == 0 {
		return nil, fmt.Errorf("it has no example solution, so nothing shows that it can be solved")
	}
	used := map[string]bool{}
	for i, s := range solutions {
		for _, x := range examples {
			if path.Base(x) == path.Base(s) && !used[x] {
				pairs[i], used[x] = x, true
			}
		}
	}
	for i := range solutions {
		for _, x := range examples {
			if pairs[i] == "" && !used[x] {
				pairs[i], used[x] = x, true
			}
		}
	}
	for _, x := range examples {
		if !filepath.IsLocal(x) {
			return nil, fmt.Errorf("the example %q lies outside the exercise", x)
		}
		if _, err := os.Stat(filepath.Join(from, x)); err != nil {
			return nil, fmt.Errorf("the example %s is missing", x)
		}
	}
	return pairs, nil
}

func exerciseTask(from, lang string, v *Verdict, e exercise, line string) string {
	var text []string
	for _, name := range []string{"introduction.md", "introduction.append.md", "instructions.md", "instructions.append.md"} {
		if data, err := os.ReadFile(filepath.Join(from, ".docs", name)); err == nil {
			text = append(text, strings.TrimSpace(string(data)))
		}
	}
	if len(text) == 0 {
		text = append(text, e.Blurb)
	}
	prompt := strings.Join(text, "\n\n") + "\n\nImplement the solution in: " + strings.Join(e.Files.Solution, ", ") +
		". Only these files are taken. Names and signatures that are there must stay; hidden tests use them."
	var b strings.Builder
	fmt.Fprintf(&b, "id: %s\nabout: %s\ncategory: exercise\nsource: {kind: exercism, license: MIT}\nworkspace: {dir: workspace}\nprompt: %s\n", v.Task, quote("Exercism, "+lang+": "+filepath.Base(from)), quote(prompt))
	fmt.Fprintf(&b, "budget: {turns: 40, wall_minutes: 15}\nartifacts: %s\n", list(e.Files.Solution))
	files := "{hidden: .}"
	switch lang {
	case "python":
		files = `{hidden: ., run_tests.py: /tests/run_tests.py}`
	case "javascript":
		files = `{hidden: ., run_tests.mjs: /tests/run_tests.mjs}`
	}
	if lang != "go" {
		b.WriteString("paths: {/tests: tests}\n")
	}
	fmt.Fprintf(&b, "graders:\n  - {name: hidden tests, type: code, run: %s, files: %s}\noracle: {files: {oracle: .}}\n", quote(line), files)
	if len(v.Shims) > 0 {
		fmt.Fprintf(&b, "shims: %s\n", list(v.Shims))
	}
	return b.String()
}

// unskip makes all tests run.
func unskip(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		file := filepath.Join(dir, e.Name())
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		text := strings.NewReplacer("xtest(", "test(", "xit(", "it(", "xdescribe(", "describe(", "test.skip(", "test(", "it.skip(", "it(").Replace(string(data))
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}
