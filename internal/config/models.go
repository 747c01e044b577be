package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"belay/internal/smallfile"
	"belay/internal/yaml"
	"belay/message"
)

// ModelsFile is what a person knows of models, in the folder of the person's own settings.
const ModelsFile = "models.yaml"

// KnownModel is what a person says of one model.
type KnownModel struct {
	ContextWindow int64          // tokens; 0 is not said
	Price         *message.Price // nil is not said
	Images        bool           // it takes pictures
}

// Models reads what a person knows of models, by "provider:name", from dir. No file is nothing known.
func Models(dir string) (map[string]KnownModel, error) {
	root, err := os.OpenRoot(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", ModelsFile, err)
	}
	defer func() { _ = root.Close() }()
	path := filepath.Join(dir, ModelsFile)
	data, err := smallfile.Read(root, ModelsFile, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return parseModels(path, data)
}

func parseModels(path string, data []byte) (map[string]KnownModel, error) {
	doc, err := yaml.Parse(path, "the models", data)
	if err != nil {
		return nil, err
	}
	fields, err := doc.Fields("the models", "version", "models")
	if err != nil {
		return nil, err
	}
	known, versioned := map[string]KnownModel{}, false
	for _, f := range fields {
		if f.Name == "version" {
			if num, ok := f.Value.Decimal(); !ok || num != "1" {
				return nil, f.Value.Errorf("version must be 1, the only one this belay reads")
			}
			versioned = true
			continue
		}
		models, err := f.Value.Pairs("models")
		if err != nil {
			return nil, err
		}
		for _, m := range models {
			if err := checkModel(m.Name); err != nil {
				return nil, m.Key.Errorf("%q %v", m.Name, err)
			}
			if known[m.Name], err = readKnown(m.Value); err != nil {
				return nil, err
			}
		}
	}
	if !versioned {
		return nil, doc.Errorf("there is no version; write \"version: 1\"")
	}
	return known, nil
}

func readKnown(n yaml.Node) (k KnownModel, err error) {
	fields, err := n.Fields("a model", "context_window", "price", "images")
	if err != nil {
		return k, err
	}
	for _, f := range fields {
		if f.Name == "context_window" {
			if k.ContextWindow, err = f.Value.Int(f.Name, 1, 1_000_000_000); err != nil {
				return k, err
			}
			continue
		}
		if f.Name == "images" {
			if k.Images, err = f.Value.Bool(f.Name); err != nil {
				return k, err
			}
			continue
		}
		prices, err := f.Value.Fields("price", "input", "output", "cache_read", "cache_write", "long_from", "long_input", "long_output")
		if err != nil {
			return k, err
		}
		k.Price = &message.Price{LongInput: 1, LongOutput: 1}
		into := map[string]*float64{"input": &k.Price.Input, "output": &k.Price.Output, "cache_read": &k.Price.CacheRead, "cache_write": &k.Price.CacheWrite,
			"long_input": &k.Price.LongInput, "long_output": &k.Price.LongOutput}
		said := map[string]bool{}
		for _, p := range prices {
			said[p.Name] = true
			if p.Name == "long_from" {
				k.Price.LongFrom, err = p.Value.Int(p.Name, 1, 1_000_000_000)
			} else {
				*into[p.Name], err = p.Value.Amount(p.Name, 1e6)
			}
			if err != nil {
				return k, err
			}
		}
		if !said["input"] || !said["output"] {
			return k, f.Value.Errorf("a price needs input and output, in USD per million tokens")
		}
		for name, to := range map[string]*float64{"cache_read": &k.Price.CacheRead, "cache_write": &k.Price.CacheWrite} {
			if !said[name] { // what is not known counts in full, not as free
				*to = k.Price.Input
			}
		}
		if !said["long_from"] {
			k.Price.LongInput, k.Price.LongOutput = 0, 0
		}
	}
	return k, nil
}
