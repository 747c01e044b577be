package cli

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"belay/harness"
)

// registerIsolation adds the flags that say how much of a sandbox a run gets.
func registerIsolation(flags *pflag.FlagSet, cfg *harness.Config) {
	flags.StringVar(&cfg.Sandbox, "sandbox", "", "on (the default): refuse to run without one; full: also without cgroups or Landlock; best-effort: run read-only then; off: none at all, and the journal says so")
	flags.StringArrayVar(&cfg.Domains, "allow-domain", nil, "let commands reach this `host` over HTTP and HTTPS, or all below one (*.cdn.example.com); may be repeated. What can be reached can be sent to")
	flags.Var(&ports{&cfg.Local}, "allow-local", "let commands reach the service on this `port` of this machine; may be repeated")
}

// ports is a flag of port numbers.
type ports struct{ to *[]uint16 }

func (p *ports) Type() string { return "port" }

func (p *ports) String() string {
	if p.to == nil {
		return ""
	}
	var all []string
	for _, n := range *p.to {
		all = append(all, strconv.Itoa(int(n)))
	}
	return strings.Join(all, ",")
}

func (p *ports) Set(text string) error {
	for one := range strings.SplitSeq(text, ",") {
		n, err := strconv.ParseUint(one, 10, 16)
		if err != nil || n == 0 {
			return fmt.Errorf("%q is no port", one)
		}
		*p.to = append(*p.to, uint16(n))
	}
	return nil
}
