package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"belay/message"
)

func TestModels(t *testing.T) {
	dir := t.TempDir()
	for _, where := range []string{dir, filepath.Join(dir, "nowhere")} {
		if got, err := Models(where); err != nil || len(got) != 0 {
			t.Errorf("no file: %+v %v", got, err)
		}
	}
	for _, c := range []struct {
		text, fail string
		want       map[string]KnownModel
	}{
		{text: "version: 1\nmodels:\n  openai:gpt-7: {context_window: 400000, images: true, price: {input: 2, output: 8, cache_read: 0.2, long_from: 100, long_input: 2}}\n  ollama:qwen3:8b: {price: {input: 0, output: 0}}\n",
			want: map[string]KnownModel{
				"openai:gpt-7":    {ContextWindow: 400000, Images: true, Price: &message.Price{Input: 2, Output: 8, CacheRead: 0.2, CacheWrite: 2, LongFrom: 100, LongInput: 2, LongOutput: 1}},
				"ollama:qwen3:8b": {Price: &message.Price{}},
			}},
		{text: "models: {}\n", fail: "version"},
		{text: "version: 2\n", fail: "version must be 1"},
		{text: "version: 1\nmodels: {gpt-7: {}}\n", fail: "PROVIDER:NAME"},
		{text: "version: 1\nmodels: \n  a:b: {price: {input: 1}}\n", fail: "needs input and output"},
		{text: "version: 1\nmodels: \n  a:b: {price: {input: -1, output: 1}}\n", fail: "input must be"},
		{text: "version: 1\nmodels: \n  a:b: {window: 1}\n", fail: "window"},
	} {
		if err := os.WriteFile(filepath.Join(dir, ModelsFile), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Models(dir)
		if c.fail != "" {
			if err == nil || !strings.Contains(err.Error(), c.fail) {
				t.Errorf("%s: %+v %v, want an error with %q", c.text, got, err, c.fail)
			}
			continue
		}
		if d := cmp.Diff(c.want, got); err != nil || d != "" {
			t.Errorf("%s: %v %s", c.text, err, d)
		}
	}
}
