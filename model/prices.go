package model

import (
	"strings"

	"belay/message"
)

// catalogue is what is known of models, as of 2026-11-30, from the providers' price pages: USD per million tokens.
// Cache writes are those of the five-minute cache. Surcharges for long prompts (OpenAI, from 272,000 tokens) are
// not in it; OpenAI's cache prices are those of gpt-6-luna in proportion. A model that is not listed, or listed
// with 0, has no known price: a wrong one is worse than none.
var catalogue = []struct {
	provider, name                       string
	window                               int64
	input, output, cacheRead, cacheWrite float64
}{
	{"anthropic", "claude-fable-5-1", 1_000_000, 10, 50, 1, 12.5},
	{"anthropic", "claude-opus-5-5", 1_000_000, 4, 20, 0.2, 5},
	{"anthropic", "claude-opus-5", 1_000_000, 5, 25, 0.5, 6.25},
	{"anthropic", "claude-sonnet-5-5", 1_000_000, 2, 10, 0.2, 2.5},
	{"anthropic", "claude-sonnet-5", 1_000_000, 2, 10, 0.2, 2.5},
	{"anthropic", "claude-haiku-5-5", 1_000_000, 0, 0, 0, 0}, // "from 0.10 / 0.50": not one price
	{"anthropic", "claude-haiku-4-5", 200_000, 1, 5, 0.1, 1.25},
	{"openai", "gpt-6.2-astra", 1_050_000, 8, 40, 0.8, 10},
	{"openai", "gpt-6.2-sol", 1_050_000, 2, 10, 0.2, 2.5},
	{"openai", "gpt-6.1-terra", 1_050_000, 1, 5, 0.1, 1.25},
	{"openai", "gpt-6-luna", 1_050_000, 0.1, 0.5, 0.01, 0.125},
	{"openai", "gpt-6-astra", 1_050_000, 10, 50, 1, 12.5},
	{"openai", "gpt-5.6-sol", 1_050_000, 4, 20, 0.4, 5},
	{"openai", "gpt-5.6-terra", 1_050_000, 2, 12, 0.2, 2.5},
	{"openai", "gpt-5.6-luna", 1_050_000, 0.2, 1.2, 0.02, 0.25},
}

// Known returns what is known of a model: window 0 and no price where nothing is. A name may carry a date,
// as in claude-haiku-4-5-20251001.
func Known(provider, name string) Info {
	info := Info{Provider: provider, Model: name}
	for _, m := range catalogue {
		if m.provider == provider && (m.name == name || (strings.HasPrefix(name, m.name) && dated(name[len(m.name):]))) {
			info.ContextWindow = m.window
			if m.input == 0 {
				continue
			}
			info.Price = &message.Price{Input: m.input, Output: m.output, CacheRead: m.cacheRead, CacheWrite: m.cacheWrite}
		}
	}
	return info
}

// dated says whether a suffix is "-20251001" or "-2025-10-01".
func dated(suffix string) bool {
	digits := strings.ReplaceAll(suffix, "-", "")
	return strings.HasPrefix(suffix, "-") && len(digits) == 8 && strings.Trim(digits, "0123456789") == ""
}
