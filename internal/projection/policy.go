package projection

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"belay/message"
)

// Policy says when a context is made smaller, and how. Shares are of the window.
type Policy struct {
	Name       string  `json:"name" yaml:"name"`
	Window     int64   `json:"window" yaml:"window"`                 // tokens
	EraseAt    float64 `json:"erase_at" yaml:"erase_at"`             // above this share old results are erased
	EraseTo    float64 `json:"erase_to" yaml:"erase_to"`             // down to this share
	CompactAt  float64 `json:"compact_at" yaml:"compact_at"`         // above this share, where erasing does not get below, there is a summary
	Hard       float64 `json:"hard" yaml:"hard"`                     // near this share nothing waits any more, and above it nothing is sent
	KeepRounds int     `json:"keep_rounds" yaml:"keep_rounds"`       // rounds at the end that stay word for word
	Between    int     `json:"turns_between" yaml:"turns_between"`   // turns between two breaks of the prefix
	Reserve    int64   `json:"reserve" yaml:"reserve"`               // tokens kept free for a summary's own call
	Episodes   int64   `json:"episode_budget" yaml:"episode_budget"` // tokens of all summaries together
	Seconds    int64   `json:"summary_seconds" yaml:"summary_seconds"`
	SmallText  int     `json:"erase_from" yaml:"erase_from"` // bytes below which a result is not worth erasing
}

// Preset200k and Preset1M are the presets.
var (
	Preset200k = Policy{Name: "200k", Window: 200_000, EraseAt: 0.30, EraseTo: 0.15, CompactAt: 0.30, Hard: 0.80, KeepRounds: 10, Between: 10, Reserve: 20_000, Episodes: 12_000, Seconds: 120, SmallText: 600}
	Preset1M   = Policy{Name: "1m", Window: 1_000_000, EraseAt: 0.30, EraseTo: 0.15, CompactAt: 0.30, Hard: 0.80, KeepRounds: 10, Between: 10, Reserve: 40_000, Episodes: 40_000, Seconds: 120, SmallText: 600}
)

// Presets are the policies that have a name.
var Presets = []Policy{Preset200k, Preset1M}

// unknownWindow is what is assumed of a model of which nothing is known, in tokens.
const unknownWindow = 128_000

// PolicyFor is the preset for a window, 0 where it is unknown. In a small window fewer rounds stay, since ten of them
// might fill it.
func PolicyFor(window int64) Policy {
	p := Preset200k
	if window >= Preset1M.Window {
		p = Preset1M
	}
	return p.scaled(window)
}

func (p Policy) scaled(window int64) Policy {
	if window == 0 {
		window = unknownWindow
	}
	p.Window = window
	p.Reserve = min(p.Reserve, window/10)
	p.Episodes = min(p.Episodes, window/16)
	switch {
	case window < 32_000:
		p.KeepRounds = min(p.KeepRounds, 2)
	case window < 100_000:
		p.KeepRounds = min(p.KeepRounds, 4)
	}
	return p
}

// ParsePolicy reads a policy in JSON. What it does not say is as in the preset that it names under "preset", else as in
// base.
func ParsePolicy(data []byte, base Policy) (Policy, error) {
	var named struct {
		Preset string `json:"preset"`
	}
	if err := json.Unmarshal(data, &named); err != nil {
		return Policy{}, fmt.Errorf("context policy: %w", err)
	}
	p := base
	if named.Preset != "" {
		i := slices.IndexFunc(Presets, func(p Policy) bool { return p.Name == named.Preset })
		if i < 0 {
			return Policy{}, fmt.Errorf("context policy: there is no preset %q: it is 200k or 1m", named.Preset)
		}
		p = Presets[i]
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return Policy{}, fmt.Errorf("context policy: %w", err)
	}
	known := []string{"preset", "name", "window", "erase_at", "erase_to", "compact_at", "hard", "keep_rounds", "turns_between", "reserve", "episode_budget", "summary_seconds", "erase_from"}
	for name := range fields {
		if !slices.Contains(known, name) {
			return Policy{}, fmt.Errorf("context policy: there is no %q; there are %v", name, known)
		}
	}
	if err := json.Unmarshal(data, &p); err != nil {
		return Policy{}, fmt.Errorf("context policy: %w", err)
	}
	return p, p.check()
}

func (p Policy) check() error {
	share := func(x float64) bool { return x > 0 && x <= 1 }
	switch {
	case p.Window <= 0:
		return errors.New("context policy: window must be above 0 tokens")
	case !share(p.EraseAt) || !share(p.EraseTo) || !share(p.CompactAt) || !share(p.Hard):
		return errors.New("context policy: erase_at, erase_to, compact_at and hard are shares of the window, above 0 and at most 1")
	case p.EraseTo > p.EraseAt || p.EraseAt > p.CompactAt || p.CompactAt > p.Hard:
		return errors.New("context policy: erase_to <= erase_at <= compact_at <= hard must hold")
	case p.KeepRounds < 1 || p.Between < 0 || p.Reserve < 0 || p.Episodes < 1 || p.Seconds < 1 || p.SmallText < 0:
		return errors.New("context policy: keep_rounds, episode_budget and summary_seconds must be at least 1, and nothing below 0")
	}
	return nil
}

// Limit is how many tokens a request may have.
func (p Policy) Limit() int64 { return min(p.share(p.Hard), p.Window-p.Reserve) }

func (p Policy) share(x float64) int64 { return int64(x * float64(p.Window)) }

// Near says whether the hard limit is so near that nothing waits for a better moment.
func (p Policy) near(estimate int64) bool { return estimate >= p.Limit()-p.Limit()/10 }

// rounds are the places of the messages that begin one: a reply of the model.
func (f *Fold) rounds() []int {
	var at []int
	for i, m := range f.request.Messages {
		if m.Role == message.Assistant {
			at = append(at, i)
		}
	}
	return at
}
