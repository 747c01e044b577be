package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"time"

	"belay/internal/yaml"
	"belay/tool"
)

// linters are programs that parse a text from standard input; they are used where the sandbox has them.
var linters = map[string][]string{
	".py": {"python3", "-c", "import ast,sys\nast.parse(sys.stdin.buffer.read())"},
	".sh": {"bash", "-n"}, ".bash": {"bash", "-n"},
	".rb": {"ruby", "-c"},
}

// lintTime bounds one look of a program at a text.
const lintTime = 5 * time.Second

// lint says why a text cannot be parsed any more that could be before, with the place. Note is what is wrong where it could not
// be parsed before either.
func lint(ctx context.Context, env tool.Env, path, before, after string) (note, broken string) {
	wrong := parses(ctx, env, path, after)
	if wrong == "" {
		return "", ""
	}
	if before != "" && parses(ctx, env, path, before) == "" {
		return "", wrong
	}
	return "it cannot be parsed, as before: " + wrong, ""
}

// parses says where a text cannot be parsed, "" where it can or where nobody knows.
func parses(ctx context.Context, env tool.Env, path, text string) string {
	name := filepath.Base(path)
	switch ext := strings.ToLower(filepath.Ext(name)); ext {
	case ".go":
		if _, err := parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution); err != nil {
			first, _, _ := strings.Cut(err.Error(), " (and ")
			return first
		}
	case ".json":
		var v any
		dec := json.NewDecoder(strings.NewReader(strings.TrimPrefix(text, "\ufeff")))
		if err := dec.Decode(&v); err != nil {
			return fmt.Sprintf("%s:%d: %v", name, 1+strings.Count(text[:min(int(dec.InputOffset()), len(text))], "\n"), err)
		}
		if dec.More() {
			return fmt.Sprintf("%s:%d: more than one value", name, 1+strings.Count(text[:min(int(dec.InputOffset()), len(text))], "\n"))
		}
	case ".yaml", ".yml":
		if strings.Contains(text, "\n---") || strings.Contains(text, "{{") || len(text) > yaml.MaxBytes {
			return "" // several documents, or a template
		}
		if _, err := yaml.Parse(name, "the file", []byte(text)); err != nil {
			first, _, _ := strings.Cut(err.Error(), "\n")
			return first
		}
	default:
		if argv := linters[ext]; argv != nil {
			return runLinter(ctx, env, argv, text)
		}
	}
	return ""
}

func runLinter(ctx context.Context, env tool.Env, argv []string, text string) string {
	var out bytes.Buffer
	exit, err := env.Exec(ctx, tool.Command{Argv: argv, Stdin: strings.NewReader(text), Output: &out, Timeout: lintTime})
	if err != nil || exit.TimedOut || exit.Code == 0 || exit.Code > 2 || exit.Signal != "" {
		return "" // it is not there, or has nothing to say
	}
	lines := strings.Split(strings.TrimSpace(visible(out.String())), "\n")
	told := lines[len(lines)-1]
	for _, line := range lines {
		if strings.Contains(line, "line ") {
			told = strings.TrimSpace(line) + ": " + told
			break
		}
	}
	if len(told) > 300 {
		told = strings.ToValidUTF8(told[:300], "") + "…"
	}
	return told
}
