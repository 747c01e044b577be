package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"belay/internal/keys"
	"belay/model"
	"belay/model/anthropic"
	"belay/model/openai"
	"belay/model/rehearsal"
)

// NoModelError says that no model was named and none was found, and what to do about it.
type NoModelError struct{}

func (NoModelError) Error() string {
	return strings.Join([]string{
		"no model is set, and no local model server answers.",
		"Name one: --model anthropic:NAME or openai:NAME (with ANTHROPIC_API_KEY or OPENAI_API_KEY set),",
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
	client, err = connect(found, cfg.Model != "", cfg.KeyFiles)
	return client, found.String(), err
}

// connect makes the client of a spec. It asks nobody yet. A server that nobody named gets no key.
func connect(spec model.Spec, named bool, files map[string]string) (model.Client, error) {
	if spec.Provider == "rehearsal" {
		script, err := rehearsal.Load(spec.Name)
		if err != nil {
			return nil, err
		}
		return rehearsal.New(script), nil
	}
	base := spec.BaseURL
	if base == "" {
		base = os.Getenv(keys.URLEnvName(spec.Provider))
	}
	key, err := keys.Find(spec.Provider, keys.Config{Files: files})
	if err != nil && !(errors.Is(err, keys.ErrMissing) && base != "") { // a server of one's own may want none
		return nil, err
	}
	reveal := key.Reveal
	if key.Empty() || !named {
		reveal = nil
	}
	switch spec.Provider {
	case "anthropic":
		return anthropic.New(anthropic.Config{Model: spec.Name, BaseURL: base, Key: reveal}), nil
	case "openai":
		return openai.New(openai.Config{Model: spec.Name, BaseURL: base, Key: reveal}), nil
	}
	return nil, fmt.Errorf("no client for the provider %q", spec.Provider)
}
