package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"belay/internal/keys"
	"belay/model"
	"belay/model/anthropic"
	"belay/model/gemini"
	"belay/model/openai"
	"belay/model/rehearsal"
)

// NoModelError says that no model was named and none was found, and what to do about it.
type NoModelError struct{}

func (NoModelError) Error() string {
	return strings.Join([]string{
		"no model is set, and no local model server answers.",
		"Name one: --model anthropic:NAME, openai:NAME or gemini:NAME (with ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY set),",
		"openai:NAME@http://127.0.0.1:11434/v1 for a server of your own, or rehearsal:FILE for a script.",
	}, "\n")
}

// chooseModel makes the client that the configuration names. Without a name it takes what can be used: a local
// server that lists a model. The spec is what a resumed run asks for again.
func chooseModel(ctx context.Context, cfg Config) (client model.Client, spec string, err error) {
	if cfg.Client != nil {
		return cfg.Client, cfg.Model, nil
	}
	var found model.Spec
	if cfg.Model == "" {
		if found, err = openai.Discover(ctx); errors.Is(err, openai.ErrNoServer) {
			return nil, "", NoModelError{}
		}
	} else {
		found, err = model.ParseSpec(cfg.Model)
	}
	if err != nil {
		return nil, "", err
	}
	if found.Provider == "rehearsal" { // a resume may come from another folder
		if found.Name, err = filepath.Abs(found.Name); err != nil {
			return nil, "", err
		}
	}
	client, err = connect(found, cfg.Model != "", cfg)
	return client, found.String(), err
}

// Roles name the models of the other parts, as Config.Model does. A part that is not named falls to the main model.
type Roles struct {
	Light    string   // summaries and explanations
	Judge    string   // judgements
	Fallback []string // asked in turn, each where those before it cannot be reached
}

// roles are the clients of Roles; nil where nobody was named.
type roles struct {
	light, judge model.Client
	fallback     []model.Client
}

// absolute names rehearsals so that a resume from another folder finds them.
func (r Roles) absolute() Roles {
	abs := func(name string) string {
		if file, ok := strings.CutPrefix(name, "rehearsal:"); ok {
			if full, err := filepath.Abs(file); err == nil {
				return "rehearsal:" + full
			}
		}
		return name
	}
	r.Light, r.Judge, r.Fallback = abs(r.Light), abs(r.Judge), slices.Clone(r.Fallback)
	for i, name := range r.Fallback {
		r.Fallback[i] = abs(name)
	}
	return r
}

// chooseRoles makes the clients of the other parts. A model that could not be used when it is needed is refused now.
func chooseRoles(cfg Config) (r roles, err error) {
	named := func(role, name string) model.Client {
		if name == "" || err != nil {
			return nil
		}
		spec, specErr := model.ParseSpec(name)
		if specErr != nil {
			err = fmt.Errorf("%s model: %w", role, specErr)
			return nil
		}
		client, connectErr := connect(spec, true, cfg)
		if connectErr != nil {
			err = fmt.Errorf("%s model %s: %w", role, name, connectErr)
			return nil
		}
		return client
	}
	r.light, r.judge = named("light", cfg.Roles.Light), named("judge", cfg.Roles.Judge)
	for _, name := range cfg.Roles.Fallback {
		r.fallback = append(r.fallback, named("fallback", name))
	}
	return r, err
}

// Efforts are the levels of thinking that can be asked for. Not every model knows all of them.
var Efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// connect makes the client of a spec. It asks nobody yet. A server that nobody named gets no key.
func connect(spec model.Spec, named bool, cfg Config) (model.Client, error) {
	if spec.Provider == "rehearsal" {
		script, err := rehearsal.Load(spec.Name)
		if err != nil {
			return nil, err
		}
		return rehearsal.New(script), nil
	}
	if cfg.Effort != "" && !slices.Contains(Efforts, cfg.Effort) {
		return nil, &UsageError{fmt.Errorf("there is no effort %q: it is %s", cfg.Effort, strings.Join(Efforts, ", "))}
	}
	p, base, key, err := credentials(spec, cfg.KeyFiles)
	if err != nil {
		return nil, err
	}
	reveal := key.Reveal
	if key.Empty() || !named {
		reveal = nil
	}
	known := cfg.Known[spec.Provider+":"+spec.Name]
	switch p.Speaks(base) {
	case model.Anthropic:
		return anthropic.New(anthropic.Config{Model: spec.Name, BaseURL: base, Key: reveal, Effort: cfg.Effort, ContextWindow: known.ContextWindow, Price: known.Price}), nil
	case model.OpenAIChat:
		return openai.New(openai.Config{Model: spec.Name, Images: known.Images, Provider: p, BaseURL: base, Key: reveal, Effort: cfg.Effort, ContextWindow: known.ContextWindow, Price: known.Price}), nil
	case model.OpenAIResponses:
		return openai.NewResponses(openai.Config{Model: spec.Name, Images: known.Images, Provider: p, BaseURL: base, Key: reveal, Effort: cfg.Effort, ContextWindow: known.ContextWindow, Price: known.Price}), nil
	case model.Gemini:
		return gemini.New(gemini.Config{Model: spec.Name, Provider: p, BaseURL: base, Key: reveal, Effort: cfg.Effort, ContextWindow: known.ContextWindow, Price: known.Price}), nil
	}
	return nil, fmt.Errorf("no client for the provider %q", spec.Provider)
}

// credentials finds out where a spec's provider answers and with which key, which may be empty where a server of
// one's own wants none.
func credentials(spec model.Spec, files map[string]string) (p model.Provider, base string, key keys.Secret, err error) {
	p, ok := model.ProviderNamed(spec.Provider)
	if !ok {
		return p, "", key, fmt.Errorf("no provider is called %q", spec.Provider)
	}
	base = spec.BaseURL
	if base == "" {
		base = os.Getenv(p.URLName())
	}
	if base == "" && p.BaseURL == "" {
		return p, "", key, &UsageError{fmt.Errorf("%s has no address that is the same for everybody: write %s:%s@%s, or set %s", p.Title, spec.Provider, spec.Name, p.Example, p.URLName())}
	}
	key, err = keys.Find(p.Account(), keys.Config{Files: files, Env: p.KeyEnv})
	if errors.Is(err, keys.ErrMissing) && (base != "" || p.Keyless) { // a server of one's own may want none
		err = nil
	}
	return p, base, key, err
}

// Reachable says what stands in the way of calling a model: a key or an address that is missing. It asks nobody.
func Reachable(spec model.Spec, keyFiles map[string]string) error {
	_, _, _, err := credentials(spec, keyFiles)
	return err
}

// Connect makes the client of the model that a configuration names, as a run would have it. It asks nobody yet.
func Connect(cfg Config) (model.Client, error) {
	spec, err := model.ParseSpec(cfg.Model)
	if err != nil {
		return nil, &UsageError{err}
	}
	return connect(spec, true, cfg)
}
