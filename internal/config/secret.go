package config

import (
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"belay/internal/yaml"
)

// keyAdvice is what to do with a key instead.
const keyAdvice = "put the key into a file of its own that only you can read (chmod 600), and name that file here as key_files: {PROVIDER: PATH}"

var (
	secretName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)api_?-?key|secret|passw|credential|(^|[_-])token$|^keys?$`)
	})
	// secretShape matches how the keys of well-known services begin.
	secretShape = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`\b(sk|pk|rk|gsk|xai|ghp|gho|ghs|github_pat|glpat|hf|xox[a-z]|AIza|AKIA|eyJ)[-_A-Za-z0-9]{12,}`)
	})
	providerName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`) })
)

func readKeyFiles(n yaml.Node, what string, p place) (map[string]string, error) {
	fields, err := n.Pairs(what)
	if err != nil {
		return nil, withoutSource(err) // it may be a key
	}
	files := map[string]string{}
	for _, f := range fields {
		if !providerName().MatchString(f.Name) {
			return nil, f.Key.Errorf("%q is not the name of a provider, such as anthropic or openai", f.Name)
		}
		file, err := f.Value.Text(f.Name)
		if err != nil {
			return nil, withoutSource(err)
		}
		if rest, ok := strings.CutPrefix(file, "~/"); ok && p.home != "" {
			file = filepath.Join(p.home, filepath.FromSlash(rest))
		}
		switch {
		case secretShape().MatchString(file) || !strings.ContainsAny(file, `/\.`):
			return nil, withoutSource(f.Value.Errorf("this looks like a key itself; %s", keyAdvice))
		case !filepath.IsAbs(file):
			return nil, withoutSource(f.Value.Errorf("the path of a key file is absolute or begins with ~/"))
		case p.workspace != "" && within(resolved(file), resolved(p.workspace)):
			return nil, f.Value.Errorf("a key file must not lie in the workspace, where an agent could read it")
		}
		files[f.Name] = filepath.Clean(file)
	}
	if len(files) == 0 {
		return nil, n.Errorf("%s is empty; leave it out, or write for example {anthropic: ~/.config/belay/keys/anthropic}", what)
	}
	return files, nil
}

// withoutSource keeps a line that may hold a key from being shown.
func withoutSource(err error) error {
	var e *yaml.Error
	if errors.As(err, &e) {
		e.Source = ""
	}
	return err
}

// hideSecrets keeps what looks like a key out of an error, wherever it stood.
func hideSecrets(err error) error {
	var e *yaml.Error
	if errors.As(err, &e) {
		if secretShape().MatchString(e.Source) {
			e.Source = ""
		}
		e.Message = masked(e.Message)
	}
	return err
}

func masked(text string) string { return secretShape().ReplaceAllString(text, "[key]") }
