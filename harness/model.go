package harness

import (
	"errors"
	"os"

	"belay/internal/keys"
	"belay/model"
	"belay/model/anthropic"
	"belay/model/openai"
	"belay/model/rehearsal"
)

// client makes the model that the configuration names. It does not connect. The base URL is the name's own, else
// the environment's; a server that is named by its URL may want no key.
func client(cfg Config) (model.Client, error) {
	if cfg.Client != nil {
		return cfg.Client, nil
	}
	if cfg.Model == "" {
		return nil, errors.New("no model: name one, as " + model.SpecForms)
	}
	spec, err := model.ParseSpec(cfg.Model)
	if err != nil {
		return nil, err
	}
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
	secret, err := keys.Find(spec.Provider, keys.Config{})
	if err != nil && (base == "" || !errors.Is(err, keys.ErrMissing)) {
		return nil, err
	}
	if spec.Provider == "anthropic" {
		return anthropic.New(anthropic.Config{Model: spec.Name, BaseURL: base, Key: secret.Reveal}), nil
	}
	return openai.New(openai.Config{Model: spec.Name, BaseURL: base, Key: secret.Reveal}), nil
}
