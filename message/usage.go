package message

import (
	"fmt"
	"math"
	"strconv"
)

// Usage counts the tokens of one model call, or a sum of several. Input does not include CacheRead and CacheWrite.
type Usage struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cache_read,omitempty"`
	CacheWrite int64 `json:"cache_write,omitempty"`
	CacheHour  int64 `json:"cache_hour,omitempty"` // the part of CacheWrite that is kept for an hour, which costs more
	Reasoning  int64 `json:"reasoning,omitempty"`  // the part of Output that was thinking, where the provider tells it apart
}

// Add returns the sum of both.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Output + v.Output, u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite, u.CacheHour + v.CacheHour, u.Reasoning + v.Reasoning}
}

// Total is every token that was read or written.
func (u Usage) Total() int64 { return u.Input + u.Output + u.CacheRead + u.CacheWrite }

// Cost is money in nano-dollars (1e-9 USD), an integer so that sums are exact and the same on every machine.
// In JSON it is a number of dollars.
type Cost int64

// Dollar is one USD.
const Dollar Cost = 1e9

// USD makes a Cost from dollars, rounded to the nearest nano-dollar.
func USD(dollars float64) Cost { return Cost(math.Round(dollars * 1e9)) }

// Dollars returns the cost in USD.
func (c Cost) Dollars() float64 { return float64(c) / 1e9 }

// String shows dollars and cents, with more digits where cents would show nothing: "$1.25", "$0.0042".
func (c Cost) String() string {
	if c != 0 && c < 10_000_000 && c > -10_000_000 {
		return fmt.Sprintf("$%.4f", c.Dollars())
	}
	return fmt.Sprintf("$%.2f", c.Dollars())
}

func (c Cost) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, c.Dollars(), 'f', -1, 64), nil
}

func (c *Cost) UnmarshalJSON(b []byte) error {
	f, err := strconv.ParseFloat(string(b), 64)
	if err != nil {
		return fmt.Errorf("cost in USD: %w", err)
	}
	*c = USD(f)
	return nil
}

// Price is what a model costs, in USD per million tokens.
type Price struct {
	Input      float64 `json:"input" yaml:"input"`
	Output     float64 `json:"output" yaml:"output"`
	CacheRead  float64 `json:"cache_read,omitempty" yaml:"cache_read"`
	CacheWrite float64 `json:"cache_write,omitempty" yaml:"cache_write"`

	// Prompts of more than LongFrom tokens cost so many times as much; 0 is no such surcharge.
	LongFrom   int64   `json:"long_from,omitempty" yaml:"long_from"`
	LongInput  float64 `json:"long_input,omitempty" yaml:"long_input"` // also for what is read from or written to the cache
	LongOutput float64 `json:"long_output,omitempty" yaml:"long_output"`
}

// hourFactor is how much more a token costs that is written to the cache for an hour instead of five minutes: twice the
// price of input against one and a quarter of it.
const hourFactor = 2 / 1.25

// Of returns the cost of the usage of one call at this price. That of several is the sum: a surcharge for a long
// prompt is each call's own.
func (p Price) Of(u Usage) Cost {
	if p.LongFrom > 0 && u.Input+u.CacheRead+u.CacheWrite > p.LongFrom {
		p.Input, p.CacheRead, p.CacheWrite, p.Output = p.Input*p.LongInput, p.CacheRead*p.LongInput, p.CacheWrite*p.LongInput, p.Output*p.LongOutput
	}
	u.CacheHour = min(u.CacheHour, u.CacheWrite)
	nano := func(tokens int64, perMillion float64) float64 { return float64(tokens) * perMillion * 1e3 }
	return Cost(math.Round(nano(u.Input, p.Input) + nano(u.Output, p.Output) + nano(u.CacheRead, p.CacheRead) + nano(u.CacheWrite-u.CacheHour, p.CacheWrite) + nano(u.CacheHour, p.CacheWrite*hourFactor)))
}
