package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"belay/harness"
	"belay/journal"
	"belay/loop"
	"belay/message"
)

// boundFlags are the limits of a run as a person gives them. They hold for the whole run, however often it is resumed.
type boundFlags struct {
	turns   int
	tokens  int64
	usd     float64
	timeout time.Duration
	mib     int64
}

// register adds the flags. The defaults are what holds where one is not given; none means: as before.
func (f *boundFlags) register(flags *pflag.FlagSet, defaults journal.Bounds) {
	usage := func(text, value string) string {
		if defaults == (journal.Bounds{}) {
			return text + " in all (default: as before)"
		}
		return text + " (default " + value + ")"
	}
	flags.IntVar(&f.turns, "max-turns", 0, usage("stop after `N` turns", strconv.Itoa(defaults.Turns)))
	flags.Int64Var(&f.tokens, "max-tokens", 0, usage("stop after `N` tokens read and written", strconv.FormatInt(defaults.Tokens, 10)))
	flags.Float64Var(&f.usd, "budget-usd", 0, usage("stop after `X` US dollars", defaults.Money.String()))
	flags.DurationVar(&f.timeout, "timeout", 0, usage("stop after a `duration` of work such as 10m", shortDuration(wall(defaults))))
	flags.Int64Var(&f.mib, "max-journal-mb", 0, usage("stop when the run keeps more than `N` MiB on the disk", strconv.FormatInt(defaults.MiB, 10)))
}

// bounds refuses what cannot be meant. A bound that was given as 0 would otherwise be the default one.
func (f *boundFlags) bounds(given func(string) bool) (journal.Bounds, error) {
	const above = "--%s must be above 0"
	switch {
	case given("max-turns") && f.turns <= 0:
		return journal.Bounds{}, usagef(above, "max-turns")
	case given("max-tokens") && f.tokens <= 0:
		return journal.Bounds{}, usagef(above, "max-tokens")
	case given("timeout") && f.timeout < time.Millisecond:
		return journal.Bounds{}, usagef("--timeout must be 1ms or more")
	case given("max-journal-mb") && f.mib <= 0:
		return journal.Bounds{}, usagef(above, "max-journal-mb")
	case given("budget-usd") && !(f.usd >= 1e-9 && f.usd <= 1e9):
		return journal.Bounds{}, usagef("--budget-usd must be above 0 and at most a billion")
	}
	ms := int64(math.Ceil(float64(f.timeout) / float64(time.Millisecond)))
	return journal.Bounds{Turns: f.turns, Tokens: f.tokens, Money: message.USD(f.usd), WallMS: ms, MiB: f.mib}, nil
}

func wall(b journal.Bounds) time.Duration { return time.Duration(b.WallMS) * time.Millisecond }

// shortDuration is a duration without the units that are zero: "30m", not "30m0s".
func shortDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// halt notes which bound stopped a run.
type halt struct{ guard *journal.Guard }

func (h *halt) observe(e journal.Event) {
	var g journal.Guard
	if e.Type == journal.TypeGuard && e.Decode(&g) == nil && g.Hard {
		h.guard = &g
	}
}

// goOn is the command that goes on with a run that stands still, "" where there is nothing to go on with. A bound
// is doubled: a total that can be typed as it is, and seen in the command.
func (h *halt) goOn(r harness.Result) string {
	command := self() + " resume " + r.RunID
	switch r.Exit {
	case loop.ExitBound:
		if flag := h.higher(); flag != "" {
			return command + " " + flag
		}
		return command + ` "what to do differently"`
	case loop.ExitWaiting:
		if r.Question != "" { // it takes the answer up by itself
			return self() + " answer " + r.RunID + " " + r.Question + " CHOICE && " + command
		}
		return command + ` "your answer"`
	case loop.ExitFailed:
		return command + ` "your answer"`
	case loop.ExitEnvironment, loop.ExitInterrupted:
		return command
	}
	return ""
}

func (h *halt) higher() string {
	if h.guard == nil {
		return ""
	}
	double := 2 * h.guard.Limit
	switch h.guard.Bound {
	case "turns":
		return fmt.Sprintf("--max-turns %.0f", double)
	case "tokens":
		return fmt.Sprintf("--max-tokens %.0f", double)
	case "usd":
		return "--budget-usd " + strconv.FormatFloat(double, 'f', -1, 64)
	case "mib":
		return fmt.Sprintf("--max-journal-mb %.0f", double)
	case "time":
		return "--timeout " + shortDuration(time.Duration(double*float64(time.Second)).Round(time.Millisecond))
	}
	return ""
}
